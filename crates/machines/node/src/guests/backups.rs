//! Backups of machines that run: files on this node until whoever ordered them has them.
//!
//! ```text
//! DIR/backups/KEY/backup.json     what is being backed up, and which disks are whole
//! DIR/backups/KEY/DISK.qcow2      everything of a disk, or what has changed of it; what lies behind is named, and not here
//! ```
//!
//! There is one backup of a machine at a time. What a process of the node began, the next one finds: the jobs are QEMU's, and the rest is in
//! that file.

mod decide;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_controller::ObjectKey;
use fairway_fabric::Connection;
use fairway_machines_disk::qcow2::{Backing, empty};
use fairway_machines_guests::{Backup, Refusal};
use fairway_machines_image::overlay;
use fairway_machines_qemu::checkpoint::{Copy, Disk};
use fairway_machines_qemu::{Confinement, Machine};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncSeekExt as _;

use super::{failed, freeze, thaw};
use crate::instance::confining;
use crate::registry::Reached;
use decide::Extent;

/// How long QEMU may take to break a copy off.
const BREAKING_OFF: Duration = Duration::from_secs(10);
/// A guest is not kept standing still by a node that was killed at the wrong moment.
const STILL: u64 = 30;
/// What is on its way to somebody who reads slowly.
const PIPE: usize = 256 << 10;
const RECORD: &str = "backup.json";

/// A backup, as it is found again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    checkpoint: String,
    /// By the names of disks: whether the copy is whole.
    disks: BTreeMap<String, bool>,
}

