//! Copies of disks of machines that run. A copy is known by its file, also to the next process of the node.

use std::path::Path;
use std::time::Duration;

use fairway_machines_guests::Refusal;
use fairway_machines_image::overlay;
use fairway_machines_qemu::{Confinement, Machine};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{failed, memory};
use crate::instance::confining;

/// How long QEMU may take to break a copy off.
const BREAKING_OFF: Duration = Duration::from_secs(10);

/// QEMU's names are short and of few signs.
fn job(to: &Path) -> String {
    let digest = Sha256::digest(to.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("copy-{name}")
}

pub(super) async fn begin(
    machine: &Machine,
    confinement: &Confinement,
    disk: &Path,
    to: &Path,
) -> Result<(), Refusal> {
    let Some(node) = machine.node_of(disk).await.map_err(failed)? else {
        let why = format!("{} is no disk of the machine", disk.display());
        return Err(Refusal::Lacks(why));
    };
    confining::copy(confinement, machine.directory(), to).map_err(Refusal::Failed)?;
    // QEMU runs in the machine's directory, and what is above the node's may be closed to it.
    let way = overlay::from(machine.directory(), to);
    machine.begin_copy(&node, &way, &job(to)).await.map_err(failed)?;
    let still = memory::stands_still_if_kept(machine, to).await;
    if still.is_err() {
        break_off(machine, to).await?;
    }
    still
}

pub(super) async fn done(machine: &Machine, to: &Path) -> Result<Value, Refusal> {
    let is_done = machine.copied(&job(to)).await.map_err(failed)?;
    Ok(json!({"done": is_done}))
}

pub(super) async fn break_off(machine: &Machine, to: &Path) -> Result<(), Refusal> {
    machine
        .break_copy_off(&job(to), BREAKING_OFF)
        .await
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_names_of_their_own() {
        let of = |name: &str| {
            job(Path::new(&format!(
                "/data/machines/snapshots/root/{name}/disk.qcow2"
            )))
        };
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
        assert!(of("a").len() < 32);
    }
}
