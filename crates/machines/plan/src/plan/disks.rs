//! Disks: what they are, where their content comes from, and which threads serve them.

use std::collections::BTreeMap;

use super::DISK_LIMITS;
use crate::machine::{
    Cache, CpuPlan, DiskBus, DiskDevice, DiskLimits, DiskPlan, DiskSource, FilesOf, ImageRef, OnError,
    SeedKind,
};
use crate::pci::PciAddress;
use crate::unsupported::Wishes;
use crate::view::{Disk, Domain, VirtualMachineInstance, Volume};

/// What guests know disks of files by, unless somebody says otherwise.
const FILES_LABEL: &str = "cfgdata";
const SYSPREP_LABEL: &str = "unattendCD";

pub(super) struct Disks {
    pub(super) disks: Vec<DiskPlan>,
    pub(super) io_threads: u32,
}

pub(super) fn disks(vmi: &VirtualMachineInstance, cpu: &CpuPlan, wishes: &mut Wishes) -> Disks {
    let limits = limits(vmi, wishes);
    let devices = &vmi.spec.domain.devices;
    let mut found = Vec::new();
    for (index, disk) in devices.disks.iter().enumerate() {
        let field = format!("domain.devices.disks[{index}]");
        let Some((at, volume)) = vmi
            .spec
            .volumes
            .iter()
            .enumerate()
            .find(|(_, it)| it.name == disk.name)
        else {
            wishes.blocks(&field, format!("there is no volume {:?}", disk.name));
            continue;
        };
        let Some(source) = source(&format!("volumes[{at}]"), volume, wishes) else {
            continue;
        };
        let mut plan = planned(&field, disk, volume, source, wishes);
        plan.limits = limits.get(&disk.name).copied().unwrap_or_default();
        if devices.block_multi_queue == Some(true) && plan.bus == DiskBus::Virtio {
            plan.queues = Some(cpu.count());
        }
        found.push(plan);
    }
    boot_indexes(
        &mut found,
        devices.interfaces.iter().any(|it| it.boot_order.is_some()),
    );
    let io_threads = io_threads(&vmi.spec.domain, &mut found, wishes);
    Disks {
        disks: found,
        io_threads,
    }
}

fn limits(vmi: &VirtualMachineInstance, wishes: &mut Wishes) -> BTreeMap<String, DiskLimits> {
    let Some(text) = vmi.metadata.annotations.get(DISK_LIMITS) else {
        return BTreeMap::new();
    };
    match serde_json::from_str(text) {
        Ok(limits) => limits,
        Err(error) => {
            let field = format!("metadata.annotations[{DISK_LIMITS}]");
            wishes.ignored(
                field,
                format!("not limits by disk in JSON ({error}); disks are not limited"),
            );
            BTreeMap::new()
        }
    }
}

fn planned(field: &str, disk: &Disk, volume: &Volume, source: DiskSource, wishes: &mut Wishes) -> DiskPlan {
    let (word, target) = disk
        .target()
        .map_or(("disk", None), |(word, target)| (word, Some(target)));
    let target = target.cloned().unwrap_or_default();
    let device = match word {
        "cdrom" => DiskDevice::Cdrom,
        "lun" => DiskDevice::Lun,
        _ => DiskDevice::Disk,
    };
    if device == DiskDevice::Lun {
        let reason = "volumes are files here; the guest gets a SCSI disk that takes no commands of its own";
        wishes.replaced(format!("{field}.lun"), reason);
    }
    if target.reservation {
        wishes.ignored(
            format!("{field}.lun.reservation"),
            "reservations do not reach what lies below",
        );
    }
    let bus = match target.bus.as_str() {
        "virtio" => DiskBus::Virtio,
        "scsi" => DiskBus::Scsi,
        "usb" => DiskBus::Usb,
        _ if device == DiskDevice::Lun => DiskBus::Scsi,
        _ => DiskBus::Sata,
    };
    let made_by_us = matches!(source, DiskSource::Seed(_) | DiskSource::Files { .. });
    let claim_read_only = volume
        .persistent_volume_claim
        .as_ref()
        .is_some_and(|it| it.read_only);
    let asked = target.readonly.unwrap_or(device == DiskDevice::Cdrom);
    let mut read_only = asked || claim_read_only || made_by_us;
    if read_only && bus == DiskBus::Sata && device == DiskDevice::Disk {
        if made_by_us {
            // An AHCI disk cannot be read-only, and what we make is made anew at each start: let the guest write.
            read_only = false;
        } else {
            let reason = "a SATA disk cannot be read-only; use bus virtio or scsi, or a cdrom";
            wishes.blocks(format!("{field}.disk.bus"), reason);
        }
    }
    let cache = match disk.cache.as_str() {
        "none" => Cache::None,
        "writethrough" => Cache::WriteThrough,
        "writeback" => Cache::WriteBack,
        _ => Cache::Default,
    };
    let native = disk.io == "native";
    let buffered = matches!(cache, Cache::WriteThrough | Cache::WriteBack);
    if native && buffered {
        let reason = format!(
            "the host's asynchronous interface goes past its memory, which cache {} does not",
            disk.cache
        );
        wishes.replaced(format!("{field}.io"), reason);
    }
    let size = disk.block_size.as_ref();
    if size.and_then(|it| it.match_volume).is_some_and(|it| it.is_on()) {
        wishes.ignored(
            format!("{field}.blockSize.matchVolume"),
            "volumes are files here, with blocks of 512 bytes",
        );
    }
    DiskPlan {
        name: disk.name.clone(),
        device,
        bus,
        read_only,
        boot_index: disk.boot_order.and_then(|it| u32::try_from(it).ok()),
        serial: disk.serial.clone(),
        cache,
        native_io: native && !buffered,
        on_error: match disk.error_policy.as_deref() {
            Some("ignore") => OnError::Ignore,
            Some("report") => OnError::Report,
            Some("enospace") => OnError::Enospace,
            _ => OnError::Stop,
        },
        io_thread: None,
        queues: None,
        blocks: size
            .and_then(|it| it.custom.as_ref())
            .map(|it| (it.logical, it.physical)),
        shared: disk.shareable == Some(true),
        limits: DiskLimits::default(),
        pci_address: PciAddress::parse(&target.pci_address),
        tag: disk.tag.clone(),
        tray_open: target.tray == "open",
        hotpluggable: volume.is_hotpluggable(),
        source,
    }
}

