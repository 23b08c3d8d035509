//! How far a machine is that leaves, for people: first its disks are copied, then its memory is sent.
//!
//! Whoever sends notes it down as often as QEMU is asked; it is said in a condition of the instance every few seconds, and not more often, as
//! each time is a write.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_machines_plan::node::MIGRATION_PROGRESS;
use fairway_machines_plan::view::Condition;
use fairway_machines_qemu::migrate::Progress;
use fairway_machines_qemu::mirror::Copied;
use tokio::time::Instant;

/// How often it is said.
const SAID_EVERY: Duration = Duration::from_secs(5);

/// What was last noted down.
#[derive(Debug, Default, Clone, PartialEq)]
struct Noted {
    disks: Vec<Copied>,
    memory: Option<Progress>,
}

/// Notes down how far it is.
#[derive(Debug, Default, Clone)]
pub(super) struct Meter(Arc<Mutex<Noted>>);

impl Meter {
    pub(super) fn disks(&self, copied: &[Copied]) {
        self.change(|it| it.disks = copied.to_vec());
    }

    pub(super) fn memory(&self, progress: &Progress) {
        self.change(|it| it.memory = Some(progress.clone()));
    }

    fn change(&self, change: impl FnOnce(&mut Noted)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn read(&self) -> Noted {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How far it is, as it is said.
#[derive(Debug)]
pub(crate) struct Course {
    meter: Meter,
    said: Option<Condition>,
    /// When to look again.
    next: Instant,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            meter: Meter::default(),
            said: None,
            next: Instant::now() + SAID_EVERY,
        }
    }
}

impl Course {
    pub(super) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Looks how far it is, if it is time to.
    pub(super) fn look(&mut self) {
        self.look_at(Instant::now());
    }

    fn look_at(&mut self, now: Instant) {
        if self.next <= now {
            self.next = now + SAID_EVERY;
            self.said = condition(&self.meter.read());
        }
    }

    /// When to look again.
    pub(crate) fn due(&self) -> Instant {
        self.next
    }

    /// What is said.
    pub(crate) fn condition(&self) -> Option<&Condition> {
        self.said.as_ref()
    }
}

/// The condition that says it; nothing before there is anything to say.
fn condition(noted: &Noted) -> Option<Condition> {
    let memory = noted.memory.as_ref().filter(|it| it.total > 0);
    let mut parts: Vec<String> = Vec::new();
    for disk in noted.disks.iter().filter(|it| it.all > 0) {
        // From then on a copy keeps up with the guest, and nobody asks any more.
        let done = if memory.is_some() { disk.all } else { disk.done };
        parts.push(format!("disk {}: {}", disk.name, of(done, disk.all)));
    }
    let reason = match memory {
        None => "CopyingDisks",
        Some(it) => {
            // What the guest writes to is sent again, so that what was sent may be more than there is.
            let mut text = format!("memory: {}", of(it.total.saturating_sub(it.remaining), it.total));
            if it.dirty_rate > 0 {
                let _ = write!(
                    text,
                    ", of which the guest changes {} in a second",
                    size(it.dirty_rate)
                );
            }
            parts.push(text);
            "SendingMemory"
        }
    };
    (!parts.is_empty()).then(|| Condition::holds(MIGRATION_PROGRESS, reason, parts.join("; ")))
}

fn of(done: u64, all: u64) -> String {
    let done = done.min(all);
    let percent = u128::from(done) * 100 / u128::from(all.max(1));
    format!("{} of {} ({percent} %)", size(done), size(all))
}

/// A size for people: one decimal of GiB, whole MiB below.
fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes >= GIB {
        true => format!("{}.{} GiB", bytes / GIB, bytes % GIB * 10 / GIB),
        false => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_how_far_it_is() {
        let disk = |name: &str, done: u64, all: u64| Copied {
            name: name.to_owned(),
            done,
            all,
        };
        let memory = |remaining: u64, dirty_rate: u64| Progress {
            total: 512 << 20,
            transferred: 1 << 40,
            remaining,
            dirty_rate,
            ..Progress::default()
        };
        let disks = || vec![disk("data", 0, 0), disk("root", 3 << 30, 8 << 30)];
        for (disks, memory, expected) in [
            (Vec::new(), None, None),
            (vec![disk("root", 0, 0)], None, None),
            (Vec::new(), Some(Progress::default()), None),
            (
                disks(),
                None,
                Some(("CopyingDisks", "disk root: 3.0 GiB of 8.0 GiB (37 %)")),
            ),
            (
                disks(),
                Some(memory(128 << 20, 20 << 20)),
                Some((
                    "SendingMemory",
                    "disk root: 8.0 GiB of 8.0 GiB (100 %); memory: 384 MiB of 512 MiB (75 %), of which the guest changes 20 MiB in a second",
                )),
            ),
            (
                Vec::new(),
                Some(memory(1 << 40, 0)),
                Some(("SendingMemory", "memory: 0 MiB of 512 MiB (0 %)")),
            ),
        ] {
            let found = condition(&Noted { disks, memory });
            let found = found.as_ref().map(|it| (it.reason.as_str(), it.message.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn it_is_said_now_and_then() {
        let mut course = Course::default();
        let copied = |done: u64| {
            [Copied {
                name: "root".to_owned(),
                done: done << 20,
                all: 10 << 20,
            }]
        };
        course.meter().disks(&copied(1));
        let due = course.due();
        course.look_at(due - Duration::from_millis(1));
        assert!(
            course.condition().is_none(),
            "a short one is over before anybody reads"
        );
        course.look_at(due);
        let said = course.condition().unwrap().message.clone();
        assert_eq!(said, "disk root: 1 MiB of 10 MiB (10 %)");
        course.meter().disks(&copied(2));
        course.look_at(due + SAID_EVERY / 2);
        assert_eq!(course.condition().unwrap().message, said);
        course.look_at(course.due());
        assert_ne!(course.condition().unwrap().message, said);
    }
}
