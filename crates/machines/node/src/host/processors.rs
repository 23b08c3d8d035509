//! The processors of this host: which machine has which for itself, and where all others run.
//!
//! What is given away is decided by `plan::processors`. It is written down in the record of the machine that has it (`instance::home`), and read from
//! there when Fairway starts, before anybody is given anything: a machine outlives Fairway, and so does what it has.
//!
//! Machines that share are told when what they share becomes less or more. Other processes of the host run where they like, Fairway among them: as
//! with kubelet, only machines make room for each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_machines_plan::processors::{Allotment, Place, Processors as Plan, TooFew, Wanted};
use fairway_machines_qemu::Machine;
use fairway_machines_qemu::affinity::{Affinity, Set, usable};
use rustix::thread::{CapabilitySet, capabilities};

use super::on_path;

/// Where the kernel says where a processor is.
const PLACES: &str = "/sys/devices/system/cpu";
/// Starts a program on some processors; it comes with `setsid`.
const PROGRAM: &str = "taskset";

#[derive(Default)]
struct State {
    /// What machines have for themselves, by the names of their directories.
    allotted: BTreeMap<String, Allotment>,
    /// Machines that run.
    running: BTreeMap<String, Machine>,
    /// Those whose threads are not where they belong, and why.
    astray: BTreeMap<String, String>,
}

impl State {
    /// Where the threads of a machine belong.
    fn affinity(&self, plan: &Plan, machine: &str) -> Affinity {
        let shared = plan.shared(self.allotted.values());
        match self.allotted.get(machine) {
            Some(own) => Affinity {
                guest: own.guest.clone(),
                others: own.emulator.map_or(shared, |it| Set::from([it])),
            },
            None => Affinity {
                guest: Vec::new(),
                others: shared,
            },
        }
    }
}

/// The processors of this host.
pub(crate) struct Processors {
    /// Nothing where none can be given away.
    plan: Plan,
    state: Mutex<State>,
    /// Held by who tells machines: the last word is the newest.
    telling: tokio::sync::Mutex<()>,
}

impl Processors {
    /// The processors of this host, of which machines have these already. `has_users`: machines run as users of their own, whose threads only somebody
    /// with a right to that may move.
    pub(crate) fn here(has_users: bool, allotted: BTreeMap<String, Allotment>) -> Self {
        let may_move =
            !has_users || capabilities(None).is_ok_and(|it| it.effective.contains(CapabilitySet::SYS_NICE));
        let numbers = usable().unwrap_or_default();
        let places = numbers.iter().map(|it| (*it, place(Path::new(PLACES), *it)));
        Self::new(
            match may_move && on_path(PROGRAM).is_some() {
                true => Plan::new(places),
                false => Plan::default(),
            },
            allotted,
        )
    }

    fn new(plan: Plan, allotted: BTreeMap<String, Allotment>) -> Self {
        Self {
            plan,
            state: Mutex::new(State {
                allotted,
                ..State::default()
            }),
            telling: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many can be given to machines, whoever has them now.
    pub(crate) fn count(&self) -> usize {
        self.plan.givable().len()
    }

    /// Gives a machine what it asks for, or another amount than it has. Others are told by [`Self::tell_all`].
    pub(crate) fn claim(&self, machine: &str, wanted: Wanted) -> Result<Allotment, TooFew> {
        let mut state = self.state();
        let before = state.allotted.get(machine).cloned().unwrap_or_default();
        let others = state.allotted.iter().filter(|(name, _)| *name != machine);
        let given = self.plan.allot(others.map(|it| it.1), &before, wanted)?;
        state.allotted.insert(machine.to_owned(), given.clone());
        Ok(given)
    }

    /// What a machine has for itself.
    pub(crate) fn of(&self, machine: &str) -> Allotment {
        self.state().allotted.get(machine).cloned().unwrap_or_default()
    }

    /// What a process is started with, so that it is not for a moment where it does not belong: it begins among those who share.
    pub(crate) fn starter(&self) -> Vec<String> {
        let state = self.state();
        if state.allotted.is_empty() || self.count() == 0 {
            return Vec::new();
        }
        let shared = self.plan.shared(state.allotted.values());
        let shared: Vec<String> = shared.iter().map(u32::to_string).collect();
        [PROGRAM, "-c", &shared.join(",")].map(str::to_owned).into()
    }

    /// A machine runs: it goes where it belongs, and is told from now on.
    pub(crate) async fn hold(&self, name: &str, machine: &Machine) {
        if self.count() == 0 {
            return;
        }
        self.state().running.insert(name.to_owned(), machine.clone());
        let _told = self.telling.lock().await;
        self.tell(name).await;
    }

    /// Every machine goes where it belongs by now.
    pub(crate) async fn tell_all(&self) {
        let _told = self.telling.lock().await;
        let names: Vec<String> = self.state().running.keys().cloned().collect();
        for name in names {
            self.tell(&name).await;
        }
    }

    async fn tell(&self, name: &str) {
        let (machine, affinity) = {
            let state = self.state();
            let Some(machine) = state.running.get(name).cloned() else {
                return;
            };
            (machine, state.affinity(&self.plan, name))
        };
        let kept = machine.keep_to(&affinity).await;
        let mut state = self.state();
        match kept {
            Ok(()) => drop(state.astray.remove(name)),
            // One that is ending does not answer any more.
            Err(_) if machine.exit().is_some() => {}
            Err(error) => {
                tracing::warn!(directory = %machine.directory().display(), %error, source = ?std::error::Error::source(&error), "a machine does not run on the processors that it should");
                state.astray.insert(name.to_owned(), sentence(&error));
            }
        }
    }

    /// Why a machine does not run where it belongs, if so.
    pub(crate) fn astray(&self, machine: &str) -> Option<String> {
        self.state().astray.get(machine).cloned()
    }

    /// Nobody has a machine in hand any more. What it has it keeps.
    pub(crate) fn leave(&self, machine: &str) {
        self.state().running.remove(machine);
    }

    /// A machine has ended: what it had is everybody's again.
    pub(crate) fn release(self: &Arc<Self>, machine: &str) {
        let had = {
            let mut state = self.state();
            state.running.remove(machine);
            state.astray.remove(machine);
            state.allotted.remove(machine)
        };
        if had.is_some() {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.tell_all().await });
        }
    }
}

