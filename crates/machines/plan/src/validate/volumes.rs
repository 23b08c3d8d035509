//! Volumes: exactly one source each, and seeds that are not too long.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{CauseType, Causes};
use crate::settings::Settings;
use crate::view::{CloudInit, HostDisk, InstanceSpec};

/// Longer seeds belong into Secrets: every watcher of the machine would get them again and again.
const MAX_SEED: usize = 2048;

pub(super) fn check(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, volume) in spec.volumes.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if let Some(other) = seen.get(volume.name.as_str()) {
            let message = format!("{field} and {path}[{other}] must not have the same Name.");
            causes.invalid(format!("{field}.name"), message);
        }
        seen.entry(&volume.name).or_insert(index);
        if volume.data_volume.as_ref().is_some_and(|it| it.name.is_empty()) {
            causes.required(format!("{field}.name"), "DataVolume 'name' must be set");
        }
        if volume.sources() != 1 {
            causes.invalid(&field, format!("{field} must have exactly one source type set"));
        }
        if let Some(seed) = &volume.cloud_init_no_cloud {
            cloud_init(
                &format!("{field}.cloudInitNoCloud"),
                "cloudInitNoCloud",
                seed,
                causes,
            );
        } else if let Some(seed) = &volume.cloud_init_config_drive {
            cloud_init(
                &format!("{field}.cloudInitConfigDrive"),
                "cloudInitConfigDrive",
                seed,
                causes,
            );
        }
        if volume.downward_metrics.is_some() && !settings.gate("DownwardMetrics") {
            causes.invalid(
                &field,
                "downwardMetrics disks are not allowed: DownwardMetrics feature gate is not enabled.",
            );
        }
        if let Some(disk) = &volume.host_disk {
            host_disk(&field, disk, settings, causes);
        }
        let named = [
            ("configMap.name", volume.config_map.as_ref().map(|it| &it.name)),
            (
                "secret.secretName",
                volume.secret.as_ref().map(|it| &it.secret_name),
            ),
            (
                "serviceAccount.serviceAccountName",
                volume.service_account.as_ref().map(|it| &it.service_account_name),
            ),
        ];
        for (name, value) in named {
            if value.is_some_and(|it| it.is_empty()) {
                let field = format!("{field}.{name}");
                causes.invalid(&field, format!("{field} is a required field"));
            }
        }
    }
    let count = |of: fn(&crate::view::Volume) -> bool| spec.volumes.iter().filter(|it| of(it)).count();
    let once = [
        ("serviceAccount", count(|it| it.service_account.is_some())),
        ("downwardMetric", count(|it| it.downward_metrics.is_some())),
        ("memory dump", count(|it| it.memory_dump.is_some())),
    ];
    for (what, count) in once {
        if count > 1 {
            causes.invalid(path, format!("{path} must have max one {what} volume set"));
        }
    }
}

fn cloud_init(field: &str, source: &str, seed: &CloudInit, causes: &mut Causes) {
    let user = data(
        field,
        source,
        ("userDataBase64", &seed.user_data_base64),
        &seed.user_data,
        seed.secret_ref.as_ref().is_some_and(|it| !it.name.is_empty()),
        causes,
    );
    if user.sources > 1 {
        causes.invalid(field, format!("{field} must have only one userdatasource set."));
    }
    if user.length > MAX_SEED {
        let message = format!(
            "{field} userdata exceeds {MAX_SEED} byte limit. Should use UserDataSecretRef for larger data."
        );
        causes.invalid(field, message);
    }
    let network = data(
        field,
        source,
        ("networkDataBase64", &seed.network_data_base64),
        &seed.network_data,
        seed.network_data_secret_ref
            .as_ref()
            .is_some_and(|it| !it.name.is_empty()),
        causes,
    );
    if network.sources > 1 {
        causes.invalid(
            field,
            format!("{field} must have only one networkdata source set."),
        );
    }
    if network.length > MAX_SEED {
        let message = format!(
            "{field} networkdata exceeds {MAX_SEED} byte limit. Should use NetworkDataSecretRef for larger data."
        );
        causes.invalid(field, message);
    }
    if user.sources == 0 && network.sources == 0 {
        let message = format!("{field} must have at least one userdatasource or one networkdatasource set.");
        causes.invalid(field, message);
    }
}

struct Data {
    sources: usize,
    length: usize,
}

fn data(
    field: &str,
    source: &str,
    (name, encoded): (&str, &str),
    plain: &str,
    by_secret: bool,
    causes: &mut Causes,
) -> Data {
    let mut found = Data {
        sources: usize::from(by_secret),
        length: 0,
    };
    if !encoded.is_empty() {
        found.sources += 1;
        match STANDARD.decode(encoded) {
            Ok(bytes) => found.length = bytes.len(),
            Err(_) => {
                let at = format!("{field}.{name}");
                // Upstream names the field twice.
                causes.invalid(&at, format!("{at}.{source}.{name} is not a valid base64 value."));
            }
        }
    }
    if !plain.is_empty() {
        found.sources += 1;
        found.length = plain.len();
    }
    found
}

fn host_disk(field: &str, disk: &HostDisk, settings: &Settings, causes: &mut Causes) {
    if !settings.gate("HostDisk") {
        causes.invalid(field, "HostDisk feature gate is not enabled");
    }
    if disk.path.is_empty() {
        let at = format!("{field}.hostDisk.path");
        causes.add(
            CauseType::NotFound,
            &at,
            format!("{at} is required for hostDisk volume"),
        );
    }
    let kind = format!("{field}.hostDisk.type");
    if !["Disk", "DiskOrCreate"].contains(&disk.kind.as_str()) {
        let message = format!(
            "{kind} has invalid value '{}', allowed are 'Disk' or 'DiskOrCreate'",
            disk.kind
        );
        causes.invalid(&kind, message);
    }
    if disk.kind == "Disk" && disk.capacity.is_some_and(|it| !it.0.is_zero()) {
        let at = format!("{field}.hostDisk.capacity");
        let message = format!("{at} is allowed to pass only with {kind} equal to 'DiskOrCreate'");
        causes.invalid(at, message);
    }
}

/// Paths into images of container disks.
pub(super) fn container_disks(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    for (index, volume) in spec.volumes.iter().enumerate() {
        if let Some(disk) = volume.container_disk.as_ref().filter(|it| !it.path.is_empty()) {
            absolute_path(
                &format!("{path}.volumes[{index}].containerDisk"),
                &disk.path,
                causes,
            );
        }
    }
}

/// A path that leads to a file, and nowhere else.
pub(super) fn absolute_path(field: &str, path: &str, causes: &mut Causes) {
    if path == "/" {
        causes.invalid(field, format!("{field} must not point to root"));
        return;
    }
    let plain = path.strip_suffix('/').unwrap_or(path);
    let parts = plain.strip_prefix('/').map(|rest| rest.split('/'));
    let clean = parts.is_some_and(|mut parts| parts.all(|part| !matches!(part, "" | "." | "..")));
    if !clean {
        let message = format!("{field} must be an absolute path to a file without relative components");
        causes.invalid(field, message);
    }
}
