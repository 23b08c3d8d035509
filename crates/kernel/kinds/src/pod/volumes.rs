//! Volumes of a pod: one source each, with what that source needs.

use std::collections::HashSet;

use serde_json::Value;

use super::environment::{field_ref, resource_field_ref};
use super::{backsteps, local_non_reserved_path};
use crate::at::{At, Errors};
use crate::quantity::Quantity;
use crate::read::{self, has, int, list, part, text};
use crate::{meta, persistentvolumeclaim, storage, validation};

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const VOLUME_FIELD_PATHS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Checks volumes; only those without a fault can be mounted.
pub(super) fn validate<'a>(
    errs: &mut Errors,
    at: &At<'_>,
    volumes: &'a [Value],
    pod: Option<&Value>,
) -> Vec<&'a Value> {
    let mut names = HashSet::new();
    let mut sound = Vec::new();
    for (i, volume) in volumes.iter().enumerate() {
        let at = at.index(i);
        let name = text(volume, "name");
        let before = errs.len();
        validate_source(errs, &at, volume, pod);
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_dns1123_label(name));
        }
        if !names.insert(name) {
            errs.duplicate(&at.field("name"), name);
        }
        if errs.len() == before {
            sound.push(volume);
        }
    }
    sound
}

/// Sources in the order in which upstream looks at them; the first one counts.
pub(crate) const ORDER: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "local",
    "csi",
    "ephemeral",
    "image",
];

/// How upstream spells a second source.
pub(crate) fn second_source(kind: &str) -> &str {
    match kind {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        other => other,
    }
}

fn validate_source(errs: &mut Errors, at: &At<'_>, volume: &Value, pod: Option<&Value>) {
    let mut count = 0;
    for kind in ORDER.iter().filter(|kind| has(volume, kind)) {
        let source = part(volume, kind);
        count += 1;
        let source_at = at.field(kind);
        if count > 1 {
            errs.forbidden(
                &at.field(second_source(kind)),
                "may not specify more than 1 volume type",
            );
            continue;
        }
        match *kind {
            "emptyDir" => {
                if source
                    .get("sizeLimit")
                    .and_then(Quantity::from_value)
                    .is_some_and(|q| q.sign() < 0)
                {
                    errs.forbidden(
                        &source_at.field("sizeLimit"),
                        "SizeLimit field must be a valid resource quantity",
                    );
                }
            }
            "secret" => {
                errs.require_text(&source_at, source, "secretName");
                projected_keys(errs, &source_at, source);
            }
            "configMap" => {
                errs.require_text(&source_at, source, "name");
                projected_keys(errs, &source_at, source);
            }
            "downwardAPI" => {
                mode(errs, &source_at, source, "defaultMode");
                for file in list(source, "items") {
                    downward_file(errs, &source_at, file);
                }
            }
            "projected" => validate_projected(errs, &source_at, source),
            "ephemeral" => validate_ephemeral(errs, at, &source_at, volume, pod),
            "csi" => {
                storage::csi_driver_name(errs, &source_at.field("driver"), text(source, "driver"));
                if has(source, "nodePublishSecretRef")
                    && text(part(source, "nodePublishSecretRef"), "name").is_empty()
                {
                    errs.required(&source_at.field("nodePublishSecretRef.name"), "");
                }
            }
            "image" => {
                if pod.is_some() {
                    errs.require_text(&source_at, source, "reference");
                }
                errs.required_one_of(
                    &source_at.field("pullPolicy"),
                    text(source, "pullPolicy"),
                    &["Always", "IfNotPresent", "Never"],
                );
            }
            other => required_parts(errs, &source_at, other, source),
        }
    }
    if count == 0 {
        errs.required(at, "must specify a volume type");
    }
}

