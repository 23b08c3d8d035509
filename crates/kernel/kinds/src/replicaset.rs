//! ReplicaSet and its ancestor ReplicationController.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::pod::{self, defaults, validate};
use crate::read::{self, has, part, part_mut};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_new};
use crate::{selector, workload};

static PROFILE: Profile = Profile::WORKLOAD;
const COUNTERS: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

pub(crate) struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "replicas", 1);
        read::part_mut(spec, "template");
        defaults::template(spec);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(part_mut(obj, "status"), "replicas", 0);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        errs.none_negative(&At::new("spec"), spec, &["replicas", "minReadySeconds"]);
        // Upstream says "deployment" here too.
        workload::validate_selector_and_template(errs, spec, "deployment", "ReplicaSet");
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.selector"),
            new.get("selector"),
            old.get("selector"),
        );
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        workload::validate_counters(errs, part(obj, "status"), COUNTERS, "readyReplicas");
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("ReplicaSet", ctx, obj, old)
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        workload::replicas_field(obj)
    }
}

pub(crate) struct ReplicationController;

impl Strategy for ReplicationController {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "replicas", 1);
        defaults::template(spec);
        let labels = part(part(part(spec, "template"), "metadata"), "labels").clone();
        if labels.is_null() {
            return;
        }
        if !read::filled(spec, "selector") {
            read::set(spec, "selector", labels.clone());
        }
        let metadata = part_mut(obj, "metadata");
        if !read::filled(metadata, "labels") {
            read::set(metadata, "labels", labels);
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(part_mut(obj, "status"), "replicas", 0);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        errs.none_negative(&at, spec, &["minReadySeconds", "replicas"]);
        if !read::filled(spec, "selector") {
            errs.required(&at.field("selector"), "");
        }
        let template_at = at.field("template");
        if !has(spec, "template") {
            errs.required(&template_at, "");
            return;
        }
        let template = part(spec, "template");
        let labels = part(part(template, "metadata"), "labels");
        if !selector::map_matches(part(spec, "selector"), labels) {
            errs.invalid(
                &template_at.field("metadata.labels"),
                labels.clone(),
                "`selector` does not match template `labels`",
            );
        }
        validate::template(errs, &template_at, template);
        validate::long_running(errs, &template_at, template, "ReplicationController");
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        workload::validate_counters(errs, part(obj, "status"), COUNTERS, "readyReplicas");
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("ReplicationController", ctx, obj, old)
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        workload::replicas_field(obj)
    }
}

/// PodTemplate: a template stored for others to use.
pub(crate) struct PodTemplate;

static POD_TEMPLATE: Profile = Profile {
    generation: &["template"],
    ..Profile::NAMESPACED
};

impl Strategy for PodTemplate {
    fn profile(&self) -> &'static Profile {
        &POD_TEMPLATE
    }

    fn default(&self, obj: &mut Value) {
        defaults::template(obj);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        validate::template(errs, &At::new("template"), part(obj, "template"));
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        if ctx.subresource.is_none() && old.is_none() {
            vec![pod::nothing_runs("PodTemplate", obj)]
        } else {
            Vec::new()
        }
    }
}

/// ControllerRevision: a snapshot that never changes.
pub(crate) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn profile(&self) -> &'static Profile {
        &Profile::NAMESPACED
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        errs.non_negative(&At::new("revision"), read::int(obj, "revision").unwrap_or(0));
        if old.is_none() {
            match part(obj, "data") {
                Value::Null => errs.required(&At::new("data"), "data is mandatory"),
                Value::Object(_) => {}
                _ => errs.required(&At::new("data"), "data must be a valid JSON object"),
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("data"), obj.get("data"), old.get("data"));
    }
}
