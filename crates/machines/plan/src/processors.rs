//! Which processors of a host a machine has for itself, as kubelet's static CPU manager gives them away.
//!
//! A machine with `dedicatedCpuPlacement` gets one processor of the host for each of the guest's, and with `isolateEmulatorThread` one more for QEMU
//! itself. All other machines share the rest, and the first processor is always part of it, so that there is somewhere to run. Whole cores are
//! given first, as two machines on the two threads of a core would still be in each other's way.
//!
//! Nothing is left to chance: the same host with the same machines gives the same processors.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::machine::CpuPlan;

/// Where a processor is. Processors of one core are threads of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The chip.
    pub package: u32,
    /// The core, by the lowest number of its threads.
    pub core: u32,
}

/// The processors of a host that machines may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors(BTreeMap<u32, Place>);

/// What a machine has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allotment {
    /// One for each processor of the guest, in their order.
    pub guest: Vec<u32>,
    /// One for everything else that QEMU does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<u32>,
}

impl Allotment {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.guest.is_empty() && self.emulator.is_none()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        self.guest.iter().copied().chain(self.emulator)
    }
}

/// What a machine asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Processors of the guest.
    pub guest: usize,
    /// One more for everything else.
    pub emulator: bool,
}

impl Wanted {
    /// What a machine with so many sockets asks for; nothing if it shares, as most.
    pub fn of(cpu: &CpuPlan, sockets: u32) -> Option<Self> {
        let count = sockets.saturating_mul(cpu.cores).saturating_mul(cpu.threads);
        cpu.dedicated.then(|| Self {
            guest: usize::try_from(count).unwrap_or(usize::MAX),
            emulator: cpu.isolate_emulator,
        })
    }

    fn all(self) -> usize {
        self.guest.saturating_add(usize::from(self.emulator))
    }
}

/// There are not so many processors left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine needs {wanted} of this node's processors for itself, and {free} are left to give")]
pub struct TooFew {
    /// So many are asked for.
    pub wanted: usize,
    /// So many are left, those that the machine has already among them.
    pub free: usize,
}

impl Processors {
    /// These processors, by number.
    pub fn new(all: impl IntoIterator<Item = (u32, Place)>) -> Self {
        Self(all.into_iter().collect())
    }

    /// Those that can be given to one machine: all but the first.
    pub fn givable(&self) -> BTreeSet<u32> {
        self.0.keys().copied().skip(1).collect()
    }

