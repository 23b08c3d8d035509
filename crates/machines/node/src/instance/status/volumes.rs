//! Disks: under what name the machine has them, what is behind them, and how far one is that comes or goes.

use std::collections::BTreeMap;

use fairway_machines_plan::machine::{DiskBus, DiskLimits, DiskPlan};
use fairway_machines_plan::view::Volume;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Seen;

/// What is known of a volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VolumeFacts {
    /// Bytes that the guest sees.
    pub(crate) size: Option<u64>,
    /// What there is to say about its claim ([`claim_info`]).
    pub(crate) claim: Option<Value>,
    /// How far it is, if it comes or goes while the guest runs.
    pub(crate) hotplug: Option<Hotplug>,
    /// How much may be read and written in a second, by its claim's class; the machine has been told.
    pub(crate) limits: DiskLimits,
}

/// How far a volume is that comes or goes while the guest runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Hotplug {
    /// Its claim is not bound.
    Pending,
    /// Its disk is there, and was not given to the guest yet, or not successfully; why.
    Bound(String),
    /// The guest has it.
    Ready,
    /// The guest is asked to let it go.
    Detaching,
}

pub(super) fn list(seen: &Seen<'_>) -> Vec<Value> {
    let targets = match seen.live {
        Some(_) => targets(&seen.plan.disks),
        None => BTreeMap::new(),
    };
    let mut all: BTreeMap<&str, Value> = BTreeMap::new();
    for volume in &seen.vmi.spec.volumes {
        let target = targets.get(volume.name.as_str()).cloned();
        let mut facts = seen.volumes.get(&volume.name).cloned().unwrap_or_default();
        if seen.live.is_none() {
            facts.hotplug = None;
        }
        all.insert(&volume.name, status(volume, target, &facts));
    }
    // One that is leaving is still there.
    for (name, facts) in seen.volumes {
        if seen.live.is_some()
            && facts.hotplug == Some(Hotplug::Detaching)
            && !all.contains_key(name.as_str())
        {
            let target = targets.get(name.as_str()).cloned();
            let volume = Volume {
                name: name.clone(),
                ..Volume::default()
            };
            all.insert(name, status(&volume, target, facts));
        }
    }
    all.into_values().collect()
}

fn status(volume: &Volume, target: Option<String>, facts: &VolumeFacts) -> Value {
    let name = &volume.name;
    let mut status = Map::new();
    status.insert("name".to_owned(), name.as_str().into());
    let hotplug = facts.hotplug.as_ref();
    let is_there = matches!(hotplug, None | Some(Hotplug::Ready | Hotplug::Detaching));
    let target = target.filter(|_| is_there).unwrap_or_default();
    status.insert("target".to_owned(), target.into());
    if let Some(hotplug) = hotplug {
        let (phase, reason, message) = match hotplug {
            Hotplug::Pending => (
                "Pending",
                "PVCNotReady",
                format!("PVC of volume {name} is not bound yet"),
            ),
            Hotplug::Bound(why) => ("Bound", "VolumeNotReady", why.clone()),
            Hotplug::Ready => (
                "Ready",
                "VolumeReady",
                format!("Successfully attach hotplugged volume {name} to VM"),
            ),
            Hotplug::Detaching => (
                "Detaching",
                "VolumeUnplugging",
                format!("the guest was asked to let volume {name} go"),
            ),
        };
        status.insert("phase".to_owned(), phase.into());
        status.insert("reason".to_owned(), reason.into());
        status.insert("message".to_owned(), message.into());
        status.insert("hotplugVolume".to_owned(), json!({}));
    }
    if facts.limits.any() && is_there {
        let limited = format!(
            "limited by its VolumeAttributesClass to {}",
            sentence(&facts.limits)
        );
        let said = status.get("message").and_then(Value::as_str);
        let message = said.map_or_else(|| limited.clone(), |it| format!("{it}; {limited}"));
        status.insert("message".to_owned(), message.into());
    }
    if let Some(claim) = &facts.claim {
        status.insert("persistentVolumeClaimInfo".to_owned(), claim.clone());
    }
    // As upstream: the size of what is made for the machine, while that of a claim is the claim's.
    let made = volume.persistent_volume_claim.is_none() && volume.data_volume.is_none();
    if let Some(size) = facts.size.filter(|_| made) {
        status.insert("size".to_owned(), size.into());
    }
    Value::Object(status)
}

/// Limits in words.
fn sentence(limits: &DiskLimits) -> String {
    let all = [
        (limits.iops, "operations"),
        (limits.iops_read, "reads"),
        (limits.iops_write, "writes"),
        (limits.bytes_per_second, "bytes"),
        (limits.read_bytes_per_second, "bytes read"),
        (limits.write_bytes_per_second, "bytes written"),
    ];
    let there = all.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = there
        .map(|(count, what)| format!("{count} {what} per second"))
        .collect();
    parts.join(", ")
}

/// What a status says about a claim.
pub(crate) fn claim_info(claim: &Value) -> Value {
    let mut info = Map::new();
    for (field, value) in [
        ("claimName", &claim["metadata"]["name"]),
        ("accessModes", &claim["spec"]["accessModes"]),
        ("volumeMode", &claim["spec"]["volumeMode"]),
        ("capacity", &claim["status"]["capacity"]),
        ("requests", &claim["spec"]["resources"]["requests"]),
    ] {
        if !value.is_null() {
            info.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(info)
}

/// Names as a guest without any others would give: `vda`, `sda`, in the order of disks on each kind of bus.
pub(super) fn targets(disks: &[DiskPlan]) -> BTreeMap<&str, String> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for disk in disks {
        let prefix = match disk.bus {
            DiskBus::Virtio => "vd",
            DiskBus::Scsi | DiskBus::Sata | DiskBus::Usb => "sd",
        };
        let count = counts.entry(prefix).or_default();
        names.insert(disk.name.as_str(), format!("{prefix}{}", letters(*count)));
        *count += 1;
    }
    names
}

fn letters(index: u32) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letters(more - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told() {
        let volume = Volume {
            name: "root".to_owned(),
            ..Volume::default()
        };
        let facts = VolumeFacts {
            limits: DiskLimits {
                iops: 500,
                write_bytes_per_second: 1 << 20,
                ..DiskLimits::default()
            },
            ..VolumeFacts::default()
        };
        let told = status(&volume, None, &facts);
        assert_eq!(
            told["message"],
            "limited by its VolumeAttributesClass to 500 operations per second, 1048576 bytes written per second"
        );
        let free = status(&volume, None, &VolumeFacts::default());
        assert_eq!(free.get("message"), None);
    }

    #[test]
    fn letters_go_on_after_z() {
        for (index, expected) in [
            (0, "a"),
            (25, "z"),
            (26, "aa"),
            (27, "ab"),
            (51, "az"),
            (52, "ba"),
        ] {
            assert_eq!(letters(index), expected, "{index}");
        }
    }
}
