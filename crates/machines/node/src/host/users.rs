//! Users of machines: who has which number, written down in the node's directory as links from a number to the machine that has it.
//!
//! ```text
//! DIR/users/1900123456 -> 0123456789abcdef     the directory of a machine below DIR/run
//! ```
//!
//! A link is made whole or not at all, and only if there is none, so that two machines never have the same number, whatever is killed when. It is
//! gone with the machine's directory; one whose directory is gone is nobody's.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fairway_machines_plan::confinement::missing::NoUsers;
use fairway_machines_plan::confinement::users::{Known, Range};

use super::on_path;
use crate::instance::home::RUN;

/// Where they are written down.
const USERS: &str = "users";
/// The device by which guests run on the processor.
const KVM: &str = "/dev/kvm";

/// The users of a node's machines.
#[derive(Debug)]
pub(crate) struct Users {
    directory: PathBuf,
    range: Range,
}

impl Users {
    /// Users for the machines in a directory, if this process may give them any.
    pub(crate) fn new(directory: &Path, range: Option<Range>) -> Result<Self, NoUsers> {
        let range = range.ok_or(NoUsers::SwitchedOff)?;
        let is_mapped = |file: &str| range.is_mapped(&text(file));
        if !rustix::process::geteuid().is_root() {
            return Err(NoUsers::NotRoot);
        }
        if !is_mapped("/proc/self/uid_map") || !is_mapped("/proc/self/gid_map") {
            return Err(NoUsers::NotMapped(range));
        }
        if on_path("setpriv").is_none() {
            return Err(NoUsers::NoProgram);
        }
        Ok(Self {
            directory: directory.to_owned(),
            range,
        })
    }

    /// The number of a machine that has one.
    pub(crate) fn find(&self, machine: &str) -> Option<u32> {
        let mut candidates = self.range.candidates(machine);
        candidates.find(|id| self.holder(*id).is_some_and(|it| it == machine))
    }

    /// The number of a machine, whose directory has to be there; a new one if it has none.
    pub(crate) fn claim(&self, machine: &str) -> io::Result<u32> {
        if let Some(id) = self.find(machine) {
            return Ok(id);
        }
        std::fs::create_dir_all(self.directory.join(USERS))?;
        let (passwd, group) = (text("/etc/passwd"), text("/etc/group"));
        let (subuid, subgid) = (text("/etc/subuid"), text("/etc/subgid"));
        let known = Known::read(&[&passwd, &group], &[&subuid, &subgid]);
        for id in self.range.candidates(machine).filter(|id| !known.has(*id)) {
            let link = self.link(id);
            if let Some(holder) = self.holder(id)
                && !self.directory.join(RUN).join(holder).exists()
            {
                let _ = std::fs::remove_file(&link);
            }
            match symlink(machine, &link) {
                Ok(()) => return Ok(id),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(NoUsers::None(self.range).to_string()))
    }

    /// Lets a machine's number go.
    pub(crate) fn release(&self, machine: &str) {
        if let Some(id) = self.find(machine) {
            let _ = std::fs::remove_file(self.link(id));
        }
    }

    fn link(&self, id: u32) -> PathBuf {
        self.directory.join(USERS).join(id.to_string())
    }

    fn holder(&self, id: u32) -> Option<String> {
        let holder = std::fs::read_link(self.link(id)).ok()?;
        holder.to_str().map(str::to_owned)
    }
}

/// Groups that may open the device by which guests run on the processor, if not everybody may.
pub(crate) fn device_groups() -> Vec<u32> {
    match device() {
        Some(Openers::Group(id)) => vec![id],
        _ => Vec::new(),
    }
}

/// Why machines with users of their own cannot open the device by which guests run on the processor, if it is there. That this process
/// can says nothing about them.
pub(crate) fn device_refused() -> Option<String> {
    (device()? == Openers::Root).then(|| {
        format!(
            "{KVM} is open to root alone, and machines run as users of their own; let a group have it (chgrp kvm {KVM}; chmod 660 {KVM}), and restart this node"
        )
    })
}

/// Who may open a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Openers {
    Everybody,
    Group(u32),
    Root,
}

impl Openers {
    fn of(mode: u32, group: u32) -> Self {
        match (mode & 0o006 == 0o006, mode & 0o060 == 0o060 && group != 0) {
            (true, _) => Self::Everybody,
            (false, true) => Self::Group(group),
            (false, false) => Self::Root,
        }
    }
}

fn device() -> Option<Openers> {
    use std::os::unix::fs::MetadataExt as _;
    let device = std::fs::metadata(KVM).ok()?;
    Some(Openers::of(device.mode(), device.gid()))
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_open_a_device() {
        for (mode, group, expected) in [
            (0o20666, 104, Openers::Everybody),
            (0o20660, 104, Openers::Group(104)),
            (0o20660, 0, Openers::Root),
            (0o20640, 104, Openers::Root),
            (0o20600, 0, Openers::Root),
        ] {
            assert_eq!(Openers::of(mode, group), expected, "{mode:o} {group}");
        }
    }

    #[test]
    fn no_two_machines_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let users = |count| Users {
            directory: folder.path().to_owned(),
            range: Range {
                first: 1_900_000_000,
                count,
            },
        };
        let three = users(3);
        let home = |name: &str| folder.path().join(RUN).join(name);
        let names = ["a", "b", "c", "d"];
        for name in names {
            std::fs::create_dir_all(home(name)).unwrap();
        }
        let mut found: Vec<u32> = names[..3].iter().map(|it| three.claim(it).unwrap()).collect();
        assert_eq!(three.claim("b").unwrap(), found[1], "the same again");
        assert_eq!(users(3).find("c"), Some(found[2]), "also after a restart");
        found.sort_unstable();
        assert_eq!(found, [1_900_000_000, 1_900_000_001, 1_900_000_002]);
        let full = three.claim("d").unwrap_err().to_string();
        assert!(full.contains("--machine-users"), "{full}");
        // One that went without a word is nobody's.
        std::fs::remove_dir_all(home("a")).unwrap();
        assert!(three.claim("d").is_ok());
        three.release("b");
        assert_eq!(three.find("b"), None);
        assert!(three.claim("b").is_ok());
    }
}
