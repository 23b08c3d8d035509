//! PersistentVolume: one source, never changed.

use serde_json::{Value, json};

use crate::at::{At, Errors, FIELD_IMMUTABLE, QUANTITY_NOT_POSITIVE};
use crate::persistentvolumeclaim::{VOLUME_MODES, validate_access_modes};
use crate::pod::{SOURCE_ORDER, defaults, required_parts, scheduling, second_source};
use crate::quantity::{self, Quantity};
use crate::read::{self, has, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed};
use crate::{go_dump, storage, validation};

pub(crate) struct PersistentVolume;

static PROFILE: Profile = Profile {
    status: true,
    ..Profile::CLUSTER
};

/// What is not a source in the spec of a volume.
const COMMON: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

impl Strategy for PersistentVolume {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        read::set_default(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath") {
            read::set_default(path, "type", "");
        }
        defaults::legacy_sources(spec);
        quantity::canonicalize_list(spec, "capacity");
        read::set_default_text(part_mut(obj, "status"), "phase", "Pending");
    }

    fn prepare_create(&self, ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(
            obj,
            "status",
            json!({"phase": "Pending", "lastPhaseTransitionTime": ctx.now}),
        );
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        prepare_changed(&PROFILE, ctx, obj, old);
        if ctx.subresource == Some("status") {
            let (status, before) = (part_mut(obj, "status"), part(old, "status"));
            let key = "lastPhaseTransitionTime";
            let moved = text(status, "phase") != text(before, "phase");
            let told = has(status, key) && !read::same(status.get(key), before.get(key));
            if moved && !told {
                read::set(status, key, ctx.now);
            } else if !has(status, key) {
                read::copy(status, before, key);
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        validate_spec(errs, &At::new("spec"), part(obj, "spec"), false);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        let sources = |spec: &Value| {
            let mut copy = spec.clone();
            for key in COMMON {
                read::unset(&mut copy, key);
            }
            copy
        };
        let (mut source, before) = (sources(new), sources(old));
        let expand = "controllerExpandSecretRef";
        if before.get("csi").is_some_and(|csi| !has(csi, expand))
            && let Some(csi) = source.get_mut("csi")
        {
            read::unset(csi, expand);
        }
        if !read::same(Some(&source), Some(&before)) {
            let shown = |source: &Value| go_dump::dump("PersistentVolumeSource", source);
            let changed = go_dump::difference(&shown(&before), &shown(&source));
            errs.forbidden(
                &At::new("spec.persistentvolumesource"),
                format!("spec.persistentvolumesource is immutable after creation\n{changed}"),
            );
        }
        errs.immutable(
            &At::new("volumeMode"),
            new.get("volumeMode"),
            old.get("volumeMode"),
        );
        // As with upstream's MutablePVNodeAffinity, for volumes on a node: their content may move to another.
        let moves = has(new, "local") && has(new, "nodeAffinity");
        if has(old, "nodeAffinity") && !moves && !read::same(new.get("nodeAffinity"), old.get("nodeAffinity"))
        {
            errs.invalid(
                &At::new("nodeAffinity"),
                part(new, "nodeAffinity").clone(),
                format!("{FIELD_IMMUTABLE}, except for updating from beta label to GA"),
            );
        }
        let class = "volumeAttributesClassName";
        if has(old, class) && !has(new, class) {
            errs.forbidden(
                &At::new("spec").field(class),
                "update from non-nil value to nil is forbidden",
            );
        }
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        // A slip of upstream that clients rely on.
        vec![("name", crate::meta::name(obj).to_owned())]
    }
}

/// The spec of a volume; `inline` in a VolumeAttachment.
pub(crate) fn validate_spec(errs: &mut Errors, at: &At<'_>, spec: &Value, inline: bool) {
    if inline {
        for key in ["claimRef", "capacity", "nodeAffinity", "storageClassName"] {
            if read::filled(spec, key) {
                errs.forbidden(
                    &at.field(key),
                    "may not be specified in the context of inline volumes",
                );
            }
        }
        if !has(spec, "csi") {
            errs.required(
                &at.field("csi"),
                "has to be specified in the context of inline volumes",
            );
        }
    }
    if list(spec, "accessModes").is_empty() {
        errs.required(&at.field("accessModes"), "");
    }
    validate_access_modes(errs, at, spec);
    if !inline {
        validate_capacity(errs, &at.field("capacity"), spec);
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errs.one_of(
            &at.field("persistentVolumeReclaimPolicy"),
            policy,
            &["Delete", "Recycle", "Retain"],
        );
    }
    let affinity = part(spec, "nodeAffinity");
    if !affinity.is_null() {
        let at = at.field("nodeAffinity");
        let at = at.field("required");
        if has(affinity, "required") {
            scheduling::node_selector(errs, &at, part(affinity, "required"));
        } else {
            errs.required(&at, "must specify required node constraints");
        }
    }
    validate_source(errs, at, spec);
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, key);
        if !class.is_empty() {
            errs.all_invalid(&at.field(key), class, validation::is_dns1123_subdomain(class));
        }
    }
    if has(spec, "volumeMode") {
        errs.one_of(&at.field("volumeMode"), text(spec, "volumeMode"), VOLUME_MODES);
    }
    if has(spec, "volumeAttributesClassName") && !has(spec, "csi") {
        errs.required(
            &at.field("csi"),
            "has to be specified when using volumeAttributesClassName",
        );
    }
}

