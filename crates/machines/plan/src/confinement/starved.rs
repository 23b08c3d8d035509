//! What the memory of a control group says of a machine that was ended, and what to tell people of an end that nobody has ordered.

/// Kubernetes' word for it.
pub const OOM_KILLED: &str = "OOMKilled";
/// The signal that cannot be caught.
const KILL: i32 = 9;

/// Who ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starved {
    /// The machine: it came to its limit, in bytes where that is known.
    Machine(Option<u64>),
    /// The node, which chose this machine.
    Node,
}

/// Whether processes of a group were ended for want of memory: `events` is its `memory.events`, `limit` its `memory.max`.
pub fn starved(events: &str, limit: &str) -> Option<Starved> {
    let count = |name: &str| -> u64 {
        let mut lines = events.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(key, _)| *key == name);
        found
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(0)
    };
    // The kernel counts those of its own choice, too, and then the limit was not reached.
    match (count("oom_kill"), count("oom")) {
        (0, _) => None,
        (_, 0) => Some(Starved::Node),
        _ => Some(Starved::Machine(limit.trim().parse().ok())),
    }
}

/// What to tell of a process that ended without a word: the signal that ended it, if one did, and what its group says.
pub fn told(starved: Option<Starved>, signal: Option<i32>) -> Option<String> {
    match (starved, signal) {
        (Some(Starved::Machine(limit)), _) => {
            let limit = limit.map_or_else(String::new, |it| format!(" of {} MiB", it >> 20));
            Some(format!(
                "{OOM_KILLED}: the machine came to its limit{limit}, which is what the guest has and what QEMU is expected to need beside it; raise spec.domain.resources.limits.memory"
            ))
        }
        (Some(Starved::Node), _) => Some(format!(
            "{OOM_KILLED}: the node had no memory left, and its kernel chose this machine; move machines away from the node, or give it more memory"
        )),
        (None, Some(KILL)) => Some(
            "it was killed on its node: by the kernel for want of memory (the node's kernel log says so: dmesg), by its supervisor because the node was not heard of, or by somebody"
                .to_owned(),
        ),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ran_out_of_memory() {
        let events = |oom: u64, killed: u64| {
            format!("low 0\nhigh 0\nmax 12\noom {oom}\noom_kill {killed}\noom_group_kill {killed}\n")
        };
        for (events, limit, expected, reason) in [
            (events(0, 0), "1048576", None, "nothing has happened"),
            (
                events(3, 0),
                "1048576",
                None,
                "something could be given back at last",
            ),
            (
                events(1, 2),
                "104857600\n",
                Some(Starved::Machine(Some(100 << 20))),
                "its limit",
            ),
            (
                events(1, 1),
                "max\n",
                Some(Starved::Machine(None)),
                "that of a group above",
            ),
            (
                events(0, 1),
                "104857600",
                Some(Starved::Node),
                "chosen by the kernel",
            ),
            (String::new(), "", None, "there is no such group"),
            ("oom_kill x\noom y".to_owned(), "", None, "nonsense"),
        ] {
            assert_eq!(starved(&events, limit), expected, "{reason}");
        }
    }

    #[test]
    fn people_are_told_what_to_do() {
        for (starved, signal, words) in [
            (
                Some(Starved::Machine(Some(700 << 20))),
                Some(9),
                "limit of 700 MiB",
            ),
            (
                Some(Starved::Machine(None)),
                None,
                "raise spec.domain.resources.limits.memory",
            ),
            (Some(Starved::Node), Some(9), "give it more memory"),
            (None, Some(9), "dmesg"),
        ] {
            let text = told(starved, signal).unwrap();
            assert!(text.contains(words), "{text}");
            assert_eq!(text.starts_with(OOM_KILLED), starved.is_some(), "{text}");
        }
        assert_eq!(told(None, Some(11)), None, "QEMU's own fault");
        assert_eq!(told(None, None), None);
    }
}
