//! DaemonSet.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::pod::{self, defaults, validate};
use crate::read::{self, has, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{selector, workload};

pub(crate) struct DaemonSet;

static PROFILE: Profile = Profile::WORKLOAD;

/// The template's generation lives in an annotation since it left the spec.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

impl Strategy for DaemonSet {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::part_mut(spec, "template");
        defaults::template(spec);
        let strategy = part_mut(spec, "updateStrategy");
        read::set_default_text(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = part_mut(strategy, "rollingUpdate");
            read::set_default(rolling, "maxUnavailable", 1);
            read::set_default(rolling, "maxSurge", 0);
        }
        read::set_default(spec, "revisionHistoryLimit", 10);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        crate::strategy::prepare_new(&PROFILE, obj);
        let status = part_mut(obj, "status");
        for key in [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
        ] {
            read::set(status, key, 0);
        }
        set_template_generation(obj, 1);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        crate::strategy::prepare_changed(&PROFILE, ctx, obj, old);
        if ctx.subresource.is_none() {
            let template = |obj: &Value| part(part(obj, "spec"), "template").clone();
            let changed = !read::same(Some(&template(obj)), Some(&template(old)));
            set_template_generation(obj, template_generation(old) + i64::from(changed));
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let label_selector = part(spec, "selector");
        let template = part(spec, "template");
        let template_at = at.field("template");
        let selector_at = at.field("selector");
        selector::validate(errs, &selector_at, label_selector);
        let chosen = !label_selector.is_null()
            && selector::matches(label_selector, part(part(template, "metadata"), "labels"));
        if !chosen && selector::is_usable(label_selector) {
            errs.invalid(
                &template_at.field("metadata.labels"),
                part(part(template, "metadata"), "labels").clone(),
                "`selector` does not match template `labels`",
            );
        }
        if !label_selector.is_null() && selector::is_empty(label_selector) {
            let detail = "empty selector is invalid for daemonset";
            errs.invalid(&selector_at, label_selector.clone(), detail);
        }
        validate::template(errs, &template_at, template);
        validate::long_running(errs, &template_at, template, "DaemonSet");
        errs.none_negative(&at, spec, &["minReadySeconds", "revisionHistoryLimit"]);
        let strategy = part(spec, "updateStrategy");
        let strategy_at = at.field("updateStrategy");
        match workload::strategy_type(spec, "updateStrategy") {
            "OnDelete" => {}
            "RollingUpdate" if !has(strategy, "rollingUpdate") => {
                errs.required(&strategy_at.field("rollingUpdate"), "");
            }
            "RollingUpdate" => workload::rolling_update_daemon_set(
                errs,
                &strategy_at.field("rollingUpdate"),
                part(strategy, "rollingUpdate"),
            ),
            _ => errs.not_supported(
                &strategy_at,
                read::go_strategy(strategy),
                &["RollingUpdate", "OnDelete"],
            ),
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        errs.immutable(
            &At::new("spec.selector"),
            new.get("selector"),
            old.get("selector"),
        );
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.none_negative(
            &At::new("status"),
            part(obj, "status"),
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
        );
        workload::validate_collisions(errs, obj, old);
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("DaemonSet", ctx, obj, old)
    }
}

fn template_generation(obj: &Value) -> i64 {
    crate::meta::annotation(obj, TEMPLATE_GENERATION)
        .and_then(|v| v.parse().ok())
        .unwrap_or(0)
}

fn set_template_generation(obj: &mut Value, generation: i64) {
    let annotations = part_mut(part_mut(obj, "metadata"), "annotations");
    read::set(annotations, TEMPLATE_GENERATION, generation.to_string());
}
