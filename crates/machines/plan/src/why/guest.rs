//! The guest: whether it came up, and what its cloud-init says. Judged by its console and its agent; what a guest prints is
//! its own, so lines are cut and cleaned before anybody sees them.

use serde_json::Value;

use super::machine::last_lines;
use super::{Facts, Link, State, condition, field, items};

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

fn clean(line: &str) -> String {
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
pub(super) fn boot(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("boot", state, finding);
    let agent = facts
        .vmi
        .as_ref()
        .and_then(|it| condition(it, "AgentConnected"))
        .is_some_and(|it| it["status"] == "True");
    if agent {
        return link(State::Good, "its agent answers".to_owned());
    }
    let Some(console) = &facts.console else {
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
        let mut evidence = last_lines(facts, 5);
        let line = format!("console: {line}");
        if !evidence.contains(&line) {
            evidence.insert(0, line);
        }
        return link(State::Broken, why.to_owned())
            .shown_by(evidence)
            .advised(format!("`fairway vm console {}` shows the rest", facts.name));
    }
    if prompt.is_some() {
        return link(State::Good, "it asks for a login".to_owned());
    }
    let progress = |line: &String| line.contains("cloud-init") || line.contains("systemd");
    match lines.as_slice() {
        [] => link(
            State::Unknown,
            "it has printed nothing on its console, and has no agent".to_owned(),
        ),
        some if some.iter().any(progress) => {
            link(State::Good, "its system is starting".to_owned()).shown_by(last_lines(facts, 3))
        }
        _ => link(State::Waiting, "it has not come to a login yet".to_owned()).shown_by(last_lines(facts, 8)),
    }
}

/// What its cloud-init says, if it has one to read.
pub(super) fn cloud_init(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("cloud-init", state, finding);
    let volumes = facts
        .vmi
        .as_ref()
        .map_or(&[][..], |it| items(it, "/spec/volumes"));
    let is_seed = |it: &Value| !it["cloudInitNoCloud"].is_null() || !it["cloudInitConfigDrive"].is_null();
    let Some(seed) = volumes.iter().find(|it| is_seed(it)) else {
        return link(State::Unused, "the machine has no cloud-init volume".to_owned());
    };
    let Some(console) = &facts.console else {
        return link(State::Unknown, "its console cannot be read".to_owned());
    };
    let said: Vec<String> = lines(console)
        .filter(|it| it.contains("cloud-init") || it.contains("Cloud-init"))
        .collect();
    let errors: Vec<&String> = said.iter().filter(|it| is_error(it)).collect();
    if let Some(first) = errors.first() {
        let volume = field(seed, "/name");
        return link(State::Broken, after_colon(first).to_owned())
            .shown_by(errors.iter().take(5).map(|it| format!("console: {it}")))
            .advised(format!(
                "correct the user data of the volume {volume}; in the guest, `cloud-init status --long` and \
                 /var/log/cloud-init-output.log tell more"
            ));
    }
    match said.iter().any(|it| it.contains("finished")) {
        true => link(State::Good, "finished".to_owned()),
        false if said.is_empty() => link(State::Unknown, "its console says nothing of it".to_owned()),
        false => link(State::Waiting, "it is not through yet".to_owned())
            .shown_by(said.iter().rev().take(3).rev().map(|it| format!("console: {it}"))),
    }
}

fn is_error(line: &str) -> bool {
    let words = [
        "[WARNING]",
        "[ERROR]",
        "[CRITICAL]",
        "[FAILED]",
        "Failed to",
        "status: error",
    ];
    // The guest's own: whatever it says before it says that it is through.
    let own = line.contains("cloud-init: ") && !line.contains("cloud-init: finished");
    own || words.iter().any(|it| line.contains(it))
}

/// What a line says, without who says it and when.
fn after_colon(line: &str) -> &str {
    let rest = line.split_once("cloud-init: ").or_else(|| line.split_once("]: "));
    rest.map_or(line, |(_, rest)| rest)
}
