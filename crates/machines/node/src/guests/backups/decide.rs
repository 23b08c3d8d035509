//! What of a disk is backed up, and what is said of it.

use std::collections::BTreeSet;

use fairway_machines_guests::Backup;
use fairway_machines_qemu::checkpoint::Disk;

/// A disk keeps so many records of changes; each costs a little with every write.
const RECORDS: usize = 8;
/// Names are short: they become part of names of files.
const LONGEST: usize = 64;

/// What is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything; why, if something else was asked for.
    Whole(String),
    /// What has changed, over a file with what was before.
    Since { checkpoint: String, behind: String },
}

/// Whether a backup can be ordered so.
pub(super) fn check(backup: &Backup) -> Result<(), String> {
    let names = [Some(&backup.checkpoint), backup.since.as_ref()];
    for name in names.into_iter().flatten() {
        if !is_name(name) {
            return Err(format!(
                "{name:?} cannot be the name of a checkpoint: use up to {LONGEST} lower-case letters, digits and dashes"
            ));
        }
    }
    if backup.since.as_ref() == Some(&backup.checkpoint) {
        return Err("a checkpoint cannot be made since itself".to_owned());
    }
    // QEMU would take what has a colon for a protocol, and a slash leads elsewhere.
    let is_file = |file: &String| {
        (1..=255).contains(&file.len())
            && file
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            && !file.starts_with('.')
    };
    match backup.behind.values().find(|file| !is_file(file)) {
        Some(file) => Err(format!(
            "{file:?} cannot be the name of a file that a copy lies over"
        )),
        None => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The name of the volume of a node; a long one was shortened, and stays so. None where a file could not have that name: what QEMU says of
/// itself is believed no further, because a guest may have taken it over.
pub(super) fn name(node: &str) -> Option<String> {
    let name = node.strip_prefix("d-").unwrap_or(node);
    is_name(name).then(|| name.to_owned())
}

/// What of a disk is copied.
pub(super) fn extent(name: &str, disk: &Disk, backup: &Backup) -> Extent {
    let Some(since) = &backup.since else {
        return Extent::Whole(String::new());
    };
    let is_in = |all: &[String]| all.iter().any(|known| known == since);
    if is_in(&disk.damaged) {
        return Extent::Whole(format!(
            "its record of what has changed since {since} was lost when QEMU was killed"
        ));
    }
    if !is_in(&disk.checkpoints) {
        return Extent::Whole(format!(
            "it has no record of what has changed since {since}: it is new, was restored, was copied along when the machine moved to \
             another node, or QEMU was killed"
        ));
    }
    match backup.behind.get(name) {
        Some(behind) => Extent::Since {
            checkpoint: since.clone(),
            behind: behind.clone(),
        },
        None => Extent::Whole("nobody said what its changes are to lie over".to_owned()),
    }
}

/// Checkpoints to be forgotten before one more is made: those whose records are of no use, one of the same name, and the oldest if there are too
/// many. The one that is wanted now stays.
pub(super) fn superfluous<'d>(disks: impl Iterator<Item = &'d Disk>, backup: &Backup) -> BTreeSet<String> {
    let mut gone = BTreeSet::new();
    let mut is_needed = false;
    for disk in disks {
        gone.extend(disk.damaged.iter().cloned());
        let (same, others): (Vec<&String>, Vec<&String>) =
            (disk.checkpoints.iter()).partition(|it| **it == backup.checkpoint);
        gone.extend(same.into_iter().cloned());
        let spare = others.len().saturating_sub(RECORDS - 1);
        let old = others.into_iter().filter(|it| backup.since.as_ref() != Some(it));
        gone.extend(old.take(spare).cloned());
        is_needed |= backup
            .since
            .as_ref()
            .is_some_and(|since| disk.checkpoints.contains(since));
    }
    // Lost on one disk, it may be whole on another.
    if let Some(since) = backup.since.as_ref().filter(|_| is_needed) {
        gone.remove(since);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(checkpoints: &[&str], damaged: &[&str]) -> Disk {
        let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        Disk {
            node: "d-root".to_owned(),
            file: "root.qcow2".to_owned(),
            size: 1 << 20,
            checkpoints: owned(checkpoints),
            damaged: owned(damaged),
        }
    }

    fn backup(checkpoint: &str, since: Option<&str>, behind: &[(&str, &str)]) -> Backup {
        Backup {
            checkpoint: checkpoint.to_owned(),
            since: since.map(str::to_owned),
            behind: (behind.iter())
                .map(|(disk, file)| ((*disk).to_owned(), (*file).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn changes_are_copied_where_they_are_known() {
        let known = [("root", "root.a.qcow2")];
        for (of, wanted, expected) in [
            (disk(&["a"], &[]), backup("b", None, &[]), Ok("")),
            (
                disk(&["a"], &[]),
                backup("b", Some("a"), &known),
                Err("root.a.qcow2"),
            ),
            (
                disk(&[], &["a"]),
                backup("b", Some("a"), &known),
                Ok("QEMU was killed"),
            ),
            (disk(&[], &[]), backup("b", Some("a"), &known), Ok("moved to")),
            (disk(&["a"], &[]), backup("b", Some("a"), &[]), Ok("lie over")),
        ] {
            match (extent("root", &of, &wanted), expected) {
                (Extent::Whole(why), Ok(part)) => assert!(why.contains(part), "{why}"),
                (Extent::Since { checkpoint, behind }, Err(file)) => {
                    assert_eq!((checkpoint.as_str(), behind.as_str()), ("a", file));
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn what_qemu_calls_its_disks_leads_nowhere() {
        assert_eq!(name("d-root"), Some("root".to_owned()));
        for node in [
            "d-../../volumes/other/disk",
            "d-/etc/passwd",
            "d-",
            "d-a.b",
            "d-A",
        ] {
            assert_eq!(name(node), None, "{node}");
        }
    }

    #[test]
    fn names_that_would_lead_elsewhere_are_refused() {
        assert_eq!(
            check(&backup("b", Some("a"), &[("root", "root.a.qcow2")])),
            Ok(())
        );
        for (wanted, why) in [
            (backup("", None, &[]), "no name"),
            (backup("../x", None, &[]), "a path"),
            (
                backup("A", None, &[]),
                "letters that names of files do not tell apart everywhere",
            ),
            (backup(&"a".repeat(65), None, &[]), "too long"),
            (backup("b", Some("b"), &[]), "since itself"),
            (backup("b", Some("a/b"), &[]), "a path"),
            (
                backup("b", Some("a"), &[("root", "/etc/shadow")]),
                "another directory",
            ),
            (
                backup("b", Some("a"), &[("root", "../root")]),
                "another directory",
            ),
            (backup("b", Some("a"), &[("root", "nbd:localhost")]), "a protocol"),
            (backup("b", Some("a"), &[("root", "json:{}")]), "a protocol"),
            (backup("b", Some("a"), &[("root", "")]), "nothing"),
        ] {
            assert!(check(&wanted).is_err(), "{why}");
        }
    }

    #[test]
    fn records_do_not_pile_up() {
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        for (of, wanted, expected, why) in [
            (
                disk(&["a"], &[]),
                backup("b", Some("a"), &[]),
                vec![],
                "one is nothing",
            ),
            (
                disk(&["a", "b"], &[]),
                backup("b", None, &[]),
                vec!["b"],
                "made again",
            ),
            (disk(&[], &["a"]), backup("b", None, &[]), vec!["a"], "of no use"),
            (
                disk(&many, &[]),
                backup("z", None, &[]),
                vec!["a", "b"],
                "the oldest",
            ),
            (
                disk(&many, &[]),
                backup("z", Some("a"), &[]),
                vec!["b", "c"],
                "but not what is needed",
            ),
        ] {
            let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(superfluous([&of].into_iter(), &wanted), expected, "{why}");
        }
    }
}
