//! On which processors of the host the threads of a machine run.
//!
//! QEMU has one thread for each processor of the guest, and says which that are; all others are its own: the one that talks to us, those of disks and
//! of screens. They come and go, and each begins where the thread runs that made it. So they are gone through until all are where they belong.
//!
//! Only threads of the machine's process are touched, whatever QEMU says: it may have been taken over. The kernel lets a thread be moved by its number
//! alone, so the process is asked for just before; a thread of somebody else that was begun in between would run on other processors, and no worse.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::MachineError;
use crate::machine::Machine;

/// How often threads are gone through at most. One pass finds all but those that are made meanwhile.
const PASSES: usize = 8;

/// How long QEMU may take to say which threads it has. Others wait for that.
const ANSWER: Duration = Duration::from_secs(5);

/// Processors of the host, by number.
pub type Set = BTreeSet<u32>;

/// Where the threads of a machine may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Affinity {
    /// One processor of the host for each of the guest's, in their order. Those of the guest that are beyond them run with all other threads.
    pub guest: Vec<u32>,
    /// Where all other threads run.
    pub others: Set,
}

impl Machine {
    /// Keeps the threads of the machine to processors of the host.
    pub async fn keep_to(&self, affinity: &Affinity) -> Result<(), MachineError> {
        let own = match affinity.guest.is_empty() {
            true => BTreeMap::new(),
            false => {
                let asked = self.qmp().execute_within("query-cpus-fast", Value::Null, ANSWER);
                let said = asked.await?;
                own(&said, &affinity.guest)
            }
        };
        if !self.is_alive() {
            return Ok(());
        }
        let kept = keep(self.pid(), &own, &affinity.others);
        kept.map_err(|source| MachineError::Process {
            pid: self.pid(),
            action: "kept to processors of the host",
            source,
        })
    }
}

/// The processors of each thread that runs one of the guest's, by what QEMU says. One thread may run several.
fn own(said: &Value, guest: &[u32]) -> BTreeMap<u32, Set> {
    let said = said.as_array().into_iter().flatten();
    let number = |value: &Value| value.as_u64().and_then(|it| u32::try_from(it).ok());
    let threads = said.filter_map(|it| Some((number(&it["cpu-index"])?, number(&it["thread-id"])?)));
    let threads: BTreeMap<u32, u32> = threads.collect();
    let mut found: BTreeMap<u32, Set> = BTreeMap::new();
    for (thread, processor) in threads.into_values().zip(guest) {
        found.entry(thread).or_default().insert(*processor);
    }
    found
}

/// Keeps the threads of a process to their own processors, and all that have none to the others.
fn keep(pid: u32, own: &BTreeMap<u32, Set>, others: &Set) -> io::Result<()> {
    for _ in 0..PASSES {
        let mut has_changed = false;
        for thread in threads(pid)? {
            has_changed |= keep_thread(thread, own.get(&thread).unwrap_or(others))?;
        }
        if !has_changed {
            break;
        }
    }
    Ok(())
}

/// The threads that a process has now.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = match std::fs::read_dir(format!("/proc/{pid}/task")) {
        // It has ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.flatten().map(|it| it.file_name());
    Ok(names.filter_map(|it| it.to_str()?.parse().ok()).collect())
}

/// Keeps one thread to processors; whether it was elsewhere.
fn keep_thread(thread: u32, processors: &Set) -> io::Result<bool> {
    let Some(pid) = i32::try_from(thread).ok().and_then(Pid::from_raw) else {
        return Ok(false);
    };
    let mut wanted = CpuSet::new();
    for processor in processors {
        if let Some(processor) = place(*processor) {
            wanted.set(processor);
        }
    }
    let done = sched_getaffinity(Some(pid)).and_then(|has| match has == wanted {
        true => Ok(false),
        false => sched_setaffinity(Some(pid), &wanted).map(|()| true),
    });
    match done {
        // It has ended meanwhile.
        Err(Errno::SRCH) => Ok(false),
        done => Ok(done?),
    }
}

/// The place of a processor in the kernel's sets, if they have one for it.
fn place(processor: u32) -> Option<usize> {
    let place = usize::try_from(processor).ok();
    place.filter(|it| *it < CpuSet::MAX_CPU)
}

/// Processors of the host that this process may use.
pub fn usable() -> io::Result<Set> {
    let has = sched_getaffinity(None)?;
    let most = u32::try_from(CpuSet::MAX_CPU).unwrap_or(u32::MAX);
    let all = (0..most).filter(|it| place(*it).is_some_and(|at| has.is_set(at)));
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use serde_json::json;

    use super::*;

    #[test]
    fn threads_are_those_that_qemu_names() {
        let said = |threads: &[u32]| -> Value {
            let threads = threads.iter().enumerate();
            // The last first, as QEMU may.
            let said = threads.rev();
            said.map(|(at, thread)| json!({"cpu-index": at, "thread-id": thread}))
                .collect()
        };
        type Case = (&'static [u32], &'static [u32], &'static [(u32, &'static [u32])]);
        let cases: [Case; 4] = [
            (&[70, 71], &[2, 1], &[(70, &[2]), (71, &[1])]),
            (&[70, 71, 72], &[1, 2], &[(70, &[1]), (71, &[2])]),
            // Emulated by one thread.
            (&[70, 70], &[1, 2], &[(70, &[1, 2])]),
            (&[], &[1], &[]),
        ];
        for (threads, guest, expected) in cases {
            let expected = expected
                .iter()
                .map(|(thread, all)| (*thread, all.iter().copied().collect()));
            assert_eq!(own(&said(threads), guest), expected.collect(), "{threads:?}");
        }
        assert_eq!(own(&json!("nonsense"), &[1]), BTreeMap::new());
    }

    /// What the kernel says of a thread.
    fn allowed(thread: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
        let line = status.lines().find(|it| it.starts_with("Cpus_allowed_list:"));
        line.unwrap().split_once(':').unwrap().1.trim().to_owned()
    }

    #[test]
    fn a_thread_is_kept_where_it_belongs() {
        let all = usable().unwrap();
        let last = *all.last().unwrap();
        let pinned = std::thread::spawn(move || {
            let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let before = allowed(own);
            let changed = keep_thread(own, &[last].into()).unwrap();
            let again = keep_thread(own, &[last].into()).unwrap();
            (before, changed, again, allowed(own))
        });
        let (before, changed, again, after) = pinned.join().unwrap();
        assert_eq!((changed, again), (all.len() > 1, false), "{before}");
        assert_eq!(after, last.to_string());
        assert_eq!(usable().unwrap(), all, "only that one");
    }

    #[test]
    fn all_threads_of_a_process_are_kept() {
        let all = usable().unwrap();
        let (first, last) = (*all.first().unwrap(), *all.last().unwrap());
        let mut child = Command::new("sleep")
            .arg("100")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        keep(pid, &BTreeMap::new(), &[first].into()).unwrap();
        assert_eq!(allowed(pid), first.to_string());
        // QEMU may name whatever it likes: a thread of somebody else stays where it is.
        let stranger = std::process::id();
        let before = allowed(stranger);
        let own = BTreeMap::from([(pid, [last].into()), (stranger, [last].into())]);
        keep(pid, &own, &[first].into()).unwrap();
        assert_eq!((allowed(pid), allowed(stranger)), (last.to_string(), before));
        keep(pid, &BTreeMap::new(), &all).unwrap();
        let refused = keep(pid, &BTreeMap::new(), &Set::new());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(refused.is_err(), "a thread has to run somewhere");
        keep(pid, &BTreeMap::new(), &all).unwrap();
    }
}
