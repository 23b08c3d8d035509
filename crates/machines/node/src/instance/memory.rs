//! Memory that was kept of a machine, and whether this one can go on with it.
//!
//! It can if it is the same machine: built in the same way, on disks of the same moment to which nobody has written since, run by the same QEMU.
//! Anything else would be a guest that is wrong about its hardware or its disks, so that it starts from its disks instead, and its
//! instance says why. What is kept is written down beside the memory ([`Kept`]); where disks say which moment they are of is in
//! `fairway_machines_volumes::moment`.

mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairway_controller::WorkspaceId;
use fairway_machines_plan::argv::Accelerator;
use fairway_machines_plan::machine::{DiskLimits, DiskPlan, DiskSource, MachinePlan};
use fairway_machines_plan::view::Condition;
use fairway_machines_volumes::moment::{self, Moment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disks::Prepared;
use super::home::Built;

pub(crate) use load::LoadError;

/// The largest description of a machine.
const MAX_RECORD: u64 = 4 << 20;

/// What machine it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    /// QEMU's version, such as `7.2.22`.
    pub(crate) qemu: String,
    /// How its guest ran.
    pub(crate) accelerator: String,
    /// The board with its version.
    pub(crate) machine_type: String,
    pub(crate) built: Built,
}

/// A machine that goes on: what it was, and where its memory is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resume {
    pub(crate) kept: Kept,
    /// The machine as it is to be built.
    pub(crate) built: Built,
    /// The memory, which stays as it is.
    pub(crate) memory: PathBuf,
}

/// What became of memory, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(crate) is_done: bool,
    pub(crate) message: String,
}

impl Remembered {
    /// It goes on where it was.
    pub(crate) fn well() -> Self {
        Self {
            is_done: true,
            message: "The guest goes on where it was when the snapshot was taken".to_owned(),
        }
    }

    /// It started from its disks, and why.
    pub(crate) fn not(why: &str) -> Self {
        Self {
            is_done: false,
            message: format!("The guest started from its disks, without the memory of the snapshot: {why}"),
        }
    }

    pub(crate) fn condition(&self) -> Condition {
        match self.is_done {
            true => Condition::holds("MemoryRestored", "Resumed", self.message.clone()),
            false => Condition::fails("MemoryRestored", "StartedFromDisks", self.message.clone()),
        }
    }
}

/// The machine that is about to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now<'a> {
    pub(crate) plan: &'a MachinePlan,
    /// QEMU's version: the same until the second dot is the same.
    pub(crate) qemu: &'a str,
    pub(crate) accelerator: &'a str,
    /// The moments of its disks on claims.
    pub(crate) moments: &'a BTreeMap<String, Option<Moment>>,
    /// Bytes of its disks.
    pub(crate) sizes: &'a BTreeMap<String, u64>,
}

pub(crate) fn word(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Kvm => "kvm",
        Accelerator::Tcg => "tcg",
    }
}

