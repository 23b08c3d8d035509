//! What a machine may touch: the files of its disks are given to its user, and those that they are built on are shown to it.
//!
//! Directories on the way there are such that machines can pass through them and not read them: a machine finds what it was told of. QEMU is told of
//! files by the way from its own directory, so that what lies above the node's directory stays closed.

use std::io;
use std::path::{Component, Path, PathBuf};

use fairway_machines_plan::argv::{Backing, FirmwareFiles};
use fairway_machines_plan::confinement::limits::{self, Limits};
use fairway_machines_plan::machine::{DiskPlan, DiskSource, MachinePlan};
use fairway_machines_plan::view::VirtualMachineInstance;
use fairway_machines_qemu::Confinement;

use super::disks::Prepared;
use crate::host::Facts;

/// The limits of a machine whose guest has so much memory.
pub(crate) fn limits(plan: &MachinePlan, vmi: &VirtualMachineInstance, facts: &Facts, guest: u64) -> Limits {
    limits::limits(plan, &vmi.spec.domain.resources, facts.accelerator(), guest)
}

/// The name by which a machine's directory is known.
pub(crate) fn name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Gives a machine everything that it is made of.
pub(crate) fn admit(
    confinement: &Confinement,
    directory: &Path,
    plan: &MachinePlan,
    prepared: &Prepared,
) -> Result<(), String> {
    if confinement.user.is_none() {
        return Ok(());
    }
    let failed = |error: io::Error| format!("{} cannot be opened to its user: {error}", directory.display());
    confinement.make(directory).map_err(failed)?;
    open_ways(confinement, directory, directory).map_err(failed)?;
    for disk in &plan.disks {
        if let Some(backing) = prepared.backings.get(&disk.name) {
            let below = prepared.below.get(&disk.name);
            disk_of(confinement, directory, disk, backing, below)?;
        }
    }
    match &prepared.firmware {
        Some(FirmwareFiles { variables, .. }) => {
            let path = directory.join(variables);
            confinement.give(&path).map_err(refused(&path))
        }
        None => Ok(()),
    }
}

/// Gives a machine one disk. `below` is the disk of a claim that it lies over: what its own file says about that was written by a guest's QEMU.
pub(crate) fn disk_of(
    confinement: &Confinement,
    directory: &Path,
    disk: &DiskPlan,
    backing: &Backing,
    below: Option<&PathBuf>,
) -> Result<(), String> {
    if confinement.user.is_none() {
        return Ok(());
    }
    let path = directory.join(&backing.file);
    let may_share = !matches!(disk.source, DiskSource::Seed(_) | DiskSource::Files { .. });
    let access = match (disk.shared && may_share, disk.read_only && may_share) {
        (_, true) => Access::Read,
        (true, false) => Access::Shared,
        (false, false) => Access::Own,
    };
    file(confinement, directory, &path, access)?;
    match below {
        Some(below) => file(confinement, directory, below, Access::Read),
        None => Ok(()),
    }
}

/// Gives a machine the file that a copy of one of its disks goes to.
pub(crate) fn copy(confinement: &Confinement, directory: &Path, to: &Path) -> Result<(), String> {
    if confinement.user.is_none() {
        return Ok(());
    }
    file(confinement, directory, to, Access::Own)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The machine's alone.
    Own,
    /// Several may write to it.
    Shared,
    /// It is read, by whoever.
    Read,
}

fn file(confinement: &Confinement, directory: &Path, path: &Path, access: Access) -> Result<(), String> {
    open_ways(confinement, directory, path).map_err(refused(path))?;
    match access {
        Access::Own => confinement.give(path),
        Access::Shared => confinement.share(path, true),
        Access::Read => confinement.share(path, false),
    }
    .map_err(refused(path))?;
    // The image that it lies over is linked to beside it, and shared with others.
    let base = path.with_extension("base");
    match base.exists() {
        true => confinement.show(&base).map_err(refused(&base)),
        false => Ok(()),
    }
}

fn refused(path: &Path) -> impl FnOnce(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path} cannot be opened to the machine's user: {error}")
}

/// Lets machines through from the node's directory to a file or directory below it.
fn open_ways(confinement: &Confinement, directory: &Path, to: &Path) -> io::Result<()> {
    let Some(machines) = directory.ancestors().nth(2) else {
        return Ok(());
    };
    let to = std::path::absolute(to)?;
    let machines = std::path::absolute(machines)?;
    let to = lexical(&to);
    for way in to.ancestors().skip(1).filter(|it| it.starts_with(&machines)) {
        // The machine's own directory has its own rules.
        if way != directory {
            confinement.open_way(way)?;
        }
    }
    Ok(())
}

/// A path without `..`: those in it were put there by us, between directories that are no links.
fn lexical(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_directories() {
        for (path, expected) in [
            ("/d/run/a/../../volumes/x/disk.qcow2", "/d/volumes/x/disk.qcow2"),
            ("/d/run/a/vars.fd", "/d/run/a/vars.fd"),
        ] {
            assert_eq!(lexical(Path::new(path)), Path::new(expected));
        }
        assert_eq!(name(Path::new("/d/run/abc")), "abc");
    }
}
