//! What a node promises of all its machines together.
//!
//! A machine keeps the supervisor that it was started under, also when the node is started again with another time or with none. The
//! promise on the Node is what others wait for before they start a machine elsewhere, so it must be true of the slowest of them: the longest
//! time counts, and one machine without a supervisor leaves nothing to promise.

use std::path::Path;

use fairway_machines_qemu::process_of;

use super::{Fencing, parse};
use crate::instance::home::RUN;

/// After how many seconds without a renewed Lease nothing runs here any more; nothing if that cannot be said.
pub(crate) fn promise(directory: &Path, wanted: Option<&Fencing>) -> Option<u64> {
    let wanted = wanted?.after.as_secs();
    let homes = std::fs::read_dir(directory.join(RUN))
        .into_iter()
        .flatten()
        .flatten();
    let running = homes.filter_map(|home| process_of(&home.path()));
    slowest(wanted, running.map(supervised))
}

/// The longest time, if there is one for each.
fn slowest(wanted: u64, mut machines: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    machines.try_fold(wanted, |longest, it| Some(longest.max(it?)))
}

/// When a process is ended by its supervisor; nothing if it has none.
fn supervised(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|it| it.strip_prefix("PPid:"))?.trim();
    let line = std::fs::read(format!("/proc/{parent}/cmdline")).ok()?;
    patience(&line)
}

/// The time of a supervisor, by its command line.
fn patience(line: &[u8]) -> Option<u64> {
    let words = line
        .split(|byte| *byte == 0)
        .map(|it| String::from_utf8_lossy(it).into_owned());
    let order = words.skip_while(|it| it != "--lease");
    Some(parse(order)?.patience.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_machine_counts() {
        for (machines, expected) in [
            (vec![], Some(40)),
            (vec![Some(25)], Some(40)),
            (vec![Some(25), Some(90)], Some(90)),
            (vec![Some(90), None], None),
        ] {
            assert_eq!(
                slowest(40, machines.clone().into_iter()),
                expected,
                "{machines:?}"
            );
        }
    }

    #[test]
    fn supervisors_are_known_by_their_line() {
        let line = "/usr/bin/fairway\0supervise\0--lease\0/d/alive\0--seconds\090\0--\0setpriv\0qemu\0";
        assert_eq!(patience(line.as_bytes()), Some(90));
        for other in [
            "",
            "bash\0",
            "fairway\0node\0--fence-seconds\090\0",
            "x\0--lease\0/d/alive\0--\0qemu\0",
        ] {
            assert_eq!(patience(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_machine_without_a_supervisor_leaves_no_promise() {
        let directory = tempfile::tempdir().unwrap();
        let fencing = Fencing {
            supervisor: vec!["fairway".to_owned(), "supervise".to_owned()],
            after: std::time::Duration::from_secs(40),
        };
        assert_eq!(promise(directory.path(), None), None);
        assert_eq!(promise(directory.path(), Some(&fencing)), Some(40));
        let home = directory.path().join(RUN).join("abc");
        std::fs::create_dir_all(&home).unwrap();
        // As QEMU is known: by its directory, and by what it was told.
        let mut process = std::process::Command::new("sh")
            .args(["-c", "read line", "chardev=fairway-qmp,mode=control"])
            .stdin(std::process::Stdio::piped())
            .current_dir(&home)
            .spawn()
            .unwrap();
        std::fs::write(home.join("qemu.pid"), process.id().to_string()).unwrap();
        let without = promise(directory.path(), Some(&fencing));
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(without, None);
        assert_eq!(
            promise(directory.path(), Some(&fencing)),
            Some(40),
            "it has ended"
        );
    }
}
