//! PersistentVolumeClaim: what it asks for stays, except that a bound claim may grow.

use serde_json::{Value, json};

use crate::at::{At, Errors, QUANTITY_NOT_POSITIVE};
use crate::pod::defaults;
use crate::quantity::{self, Quantity};
use crate::read::{self, has, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed};
use crate::{go_dump, resources, selector, validation};

pub(crate) const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
pub(crate) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const RESIZE_STATUSES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizePending",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
];

pub(crate) struct PersistentVolumeClaim;

static PROFILE: Profile = Profile {
    status: true,
    ..Profile::NAMESPACED
};

impl Strategy for PersistentVolumeClaim {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        default_claim(obj);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(obj, "status", json!({"phase": "Pending"}));
        normalize_sources(part_mut(obj, "spec"), None);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        prepare_changed(&PROFILE, ctx, obj, old);
        if ctx.subresource.is_none() {
            normalize_sources(part_mut(obj, "spec"), Some(part(old, "spec")));
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        validate_spec(errs, &At::new("spec"), part(obj, "spec"), None);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate_change(errs, obj, old);
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let status = part(obj, "status");
        let at = At::new("status");
        let capacity = at.field("capacity");
        for (name, value) in read::entries(status, "capacity") {
            resources::validate_non_negative(errs, &capacity.key(name), value);
        }
        let at = at.field("allocatedResourceStatuses");
        for (name, state) in read::entries(status, "allocatedResourceStatuses") {
            errs.all_invalid(&at, name, validation::is_qualified_name(name));
            errs.one_of(&at, state.as_str().unwrap_or(""), RESIZE_STATUSES);
        }
    }
}

/// Defaults of a claim, also inside a StatefulSet.
pub(crate) fn default_claim(obj: &mut Value) {
    defaults::claim_spec(part_mut(obj, "spec"));
    let status = part_mut(obj, "status");
    read::set_default_text(status, "phase", "Pending");
    quantity::canonicalize_list(status, "capacity");
    quantity::canonicalize_list(status, "allocatedResources");
}

/// `dataSource` holds only claims and snapshots; it and `dataSourceRef` mirror each other within a namespace.
fn normalize_sources(spec: &mut Value, old: Option<&Value>) {
    // Sources in other namespaces need a grant that no controller here gives.
    let foreign = |spec: &Value| !text(part(spec, "dataSourceRef"), "namespace").is_empty();
    if foreign(spec) && !old.is_some_and(foreign) {
        read::unset(spec, "dataSourceRef");
    }
    let in_use = |spec: &Value| has(spec, "dataSource") || has(spec, "dataSourceRef");
    // Who sends `dataSourceRef` knows of validation; others expect that unknown sources are ignored.
    if !old.is_some_and(in_use) && has(spec, "dataSource") && !has(spec, "dataSourceRef") {
        let source = part(spec, "dataSource");
        let known = matches!(
            (text(source, "apiGroup"), text(source, "kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !known {
            read::unset(spec, "dataSource");
        }
    }
    match (has(spec, "dataSource"), has(spec, "dataSourceRef")) {
        (true, false) => {
            let source = part(spec, "dataSource").clone();
            read::set(spec, "dataSourceRef", source);
        }
        (false, true) if text(part(spec, "dataSourceRef"), "namespace").is_empty() => {
            let source = part(spec, "dataSourceRef").clone();
            read::set(spec, "dataSource", source);
        }
        _ => {}
    }
}

/// Access modes of volumes and claims.
pub(crate) fn validate_access_modes(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let at = at.field("accessModes");
    for mode in texts(spec, "accessModes") {
        errs.one_of(&at, mode, ACCESS_MODES);
    }
    let single = texts(spec, "accessModes").any(|m| m == "ReadWriteOncePod");
    let other = texts(spec, "accessModes").any(|m| m != "ReadWriteOncePod" && ACCESS_MODES.contains(&m));
    if single && other {
        errs.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

/// The spec of a claim, by itself or in a template.
pub(crate) fn validate_spec(errs: &mut Errors, at: &At<'_>, spec: &Value, _old: Option<&Value>) {
    if list(spec, "accessModes").is_empty() {
        errs.required(&at.field("accessModes"), "at least 1 access mode is required");
    }
    selector::validate(errs, &at.field("selector"), part(spec, "selector"));
    validate_access_modes(errs, at, spec);
    let storage_at = at.field("resources");
    let storage_at = storage_at.key("storage");
    match part(part(spec, "resources"), "requests").get("storage") {
        None => errs.required(&storage_at, ""),
        Some(value) => match Quantity::from_value(value) {
            Some(size) if size.sign() <= 0 => {
                errs.invalid(&storage_at, size.canonical(), QUANTITY_NOT_POSITIVE);
            }
            _ => {
                resources::validate_amount(errs, &storage_at, "storage", value);
            }
        },
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, key);
        if !class.is_empty() {
            errs.all_invalid(&at.field(key), class, validation::is_dns1123_subdomain(class));
        }
    }
    if has(spec, "volumeMode") {
        errs.one_of(&at.field("volumeMode"), text(spec, "volumeMode"), VOLUME_MODES);
    }
    for key in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(key) {
            validate_source(errs, &at.field(key), source);
        }
    }
    let reference = part(spec, "dataSourceRef");
    if has(spec, "dataSource") && !reference.is_null() {
        let source = part(spec, "dataSource");
        if !text(reference, "namespace").is_empty() {
            errs.invalid(
                at,
                json!({}),
                "may not be specified when dataSourceRef.namespace is specified",
            );
        } else if ["apiGroup", "kind", "name"]
            .iter()
            .any(|k| text(source, k) != text(reference, k))
        {
            errs.invalid(at, json!({}), "must match dataSourceRef");
        }
    }
}

fn validate_source(errs: &mut Errors, at: &At<'_>, source: &Value) {
    errs.require_text(at, source, "name");
    errs.require_text(at, source, "kind");
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            errs.invalid(
                at,
                kind,
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            );
        }
    } else {
        errs.all_invalid(
            &at.field("apiGroup"),
            group,
            validation::is_dns1123_subdomain(group),
        );
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        errs.all_invalid(
            &at.field("namespace"),
            namespace,
            validation::is_dns1123_label(namespace),
        );
    }
}

