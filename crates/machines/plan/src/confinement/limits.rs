//! What the processes of a machine may take of their host, as the files of a control group.
//!
//! The guest's memory is the guest's; beside it QEMU needs some for itself, and one that needs more than that has gone wrong or was taken
//! over. What it needs is estimated as upstream does it for the pods of its machines, without the parts that are not there (a launcher,
//! a log daemon, libvirt). Measured with QEMU 7.2: an emulated guest of 128 MiB that has booted takes 298 MiB in all, where 440 MiB
//! and a screen's are allowed.

use crate::argv::Accelerator;
use crate::machine::MachinePlan;
use crate::view::Resources;

const MIB: u64 = 1 << 20;
/// QEMU itself, with its buffers of disks and cards.
const BASE: u64 = 96 * MIB;
/// For each processor that the machine can have.
const PROCESSOR: u64 = 8 * MIB;
/// For each thread of disks.
const IO_THREAD: u64 = 8 * MIB;
/// The memory of a screen, and what a viewer of it needs.
const SCREEN: u64 = 48 * MIB;
/// The emulator of a TPM.
const TPM: u64 = 53 * MIB;
/// UEFI and its variables, which QEMU keeps in memory.
const FIRMWARE: u64 = 16 * MIB;
/// Translated code, as `argv` bounds it, and what manages it.
const TRANSLATION: u64 = (128 + 64) * MIB;
/// The supervisor over QEMU.
const SUPERVISOR: u64 = 16 * MIB;
/// The period in which processor time is counted, in microseconds; upstream's.
const PERIOD: u64 = 100_000;
/// The least of processor time that the kernel lets one have in a period.
const LEAST_QUOTA: u64 = 1000;
/// Threads that work for disks, in each loop of events.
const WORKERS: u64 = 64;
/// Other threads: the main one, screens, a TPM's emulator, the supervisor, migrations.
const THREADS: u64 = 64;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: u64,
    /// Microseconds of processor time in a period; nothing is no limit.
    pub quota: Option<u64>,
    /// The share of the processor when others want it, too: from 1 to 10000.
    pub weight: u64,
    /// Processes and threads.
    pub tasks: u64,
}

impl Limits {
    /// What the kernel is told: controller, file and content.
    pub fn files(&self) -> Vec<(&'static str, &'static str, String)> {
        let quota = self.quota.map_or_else(|| "max".to_owned(), |it| it.to_string());
        vec![
            ("memory", "memory.max", self.memory.to_string()),
            // QEMU without its supervisor, or the other way round, is of no use.
            ("memory", "memory.oom.group", "1".to_owned()),
            ("cpu", "cpu.max", format!("{quota} {PERIOD}")),
            ("cpu", "cpu.weight", self.weight.to_string()),
            ("pids", "pids.max", self.tasks.to_string()),
        ]
    }
}

/// Bytes that QEMU needs beside those of the guest.
pub fn overhead(plan: &MachinePlan, accelerator: Accelerator, guest: u64) -> u64 {
    let mut sum = BASE + SUPERVISOR;
    // The host's tables of the guest's pages: eight bytes for each page of four KiB.
    sum += guest / 512;
    sum += PROCESSOR * u64::from(plan.cpu.max_count());
    sum += IO_THREAD * u64::from(plan.io_threads);
    if plan.devices.graphics {
        sum += SCREEN;
    }
    if plan.devices.tpm.is_some() {
        sum += TPM;
    }
    if matches!(plan.firmware.loader, crate::machine::Loader::Efi { .. }) {
        sum += FIRMWARE;
    }
    if accelerator == Accelerator::Tcg {
        sum += TRANSLATION;
    }
    sum
}

/// The limits of a machine whose guest has so much memory: `resources` are what its instance asks for.
pub fn limits(plan: &MachinePlan, resources: &Resources, accelerator: Accelerator, guest: u64) -> Limits {
    let limit = resources.limits.get("memory").map_or(0, |it| it.bytes());
    let quota = resources.limits.get("cpu").map(|it| it.milli());
    // Processors of its own are limit enough, and what QEMU does beside them must not be taken from the guest.
    let quota = quota
        .filter(|it| *it > 0 && !plan.cpu.dedicated)
        .map(|it| (it.saturating_mul(PERIOD) / 1000).max(LEAST_QUOTA));
    // Large pages are not counted among the memory of a group.
    let counted = match plan.memory.hugepages {
        Some(_) => 0,
        None => guest.max(limit),
    };
    let asked = resources.requests.get("cpu").map(|it| it.milli());
    let asked = asked.unwrap_or(match plan.cpu.dedicated {
        true => 1000 * u64::from(plan.cpu.count()),
        false => 0,
    });
    Limits {
        memory: counted.saturating_add(overhead(plan, accelerator, guest)),
        quota,
        weight: weight(asked),
        tasks: THREADS + u64::from(plan.cpu.max_count()) + WORKERS * (1 + u64::from(plan.io_threads)),
    }
}

