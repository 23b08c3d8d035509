//! Control groups of machines: one each, below one that is the node's, or at the top of the hierarchy.
//!
//! Where they go is decided by `plan::confinement::groups`. A group is named after the machine and the node's directory, so that whoever comes after a
//! killed Fairway finds it, and two nodes of one host do not meddle. The kernel keeps a group until somebody removes it, also an
//! empty one: what an earlier process of the node left is swept up when the node starts.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_machines_plan::confinement::groups::{self, CONTROLLERS, Given, Seen};
use fairway_machines_plan::confinement::limits::Limits;
use fairway_machines_plan::confinement::missing::NoGroups;
use fairway_machines_plan::confinement::starved::{Starved, starved};
use sha2::{Digest as _, Sha256};

/// How often an empty group is tried to be removed: processes that were killed take a moment.
const ATTEMPTS: u32 = 100;
const AGAIN: Duration = Duration::from_millis(20);
/// How systemd marks what it has given away.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// The control groups of a node's machines.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    place: PathBuf,
    /// What is limited there.
    pub(crate) controllers: Vec<String>,
    /// Which node's.
    suffix: String,
}

impl Groups {
    /// The place for groups of the machines in a directory.
    pub(crate) fn new(directory: &Path) -> Result<Self, NoGroups> {
        let seen = seen(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
        let place = groups::place(&seen)?;
        Self::at(Path::new(&place.parent), place.name, directory)
    }

    fn at(parent: &Path, name: &str, directory: &Path) -> Result<Self, NoGroups> {
        let place = parent.join(name);
        let failed = |error: io::Error| NoGroups::Failed(format!("{}: {error}", place.display()));
        make(&place).map_err(failed)?;
        for group in [parent, &place] {
            for controller in CONTROLLERS {
                // Which of them it has is seen afterwards; those that it has not are named on the Node.
                let _ = std::fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        let through = std::fs::read_to_string(place.join("cgroup.subtree_control")).map_err(failed)?;
        let digest = Sha256::digest(directory.as_os_str().as_encoded_bytes());
        let found = Self {
            place,
            controllers: through.split_ascii_whitespace().map(str::to_owned).collect(),
            suffix: digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
        };
        found.sweep();
        Ok(found)
    }

    /// The group of a machine.
    pub(crate) fn of(&self, machine: &str) -> PathBuf {
        self.place.join(format!("{machine}-{}", self.suffix))
    }

    /// Makes the group of a machine, with its limits.
    pub(crate) fn make(&self, machine: &str, limits: &Limits) -> io::Result<PathBuf> {
        let group = self.of(machine);
        // What the kernel has counted of an earlier process is not of this one. A group that somebody is in stays.
        let _ = std::fs::remove_dir(&group);
        make(&group)?;
        self.limit(machine, limits)?;
        Ok(group)
    }

    /// Limits the processes of a machine, as far as the host can.
    pub(crate) fn limit(&self, machine: &str, limits: &Limits) -> io::Result<()> {
        let group = self.of(machine);
        for (controller, file, content) in limits.files() {
            if !self.controllers.iter().any(|it| it == controller) {
                continue;
            }
            let path = group.join(file);
            let written = std::fs::write(&path, &content);
            written.map_err(|error| {
                let why = format!("{content} cannot be written to {}: {error}", path.display());
                io::Error::new(error.kind(), why)
            })?;
        }
        Ok(())
    }

    /// Whether processes of a machine were ended for want of memory, and whose.
    pub(crate) fn starved(&self, machine: &str) -> Option<Starved> {
        let group = self.of(machine);
        let file = |name: &str| std::fs::read_to_string(group.join(name)).unwrap_or_default();
        starved(&file("memory.events"), &file("memory.max"))
    }

    /// Ends what is left in the group of a machine, and removes it. It takes as long as the kernel needs for that.
    pub(crate) fn remove(&self, machine: &str) {
        let group = self.of(machine);
        if !group.exists() {
            return;
        }
        let _ = std::fs::write(group.join("cgroup.kill"), "1");
        for _ in 0..ATTEMPTS {
            match std::fs::remove_dir(&group) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(AGAIN),
                _ => return,
            }
        }
        tracing::warn!(group = %group.display(), "the control group of a machine that has ended is not removed; it is tried again when the node starts");
    }

    /// Removes groups that nobody is in: machines that ended while nobody looked.
    fn sweep(&self) {
        let entries = std::fs::read_dir(&self.place).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let is_ours = name.to_str().and_then(|it| it.rsplit_once('-'));
            if is_ours.is_some_and(|(_, suffix)| suffix == self.suffix) {
                // The kernel refuses if somebody is.
                let _ = std::fs::remove_dir(entry.path());
            }
        }
    }
}

/// What this process sees of control groups.
fn seen(mountinfo: &str, own: &str) -> Seen {
    let (mount, own) = (groups::mount(mountinfo), groups::own(own));
    let at = |path: &str| {
        mount
            .as_deref()
            .map(|it| format!("{}{path}", it.trim_end_matches('/')))
    };
    let of = |path: Option<String>| path.map_or_else(Given::default, |it| given(Path::new(&it)));
    Seen {
        own_given: of(own.as_deref().and_then(at)),
        above: of(own.as_deref().and_then(groups::above).and_then(at)),
        top: of(at("")),
        mount,
        own,
    }
}

fn given(group: &Path) -> Given {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid();
    let may_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    let is_own = || std::fs::metadata(group).is_ok_and(|it| it.uid() == user.as_raw());
    let is_marked = |mark: &&str| {
        let mut value = [0; 1];
        rustix::fs::getxattr(group, *mark, &mut value).is_ok() && value == *b"1"
    };
    Given {
        is_delegated: MARKS.iter().any(is_marked) || (!user.is_root() && is_own()),
        is_writable: may_write(group) && may_write(&group.join("cgroup.procs")),
    }
}

fn make(group: &Path) -> io::Result<()> {
    match std::fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory: 1 << 30,
        quota: Some(50_000),
        weight: 39,
        tasks: 100,
    };