fn storage(from: &Value) -> Quantity {
    from.get("storage")
        .and_then(Quantity::from_value)
        .unwrap_or(Quantity::ZERO)
}

fn validate_change(errs: &mut Errors, obj: &Value, old_obj: &Value) {
    let (new, old) = (part(obj, "spec"), part(old_obj, "spec"));
    let bound = text(part(obj, "status"), "phase") == "Bound";
    let mut munged = new.clone();
    let mut before = old.clone();
    if text(old, "volumeName").is_empty() {
        read::copy(&mut before, new, "volumeName");
    }
    if has(new, "storageClassName") && !has(old, "storageClassName") {
        read::unset(&mut munged, "storageClassName");
    }
    if bound {
        if let Some(requests) = munged.get_mut("resources").and_then(|r| r.get_mut("requests")) {
            read::copy(requests, part(part(old, "resources"), "requests"), "storage");
        }
        read::copy(&mut munged, old, "volumeAttributesClassName");
    }
    // Claims stored before their sources were mirrored must stay valid.
    normalize_sources(&mut before, Some(old));
    if !read::same(Some(&munged), Some(&before)) {
        let shown = |spec: &Value| go_dump::dump("PersistentVolumeClaimSpec", spec);
        errs.forbidden(
            &At::new("spec"),
            format!(
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{}",
                go_dump::difference(&shown(&before), &shown(&munged))
            ),
        );
    }
    let requested = |spec: &Value| storage(part(part(spec, "resources"), "requests"));
    let size = requested(new);
    if size < requested(old) && size <= storage(part(part(old_obj, "status"), "capacity")) {
        errs.forbidden(
            &At::new("spec.resources.requests.storage"),
            "field can not be less than status.capacity",
        );
    }
    errs.immutable(
        &At::new("volumeMode"),
        new.get("volumeMode"),
        old.get("volumeMode"),
    );
    let current = has(part(old_obj, "status"), "currentVolumeAttributesClassName");
    if current
        && !read::same(
            new.get("volumeAttributesClassName"),
            old.get("volumeAttributesClassName"),
        )
    {
        let at = At::new("spec.volumeAttributesClassName");
        if !has(new, "volumeAttributesClassName") {
            errs.forbidden(
                &at,
                "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
            );
        } else if text(new, "volumeAttributesClassName").is_empty() {
            errs.forbidden(
                &at,
                "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil",
            );
        }
    }
}