/// Whether memory of a machine is of any use: everything that it writes to has to be there again.
pub(crate) fn is_keepable(plan: &MachinePlan) -> Result<(), String> {
    for disk in plan.disks.iter().filter(|it| !it.read_only) {
        let name = &disk.name;
        match &disk.source {
            DiskSource::Seed(_) | DiskSource::Files { .. } => {}
            DiskSource::Claim { .. } | DiskSource::DataVolume { .. } if disk.shared => {
                return Err(format!(
                    "others may write to the disk {name}, and the guest would be wrong about it; snapshots without memory are possible"
                ));
            }
            DiskSource::Claim { .. } | DiskSource::DataVolume { .. } => {}
            _ => {
                return Err(format!(
                    "the disk {name} is not in a snapshot, and the guest would miss it; use a claim instead, or a snapshot without memory"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a machine can go on with memory; else why not.
pub(crate) fn fits(kept: &Kept, now: &Now<'_>) -> Result<(), String> {
    let mut moments = now.moments.values().flatten().map(|it| &it.moment);
    let first = moments.next();
    for (disk, found) in now.moments {
        match found {
            Some(found) if Some(&found.moment) == first => {}
            Some(_) => return Err(format!("the disk {disk} is of another snapshot")),
            None => {
                return Err(format!(
                    "the disk {disk} is not of the snapshot, or was used since"
                ));
            }
        }
    }
    let built = &kept.built;
    if release(&kept.qemu) != release(now.qemu) {
        return Err(format!(
            "it was kept by QEMU {}, and this is {}",
            kept.qemu, now.qemu
        ));
    }
    if kept.accelerator != now.accelerator {
        return Err(format!(
            "the guest ran by {}, and would run by {}",
            kept.accelerator, now.accelerator
        ));
    }
    for disk in now.moments.keys() {
        let before = built.volumes.get(disk).and_then(|it| it.size);
        if before != now.sizes.get(disk).copied() {
            return Err(format!("the disk {disk} has another size"));
        }
    }
    let mut changed = differences(&built.plan, now.plan);
    if now.plan.cpu.sockets != built.sockets {
        changed.push("cpu".to_owned());
    }
    if now.plan.memory.guest != built.memory {
        changed.push("memory".to_owned());
    }
    changed.sort();
    changed.dedup();
    match changed.is_empty() {
        true => Ok(()),
        false => Err(format!("the machine is another by now: {}", changed.join(", "))),
    }
}

/// Major and minor of a version.
fn release(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}

/// What of two plans is not the same to a guest.
fn differences(before: &MachinePlan, now: &MachinePlan) -> Vec<String> {
    let (before, now) = (seen_by_guest(before), seen_by_guest(now));
    let fields = now.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
    let fields = fields.unwrap_or_default().into_iter();
    fields.filter(|field| before[field] != now[field]).collect()
}

/// A plan without what a guest does not see, or what is judged by other means.
fn seen_by_guest(plan: &MachinePlan) -> Value {
    let mut plan = plan.clone();
    plan.unsupported.clear();
    (plan.grace_seconds, plan.start_paused) = (0, false);
    plan.cpu.sockets = 0;
    (plan.memory.guest, plan.memory.grown) = (0, 0);
    for disk in &mut plan.disks {
        disk.limits = DiskLimits::default();
        if let DiskSource::Claim { name } | DiskSource::DataVolume { name } = &disk.source {
            let _ = name;
            disk.source = DiskSource::Claim { name: String::new() };
        }
    }
    serde_json::to_value(plan).unwrap_or_default()
}

/// The machine that goes on: built as it was, on the disks that it has now.
fn resumed(kept: &Kept, now: &MachinePlan) -> Built {
    let mut built = kept.built.clone();
    let plan = &mut built.plan;
    plan.memory.guest = built.started_memory;
    plan.memory.grown = built.memory.saturating_sub(built.started_memory);
    if !kept.machine_type.is_empty() {
        kept.machine_type.clone_into(&mut plan.board.machine_type);
    }
    (plan.grace_seconds, plan.start_paused) = (now.grace_seconds, now.start_paused);
    plan.unsupported.clone_from(&now.unsupported);
    let of = |name: &str| now.disks.iter().find(|it| it.name == name);
    for disk in &mut plan.disks {
        let found: Option<&DiskPlan> = of(&disk.name);
        if let Some(found) = found {
            disk.source = found.source.clone();
            disk.limits = found.limits;
        }
    }
    built
}

/// Looks whether the disks of a machine came out of a snapshot with memory: nothing if not, else the machine that goes on, or why it cannot.
pub(crate) fn find(
    machines: &Path,
    workspace: &WorkspaceId,
    prepared: &Prepared,
    plan: &MachinePlan,
    (qemu, accelerator): (&str, &str),
) -> Option<Result<Resume, String>> {
    let of = |directory: &PathBuf| moment::moment_of(directory);
    let moments: BTreeMap<String, Option<Moment>> = prepared
        .volumes
        .iter()
        .map(|(disk, directory)| (disk.clone(), of(directory)))
        .collect();
    if moments.values().all(Option::is_none) {
        return None;
    }
    let places = moments.values().flatten();
    let mut places = places.filter_map(|it| moment::snapshot_directory(machines, workspace, it));
    let found = places.find_map(|it| {
        let (memory, record) = moment::memory_paths(&it);
        memory.exists().then_some((memory, record))
    });
    let Some((memory, record)) = found else {
        return Some(Err("the snapshot with the memory is gone".to_owned()));
    };
    let Some(kept) = read(&record) else {
        return Some(Err(
            "what machine it was, another version of Fairway has written down".to_owned(),
        ));
    };
    let now = Now {
        plan,
        qemu,
        accelerator,
        moments: &moments,
        sizes: &prepared.sizes,
    };
    let judged = fits(&kept, &now);
    let built = resumed(&kept, plan);
    Some(judged.map(|()| Resume { kept, built, memory }))
}

fn read(record: &Path) -> Option<Kept> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let file = std::fs::File::open(record).ok()?;
    file.take(MAX_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests;