/// The share for so many thousandths of a processor: kubelet's formulas, by way of the shares of version 1. One that asks for nothing has the
/// least.
fn weight(milli: u64) -> u64 {
    let shares = (milli.saturating_mul(1024) / 1000).clamp(2, 262_144);
    1 + (shares - 2) * 9999 / 262_142
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::{Capabilities, Origin, plan};
    use crate::settings::Settings;
    use crate::view;

    fn limited(domain: &Value, accelerator: Accelerator) -> Limits {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"domain": domain}});
        let vmi: view::VirtualMachineInstance = view::read("VirtualMachineInstance", &object).unwrap();
        let host = Capabilities {
            dedicated_cpus: true,
            tpm: true,
            uefi: true,
            hugepages: [2 << 20].into(),
            ..Capabilities::default()
        };
        let plan = plan(&vmi, Origin::default(), &host, &Settings::default());
        limits(&plan, &vmi.spec.domain.resources, accelerator, plan.memory.guest)
    }

    #[test]
    fn memory_is_the_guests_and_what_qemu_needs() {
        let plain = json!({"memory": {"guest": "1Gi"}, "devices": {"autoattachGraphicsDevice": false}});
        let base = limited(&plain, Accelerator::Kvm).memory;
        assert_eq!(base, (1024 + 2 + 96 + 16 + 8) * MIB);
        let with = |change: Value| {
            let mut domain = plain.clone();
            for (field, value) in change.as_object().unwrap() {
                domain[field] = value.clone();
            }
            limited(&domain, Accelerator::Kvm).memory - base
        };
        for (change, expected, reason) in [
            (json!({"cpu": {"cores": 4}}), 3 * 8, "three processors more"),
            (json!({"devices": {}}), 48, "a screen"),
            (
                json!({"devices": {"autoattachGraphicsDevice": false, "tpm": {}}}),
                53,
                "a TPM",
            ),
            (
                json!({"firmware": {"bootloader": {"efi": {"secureBoot": false}}}}),
                16,
                "UEFI",
            ),
            (
                json!({"resources": {"limits": {"memory": "2Gi"}}}),
                1024,
                "the machine may take more than its guest sees",
            ),
            (
                json!({"resources": {"limits": {"memory": "512Mi"}}}),
                0,
                "a limit below what the guest has would end it",
            ),
        ] {
            assert_eq!(with(change.clone()), expected * MIB, "{reason}: {change}");
        }
        assert_eq!(
            limited(&plain, Accelerator::Tcg).memory - base,
            192 * MIB,
            "emulation keeps what it translated"
        );
        let large = json!({"memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}, "devices": {"autoattachGraphicsDevice": false}});
        assert_eq!(
            limited(&large, Accelerator::Kvm).memory,
            base - 1024 * MIB,
            "large pages are counted elsewhere"
        );
    }

    #[test]
    fn processors_are_shared_as_asked() {
        for (resources, quota, weight, reason) in [
            (json!({}), None, 1, "nothing asked: what nobody else wants"),
            (
                json!({"requests": {"cpu": "1"}}),
                None,
                39,
                "kubelet's share of one",
            ),
            (json!({"requests": {"cpu": "100m"}}), None, 4, "a tenth"),
            (
                json!({"requests": {"cpu": "1000"}}),
                None,
                10_000,
                "there is no more",
            ),
            (json!({"limits": {"cpu": "2"}}), Some(200_000), 1, "two at most"),
            (
                json!({"limits": {"cpu": "1500m"}}),
                Some(150_000),
                1,
                "one and a half",
            ),
            (
                json!({"limits": {"cpu": "1m"}}),
                Some(1000),
                1,
                "the kernel takes no less",
            ),
        ] {
            let domain = json!({"resources": resources, "devices": {}});
            let found = limited(&domain, Accelerator::Kvm);
            assert_eq!((found.quota, found.weight), (quota, weight), "{reason}");
        }
        for (resources, weight) in [
            (json!({}), 79),
            (json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}), 79),
        ] {
            let cpu = json!({"cores": 2, "dedicatedCpuPlacement": true});
            let domain = json!({"cpu": cpu, "resources": resources, "devices": {}});
            let found = limited(&domain, Accelerator::Kvm);
            assert_eq!(
                (found.quota, found.weight),
                (None, weight),
                "whole ones are limit enough: {resources}"
            );
        }
    }

    #[test]
    fn the_kernel_is_told() {
        let limits = Limits {
            memory: 1 << 30,
            quota: Some(150_000),
            weight: 39,
            tasks: 200,
        };
        let told: Vec<String> = limits
            .files()
            .iter()
            .map(|(controller, file, content)| format!("{controller} {file}={content}"))
            .collect();
        assert_eq!(
            told,
            [
                "memory memory.max=1073741824",
                "memory memory.oom.group=1",
                "cpu cpu.max=150000 100000",
                "cpu cpu.weight=39",
                "pids pids.max=200",
            ]
        );
        let free = Limits {
            quota: None,
            ..limits
        };
        assert_eq!(free.files()[2].2, "max 100000");
    }
}
