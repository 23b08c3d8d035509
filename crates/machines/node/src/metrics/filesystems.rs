//! Figures of a guest's file systems, as its agent tells them. What it says is the guest's word: it is bounded, in number and in length.

use std::time::Duration;

use fairway_machines_qemu::agent::Filesystem;

use super::text::Page;
use crate::registry::Reached;

/// How long the agent may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// More are not told.
const TOLD: usize = 32;
/// One with a longer name or place is not told.
const LONGEST: usize = 256;

/// Asks a machine whose agent has just answered something: one that has not is not waited for again.
pub(super) async fn take(reached: &Reached, answers: bool) -> Vec<Filesystem> {
    if !answers {
        return Vec::new();
    }
    let said = tokio::time::timeout(PATIENCE, reached.agent.filesystems()).await;
    said.ok().and_then(Result::ok).unwrap_or_default()
}

/// Adds what there is and what is in use.
pub(super) fn add(found: &[Filesystem], labels: &[(&str, &str)], page: &mut Page) {
    let is_short = |it: &&Filesystem| {
        [&it.name, &it.mountpoint, &it.kind]
            .iter()
            .all(|text| text.len() <= LONGEST)
    };
    // An agent that does not know sizes tells of none.
    let told = found.iter().filter(|it| it.total_bytes > 0).filter(is_short);
    for it in told.take(TOLD) {
        let mut labels = labels.to_vec();
        labels.extend([
            ("disk_name", it.name.as_str()),
            ("mount_point", &it.mountpoint),
            ("file_system_type", &it.kind),
        ]);
        page.gauge(
            "kubevirt_vmi_filesystem_capacity_bytes",
            "Total VM filesystem capacity in bytes.",
        )
        .put(&labels, it.total_bytes);
        page.gauge(
            "kubevirt_vmi_filesystem_used_bytes",
            "Used VM filesystem capacity in bytes.",
        )
        .put(&labels, it.used_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filesystem(name: &str, total_bytes: u64) -> Filesystem {
        Filesystem {
            name: name.to_owned(),
            mountpoint: "/".to_owned(),
            kind: "ext4".to_owned(),
            used_bytes: total_bytes / 2,
            total_bytes,
        }
    }

    fn figures(found: &[Filesystem]) -> Vec<String> {
        let mut page = Page::default();
        add(found, &[("name", "web")], &mut page);
        let page = page.write();
        let lines = page.lines().filter(|it| !it.starts_with('#'));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn what_the_guest_says_is_bounded() {
        let long = "x".repeat(LONGEST + 1);
        let found = [filesystem("vda1", 8), filesystem("vdb", 0), filesystem(&long, 8)];
        let labels = r#"{name="web",disk_name="vda1",mount_point="/",file_system_type="ext4"}"#;
        assert_eq!(
            figures(&found),
            [
                format!("kubevirt_vmi_filesystem_capacity_bytes{labels} 8"),
                format!("kubevirt_vmi_filesystem_used_bytes{labels} 4"),
            ]
        );
        let many: Vec<Filesystem> = (0..1000).map(|it| filesystem(&format!("vd{it}"), 8)).collect();
        assert_eq!(figures(&many).len(), 2 * TOLD);
    }
}
