//! The guest: whether it came up. Judged by its console and its agent; what a guest prints is its own, so lines are cut and cleaned before
//! anybody sees them.

use serde_json::Value;

use super::Machine;
use super::process::{entered, last_lines};
use super::storage::disks;
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, items, name};

/// After how many seconds a guest that says nothing at all is taken for one that does not boot.
const SILENCE: u64 = 120;
/// The same for one all of whose disks were made empty.
const SILENCE_OF_EMPTY: u64 = 5;

/// The longest line that is shown.
const LONGEST: usize = 160;

/// Lines that say that a guest will not come up, and what to do.
const DEAD_ENDS: [(&str, &str); 11] = [
    ("Kernel panic", "the guest's kernel panicked"),
    ("No bootable device", "the firmware found nothing to boot from"),
    ("not a bootable disk", "the firmware found nothing to boot from"),
    ("no bootable medium", "the firmware found nothing to boot from"),
    (
        "BdsDxe: No bootable option",
        "the firmware found nothing to boot from",
    ),
    (
        "Unable to mount root fs",
        "the guest's kernel found no root file system",
    ),
    ("grub rescue>", "the boot loader found no system"),
    (
        "(initramfs)",
        "the guest waits in its first stage: it found no root file system",
    ),
    ("emergency mode", "the guest waits in emergency mode"),
    (
        "Give root password for maintenance",
        "the guest waits in emergency mode",
    ),
    (
        "tiny: the kernel was started with",
        "the guest found no root file system",
    ),
];

/// Lines of a console, without what only a terminal understands.
pub(super) fn lines(console: &str) -> impl Iterator<Item = String> {
    console
        .split(['\n', '\r'])
        .map(clean)
        .filter(|it| !it.trim().is_empty())
}

pub(super) fn clean(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // A sequence ends with a letter; one that does not is cut off anyway.
            '\u{1b}' => {
                if characters.next_if_eq(&'[').is_some() {
                    while characters.next_if(|it| !it.is_ascii_alphabetic()).is_some() {}
                }
                characters.next();
            }
            '\t' => text.push(' '),
            other if other.is_control() => {}
            other => text.push(other),
        }
        if text.len() >= LONGEST {
            text.push('…');
            break;
        }
    }
    text.trim_end().to_owned()
}

/// Whether the guest came up.
pub(super) fn boot(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("boot", state, finding);
    let agent = machine
        .vmi
        .as_ref()
        .and_then(|it| condition(it, "AgentConnected"))
        .is_some_and(|it| it["status"] == "True");
    let since = machine.vmi.as_ref().map_or("", |it| entered(it, "Running"));
    if agent {
        return link(State::Good, "its agent answers".to_owned()).since(since);
    }
    let Some(console) = &machine.console else {
        return link(
            State::Unknown,
            "its console cannot be read, and it has no agent".to_owned(),
        );
    };
    let lines: Vec<String> = lines(console).collect();
    // What came after the last prompt counts: a guest may have been restarted since.
    let prompt = lines.iter().rposition(|it| it.contains("login:"));
    let after = &lines[prompt.map_or(0, |at| at + 1)..];
    let dead = after.iter().find_map(|line| {
        let (_, why) = DEAD_ENDS.iter().find(|(mark, _)| line.contains(mark))?;
        Some((line, *why))
    });
    if let Some((line, why)) = dead {
        let mut evidence = last_lines(machine, 5);
        let line = Evidence::new("console", "", line);
        if !evidence.contains(&line) {
            evidence.insert(0, line);
        }
        return link(State::Broken, why.to_owned())
            .shown_by(evidence)
            .advised(format!("`fairway vm console {}` shows the rest", machine.name));
    }
    if prompt.is_some() {
        return link(State::Good, "it asks for a login".to_owned()).since(since);
    }
    let progress = |line: &String| line.contains("cloud-init") || line.contains("systemd");
    match lines.as_slice() {
        [] => silent(machine),
        some if some.iter().any(progress) => {
            link(State::Good, "its system is starting".to_owned()).shown_by(last_lines(machine, 3))
        }
        _ => {
            link(State::Waiting, "it has not come to a login yet".to_owned()).shown_by(last_lines(machine, 8))
        }
    }
}

/// A guest of which nothing was heard.
fn silent(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("boot", state, finding);
    if machine.answers() {
        return link(State::Good, "it answers on the network".to_owned());
    }
    let running = machine.running_for.unwrap_or(0);
    let all = machine.data_volumes.as_deref().unwrap_or_default();
    let of_disks = disks(machine)
        .into_iter()
        .filter_map(|it| all.iter().find(|dv| name(dv) == it));
    let blank: Vec<&Value> = of_disks
        .filter(|it| it["spec"]["source"].get("blank").is_some())
        .collect();
    let volumes = machine
        .vmi
        .as_ref()
        .map_or(&[][..], |it| items(it, "/spec/volumes"));
    let can_boot = |it: &&Value| {
        [
            "dataVolume",
            "persistentVolumeClaim",
            "containerDisk",
            "ephemeral",
            "hostDisk",
        ]
        .iter()
        .any(|kind| !it[*kind].is_null())
    };
    let is_empty = !blank.is_empty() && volumes.iter().filter(can_boot).count() == blank.len();
    let seen = Evidence::new("console", "", "(nothing)");
    if is_empty && running >= SILENCE_OF_EMPTY {
        let names: Vec<&str> = blank.iter().map(|it| name(it)).collect();
        return link(
            State::Broken,
            format!(
                "there is nothing to boot from: {} was made empty",
                names.join(", ")
            ),
        )
        .shown_by(blank.iter().map(|it| {
            Evidence::new(
                format!("spec.source of DataVolume {}", name(it)),
                field(it, "/metadata/creationTimestamp"),
                "blank: {}",
            )
        }))
        .shown_by([seen])
        .advised("fill the disk from an image: `fairway image list` shows what there is");
    }
    if running >= SILENCE {
        return link(
            State::Broken,
            format!("nothing was heard of it in {running} s: no line on its console, no agent, no open port"),
        )
        .shown_by([seen])
        .advised(format!(
            "`fairway vm vnc {}` shows its screen: is what is on its disk a system for this machine?",
            machine.name
        ));
    }
    match machine.running_for {
        Some(running) => link(
            State::Waiting,
            format!("it has printed nothing on its console in {running} s"),
        ),
        None => link(
            State::Unknown,
            "it has printed nothing on its console, and has no agent".to_owned(),
        ),
    }
}
