//! Figures of a machine that moves away: its memory and the disks that are copied along are one sum, as upstream's.

use fairway_machines_qemu::Machine;
use fairway_machines_qemu::migrate::{self, Progress};
use fairway_machines_qemu::mirror::{self, Copied};

use super::text::Page;

/// How far it is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Moving {
    /// Bytes that were sent, that are left, and that there are.
    processed: u64,
    remaining: u64,
    total: u64,
    /// Bytes in a second: memory that is sent, and memory that the guest writes to. Nothing as long as disks alone are copied.
    rates: Option<(u64, u64)>,
}

impl Moving {
    /// Asks a machine that has so much memory; nothing if it does not move.
    pub(super) async fn take(machine: &Machine, memory: u64) -> Option<Self> {
        let sending = migrate::progress(machine).await.ok();
        let copied = mirror::copied(machine).await.unwrap_or_default();
        Self::of(sending.as_ref(), &copied, memory)
    }

    fn of(sending: Option<&Progress>, copied: &[Copied], memory: u64) -> Option<Self> {
        let sending = sending.filter(|it| it.status == "active");
        if sending.is_none() && copied.is_empty() {
            return None;
        }
        let done: u64 = copied.iter().map(|it| it.done.min(it.all)).sum();
        let all: u64 = copied.iter().map(|it| it.all).sum();
        // Disks come first: until then all of the memory is left.
        let (sent, left, total) =
            sending.map_or((0, memory, memory), |it| (it.transferred, it.remaining, it.total));
        Some(Self {
            processed: done + sent,
            remaining: all - done + left,
            total: all + total,
            rates: sending.map(|it| (it.rate, it.dirty_rate)),
        })
    }

    pub(super) fn add(&self, labels: &[(&str, &str)], page: &mut Page) {
        for (name, help, value) in [
            (
                "kubevirt_vmi_migration_data_processed_bytes",
                "The total Guest OS data processed and migrated to the new VM.",
                self.processed,
            ),
            (
                "kubevirt_vmi_migration_data_remaining_bytes",
                "The remaining guest OS data to be migrated to the new VM.",
                self.remaining,
            ),
        ] {
            page.gauge(name, help).put(labels, value);
        }
        // Upstream calls it a counter.
        page.counter(
            "kubevirt_vmi_migration_data_total_bytes",
            "The total Guest OS data to be migrated to the new VM.",
        )
        .put(labels, self.total);
        let Some((rate, dirty)) = self.rates else {
            return;
        };
        for (name, help, value) in [
            // Upstream 1.5.2 calls the rate of memory so, and by the next name later.
            (
                "kubevirt_vmi_migration_disk_transfer_rate_bytes",
                "The rate at which the memory is being transferred.",
                rate,
            ),
            (
                "kubevirt_vmi_migration_memory_transfer_rate_bytes",
                "The rate at which the memory is being transferred.",
                rate,
            ),
            (
                "kubevirt_vmi_migration_dirty_memory_rate_bytes",
                "The rate of memory being dirty in the Guest OS.",
                dirty,
            ),
        ] {
            page.gauge(name, help).put(labels, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_and_memory_are_one_sum() {
        let progress = |status: &str| Progress {
            status: status.to_owned(),
            transferred: 70,
            remaining: 30,
            total: 90,
            rate: 7,
            dirty_rate: 3,
            ..Progress::default()
        };
        let disk = |done: u64| Copied {
            name: "root".to_owned(),
            done,
            all: 1000,
        };
        let moving = |processed, remaining, total, rates| {
            Some(Moving {
                processed,
                remaining,
                total,
                rates,
            })
        };
        for (sending, copied, expected, reason) in [
            (None, vec![], None, "rests"),
            (Some(progress("completed")), vec![], None, "has come"),
            (
                None,
                vec![disk(400)],
                moving(400, 690, 1090, None),
                "disks come first",
            ),
            (
                Some(progress("none")),
                vec![disk(400), disk(1000)],
                moving(1400, 690, 2090, None),
                "two of them",
            ),
            (
                Some(progress("active")),
                vec![],
                moving(70, 30, 90, Some((7, 3))),
                "memory alone",
            ),
            (
                Some(progress("active")),
                vec![disk(1000)],
                moving(1070, 30, 1090, Some((7, 3))),
                "memory after disks",
            ),
        ] {
            assert_eq!(Moving::of(sending.as_ref(), &copied, 90), expected, "{reason}");
        }
        let mut page = Page::default();
        Moving::of(Some(&progress("active")), &[], 90)
            .unwrap()
            .add(&[("name", "web")], &mut page);
        let written = page.write();
        for line in [
            "kubevirt_vmi_migration_data_processed_bytes{name=\"web\"} 70",
            "kubevirt_vmi_migration_data_remaining_bytes{name=\"web\"} 30",
            "# TYPE kubevirt_vmi_migration_data_total_bytes counter",
            "kubevirt_vmi_migration_data_total_bytes{name=\"web\"} 90",
            "kubevirt_vmi_migration_disk_transfer_rate_bytes{name=\"web\"} 7",
            "kubevirt_vmi_migration_memory_transfer_rate_bytes{name=\"web\"} 7",
            "kubevirt_vmi_migration_dirty_memory_rate_bytes{name=\"web\"} 3",
        ] {
            assert!(written.lines().any(|it| it == line), "{line}\n{written}");
        }
    }
}
