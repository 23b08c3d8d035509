//! Deployment.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::pod::{self, defaults};
use crate::read::{self, has, part, part_mut};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed};
use crate::workload;

pub(crate) struct Deployment;

static PROFILE: Profile = Profile::WORKLOAD;

impl Strategy for Deployment {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "replicas", 1);
        read::part_mut(spec, "template");
        defaults::template(spec);
        let strategy = part_mut(spec, "strategy");
        read::set_default_text(strategy, "type", "RollingUpdate");
        if read::text(strategy, "type") == "RollingUpdate" {
            let rolling = part_mut(strategy, "rollingUpdate");
            read::set_default(rolling, "maxUnavailable", "25%");
            read::set_default(rolling, "maxSurge", "25%");
        }
        read::set_default(spec, "revisionHistoryLimit", 10);
        read::set_default(spec, "progressDeadlineSeconds", 600);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        prepare_changed(&PROFILE, ctx, obj, old);
        let (metadata, before) = (part_mut(obj, "metadata"), part(old, "metadata"));
        if ctx.subresource == Some("status") {
            read::copy(metadata, before, "labels");
        } else if read::same(metadata.get("generation"), before.get("generation"))
            && !read::same(metadata.get("annotations"), before.get("annotations"))
        {
            // The controller copies annotations to its ReplicaSets, so they count as a change.
            let generation = read::int(before, "generation").unwrap_or(0) + 1;
            read::set(metadata, "generation", generation);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        errs.none_negative(
            &at,
            spec,
            &["replicas", "minReadySeconds", "revisionHistoryLimit"],
        );
        workload::validate_selector_and_template(errs, spec, "deployment", "ReplicaSet");
        let strategy = part(spec, "strategy");
        let strategy_at = at.field("strategy");
        let rolling_at = strategy_at.field("rollingUpdate");
        match read::text(strategy, "type") {
            "Recreate" if has(strategy, "rollingUpdate") => errs.forbidden(
                &rolling_at,
                "may not be specified when strategy `type` is 'Recreate'",
            ),
            "Recreate" => {}
            "RollingUpdate" => {
                workload::rolling_update_deployment(errs, &rolling_at, part(strategy, "rollingUpdate"));
            }
            _ => errs.not_supported(
                &strategy_at,
                read::go_strategy(strategy),
                &["Recreate", "RollingUpdate"],
            ),
        }
        workload::validate_progress_deadline(errs, spec);
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
        workload::validate_counters(
            errs,
            part(obj, "status"),
            &[
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ],
            "readyReplicas",
        );
        workload::validate_collisions(errs, obj, old);
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("Deployment", ctx, obj, old)
    }

    fn reset_fields(&self, subresource: Option<&str>) -> &'static [&'static str] {
        match subresource {
            None => &["status"],
            Some("status") => &["spec", "metadata.labels"],
            _ => &[],
        }
    }
}