/// Sources whose rules are mostly about fields that must be there; PersistentVolumes share them.
pub(crate) fn required_parts(errs: &mut Errors, at: &At<'_>, kind: &str, source: &Value) {
    let needed: &[&str] = match kind {
        "hostPath" | "local" => &["path"],
        "gitRepo" => &["repository"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" => &["volumeID"],
        "nfs" => &["server", "path"],
        "iscsi" => &["targetPortal", "iqn"],
        "glusterfs" => &["endpoints", "path"],
        "persistentVolumeClaim" => &["claimName"],
        "rbd" => &["image"],
        "quobyte" => &["registry", "volume"],
        "flexVolume" => &["driver"],
        "azureFile" => &["secretName", "shareName"],
        "azureDisk" => &["diskName", "diskURI"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "portworxVolume" => &["volumeID"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        _ => &[],
    };
    for key in needed {
        errs.require_text(at, source, key);
    }
    let path = text(source, "path");
    match kind {
        "hostPath" => {
            backsteps(errs, &at.field("path"), path);
            let supported = [
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ];
            if has(source, "type") {
                errs.one_of(&at.field("type"), text(source, "type"), &supported);
            }
        }
        "nfs" if !path.starts_with('/') => errs.invalid(&at.field("path"), path, "must be an absolute path"),
        "local" => backsteps(errs, &at.field("path"), path),
        "rbd" | "cephfs" if list(source, "monitors").is_empty() => errs.required(&at.field("monitors"), ""),
        "gitRepo" => local_non_reserved_path(errs, &at.field("directory"), text(source, "directory")),
        _ => {}
    }
}

fn mode(errs: &mut Errors, at: &At<'_>, obj: &Value, key: &str) {
    if let Some(mode) = int(obj, key).filter(|m| !(0..=0o777).contains(m)) {
        errs.invalid(&at.field(key), mode, FILE_MODE);
    }
}

fn projected_keys(errs: &mut Errors, at: &At<'_>, source: &Value) {
    mode(errs, at, source, "defaultMode");
    let items = at.field("items");
    for (i, item) in list(source, "items").iter().enumerate() {
        let at = items.index(i);
        errs.require_text(&at, item, "key");
        errs.require_text(&at, item, "path");
        local_non_reserved_path(errs, &at.field("path"), text(item, "path"));
        mode(errs, &at, item, "mode");
    }
}

fn downward_file(errs: &mut Errors, at: &At<'_>, file: &Value) {
    errs.require_text(at, file, "path");
    local_non_reserved_path(errs, &at.field("path"), text(file, "path"));
    match (has(file, "fieldRef"), has(file, "resourceFieldRef")) {
        (true, both) => {
            field_ref(
                errs,
                &at.field("fieldRef"),
                part(file, "fieldRef"),
                VOLUME_FIELD_PATHS,
            );
            if both {
                errs.invalid(
                    at,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                );
            }
        }
        (false, true) => {
            resource_field_ref(
                errs,
                &at.field("resourceFieldRef"),
                part(file, "resourceFieldRef"),
                true,
            );
        }
        (false, false) => errs.required(at, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(errs, at, file, "mode");
}

fn validate_projected(errs: &mut Errors, projected_at: &At<'_>, projected: &Value) {
    mode(errs, projected_at, projected, "defaultMode");
    let sources_at = projected_at.field("sources");
    let mut paths = HashSet::new();
    for (i, source) in list(projected, "sources").iter().enumerate() {
        let source_at = sources_at.index(i);
        let mut count = 0;
        for (kind, from) in source.as_object().into_iter().flatten() {
            count += 1;
            let at = source_at.field(kind);
            match kind.as_str() {
                "secret" | "configMap" => {
                    errs.require_text(&at, from, "name");
                    projected_keys(errs, &at, from);
                }
                "downwardAPI" => {
                    for file in list(from, "items") {
                        downward_file(errs, &at, file);
                    }
                }
                "serviceAccountToken" => {
                    let seconds = int(from, "expirationSeconds").unwrap_or(0);
                    if seconds < 600 {
                        errs.invalid(
                            &at.field("expirationSeconds"),
                            seconds,
                            "may not specify a duration less than 10 minutes",
                        );
                    }
                    if seconds > 1 << 32 {
                        errs.invalid(
                            &at.field("expirationSeconds"),
                            seconds,
                            "may not specify a duration larger than 2^32 seconds",
                        );
                    }
                    // Upstream names the volume here, not the source.
                    errs.require_text(projected_at, from, "path");
                    local_non_reserved_path(errs, &at.field("path"), text(from, "path"));
                }
                _ => {}
            }
            let own = (!text(from, "path").is_empty()).then(|| text(from, "path"));
            let listed = list(from, "items").iter().map(|item| text(item, "path"));
            for path in own.into_iter().chain(listed).filter(|p| !p.is_empty()) {
                if !paths.insert(path) {
                    errs.invalid(projected_at, text(from, "name"), "conflicting duplicate paths");
                }
            }
        }
        if count > 1 {
            errs.forbidden(&source_at, "may not specify more than 1 volume type per source");
        }
    }
}

fn validate_ephemeral(
    errs: &mut Errors,
    at: &At<'_>,
    source_at: &At<'_>,
    volume: &Value,
    pod: Option<&Value>,
) {
    let source = part(volume, "ephemeral");
    let template_at = source_at.field("volumeClaimTemplate");
    let Some(template) = source.get("volumeClaimTemplate") else {
        errs.required(&template_at, "");
        return;
    };
    let meta_at = template_at.field("metadata");
    let metadata = part(template, "metadata");
    meta::validate_bare_template(errs, &meta_at, metadata);
    persistentvolumeclaim::validate_spec(errs, &template_at.field("spec"), part(template, "spec"), None);
    let (owner, name) = (pod.map_or("", meta::name), text(volume, "name"));
    if !owner.is_empty() && !name.is_empty() {
        let claim = format!("{owner}-{name}");
        for fault in validation::is_dns1123_subdomain(&claim) {
            errs.invalid(&at.field("name"), name, format!("PVC name {claim:?}: {fault}"));
        }
    }
}

/// Whether a volume takes a token of the pod's service account.
pub(super) fn has_service_account_token(volume: &Value) -> bool {
    list(part(volume, "projected"), "sources")
        .iter()
        .any(|s| read::has(s, "serviceAccountToken"))
}
