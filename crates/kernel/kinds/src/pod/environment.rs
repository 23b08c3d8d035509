//! Environment variables of containers and where their values come from.

use serde_json::Value;

use super::containers::Surroundings;
use super::mounts::backsteps;
use crate::at::{At, Errors};
use crate::quantity::Quantity;
use crate::read::{has, part, text};
use crate::{resources, validation};

const FIELD_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const VALUE_SOURCES: &[&str] = &[
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

pub(super) fn validate(errs: &mut Errors, at: &At<'_>, variables: &[Value], around: &Surroundings<'_>) {
    for (i, variable) in variables.iter().enumerate() {
        let at = at.index(i);
        let name = text(variable, "name");
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_env_var_name(name));
        }
        let Some(source) = variable.get("valueFrom") else {
            continue;
        };
        let at = at.field("valueFrom");
        let mut count = 0;
        for kind in VALUE_SOURCES.iter().filter(|k| has(source, k)) {
            count += 1;
            let from = part(source, kind);
            let at = at.field(kind);
            match *kind {
                "fieldRef" => field_ref(errs, &at, from, FIELD_PATHS),
                "resourceFieldRef" => resource_field_ref(errs, &at, from, false),
                "fileKeyRef" => file_key_ref(errs, &at, from, around),
                _ => {
                    let name = text(from, "name");
                    errs.all_invalid(&at.field("name"), name, validation::is_dns1123_subdomain(name));
                    match text(from, "key") {
                        "" => errs.required(&at.field("key"), ""),
                        key => errs.all_invalid(&at.field("key"), key, validation::is_config_map_key(key)),
                    }
                }
            }
        }
        if count == 0 {
            errs.invalid(
                &at,
                "",
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            );
        } else if !text(variable, "value").is_empty() {
            errs.invalid(&at, "", "may not be specified when `value` is not empty");
        } else if count > 1 {
            errs.invalid(&at, "", "may not have more than one field specified at a time");
        }
    }
}

pub(super) fn field_ref(errs: &mut Errors, at: &At<'_>, from: &Value, known: &[&str]) {
    if text(from, "apiVersion").is_empty() {
        errs.required(&at.field("apiVersion"), "");
        return;
    }
    let path = text(from, "fieldPath");
    if path.is_empty() {
        errs.required(&at.field("fieldPath"), "");
        return;
    }
    let version = text(from, "apiVersion");
    if version != "v1" {
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        errs.invalid(&at.field("fieldPath"), path, detail);
        return;
    }
    let subscript = path.strip_suffix("']").and_then(|p| p.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            errs.all_invalid(at, key, validation::is_qualified_name(&key.to_lowercase()));
        }
        Some(("metadata.labels", key)) => errs.all_invalid(at, key, validation::is_qualified_name(key)),
        Some((path, _)) => errs.invalid(at, path, "does not support subscript"),
        None if !known.contains(&path) => {
            let detail = format!("error converting fieldPath: field label not supported: {path}");
            if matches!(path, "metadata.labels" | "metadata.annotations") {
                errs.not_supported(&at.field("fieldPath"), path, known);
            } else {
                errs.invalid(&at.field("fieldPath"), path, detail);
            }
        }
        None => {}
    }
}

pub(super) fn resource_field_ref(errs: &mut Errors, at: &At<'_>, from: &Value, volume: bool) {
    let resource = text(from, "resource");
    let huge = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if volume && text(from, "containerName").is_empty() {
        errs.required(&at.field("containerName"), "");
    } else if resource.is_empty() {
        errs.required(&at.field("resource"), "");
    } else if !RESOURCE_FIELDS.contains(&resource) && !huge {
        errs.not_supported(&at.field("resource"), resource, RESOURCE_FIELDS);
    }
    let Some(divisor) = from
        .get("divisor")
        .and_then(Quantity::from_value)
        .filter(|d| d.sign() != 0)
    else {
        return;
    };
    let divisor = divisor.canonical();
    let cpu = resource.ends_with(".cpu");
    let units: &[&str] = if cpu {
        &["1m", "1"]
    } else {
        &[
            "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
        ]
    };
    if !units.contains(&divisor.as_str()) {
        let what = match resource.split_once('.').map_or("", |(_, r)| r) {
            "cpu" => "1m and 1 are supported with the cpu resource".to_owned(),
            other => {
                let name = match other {
                    "ephemeral-storage" => "local ephemeral storage",
                    name if resources::is_huge_page(name) => "hugepages",
                    name => name,
                };
                format!("{} are supported with the {name} resource", units.join(", "))
            }
        };
        errs.invalid(
            &at.field("divisor"),
            resource,
            format!("only divisor's values {what}"),
        );
    }
}

fn file_key_ref(errs: &mut Errors, at: &At<'_>, from: &Value, around: &Surroundings<'_>) {
    match text(from, "key") {
        "" => errs.required(&at.field("key"), ""),
        key => errs.all_invalid(&at.field("key"), key, validation::is_env_var_name(key)),
    }
    match text(from, "path") {
        "" => errs.required(&at.field("path"), ""),
        path => backsteps(errs, &at.field("path"), path),
    }
    let volume = text(from, "volumeName");
    let volume_at = at.field("volumeName");
    if volume.is_empty() {
        errs.required(&volume_at, "");
        return;
    }
    errs.all_invalid(&volume_at, volume, validation::is_dns1123_label(volume));
    match around.volume(volume) {
        None => errs.not_found(&volume_at, volume),
        Some(source) if !has(source, "emptyDir") => {
            errs.invalid(&volume_at, volume, "referenced volume must be of type emptyDir");
        }
        Some(_) => {}
    }
}

pub(super) fn validate_from(errs: &mut Errors, at: &At<'_>, sources: &[Value]) {
    for (i, source) in sources.iter().enumerate() {
        let item = at.index(i);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errs.all_invalid(&item.field("prefix"), prefix, validation::is_env_var_name(prefix));
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"]
            .into_iter()
            .filter(|k| has(source, k))
        {
            count += 1;
            let from_at = item.field(kind);
            match text(part(source, kind), "name") {
                "" => errs.required(&from_at.field("name"), ""),
                name => errs.all_invalid(
                    &from_at.field("name"),
                    name,
                    validation::is_dns1123_subdomain(name),
                ),
            }
        }
        match count {
            0 => errs.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errs.invalid(at, "", "may not have more than one field specified at a time"),
        }
    }
}
