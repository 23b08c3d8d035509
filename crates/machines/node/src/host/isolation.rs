//! How far machines are kept apart from the host and from each other, and what is missing for more.

use std::path::Path;

/// What keeps a machine's process in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// What is missing, each with what to do about it.
    pub missing: Vec<String>,
}

/// What a process here may do, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rights {
    is_root: bool,
    /// Groups of processes can be made and limited.
    has_groups: bool,
}

impl Isolation {
    /// How it is on this host.
    pub fn here() -> Self {
        let rights = Rights {
            is_root: rustix::process::geteuid().is_root(),
            has_groups: may_make_groups(Path::new("/sys/fs/cgroup"), Path::new("/proc/self/cgroup")),
        };
        Self {
            missing: missing(rights),
        }
    }
}

/// Every machine has a sandbox of system calls and a private directory. What it has not is named.
fn missing(rights: Rights) -> Vec<String> {
    let mut missing = Vec::new();
    if rights.is_root {
        missing.push(
            "machines run as root: run the node as a user of its own that may open /dev/kvm".to_owned(),
        );
    } else {
        missing.push(
            "all machines run as the node's user and are kept apart by seccomp and directories alone"
                .to_owned(),
        );
    }
    if !rights.has_groups {
        missing.push(
            "machines have no cgroup of their own: delegate one to the node (systemd: Delegate=yes)"
                .to_owned(),
        );
    } else {
        missing.push("machines have no limits of processor and memory beside their own size".to_owned());
    }
    missing
}

fn may_make_groups(root: &Path, own: &Path) -> bool {
    // `0::/path`: the one hierarchy of version 2.
    let own = std::fs::read_to_string(own).unwrap_or_default();
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return false;
    };
    let group = root.join(path.trim());
    rustix::fs::access(&group, rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(group.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_to_do() {
        let root = missing(Rights {
            is_root: true,
            has_groups: false,
        });
        assert!(
            root[0].contains("user of its own") && root[1].contains("Delegate=yes"),
            "{root:?}"
        );
        assert!(!may_make_groups(Path::new("/nowhere"), Path::new("/nowhere")));
    }
}