fn source(field: &str, volume: &Volume, wishes: &mut Wishes) -> Option<DiskSource> {
    let label = |given: &str, default: &str| {
        if given.is_empty() {
            default.to_owned()
        } else {
            given.to_owned()
        }
    };
    if let Some(disk) = &volume.container_disk {
        return Some(DiskSource::ContainerDisk {
            image: ImageRef {
                image: disk.image.clone(),
                pull_policy: disk.image_pull_policy.clone(),
                pull_secret: disk.image_pull_secret.clone(),
            },
            path: disk.path.clone(),
        });
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(DiskSource::Claim {
            name: claim.claim_name.clone(),
        });
    }
    if let Some(volume) = &volume.data_volume {
        return Some(DiskSource::DataVolume {
            name: volume.name.clone(),
        });
    }
    if let Some(ephemeral) = &volume.ephemeral {
        let Some(claim) = &ephemeral.persistent_volume_claim else {
            wishes.blocks(format!("{field}.ephemeral"), "it names no claim");
            return None;
        };
        return Some(DiskSource::Ephemeral {
            claim: claim.claim_name.clone(),
        });
    }
    if let Some(disk) = &volume.empty_disk {
        let capacity = disk.capacity.map_or(0, |it| it.bytes());
        if capacity == 0 {
            wishes.blocks(
                format!("{field}.emptyDisk.capacity"),
                "a disk needs a size above nothing",
            );
            return None;
        }
        return Some(DiskSource::Empty { capacity });
    }
    if let Some(disk) = &volume.host_disk {
        if disk.shared == Some(true) {
            let reason =
                "a file of the host belongs to one machine at a time, unless its disk says shareable";
            wishes.ignored(format!("{field}.hostDisk.shared"), reason);
        }
        let capacity = disk.capacity.map(|it| it.bytes());
        return Some(DiskSource::HostFile {
            path: disk.path.clone(),
            create: capacity.filter(|_| disk.kind == "DiskOrCreate"),
        });
    }
    if volume.cloud_init_no_cloud.is_some() {
        return Some(DiskSource::Seed(SeedKind::NoCloud));
    }
    if volume.cloud_init_config_drive.is_some() {
        return Some(DiskSource::Seed(SeedKind::ConfigDrive));
    }
    if let Some(map) = &volume.config_map {
        return Some(DiskSource::Files {
            of: FilesOf::ConfigMap {
                name: map.name.clone(),
                optional: map.optional,
            },
            label: label(&map.volume_label, FILES_LABEL),
        });
    }
    if let Some(secret) = &volume.secret {
        return Some(DiskSource::Files {
            of: FilesOf::Secret {
                name: secret.secret_name.clone(),
                optional: secret.optional,
            },
            label: label(&secret.volume_label, FILES_LABEL),
        });
    }
    if let Some(account) = &volume.service_account {
        return Some(DiskSource::Files {
            of: FilesOf::ServiceAccount {
                name: account.service_account_name.clone(),
            },
            label: FILES_LABEL.to_owned(),
        });
    }
    if let Some(facts) = &volume.downward_api {
        for (at, fact) in facts.fields.iter().enumerate() {
            let field = format!("{field}.downwardAPI.fields[{at}]");
            if fact.resource_field_ref.is_some() {
                let reason = "a machine is no container; the file is left out, use fieldRef";
                wishes.ignored(format!("{field}.resourceFieldRef"), reason);
            }
            if fact.mode.is_some() {
                let reason = "files of such a disk can be read by everybody in the guest";
                wishes.ignored(format!("{field}.mode"), reason);
            }
        }
        let fields = facts.fields.iter().filter_map(|it| {
            let from = it.field_ref.as_ref()?.field_path.clone();
            Some((it.path.clone(), from))
        });
        return Some(DiskSource::Files {
            of: FilesOf::DownwardApi {
                fields: fields.collect(),
            },
            label: label(&facts.volume_label, FILES_LABEL),
        });
    }
    if let Some(sysprep) = &volume.sysprep {
        let (name, secret) = match (&sysprep.secret, &sysprep.config_map) {
            (Some(secret), _) => (secret.name.clone(), true),
            (None, Some(map)) => (map.name.clone(), false),
            (None, None) => {
                wishes.blocks(
                    format!("{field}.sysprep"),
                    "it names neither a Secret nor a ConfigMap",
                );
                return None;
            }
        };
        return Some(DiskSource::Files {
            of: FilesOf::Sysprep { name, secret },
            label: SYSPREP_LABEL.to_owned(),
        });
    }
    if volume.downward_metrics.is_some() {
        wishes.ignored(
            format!("{field}.downwardMetrics"),
            "metrics of the node are not passed to guests",
        );
        return None;
    }
    if volume.memory_dump.is_none() {
        wishes.blocks(
            field,
            format!("volume {:?} has no source that is known", volume.name),
        );
    }
    None
}

