//! StatefulSet: pods with names and claims of their own, so most of its spec stays.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::NameRule;
use crate::pod::{self, defaults, validate};
use crate::read::{self, each_mut, has, int, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_changed, prepare_new};
use crate::{persistentvolumeclaim, selector, validation, workload};

pub(crate) struct StatefulSet;

static PROFILE: Profile = Profile {
    name: NameRule::Label,
    ..Profile::WORKLOAD
};

const CHANGEABLE: &[&str] = &[
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

impl Strategy for StatefulSet {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "serviceName", "");
        read::set_default_text(spec, "podManagementPolicy", "OrderedReady");
        let strategy = part_mut(spec, "updateStrategy");
        if text(strategy, "type").is_empty() {
            read::set(strategy, "type", "RollingUpdate");
            read::set_default(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = strategy.get_mut("rollingUpdate")
        {
            read::set_default(rolling, "partition", 0);
        }
        let retention = part_mut(spec, "persistentVolumeClaimRetentionPolicy");
        read::set_default_text(retention, "whenDeleted", "Retain");
        read::set_default_text(retention, "whenScaled", "Retain");
        read::set_default(spec, "replicas", 1);
        read::set_default(spec, "revisionHistoryLimit", 10);
        read::part_mut(spec, "template");
        defaults::template(spec);
        for claim in each_mut(spec, "volumeClaimTemplates") {
            read::set_default_text(claim, "apiVersion", "v1");
            read::set_default_text(claim, "kind", "PersistentVolumeClaim");
            persistentvolumeclaim::default_claim(claim);
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(obj, "status", json!({"replicas": 0, "availableReplicas": 0}));
        drop_max_unavailable(obj, None);
    }

    fn prepare_update(&self, ctx: &WriteContext<'_>, obj: &mut Value, old: &Value) {
        if ctx.subresource.is_none() {
            drop_max_unavailable(obj, Some(old));
        }
        prepare_changed(&PROFILE, ctx, obj, old);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        validate_spec(errs, part(obj, "spec"), old.is_none());
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        let changed = new
            .as_object()
            .into_iter()
            .chain(old.as_object())
            .flatten()
            .any(|(key, _)| !CHANGEABLE.contains(&key.as_str()) && !read::same(new.get(key), old.get(key)));
        if changed {
            errs.forbidden(
                &At::new("spec"),
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            );
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        workload::validate_counters(
            errs,
            part(obj, "status"),
            &[
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ],
            "status.readyReplicas",
        );
        workload::validate_collisions(errs, obj, old);
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        let mut found = pod::warnings("StatefulSet", ctx, obj, old);
        if int(part(obj, "spec"), "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
            found.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                    .to_owned(),
            );
        }
        found
    }
}

/// `maxUnavailable` is not on by default upstream, so it goes unless it was stored before.
fn drop_max_unavailable(obj: &mut Value, old: Option<&Value>) {
    fn used(obj: &Value) -> bool {
        has(
            part(part(part(obj, "spec"), "updateStrategy"), "rollingUpdate"),
            "maxUnavailable",
        )
    }
    if old.is_some_and(used) {
        return;
    }
    if let Some(rolling) = obj.pointer_mut("/spec/updateStrategy/rollingUpdate") {
        read::unset(rolling, "maxUnavailable");
    }
}

fn validate_spec(errs: &mut Errors, spec: &Value, new: bool) {
    let at = At::new("spec");
    match text(spec, "podManagementPolicy") {
        "" => errs.required(&at.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => errs.invalid(
            &at.field("podManagementPolicy"),
            other,
            "must be 'OrderedReady' or 'Parallel'",
        ),
    }
    let strategy = part(spec, "updateStrategy");
    let strategy_at = at.field("updateStrategy");
    let rolling_at = strategy_at.field("rollingUpdate");
    match text(strategy, "type") {
        "" => errs.required(&strategy_at, ""),
        "OnDelete" if has(strategy, "rollingUpdate") => errs.invalid(
            &rolling_at,
            part(strategy, "rollingUpdate").clone(),
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = part(strategy, "rollingUpdate");
            errs.none_negative(&rolling_at, rolling, &["partition"]);
            if let Some(most) = rolling.get("maxUnavailable") {
                let at = rolling_at.field("maxUnavailable");
                workload::int_or_percent(errs, &at, most);
                if most.as_i64() == Some(0) || most.as_str() == Some("0%") {
                    errs.invalid(&at, most.clone(), "cannot be 0");
                }
                workload::not_more_than_all(errs, &at, most);
            }
        }
        _ => errs.invalid(
            &strategy_at,
            read::go_strategy(strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
    }
    let retention_at = at.field("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let policy = text(part(spec, "persistentVolumeClaimRetentionPolicy"), key);
        errs.one_of(&retention_at.field(key), policy, &["Retain", "Delete"]);
    }
    if new {
        let claims_at = at.field("volumeClaimTemplates");
        for (i, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            let at = claims_at.index(i);
            persistentvolumeclaim::validate_spec(errs, &at.field("spec"), part(claim, "spec"), None);
        }
        let service = text(spec, "serviceName");
        if !service.is_empty() {
            errs.all_invalid(
                &at.field("serviceName"),
                service,
                validation::is_dns1123_label(service),
            );
        }
    }
    errs.none_negative(&at, spec, &["replicas", "minReadySeconds"]);
    errs.none_negative(&at.field("ordinals"), part(spec, "ordinals"), &["start"]);
    validate_template(errs, &at, spec);
}

fn validate_template(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let label_selector = part(spec, "selector");
    let selector_at = at.field("selector");
    if label_selector.is_null() {
        errs.required(&selector_at, "");
    } else {
        selector::validate(errs, &selector_at, label_selector);
        if selector::is_empty(label_selector) {
            let detail = "empty selector is invalid for statefulset";
            errs.invalid(&selector_at, label_selector.clone(), detail);
        }
    }
    let template = part(spec, "template");
    let template_at = at.field("template");
    if !selector::is_usable(label_selector) {
        errs.invalid(&selector_at, label_selector.clone(), "");
        validate::long_running(errs, &template_at, template, "StatefulSet");
        return;
    }
    if !selector::is_empty(label_selector) {
        validate::selector_matches(errs, &template_at, label_selector, template);
    }
    // Claims become volumes of the same name, and host names come from the set.
    let claims = list(spec, "volumeClaimTemplates");
    let mut complete = template.clone();
    let pod = part_mut(&mut complete, "spec");
    read::unset(pod, "hostname");
    read::unset(pod, "subdomain");
    if !claims.is_empty() {
        let name = |claim: &Value| text(part(claim, "metadata"), "name").to_owned();
        let named: Vec<String> = claims.iter().map(name).collect();
        let own = list(pod, "volumes")
            .iter()
            .filter(|v| !named.iter().any(|n| n == text(v, "name")));
        let from_claims = named
            .iter()
            .map(|n| json!({"name": n, "persistentVolumeClaim": {"claimName": n}}));
        let volumes: Vec<Value> = own.cloned().chain(from_claims).collect();
        read::set(pod, "volumes", volumes);
    }
    validate::template(errs, &template_at, &complete);
    validate::long_running(errs, &template_at, template, "StatefulSet");
}