fn validate_capacity(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let capacity = part(spec, "capacity");
    let count = capacity.as_object().map_or(0, serde_json::Map::len);
    if count == 0 {
        errs.required(at, "");
    }
    if capacity.get("storage").is_none() || count > 1 {
        errs.not_supported(at, capacity.clone(), &["storage"]);
    }
    for (name, value) in read::entries(spec, "capacity") {
        match Quantity::from_value(value) {
            None => errs.invalid(&at.key(name), value.clone(), quantity::FORMAT_ERROR),
            Some(size) if size.sign() <= 0 => {
                errs.invalid(&at.key(name), size.canonical(), QUANTITY_NOT_POSITIVE);
            }
            Some(_) => {}
        }
    }
}

fn validate_source(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let mut count = 0;
    for kind in SOURCE_ORDER.iter().filter(|kind| has(spec, kind)) {
        let source = part(spec, kind);
        count += 1;
        if count > 1 {
            errs.forbidden(
                &at.field(second_source(kind)),
                "may not specify more than 1 volume type",
            );
            continue;
        }
        let at = at.field(kind);
        if *kind == "csi" {
            storage::csi_driver_name(errs, &at.field("driver"), text(source, "driver"));
            errs.require_text(&at, source, "volumeHandle");
            for key in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                if has(source, key) {
                    validate_secret(errs, &at.field(key), part(source, key));
                }
            }
        } else {
            required_parts(errs, &at, kind, source);
        }
    }
    if count == 0 {
        errs.required(at, "must specify a volume type");
    }
    if has(spec, "local") && !has(spec, "nodeAffinity") {
        errs.required(&at.field("nodeAffinity"), "Local volume requires node affinity");
    }
    let path = text(part(spec, "hostPath"), "path");
    if !path.is_empty()
        && path.chars().all(|c| c == '/' || c == '.')
        && text(spec, "persistentVolumeReclaimPolicy") == "Recycle"
    {
        errs.forbidden(
            &at.field("persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
        );
    }
}

fn validate_secret(errs: &mut Errors, at: &At<'_>, secret: &Value) {
    for (key, check) in [
        (
            "name",
            validation::is_dns1123_subdomain as fn(&str) -> Vec<String>,
        ),
        ("namespace", validation::is_dns1123_label),
    ] {
        match text(secret, key) {
            "" => errs.required(&at.field(key), ""),
            value => errs.all_invalid(&at.field(key), value, check(value)),
        }
    }
}