/// The directory of a machine's backup. Names that came from elsewhere are no paths.
fn place(directory: &Path, key: &ObjectKey) -> PathBuf {
    let whose = format!("{} {} {}", key.workspace.as_str(), key.namespace, key.name);
    let digest = Sha256::digest(whose.as_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    directory.join("backups").join(name)
}

fn file_of(place: &Path, disk: &str) -> PathBuf {
    place.join(format!("{disk}.qcow2"))
}

fn job(file: &Path) -> String {
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(11).map(|byte| format!("{byte:02x}")).collect();
    format!("backup-{name}")
}

fn broken(action: &str, path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failed(format!("{action} {}: {error}", path.display()))
}

fn read(place: &Path) -> Option<Record> {
    let text = std::fs::read(place.join(RECORD)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write(place: &Path, record: &Record) -> Result<(), Refusal> {
    let (path, draft) = (place.join(RECORD), place.join(".backup.json"));
    let text = serde_json::to_vec(record).unwrap_or_default();
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(|error| broken("writing", &path, &error))
}

/// The disks that are backed up, by the names of their volumes.
async fn disks(machine: &Machine, directory: &Path) -> Result<BTreeMap<String, Disk>, Refusal> {
    let all = machine.disks_to_back_up().await.map_err(failed)?;
    // Only volumes: what a machine throws away when it ends is not worth a backup.
    let volumes = directory.join("volumes").canonicalize().unwrap_or_default();
    let is_volume = |disk: &Disk| {
        let file = machine.directory().join(&disk.file).canonicalize();
        file.is_ok_and(|file| file.starts_with(&volumes))
    };
    let found = all.into_iter().filter(is_volume);
    Ok(found
        .filter_map(|disk| Some((decide::name(&disk.node)?, disk)))
        .collect())
}

pub(super) async fn begin(
    reached: &Reached,
    confinement: &Confinement,
    directory: &Path,
    key: &ObjectKey,
    backup: &Backup,
) -> Result<Value, Refusal> {
    decide::check(backup).map_err(Refusal::Lacks)?;
    let machine = &reached.machine;
    let place = place(directory, key);
    if let Some(before) = read(&place)
        && before.disks.values().any(|is_whole| !is_whole)
        && status(machine, directory, key)
            .await
            .is_ok_and(|it| it["done"] == false)
    {
        let why = format!(
            "the backup {} of the machine is under way; wait for it, or end it",
            before.checkpoint
        );
        return Err(Refusal::Conflict(why));
    }
    clear(machine, &place).await?;
    let disks = disks(machine, directory).await?;
    if disks.is_empty() {
        let why =
            "the machine has no disk that could be backed up: only volumes of the class local are".to_owned();
        return Err(Refusal::Lacks(why));
    }
    std::fs::create_dir_all(&place).map_err(|error| broken("making", &place, &error))?;
    let begun = copy(reached, confinement, &place, &disks, backup).await;
    if begun.is_err() {
        let _ = std::fs::remove_dir_all(&place);
    }
    begun
}

async fn copy(
    reached: &Reached,
    confinement: &Confinement,
    place: &Path,
    disks: &BTreeMap<String, Disk>,
    backup: &Backup,
) -> Result<Value, Refusal> {
    let machine = &reached.machine;
    for checkpoint in decide::superfluous(disks.values(), backup) {
        machine.forget_checkpoint(&checkpoint).await.map_err(failed)?;
    }
    let mut told = Vec::new();
    let mut jobs = Vec::new();
    for (name, disk) in disks {
        let extent = decide::extent(name, disk, backup);
        let file = file_of(place, name);
        let backing = match &extent {
            Extent::Since { behind, .. } => Some(Backing {
                file: behind,
                format: "qcow2",
            }),
            Extent::Whole(_) => None,
        };
        let content = empty(disk.size, backing).map_err(|error| Refusal::Failed(error.to_string()))?;
        // Nothing is there: the directory is this process's own, and was emptied.
        std::fs::File::create_new(&file)
            .and_then(|mut made| std::io::Write::write_all(&mut made, &content))
            .map_err(|error| broken("writing", &file, &error))?;
        confining::copy(confinement, machine.directory(), &file).map_err(Refusal::Failed)?;
        let (since, why) = match &extent {
            Extent::Since { checkpoint, .. } => (Some(checkpoint.clone()), ""),
            Extent::Whole(why) => (None, why.as_str()),
        };
        told.push(json!({"name": name, "size": disk.size, "since": since, "why": why}));
        // QEMU runs in the machine's directory, and what is above the node's may be closed to it.
        let way = overlay::from(machine.directory(), &file);
        jobs.push((disk.node.as_str(), job(&file), way, since));
    }
    let record = Record {
        checkpoint: backup.checkpoint.clone(),
        disks: disks.keys().map(|name| (name.clone(), false)).collect(),
    };
    write(place, &record)?;
    let copies: Vec<Copy<'_>> = jobs
        .iter()
        .map(|(node, job, file, since)| Copy {
            node,
            file,
            job,
            since: since.as_deref(),
        })
        .collect();
    let is_frozen = reached.has_agent() && freeze(reached, Some(STILL)).await.is_ok();
    let begun = machine.begin_backup(&copies, &backup.checkpoint).await;
    if is_frozen {
        // If it fails, the guest is thawed a little later.
        let _ = thaw(reached).await;
    }
    begun.map_err(failed)?;
    Ok(json!({"frozen": is_frozen, "disks": told}))
}

pub(super) async fn status(machine: &Machine, directory: &Path, key: &ObjectKey) -> Result<Value, Refusal> {
    let place = place(directory, key);
    let Some(mut record) = read(&place) else {
        return Err(Refusal::Lacks("no backup of the machine is under way".to_owned()));
    };
    let mut told = Vec::new();
    for (name, is_whole) in &mut record.disks {
        let file = file_of(&place, name);
        if !*is_whole {
            *is_whole = machine.copied(&job(&file)).await.map_err(failed)?;
        }
        let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
        told.push(json!({"name": name, "bytes": bytes}));
    }
    write(&place, &record)?;
    let is_done = record.disks.values().all(|is_whole| *is_whole);
    Ok(json!({"checkpoint": record.checkpoint, "done": is_done, "disks": told}))
}

pub(super) async fn end(
    machine: &Machine,
    directory: &Path,
    key: &ObjectKey,
    keep: bool,
    forget: Option<&str>,
) -> Result<(), Refusal> {
    let place = place(directory, key);
    let record = read(&place);
    clear(machine, &place).await?;
    let own = record.map(|record| record.checkpoint).filter(|_| !keep);
    for checkpoint in [own.as_deref(), forget.filter(|_| keep)].into_iter().flatten() {
        machine.forget_checkpoint(checkpoint).await.map_err(failed)?;
    }
    Ok(())
}

/// Ends what is under way, and removes what is there.
async fn clear(machine: &Machine, place: &Path) -> Result<(), Refusal> {
    for name in read(place).unwrap_or_default().disks.keys() {
        let job = job(&file_of(place, name));
        machine.break_copy_off(&job, BREAKING_OFF).await.map_err(failed)?;
    }
    match std::fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(broken("removing", place, &error)),
        _ => Ok(()),
    }
}

/// What was copied of a disk. Also of a machine that has ended since.
pub(super) async fn open(
    directory: &Path,
    key: &ObjectKey,
    disk: &str,
    offset: u64,
) -> Result<Box<dyn Connection>, Refusal> {
    let place = place(directory, key);
    let is_whole = read(&place).and_then(|record| record.disks.get(disk).copied());
    match is_whole {
        None => return Err(Refusal::Lacks(format!("there is no backup of a disk {disk:?}"))),
        Some(false) => {
            let why = format!("the backup of the disk {disk} is not whole yet");
            return Err(Refusal::Conflict(why));
        }
        Some(true) => {}
    }
    let path = file_of(&place, disk);
    let opened = async {
        let mut file = tokio::fs::File::open(&path).await?;
        file.seek(std::io::SeekFrom::Start(offset)).await?;
        Ok(file)
    };
    let mut file = opened.await.map_err(|error| broken("reading", &path, &error))?;
    let (near, mut far) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        // Who stops reading gets no more; how much there is he knows.
        let _ = tokio::io::copy(&mut file, &mut far).await;
    });
    Ok(Box::new(near))
}