    /// A folder that looks like a group; the kernel's part is not played.
    #[test]
    fn limits_are_written_as_far_as_they_are_let_through() {
        let folder = tempfile::tempdir().unwrap();
        let machines = folder.path().join("machines");
        std::fs::create_dir(&machines).unwrap();
        let groups = Groups {
            place: machines.clone(),
            controllers: vec!["memory".to_owned()],
            suffix: "0a0b0c0d".to_owned(),
        };
        let group = groups.make("abc", &LIMITS).unwrap();
        assert_eq!(group, machines.join("abc-0a0b0c0d"));
        let written = std::fs::read_to_string(group.join("memory.max")).unwrap();
        assert_eq!(written, "1073741824");
        assert!(!group.join("cpu.max").exists(), "nobody lets it through");
        assert!(groups.make("abc", &LIMITS).is_ok(), "again");
        assert_eq!(groups.starved("abc"), None);
        std::fs::write(group.join("memory.events"), "max 4\noom 1\noom_kill 1\n").unwrap();
        assert_eq!(groups.starved("abc"), Some(Starved::Machine(Some(1 << 30))));
        assert_eq!(groups.starved("another"), None);
        std::fs::create_dir(machines.join("left-0a0b0c0d")).unwrap();
        std::fs::create_dir(machines.join("left-ffffffff")).unwrap();
        groups.sweep();
        assert!(!machines.join("left-0a0b0c0d").exists());
        assert!(machines.join("left-ffffffff").exists(), "another node's");
        let nowhere = Groups::at(&folder.path().join("none"), "machines", folder.path());
        assert!(nowhere.unwrap_err().to_string().contains("none/machines"));
    }

    /// In the kernel's own groups, where memory is counted.
    #[test]
    fn one_that_takes_too_much_ends_alone() {
        let folder = tempfile::tempdir().unwrap();
        let groups = Groups::new(folder.path());
        let groups = match groups {
            Ok(groups) if groups.controllers.iter().any(|it| it == "memory") => groups,
            other => {
                eprintln!("SKIPPED: nobody counts the memory of groups here: {other:?}");
                return;
            }
        };
        let small = Limits {
            memory: 64 << 20,
            ..LIMITS
        };
        let group = groups.make("eats", &small).unwrap();
        // Memory that could be written to disk does not end anything.
        let _ = std::fs::write(group.join("memory.swap.max"), "0");
        let confinement = fairway_machines_qemu::Confinement {
            user: None,
            group: Some(group.clone()),
        };
        let line = confinement.around(&[], false);
        let eats = |size: &str| {
            // `tail` keeps the last line, and there is only one.
            let script = format!("head -c {size} /dev/zero | tail -n 1 >/dev/null; exit 0");
            std::process::Command::new(&line[0])
                .args(&line[1..])
                .args(["sh", "-c", &script])
                .status()
                .unwrap()
        };
        assert!(eats("1M").success());
        assert_eq!(groups.starved("eats"), None);
        assert!(!eats("256M").success(), "all of the group ends");
        assert_eq!(groups.starved("eats"), Some(Starved::Machine(Some(64 << 20))));
        groups.remove("eats");
        assert!(!group.exists());
    }

    /// In the kernel's own groups, where this process may make some.
    #[test]
    fn a_process_enters_a_group_and_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let groups = match Groups::new(folder.path()) {
            Ok(groups) => groups,
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                return;
            }
        };
        let group = groups.make("test", &LIMITS).unwrap();
        let confinement = fairway_machines_qemu::Confinement {
            user: None,
            group: Some(group.clone()),
        };
        let line = confinement.around(&[], false);
        let mut child = std::process::Command::new(&line[0])
            .args(&line[1..])
            .args(["sleep", "600"])
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let procs = || std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for _ in 0..500 {
            if procs().lines().any(|it| it == pid) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(procs().trim(), pid);
        groups.sweep();
        assert!(group.exists(), "one that somebody is in stays");
        if groups.controllers.iter().any(|it| it == "memory") {
            let limit = std::fs::read_to_string(group.join("memory.max")).unwrap();
            assert_eq!(limit.trim(), "1073741824");
        }
        // Whoever waits for a child has to ask about it before it is gone.
        let waiting = std::thread::spawn(move || child.wait().unwrap());
        groups.remove("test");
        assert!(!waiting.join().unwrap().success());
        assert!(!group.exists());
    }
}
