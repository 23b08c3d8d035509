//! The memory of a machine that stands still, kept in a directory of the node: QEMU writes it, encrypted with the node's key, and what machine it
//! was is written down beside it.

use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::Duration;

use fairway_machines_guests::Refusal;
use fairway_machines_image::{overlay, sealed};
use fairway_machines_qemu::{Confinement, Machine, MemoryFile};
use fairway_machines_volumes::moment::{self, MEMORY_KEY};
use serde_json::{Value, json};

use super::failed;
use crate::instance::confining;
use crate::instance::home::{self, Built};
use crate::instance::memory::{Kept, is_keepable};

/// How long memory may take. The guest stands still meanwhile, so that nobody waits for ever.
const KEEPING: Duration = Duration::from_secs(1800);

/// Bytes that devices have at most: screens have the most.
const DEVICES: u64 = 512 << 20;

/// Keeps the memory of a machine; how much that is. `machines` is where this node has what belongs to machines.
pub(super) async fn keep(
    machine: &Machine,
    confinement: &Confinement,
    machines: &Path,
    accelerator: &str,
    to: &Path,
) -> Result<Value, Refusal> {
    let Some(built) = home::built(machine.directory()) else {
        let why = "how the machine was built is not known any more; restart it";
        return Err(Refusal::Lacks(why.to_owned()));
    };
    is_keepable(&built.plan).map_err(Refusal::Lacks)?;
    let kept = Kept {
        qemu: machine.version().await.map_err(failed)?,
        accelerator: accelerator.to_owned(),
        machine_type: machine.board().await.map_err(failed)?,
        built,
    };
    let (file, record) = moment::memory_paths(to);
    let (path, keys) = (file.clone(), machines.join(MEMORY_KEY));
    let made = tokio::task::spawn_blocking(move || {
        let key = sealed::key(&keys)?;
        sealed::make(&path)?;
        Ok::<_, fairway_machines_image::ImageError>(key)
    });
    let made = made.await.map_err(|error| Refusal::Failed(error.to_string()))?;
    let key = made.map_err(|error| Refusal::Failed(error.to_string()))?;
    confining::copy(confinement, machine.directory(), &file).map_err(Refusal::Failed)?;
    let way = overlay::from(machine.directory(), &file);
    let place = MemoryFile {
        path: &way,
        key: &key,
    };
    let most = bound(&kept.built);
    let saved = machine.save_memory(place, most, KEEPING).await.map_err(failed);
    let bytes = saved.and_then(|()| settle(&file, &record, &kept));
    if bytes.is_err() {
        let _ = std::fs::remove_file(&file);
    }
    Ok(json!({"bytes": bytes?}))
}

/// More than that memory does not take: that of the guest with what describes it, that of its devices, and what the file itself needs.
fn bound(built: &Built) -> u64 {
    let guest = built.memory.max(built.started_memory);
    guest + guest / 8 + DEVICES
}

/// The memory is whole: from now on it is nobody's but the node's.
fn settle(file: &Path, record: &Path, kept: &Kept) -> Result<u64, Refusal> {
    let broken = |error: std::io::Error| Refusal::Failed(format!("{}: {error}", file.display()));
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    chown(file, Some(user.as_raw()), Some(group.as_raw())).map_err(broken)?;
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).map_err(broken)?;
    overlay::settle(file).map_err(|error| Refusal::Failed(error.to_string()))?;
    let text = serde_json::to_vec(kept).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(record).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    written.map_err(broken)?;
    let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(file).map_err(broken)?);
    Ok(blocks * 512)
}

/// A copy of a disk that belongs to memory is of the same moment only if the machine stood still when it began.
pub(super) async fn stands_still_if_kept(machine: &Machine, to: &Path) -> Result<(), Refusal> {
    let directory = to.parent().unwrap_or(to);
    if moment::moment_of(directory).is_none() {
        return Ok(());
    }
    match machine.state().await.map_err(failed)?.as_str() {
        "paused" | "prelaunch" => Ok(()),
        state => Err(Refusal::Conflict(format!(
            "the machine has to stand still until all its disks are being copied, and is {state}"
        ))),
    }
}
