//! Mounts and devices of containers, and the paths that both may name.

use std::collections::HashSet;

use serde_json::Value;

use super::containers::Surroundings;
use crate::at::{At, Errors};
use crate::read::{flag, has, list, part, text};

/// A path may not climb.
pub(crate) fn backsteps(errs: &mut Errors, at: &At<'_>, path: &str) {
    if path.split('/').any(|item| item == "..") {
        errs.invalid(at, path, "must not contain '..'");
    }
}

pub(super) fn local_descending_path(errs: &mut Errors, at: &At<'_>, path: &str) {
    if path.starts_with('/') {
        errs.invalid(at, path, "must be a relative path");
    }
    backsteps(errs, at, path);
}

/// A relative path that neither climbs nor begins with two dots.
pub(crate) fn local_non_reserved_path(errs: &mut Errors, at: &At<'_>, path: &str) {
    local_descending_path(errs, at, path);
    if path.starts_with("..") && !path.starts_with("../") {
        errs.invalid(at, path, "must not start with '..'");
    }
}

pub(super) fn validate(errs: &mut Errors, at: &At<'_>, container: &Value, around: &Surroundings<'_>) {
    let (mounts, devices) = (list(container, "volumeMounts"), list(container, "volumeDevices"));
    let mounts_at = at.field("volumeMounts");
    let mut points = HashSet::new();
    for (i, mount) in mounts.iter().enumerate() {
        let at = mounts_at.index(i);
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        errs.require_text(&at, mount, "name");
        if around.volume(name).is_none() {
            errs.not_found(&at.field("name"), name);
        }
        errs.require_text(&at, mount, "mountPath");
        if !points.insert(path) {
            errs.invalid(&at.field("mountPath"), path, "must be unique");
        }
        if devices.iter().any(|d| text(d, "name") == name) {
            errs.invalid(&at.field("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|d| text(d, "devicePath") == path) {
            errs.invalid(
                &at.field("mountPath"),
                path,
                "must not already exist as a path in volumeDevices",
            );
        }
        for key in ["subPath", "subPathExpr"] {
            if !text(mount, key).is_empty() {
                local_descending_path(errs, &mounts_at.field(key), text(mount, key));
            }
        }
        if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
            let shown = text(mount, "subPathExpr");
            errs.invalid(
                &at.field("subPathExpr"),
                shown,
                "subPathExpr and subPath are mutually exclusive",
            );
        }
        validate_mount_modes(errs, &mounts_at, mount, container);
    }
    let devices_at = at.field("volumeDevices");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for (i, device) in devices.iter().enumerate() {
        let at = devices_at.index(i);
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        errs.require_text(&at, device, "name");
        if !name.is_empty() && !names.insert(name) {
            errs.invalid(&at.field("name"), name, "must be unique");
        }
        match around.volume(name) {
            None => errs.not_found(&at.field("name"), name),
            Some(v) if !has(v, "persistentVolumeClaim") && !has(v, "ephemeral") => errs.invalid(
                &at.field("name"),
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ),
            Some(_) => {}
        }
        if mounts.iter().any(|m| text(m, "name") == name) {
            errs.invalid(&at.field("name"), name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|m| text(m, "mountPath") == path) {
            errs.invalid(
                &at.field("devicePath"),
                path,
                "must not already exist as a path in volumeMounts",
            );
        }
        errs.require_text(&at, device, "devicePath");
        if path.split('/').any(|item| item == "..") {
            errs.invalid(&at.field("devicePath"), path, "can not contain backsteps ('..')");
        } else if !paths.insert(path) {
            errs.invalid(&at.field("devicePath"), path, "must be unique");
        }
    }
}

fn validate_mount_modes(errs: &mut Errors, at: &At<'_>, mount: &Value, container: &Value) {
    let propagation = text(mount, "mountPropagation");
    if has(mount, "mountPropagation") {
        let at = at.field("mountPropagation");
        errs.one_of(&at, propagation, &["Bidirectional", "HostToContainer", "None"]);
        if propagation == "Bidirectional" && !flag(part(container, "securityContext"), "privileged") {
            errs.forbidden(
                &at,
                "Bidirectional mount propagation is available only to privileged containers",
            );
        }
    }
    if has(mount, "recursiveReadOnly") {
        let at = at.field("recursiveReadOnly");
        match text(mount, "recursiveReadOnly") {
            "Disabled" => {}
            "Enabled" | "IfPossible" => {
                if !flag(mount, "readOnly") {
                    errs.forbidden(&at, "may only be specified when readOnly is true");
                }
                if !matches!(propagation, "" | "None") {
                    errs.forbidden(
                        &at,
                        "may only be specified when mountPropagation is None or not specified",
                    );
                }
            }
            other => errs.not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]),
        }
    }
}