/// Without an order, what can start a guest is tried as it is listed, disks before CD-ROMs.
fn boot_indexes(disks: &mut [DiskPlan], cards_have_order: bool) {
    if cards_have_order || disks.iter().any(|it| it.boot_index.is_some()) {
        return;
    }
    let mut next = 1;
    for device in [DiskDevice::Disk, DiskDevice::Lun, DiskDevice::Cdrom] {
        for disk in disks
            .iter_mut()
            .filter(|it| it.device == device && it.source.may_boot() && !it.hotpluggable)
        {
            disk.boot_index = Some(next);
            next += 1;
        }
    }
}

/// Gives threads to virtio disks; says how many there are.
fn io_threads(domain: &Domain, disks: &mut [DiskPlan], wishes: &mut Wishes) -> u32 {
    let policy = domain.io_threads_policy.as_deref();
    let dedicated = |name: &str| {
        let disk = domain.devices.disks.iter().find(|it| it.name == name);
        disk.is_some_and(|it| it.dedicated_io_thread == Some(true))
    };
    let own: Vec<bool> = disks.iter().map(|it| dedicated(&it.name)).collect();
    if policy.is_none() && !own.contains(&true) {
        return 0;
    }
    let count =
        |wanted: bool| u32::try_from(own.iter().filter(|it| **it == wanted).count()).unwrap_or(u32::MAX);
    let (alone, together) = (count(true), count(false));
    let resources = &domain.resources;
    let processors = match (resources.request("cpu"), resources.limit("cpu")) {
        (0, 0) => 1,
        (0, most) => most,
        (asked, _) => asked,
    };
    let shared = match policy {
        Some("supplementalPool") => {
            let pool = domain
                .io_threads
                .as_ref()
                .and_then(|it| it.supplemental_pool_thread_count)
                .unwrap_or(1);
            let reason = "a disk is served by one thread of the pool, not by all";
            wishes.replaced("domain.ioThreads.supplementalPoolThreadCount", reason);
            pool.min(together.max(1))
        }
        Some("auto") => {
            let pool = u32::try_from(processors).unwrap_or(u32::MAX).saturating_mul(2);
            if together.saturating_add(alone) > pool {
                pool.saturating_sub(alone).max(1)
            } else {
                together
            }
        }
        _ => together.min(1),
    };
    let mut next = 0;
    let mut next_alone = shared;
    for (disk, alone) in disks.iter_mut().zip(own) {
        if disk.bus != DiskBus::Virtio {
            continue;
        }
        disk.io_thread = if alone {
            next_alone += 1;
            Some(next_alone - 1)
        } else if shared > 0 {
            next += 1;
            Some((next - 1) % shared)
        } else {
            None
        };
    }
    next_alone
}
