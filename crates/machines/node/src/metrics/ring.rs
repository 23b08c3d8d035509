//! What a machine used in the last hour, in little memory: one point for every measurement, the oldest of which make room.
//!
//! The counters of the host, of QEMU and of the guest only grow; a point has what they grew by in a second. A point has 36 bytes and a ring
//! [`KEPT`] of them, 13 KB for each machine, all of which are taken when it is first measured.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

/// How often a machine is measured.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// How many points are kept: an hour.
pub(super) const KEPT: u16 = 360;
/// What is not known.
const UNKNOWN: u32 = u32::MAX;

/// Counters of a machine at one moment, over all its disks and cards.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counters {
    /// Since any moment that is the same for all measurements.
    pub(super) elapsed: Duration,
    /// Since 1970.
    pub(super) at: Duration,
    /// Processor time of its process.
    pub(super) processors: Duration,
    pub(super) resident: u64,
    /// Nothing without an agent that answers.
    pub(super) network: Option<Network>,
    pub(super) storage: Option<Storage>,
}

/// Bytes that the guest's cards have carried.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Network {
    /// Of how many cards.
    pub(super) cards: u32,
    pub(super) received: u64,
    pub(super) sent: u64,
}

/// What was done with disks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Storage {
    /// Of how many disks.
    pub(super) disks: u32,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
}

/// What was used between two measurements: per second, but for memory.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Seconds since 1970, which fit until 2106.
    at: u32,
    /// Thousandths of a processor.
    processors: u32,
    /// KiB.
    resident: u32,
    /// Bytes.
    received: u32,
    sent: u32,
    read: u32,
    written: u32,
    /// Hundredths, as few of them would otherwise be none.
    reads: u32,
    writes: u32,
}

/// The last hour of a machine.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    last: Option<Counters>,
    points: VecDeque<Point>,
}

impl Ring {
    /// Takes a measurement in.
    pub(super) fn note(&mut self, now: Counters) {
        let Some(before) = self.last.replace(now) else {
            return;
        };
        let elapsed = now.elapsed.saturating_sub(before.elapsed);
        if elapsed.is_zero() {
            return;
        }
        let kept = usize::from(KEPT);
        if self.points.capacity() < kept {
            self.points.reserve_exact(kept);
        }
        while self.points.len() >= kept {
            self.points.pop_front();
        }
        self.points.push_back(Point::between(&before, &now, elapsed));
    }

    /// The points as columns of the same length, oldest first. What is not known is `null`.
    pub(crate) fn tell(&self) -> Value {
        let column = |of: fn(&Point) -> u32, per: u32| -> Vec<Value> {
            let value = |point: &Point| match (of(point), per) {
                (UNKNOWN, _) => Value::Null,
                (value, 1) => value.into(),
                (value, per) => (f64::from(value) / f64::from(per)).into(),
            };
            self.points.iter().map(value).collect()
        };
        let memory: Vec<u64> = self
            .points
            .iter()
            .map(|it| u64::from(it.resident) << 10)
            .collect();
        json!({
            "intervalSeconds": EVERY.as_secs(), "keptSeconds": EVERY.as_secs() * u64::from(KEPT),
            "time": column(|it| it.at, 1), "processors": column(|it| it.processors, 1000), "residentBytes": memory,
            "receivedBytesPerSecond": column(|it| it.received, 1), "sentBytesPerSecond": column(|it| it.sent, 1),
            "readBytesPerSecond": column(|it| it.read, 1), "writtenBytesPerSecond": column(|it| it.written, 1),
            "readsPerSecond": column(|it| it.reads, 100), "writesPerSecond": column(|it| it.writes, 100),
        })
    }
}

impl Point {
    fn between(before: &Counters, now: &Counters, elapsed: Duration) -> Self {
        let each = |before: u64, now: u64, times: u64| {
            // A counter that is less than before belongs to another start of the guest: it began at nothing.
            let grown = now.checked_sub(before).unwrap_or(now);
            let milliseconds = elapsed.as_millis().max(1);
            known(u128::from(grown) * u128::from(times) * 1000 / milliseconds)
        };
        // What a card or a disk has counted comes and goes with it, and says nothing of these seconds.
        let network = before
            .network
            .zip(now.network)
            .filter(|(before, now)| before.cards == now.cards);
        let carried =
            |of: fn(&Network) -> u64| network.map_or(UNKNOWN, |(before, now)| each(of(&before), of(&now), 1));
        let storage = before
            .storage
            .zip(now.storage)
            .filter(|(before, now)| before.disks == now.disks);
        let done = |of: fn(&Storage) -> u64, times| {
            storage.map_or(UNKNOWN, |(before, now)| each(of(&before), of(&now), times))
        };
        let worked = now.processors.saturating_sub(before.processors);
        Self {
            at: known(now.at.as_secs().into()),
            processors: known(worked.as_micros() * 1000 / elapsed.as_micros().max(1)),
            resident: known((now.resident >> 10).into()),
            received: carried(|it| it.received),
            sent: carried(|it| it.sent),
            read: done(|it| it.read, 1),
            written: done(|it| it.written, 1),
            reads: done(|it| it.reads, 100),
            writes: done(|it| it.writes, 100),
        }
    }
}

