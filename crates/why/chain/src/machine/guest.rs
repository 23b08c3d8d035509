//! The guest: whether it came up, and what its cloud-init says. Judged by its console and its agent; what a guest prints is
//! its own, so lines are cut and cleaned before anybody sees them.

use serde_json::Value;

use super::Machine;
use super::process::{entered, last_lines, off};
use super::storage::disks;
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, items, name, told};

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

/// The condition of an instance that is not started because its cloud-init volume or its keys are in a Secret that is not there.
pub(super) fn missing_seed(machine: &Machine) -> Option<(&Value, String)> {
    let vmi = machine.vmi.as_ref()?;
    let said = condition(vmi, "Synchronized").filter(|it| it["status"] == "False")?;
    let message = field(said, "/message");
    let volumes = items(vmi, "/spec/volumes").iter();
    let of_volumes = volumes.flat_map(|it| {
        ["cloudInitNoCloud", "cloudInitConfigDrive"]
            .into_iter()
            .flat_map(move |kind| {
                ["secretRef", "networkDataSecretRef"]
                    .into_iter()
                    .map(move |reference| field(&it[kind][reference], "/name"))
            })
    });
    let keys = items(vmi, "/spec/accessCredentials").iter();
    let of_keys = keys.flat_map(|it| {
        ["sshPublicKey", "userPassword"]
            .into_iter()
            .map(move |kind| field(&it[kind]["source"]["secret"], "/secretName"))
    });
    let mut secrets = of_volumes.chain(of_keys).filter(|it| !it.is_empty());
    let missing = secrets.find(|it| message.contains("Secret") && message.contains(&format!("{it:?}")))?;
    Some((said, missing.to_owned()))
}

/// What its cloud-init says, if it has one to read.
pub(super) fn cloud_init(machine: &Machine) -> Link {
    let link = |state, finding: String| Link::new("cloud-init", state, finding);
    let volumes = machine
        .vmi
        .as_ref()
        .map_or(&[][..], |it| items(it, "/spec/volumes"));
    let is_seed = |it: &Value| !it["cloudInitNoCloud"].is_null() || !it["cloudInitConfigDrive"].is_null();
    if let Some((said, secret)) = missing_seed(machine) {
        return link(
            State::Broken,
            format!("it needs the Secret {secret:?}: {}", field(said, "/message")),
        )
        .shown_by([told(said, "")])
        .shown_by(machine.warnings("VirtualMachineInstance", &machine.name))
        .advised(format!(
            "create the Secret {secret} in {}, or correct its name in the machine",
            machine.namespace
        ));
    }
    let running = machine
        .vmi
        .as_ref()
        .is_some_and(|it| field(it, "/status/phase") == "Running");
    if !running {
        return match off(machine) {
            Some(_) => link(State::Unused, "the machine is off".to_owned()),
            None => link(State::Waiting, "the guest does not run".to_owned()),
        };
    }
    let Some(seed) = volumes.iter().find(|it| is_seed(it)) else {
        return link(State::Unused, "the machine has no cloud-init volume".to_owned());
    };
    let Some(console) = &machine.console else {
        return link(State::Unknown, "its console cannot be read".to_owned());
    };
    let said: Vec<String> = lines(console)
        .filter(|it| it.contains("cloud-init") || it.contains("Cloud-init"))
        .collect();
    let errors: Vec<&String> = said.iter().filter(|it| is_error(it)).collect();
    if let Some(first) = errors.first() {
        let volume = field(seed, "/name");
        return link(State::Broken, after_colon(first).to_owned())
            .shown_by(errors.iter().take(5).map(|it| Evidence::new("console", "", it)))
            .advised(format!(
                "correct the user data of the volume {volume}; in the guest, `cloud-init status --long` and \
                 /var/log/cloud-init-output.log tell more"
            ));
    }
    match said.iter().any(|it| it.contains("finished")) {
        true => link(State::Good, "finished".to_owned()),
        false if boot(machine).state != State::Good => {
            link(State::Waiting, "the guest has not come to it".to_owned())
        }
        false if said.is_empty() => link(State::Unknown, "its console says nothing of it".to_owned()),
        false => link(State::Waiting, "it is not through yet".to_owned()).shown_by(
            said.iter()
                .rev()
                .take(3)
                .rev()
                .map(|it| Evidence::new("console", "", it)),
        ),
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
