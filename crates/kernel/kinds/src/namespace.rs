//! Namespace: its phase, its name label, and the finalizer that keeps it until its content is gone.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::{self, NameRule};
use crate::read::{self, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext, keep_all_but_status};
use crate::validation;

/// The label by which a namespace can be selected by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const KUBERNETES: &str = "kubernetes";

pub(crate) struct Namespace;

static PROFILE: Profile = Profile {
    name: NameRule::Label,
    status: true,
    ..Profile::CLUSTER
};

fn label_with_name(obj: &mut Value) {
    let name = meta::name(obj).to_owned();
    if !name.is_empty() {
        read::set(part_mut(part_mut(obj, "metadata"), "labels"), NAME_LABEL, name);
    }
}

impl Strategy for Namespace {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        label_with_name(obj);
        read::set_default_text(part_mut(obj, "status"), "phase", "Active");
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(obj, "status", json!({"phase": "Active"}));
        let spec = part_mut(obj, "spec");
        if !texts(spec, "finalizers").any(|f| f == KUBERNETES) {
            let mut finalizers = read::list(spec, "finalizers").to_vec();
            finalizers.push(json!(KUBERNETES));
            read::set(spec, "finalizers", finalizers);
        }
        // The name may have been generated after defaulting.
        label_with_name(obj);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        match ctx.subresource {
            Some("status") => keep_all_but_status(obj, old),
            Some("finalize") => read::copy(obj, old, "status"),
            _ => {
                read::copy(part_mut(obj, "spec"), part(old, "spec"), "finalizers");
                read::copy(obj, old, "status");
            }
        }
        label_with_name(obj);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("spec.finalizers");
        for finalizer in texts(part(obj, "spec"), "finalizers") {
            errs.all_invalid(&at, finalizer, validation::is_qualified_name(finalizer));
            meta::validate_builtin_finalizer(errs, &at, finalizer);
        }
    }

    fn validate_subresource(&self, ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        if ctx.subresource == Some("finalize") {
            let at = At::new("spec.finalizers");
            for (i, finalizer) in texts(part(obj, "spec"), "finalizers").enumerate() {
                errs.all_invalid(&at.index(i), finalizer, validation::is_qualified_name(finalizer));
                meta::validate_builtin_finalizer(errs, &at.index(i), finalizer);
            }
            return;
        }
        let phase = text(part(obj, "status"), "phase");
        let at = At::new("status.Phase");
        if read::has(part(obj, "metadata"), "deletionTimestamp") {
            if phase != "Terminating" {
                errs.invalid(
                    &at,
                    phase,
                    "may only be 'Terminating' if `deletionTimestamp` is not empty",
                );
            }
        } else if phase != "Active" {
            errs.invalid(&at, phase, "may only be 'Active' if `deletionTimestamp` is empty");
        }
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![
            ("status.phase", text(part(obj, "status"), "phase").to_owned()),
            // A slip of upstream that clients rely on.
            ("name", meta::name(obj).to_owned()),
        ]
    }
}