/// A number as it is kept: more than fits is the most that does.
fn known(value: u128) -> u32 {
    u32::try_from(value).map_or(UNKNOWN - 1, |it| it.min(UNKNOWN - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, busy: u64) -> Counters {
        Counters {
            elapsed: Duration::from_secs(seconds),
            at: Duration::from_secs(1_700_000_000 + seconds),
            processors: Duration::from_millis(busy),
            resident: 3 << 20,
            network: Some(Network {
                cards: 1,
                received: seconds * 500,
                sent: seconds * 7,
            }),
            storage: Some(Storage {
                disks: 1,
                read: seconds * 4096,
                written: 0,
                reads: seconds / 4,
                writes: 0,
            }),
        }
    }

    #[test]
    fn a_point_is_what_grew_in_a_second() {
        let mut ring = Ring::default();
        ring.note(at(100, 1000));
        assert_eq!(ring.tell()["time"], json!([]), "one measurement is no difference");
        ring.note(at(110, 3500));
        assert_eq!(
            ring.tell(),
            json!({
                "intervalSeconds": 10, "keptSeconds": 3600,
                "time": [1_700_000_110], "processors": [0.25], "residentBytes": [3 << 20],
                "receivedBytesPerSecond": [500], "sentBytesPerSecond": [7],
                "readBytesPerSecond": [4096], "writtenBytesPerSecond": [0], "readsPerSecond": [0.2], "writesPerSecond": [0.0],
            })
        );
    }

    #[test]
    fn what_is_not_known_or_does_not_fit() {
        let network = |received| {
            Some(Network {
                cards: 1,
                received,
                sent: 0,
            })
        };
        let two = Some(Network {
            cards: 2,
            received: 900,
            sent: 0,
        });
        for (before, now, expected, why) in [
            (None, network(5), Value::Null, "the agent has only come"),
            (network(5), None, Value::Null, "the agent is gone"),
            (network(900), network(50), json!(5), "the guest began anew"),
            (
                network(0),
                network(u64::MAX),
                json!(u32::MAX - 1),
                "a lie of the guest",
            ),
            (network(7), network(7), json!(0), "silence"),
            (two, network(800), Value::Null, "a card was unplugged"),
            (network(800), two, Value::Null, "a card was plugged in"),
        ] {
            let mut ring = Ring::default();
            ring.note(Counters {
                network: before,
                ..at(0, 0)
            });
            ring.note(Counters {
                network: now,
                ..at(10, 0)
            });
            assert_eq!(ring.tell()["receivedBytesPerSecond"][0], expected, "{why}");
        }
        let mut ring = Ring::default();
        ring.note(at(5, 0));
        ring.note(Counters {
            storage: Some(Storage::default()),
            ..at(15, 0)
        });
        assert_eq!(
            ring.tell()["readBytesPerSecond"],
            json!([null]),
            "a disk was unplugged"
        );
        let mut ring = Ring::default();
        ring.note(at(5, 0));
        ring.note(at(5, 9));
        assert_eq!(ring.tell()["time"], json!([]), "no time has passed");
    }

    #[test]
    fn an_hour_is_kept_in_13_kilobytes() {
        let mut ring = Ring::default();
        for turn in 0..=2 * u64::from(KEPT) {
            ring.note(at(turn * 10, turn * 1000));
        }
        let told = ring.tell();
        assert_eq!(told["time"].as_array().unwrap().len(), usize::from(KEPT));
        assert_eq!(told["time"][0], 1_700_000_000 + (u64::from(KEPT) + 1) * 10);
        let held = ring.points.capacity() * size_of::<Point>();
        assert!(held <= 13 << 10, "{held} bytes");
    }
}
