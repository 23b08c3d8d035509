//! What is counted of a machine for its history: few questions, as they are asked all the time.

use std::time::Duration;

use fairway_machines_qemu::agent::Traffic;
use serde_json::Value;

use super::history;
use super::ring::{Counters, Network, Storage};
use super::sample::{disk_name, read, resident, time, traffic};
use crate::registry::Reached;
use crate::supervise;

/// Counts what a machine has used; nothing if it does not answer.
pub(super) async fn count(reached: &Reached) -> Option<Counters> {
    let disks = reached.machine.qmp().execute("query-blockstats", Value::Null);
    let disks = disks.await.ok()?;
    let traffic = traffic(reached).await;
    counters(reached, &disks, traffic.as_deref())
}

fn counters(reached: &Reached, disks: &Value, traffic: Option<&[Traffic]>) -> Option<Counters> {
    let pid = reached.machine.pid();
    let time = time(&read(&format!("/proc/{pid}/stat"))?)?;
    Some(Counters {
        elapsed: supervise::now(),
        at: history::wall(),
        processors: Duration::try_from_secs_f64(time.user + time.system).ok()?,
        resident: read(&format!("/proc/{pid}/status")).and_then(|it| resident(&it))?,
        network: traffic.map(|it| network(it, &reached.cards)),
        storage: disks.as_array().map(|it| storage(it)),
    })
}

/// What the machine's own cards have carried. Bridges, bonds and VLANs inside of the guest have the address of their card, and carry again
/// what it does: of those with one address, the one that has carried most counts.
fn network(traffic: &[Traffic], cards: &[String]) -> Network {
    let mut sum = Network::default();
    for mac in cards {
        let own = || traffic.iter().filter(|it| it.mac.eq_ignore_ascii_case(mac));
        let (Some(received), Some(sent)) = (
            own().map(|it| it.received.bytes).max(),
            own().map(|it| it.sent.bytes).max(),
        ) else {
            continue;
        };
        sum.cards += 1;
        sum.received = sum.received.saturating_add(received);
        sum.sent = sum.sent.saturating_add(sent);
    }
    sum
}

fn storage(disks: &[Value]) -> Storage {
    let mut sum = Storage::default();
    for disk in disks {
        if disk_name(disk["qdev"].as_str().unwrap_or_default()).is_none() {
            continue;
        }
        sum.disks += 1;
        let said = |word: &str| disk["stats"][word].as_u64().unwrap_or_default();
        sum.read = sum.read.saturating_add(said("rd_bytes"));
        sum.written = sum.written.saturating_add(said("wr_bytes"));
        sum.reads = sum.reads.saturating_add(said("rd_operations"));
        sum.writes = sum.writes.saturating_add(said("wr_operations"));
    }
    sum
}

#[cfg(test)]
mod tests {
    use fairway_machines_qemu::agent::Count;
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_are_of_the_machines_own_disks_and_cards() {
        let disk = |device: &str, read: u64| json!({"qdev": device, "stats": {"rd_bytes": read, "wr_bytes": 2 * read, "rd_operations": 1, "wr_operations": 2}});
        let disks = [
            disk("ua-root", 10),
            disk("/machine/peripheral/ua-data/virtio-backend", 5),
            disk("/machine/unattached/device[3]", 1000),
        ];
        let expected = Storage {
            disks: 2,
            read: 15,
            written: 30,
            reads: 2,
            writes: 4,
        };
        assert_eq!(storage(&disks), expected);
        let card = |mac: &str, bytes| Traffic {
            mac: mac.to_owned(),
            received: Count {
                bytes,
                packets: 0,
                errors: 0,
                dropped: 0,
            },
            sent: Count {
                bytes: 1,
                packets: 0,
                errors: 0,
                dropped: 0,
            },
        };
        let said = [
            card("00:00:00:00:00:00", 1000),
            card("AA:bb:cc:dd:ee:01", 7),
            card("02:42:00:00:00:01", 100),
        ];
        let expected = Network {
            cards: 1,
            received: 7,
            sent: 1,
        };
        let cards = ["aa:bb:cc:dd:ee:01".to_owned(), "aa:bb:cc:dd:ee:02".to_owned()];
        assert_eq!(network(&said, &cards), expected);
        let bridged = [card("aa:bb:cc:dd:ee:01", 7), card("aa:bb:cc:dd:ee:01", 6)];
        assert_eq!(
            network(&bridged, &cards),
            expected,
            "a bridge has its card's address"
        );
    }
}
