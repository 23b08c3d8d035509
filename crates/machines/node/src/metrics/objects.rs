//! Figures of instances, from their objects.

use std::collections::BTreeMap;

use fairway_controller::ObjectKey;
use serde_json::Value;

use super::text::Page;

/// The beginning of annotations by which templates tell what they are.
const ANNOTATION: &str = "vm.kubevirt.io/";

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The name of a size or taste: a cluster's own begins with its kind's label.
fn of_kind<'v>(object: &'v Value, kind: &str) -> &'v str {
    let annotations = &object["metadata"]["annotations"];
    ["", "cluster-"]
        .into_iter()
        .find_map(|prefix| annotations[format!("kubevirt.io/{prefix}{kind}-name")].as_str())
        .unwrap_or_default()
}

/// Whether it can be moved away from its node.
fn evictable(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "LiveMigratable" && it["status"] == "True")
}

/// Adds what is known of instances.
pub(super) fn add(instances: &BTreeMap<ObjectKey, Value>, page: &mut Page) {
    let mut phases: BTreeMap<[&str; 12], u64> = BTreeMap::new();
    for (key, object) in instances {
        let annotation =
            |name: &str| object["metadata"]["annotations"][format!("{ANNOTATION}{name}")].as_str();
        let phase = text(object, "/status/phase").to_lowercase();
        let node = text(object, "/status/nodeName");
        let workspace = if key.workspace.is_root() {
            ""
        } else {
            key.workspace.as_str()
        };
        let said = [
            ("os", annotation("os").unwrap_or("<none>")),
            ("workload", annotation("workload").unwrap_or("<none>")),
            ("flavor", annotation("flavor").unwrap_or("<none>")),
            ("instance_type", or_none(of_kind(object, "instancetype"))),
            ("preference", or_none(of_kind(object, "preference"))),
            (
                "guest_os_kernel_release",
                text(object, "/status/guestOSInfo/kernelRelease"),
            ),
            ("guest_os_machine", text(object, "/status/machine/type")),
            ("guest_os_arch", text(object, "/status/guestOSInfo/machine")),
            ("guest_os_name", text(object, "/status/guestOSInfo/name")),
            (
                "guest_os_version_id",
                text(object, "/status/guestOSInfo/versionId"),
            ),
        ];
        let is_evictable = evictable(object);
        let mut labels = vec![
            ("node", node),
            ("workspace", workspace),
            ("namespace", &key.namespace),
            ("name", &key.name),
            ("phase", &phase),
        ];
        labels.extend(said);
        labels.push(("evictable", if is_evictable { "true" } else { "false" }));
        labels.push(("outdated", "false"));
        page.gauge("kubevirt_vmi_info", "Information about VirtualMachineInstances.")
            .put(&labels, 1);
        let blocks = object["spec"]["evictionStrategy"] == "LiveMigrate" && !is_evictable;
        let help = "Indication for a VirtualMachine that its eviction strategy is set to Live Migration but is not migratable.";
        page.gauge("kubevirt_vmi_non_evictable", help)
            .put(&labels[..4], u8::from(blocks));
        let mut counted = [""; 12];
        counted[0] = node;
        counted[1] = text(object, "/status/phase");
        for (at, (_, value)) in said.iter().enumerate() {
            counted[at + 2] = value;
        }
        *phases.entry(counted).or_default() += 1;
    }
    const NAMES: [&str; 12] = [
        "node",
        "phase",
        "os",
        "workload",
        "flavor",
        "instance_type",
        "preference",
        "guest_os_kernel_release",
        "guest_os_machine",
        "guest_os_arch",
        "guest_os_name",
        "guest_os_version_id",
    ];
    for (values, count) in &phases {
        let phase = values[1].to_lowercase();
        let mut labels: Vec<(&str, &str)> = NAMES.into_iter().zip(*values).collect();
        labels[1].1 = &phase;
        let help = "Sum of VMIs per phase and node. `phase` can be one of the following: [`Pending`, `Scheduling`, `Scheduled`, `Running`, `Succeeded`, `Failed`, `Unknown`].";
        page.gauge("kubevirt_vmi_phase_count", help).put(&labels, count);
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    #[test]
    fn instances_are_told_and_counted() {
        let running = |name: &str, workspace: &str| {
            let key = ObjectKey::new(&WorkspaceId::parse(workspace).unwrap(), "shop", name);
            let object = json!({
                "metadata": {"annotations": {"kubevirt.io/cluster-instancetype-name": "u1.small", "vm.kubevirt.io/os": "debian"}},
                "spec": {"evictionStrategy": "LiveMigrate"},
                "status": {
                    "phase": "Running", "nodeName": "n1", "machine": {"type": "pc-q35-7.2"}, "guestOSInfo": {"name": "Tiny"},
                    "conditions": [{"type": "LiveMigratable", "status": if name == "a" { "True" } else { "False" }}],
                },
            });
            (key, object)
        };
        let all = BTreeMap::from([running("a", "root"), running("b", "2a8f0a9b1c3d4e5f")]);
        let mut page = Page::default();
        add(&all, &mut page);
        let mut lines: Vec<String> = page
            .write()
            .lines()
            .filter(|it| !it.starts_with('#'))
            .map(str::to_owned)
            .collect();
        lines.sort();
        expect![[r#"
            kubevirt_vmi_info{node="n1",namespace="shop",name="a",phase="running",os="debian",workload="<none>",flavor="<none>",instance_type="u1.small",preference="<none>",guest_os_machine="pc-q35-7.2",guest_os_name="Tiny",evictable="true",outdated="false"} 1
            kubevirt_vmi_info{node="n1",workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",phase="running",os="debian",workload="<none>",flavor="<none>",instance_type="u1.small",preference="<none>",guest_os_machine="pc-q35-7.2",guest_os_name="Tiny",evictable="false",outdated="false"} 1
            kubevirt_vmi_non_evictable{node="n1",namespace="shop",name="a"} 0
            kubevirt_vmi_non_evictable{node="n1",workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 1
            kubevirt_vmi_phase_count{node="n1",phase="running",os="debian",workload="<none>",flavor="<none>",instance_type="u1.small",preference="<none>",guest_os_machine="pc-q35-7.2",guest_os_name="Tiny"} 2"#]]
        .assert_eq(&lines.join("\n"));
    }
}