/// An error with what the system says about it.
fn sentence(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Where a processor is; one of whom nothing is known is a core of its own.
fn place(folder: &Path, number: u32) -> Place {
    let folder = folder.join(format!("cpu{number}/topology"));
    let first = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        text.trim().split([',', '-']).next()?.parse::<u32>().ok()
    };
    Place {
        package: first("physical_package_id").unwrap_or(0),
        core: first("thread_siblings_list").unwrap_or(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Wanted = Wanted {
        guest: 1,
        emulator: false,
    };

    fn four(allotted: &[(&str, u32)]) -> Arc<Processors> {
        let plan = Plan::new((0..4).map(|it| (it, Place { package: 0, core: it })));
        let allotted = allotted.iter().map(|(name, number)| {
            let own = Allotment {
                guest: vec![*number],
                emulator: None,
            };
            ((*name).to_owned(), own)
        });
        Arc::new(Processors::new(plan, allotted.collect()))
    }

    #[tokio::test]
    async fn what_was_written_down_is_somebodys() {
        let processors = four(&[("a", 1), ("b", 3)]);
        assert_eq!(processors.claim("c", ONE).unwrap().guest, [2]);
        let too_few = processors.claim("d", ONE).unwrap_err();
        assert_eq!(
            too_few.to_string(),
            "the machine needs 1 of this node's processors for itself, and 0 are left to give"
        );
        assert_eq!(
            processors.claim("b", ONE).unwrap().guest,
            [3],
            "it keeps what it has"
        );
        processors.release("b");
        processors.release("b");
        assert_eq!(processors.claim("d", ONE).unwrap().guest, [3]);
        assert_eq!(processors.count(), 3, "whoever has them");
    }

    #[test]
    fn threads_belong_where_the_others_are_not() {
        let processors = four(&[("a", 1)]);
        let wanted = Wanted {
            guest: 1,
            emulator: true,
        };
        processors.claim("b", wanted).unwrap();
        let state = processors.state();
        for (machine, guest, others) in [
            ("a", vec![1], Set::from([0])),
            ("b", vec![2], Set::from([3])),
            ("c", vec![], Set::from([0])),
        ] {
            let expected = Affinity { guest, others };
            assert_eq!(state.affinity(&processors.plan, machine), expected, "{machine}");
        }
    }

    #[test]
    fn a_process_begins_among_those_who_share() {
        assert_eq!(four(&[]).starter(), Vec::<String>::new(), "wherever it likes");
        assert_eq!(four(&[("a", 2)]).starter(), ["taskset", "-c", "0,1,3"]);
        let none = Processors::new(Plan::default(), BTreeMap::new());
        assert_eq!((none.count(), none.starter()), (0, Vec::new()));
        assert!(none.claim("a", ONE).is_err());
    }

    #[test]
    fn places_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (number, package, siblings) in [(0, "0", "0,4"), (5, "1", "1-5"), (6, "-1", "")] {
            let of = folder.path().join(format!("cpu{number}/topology"));
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("physical_package_id"), format!("{package}\n")).unwrap();
            std::fs::write(of.join("thread_siblings_list"), format!("{siblings}\n")).unwrap();
        }
        for (number, package, core) in [(0, 0, 0), (5, 1, 1), (6, 0, 6), (7, 0, 7)] {
            assert_eq!(place(folder.path(), number), Place { package, core }, "{number}");
        }
    }
}