    /// Those that are left to share when these are given away.
    pub fn shared<'a>(&self, given: impl IntoIterator<Item = &'a Allotment>) -> BTreeSet<u32> {
        let given: BTreeSet<u32> = given.into_iter().flat_map(Allotment::all).collect();
        let givable = self.givable();
        let all = self.0.keys().copied();
        // One that could not be given is everybody's, whatever somebody has written down.
        all.filter(|it| !given.contains(it) || !givable.contains(it))
            .collect()
    }

    /// Gives a machine what it asks for, where `others` have theirs. What it had `before` it keeps, as far as that can be.
    pub fn allot<'a>(
        &self,
        others: impl IntoIterator<Item = &'a Allotment>,
        before: &Allotment,
        wanted: Wanted,
    ) -> Result<Allotment, TooFew> {
        let taken: BTreeSet<u32> = others.into_iter().flat_map(Allotment::all).collect();
        let mut free = self.givable();
        free.retain(|it| !taken.contains(it));
        if free.len() < wanted.all() {
            return Err(TooFew {
                wanted: wanted.all(),
                free: free.len(),
            });
        }
        let mut kept = Allotment::default();
        let guest = before.guest.iter().take(wanted.guest).copied();
        kept.guest = guest.filter(|it| free.remove(it)).collect();
        kept.emulator = before.emulator.filter(|it| wanted.emulator && free.remove(it));
        let missing = wanted.guest - kept.guest.len();
        let lacks_emulator = wanted.emulator && kept.emulator.is_none();
        let mut more = self
            .choose(free, missing + usize::from(lacks_emulator))
            .into_iter();
        kept.guest.extend(more.by_ref().take(missing));
        kept.emulator = kept.emulator.or(more.next());
        Ok(kept)
    }

    /// So many of those that are free: whole cores first, on one chip if it has enough, and single threads where a core is broken up already.
    fn choose(&self, mut free: BTreeSet<u32>, count: usize) -> Vec<u32> {
        let mut chosen = Vec::new();
        let package = |number: u32| self.0.get(&number).map(|it| it.package);
        let mut left_in: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        for number in &free {
            *left_in.entry(package(*number)).or_default() += 1;
        }
        let is_too_small = |number: u32| left_in.get(&package(number)).is_none_or(|it| *it < count);
        let mut cores: Vec<Vec<u32>> = self.cores().into_values().collect();
        cores.retain(|threads| threads.iter().all(|it| free.contains(it)));
        cores.sort_by_key(|threads| threads.first().map(|it| (is_too_small(*it), package(*it), *it)));
        for threads in cores {
            if chosen.len() + threads.len() <= count {
                free.retain(|it| !threads.contains(it));
                chosen.extend(threads);
            }
        }
        let siblings = |number: u32| {
            let core = self.0.get(&number);
            let among = free.iter().filter(|it| self.0.get(it) == core);
            among.count()
        };
        let mut single: Vec<u32> = free.iter().copied().collect();
        single.sort_by_key(|it| (is_too_small(*it), siblings(*it), *it));
        single.truncate(count - chosen.len());
        chosen.extend(single);
        chosen
    }

    fn cores(&self) -> BTreeMap<Place, Vec<u32>> {
        let mut cores: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
        for (number, place) in &self.0 {
            cores.entry(*place).or_default().push(*number);
        }
        cores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `0.0 0.1 1.2`: the chip and the core of each processor, from the first.
    fn host(text: &str) -> Processors {
        let places = text.split_ascii_whitespace().map(|it| {
            let (package, core) = it.split_once('.').unwrap();
            Place {
                package: package.parse().unwrap(),
                core: core.parse().unwrap(),
            }
        });
        Processors::new((0..).zip(places))
    }

    /// `1,2+3`: those of the guest, and that of the emulator.
    fn allotment(text: &str) -> Allotment {
        let (guest, emulator) = text.split_once('+').unwrap_or((text, ""));
        let numbers = guest.split(',').filter(|it| !it.is_empty());
        Allotment {
            guest: numbers.map(|it| it.parse().unwrap()).collect(),
            emulator: emulator.parse().ok(),
        }
    }

    fn shown(allotment: &Allotment) -> String {
        let guest: Vec<String> = allotment.guest.iter().map(u32::to_string).collect();
        let emulator = allotment.emulator.map(|it| format!("+{it}")).unwrap_or_default();
        format!("{}{emulator}", guest.join(","))
    }

    #[test]
    fn who_asks_is_given() {
        let plain = "0.0 0.1 0.2 0.3";
        // As most hosts count: first one thread of each core, then the other.
        let threads = "0.0 0.1 0.2 0.3 0.0 0.1 0.2 0.3";
        let chips = "0.0 0.1 0.2 1.3 1.4 1.5";
        for (why, host_text, others, before, guest, emulator, expected) in [
            ("the first is everybody's", plain, "", "", 1, false, "1"),
            ("all that can be", plain, "", "", 3, false, "1,2,3"),
            ("one too many", plain, "", "", 4, false, "4 of 3"),
            ("there is only one", "0.0", "", "", 1, false, "1 of 0"),
            ("one more for QEMU", plain, "", "", 2, true, "1,2+3"),
            ("which counts", plain, "", "", 3, true, "4 of 3"),
            ("what others have is theirs", plain, "1", "", 2, false, "2,3"),
            ("and so is their emulator's", plain, "1+3", "", 2, false, "2 of 1"),
            ("it keeps what it has", plain, "", "3", 1, false, "3"),
            ("and grows", plain, "", "3+2", 2, true, "3,1+2"),
            ("and shrinks", plain, "", "3,1+2", 1, false, "3"),
            ("as far as it can", plain, "3", "3,9", 2, false, "1,2"),
            ("not the first, whoever wrote it", plain, "", "0", 1, false, "1"),
            ("whole cores first", threads, "", "", 2, false, "1,5"),
            ("of several cores", threads, "", "", 4, false, "1,5,2,6"),
            (
                "a single one where a core is broken up",
                threads,
                "",
                "",
                1,
                false,
                "4",
            ),
            ("and what is left over", threads, "", "", 3, false, "1,5,4"),
            ("the core of another", threads, "1", "", 1, false, "4"),
            ("no whole core is left", threads, "1,6,7", "", 2, false, "2,3"),
            ("one chip, if it has enough", chips, "", "", 3, false, "3,4,5"),
            ("the first that has", chips, "", "", 2, false, "1,2"),
            ("two chips, if none has", chips, "", "", 4, false, "1,2,3,4"),
        ] {
            let (host, others) = (host(host_text), allotment(others));
            let found = host.allot([&others], &allotment(before), Wanted { guest, emulator });
            let found = match found {
                Ok(found) => shown(&found),
                Err(TooFew { wanted, free }) => format!("{wanted} of {free}"),
            };
            assert_eq!(found, expected, "{why}");
        }
    }

    #[test]
    fn the_rest_is_shared() {
        for (given, expected) in [
            ("", "0,1,2,3"),
            ("1,3", "0,2"),
            ("1,2+3", "0"),
            ("0", "0,1,2,3"),
            ("7", "0,1,2,3"),
        ] {
            let left = host("0.0 0.1 0.2 0.3").shared([&allotment(given)]);
            let left: Vec<String> = left.iter().map(u32::to_string).collect();
            assert_eq!(left.join(","), expected, "{given}");
        }
        assert!(host("").shared([]).is_empty());
    }

    #[test]
    fn nobody_is_given_what_another_has() {
        let host = host("0.0 0.1 0.2 0.3 0.0 0.1 0.2 0.3");
        let mut given: Vec<Allotment> = Vec::new();
        for guest in [1, 2, 3, 1] {
            let wanted = Wanted {
                guest,
                emulator: false,
            };
            if let Ok(found) = host.allot(&given, &Allotment::default(), wanted) {
                assert_eq!(found.guest.len(), guest);
                given.push(found);
            }
        }
        let all: Vec<u32> = given.iter().flat_map(Allotment::all).collect();
        let different: BTreeSet<u32> = all.iter().copied().collect();
        assert_eq!((all.len(), different), (7, host.givable()));
        assert_eq!(host.shared(&given), BTreeSet::from([0]));
    }
}
