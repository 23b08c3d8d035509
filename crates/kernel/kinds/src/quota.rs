//! ResourceQuota and LimitRange.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::at::{At, Errors, FIELD_IMMUTABLE};
use crate::quantity::{self, Quantity};
use crate::read::{self, entries, filled, has, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{resources, validation};

const SCOPES: &[&str] = &[
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

pub(crate) struct ResourceQuota;

static QUOTA: Profile = Profile {
    status: true,
    ..Profile::NAMESPACED
};

impl Strategy for ResourceQuota {
    fn profile(&self) -> &'static Profile {
        &QUOTA
    }

    fn default(&self, obj: &mut Value) {
        if let Some(spec) = obj.get_mut("spec") {
            quantity::canonicalize_list(spec, "hard");
        }
        if let Some(status) = obj.get_mut("status") {
            quantity::canonicalize_list(status, "hard");
            quantity::canonicalize_list(status, "used");
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        read::set(obj, "status", serde_json::json!({}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        resources::validate_list(errs, &at, spec, "hard", resources::validate_quota_name);
        let scopes: Vec<&str> = texts(spec, "scopes").collect();
        let scopes_at = at.field("scopes");
        for scope in &scopes {
            if !SCOPES.contains(scope) {
                errs.invalid(&scopes_at, part(spec, "scopes").clone(), "unsupported scope");
            }
            validate_scope_fits(errs, &scopes_at, scope, spec);
        }
        validate_conflicts(errs, &scopes_at, &scopes, spec);
        validate_scope_selector(errs, &at.field("scopeSelector"), spec);
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let set = |obj: &Value| -> HashSet<String> {
            texts(part(obj, "spec"), "scopes").map(str::to_owned).collect()
        };
        if set(obj) != set(old) {
            let shown = part(part(obj, "spec"), "scopes").clone();
            errs.invalid(&At::new("spec.scopes"), shown, FIELD_IMMUTABLE);
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let at = At::new("status");
        for key in ["hard", "used"] {
            resources::validate_list(
                errs,
                &at,
                part(obj, "status"),
                key,
                resources::validate_quota_name,
            );
        }
    }
}

/// What quotas count without being told of it by `count/`.
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

fn validate_scope_fits(errs: &mut Errors, at: &At<'_>, scope: &str, spec: &Value) {
    let fits = |name: &str| match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => {
            name == "pods"
                || matches!(name, "cpu" | "memory")
                || name.starts_with("limits.")
                || matches!(name, "requests.cpu" | "requests.memory")
        }
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    };
    for (name, _) in entries(spec, "hard") {
        if STANDARD.contains(&name) && !fits(name) {
            let shown = part(spec, "scopes").clone();
            errs.invalid(at, shown, "unsupported scope applied to resource");
        }
    }
}

fn validate_conflicts(errs: &mut Errors, at: &At<'_>, scopes: &[&str], spec: &Value) {
    for pair in CONFLICTS {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errs.invalid(at, part(spec, "scopes").clone(), "conflicting scopes");
        }
    }
}

fn validate_scope_selector(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let at = at.field("matchExpressions");
    let requirements = list(part(spec, "scopeSelector"), "matchExpressions");
    let scopes: Vec<&str> = requirements.iter().map(|r| text(r, "scopeName")).collect();
    for requirement in requirements {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        if !SCOPES.contains(&scope) {
            errs.invalid(&at.field("scopeName"), scope, "unsupported scope");
        }
        validate_scope_fits(errs, &at, scope, spec);
        let by_value = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope) && !by_value && operator != "Exists" {
            errs.invalid(
                &at.field("operator"),
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            );
        }
        let values_at = at.field("values");
        match operator {
            "In" | "NotIn" if !filled(requirement, "values") => errs.required(
                &values_at,
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if filled(requirement, "values") => errs.invalid(
                &values_at,
                part(requirement, "values").clone(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errs.invalid(&at.field("operator"), other, "not a valid selector operator"),
        }
    }
    validate_conflicts(errs, &at, &scopes, spec);
}

pub(crate) struct LimitRange;

static LIMIT_RANGE: Profile = Profile {
    create_on_update: true,
    ..Profile::NAMESPACED
};
const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

impl Strategy for LimitRange {
    fn profile(&self) -> &'static Profile {
        &LIMIT_RANGE
    }

    fn default(&self, obj: &mut Value) {
        for limit in read::each_mut(part_mut(obj, "spec"), "limits") {
            for key in LISTS {
                quantity::canonicalize_list(limit, key);
            }
            if text(limit, "type") != "Container" {
                continue;
            }
            for (from, to) in [
                ("max", "default"),
                ("default", "defaultRequest"),
                ("min", "defaultRequest"),
            ] {
                if filled(limit, from) {
                    let values = part(limit, from).clone();
                    let target = part_mut(limit, to);
                    for (name, value) in values.as_object().into_iter().flatten() {
                        read::set_default(target, name, value.clone());
                    }
                }
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("spec.limits");
        let mut kinds = HashSet::new();
        for (i, limit) in list(part(obj, "spec"), "limits").iter().enumerate() {
            let at = at.index(i);
            let kind = text(limit, "type");
            let faults = validation::is_qualified_name(kind);
            let known = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
            if faults.is_empty() && !kind.contains('/') && !known {
                let detail = "must be a standard limit type or fully qualified";
                errs.invalid(&at.field("type"), kind, detail);
            }
            errs.all_invalid(&at.field("type"), kind, faults);
            if !kinds.insert(kind) {
                errs.duplicate(&at.field("type"), kind);
            }
            validate_limit(errs, &at, limit, kind);
        }
    }
}

fn validate_limit(errs: &mut Errors, at: &At<'_>, limit: &Value, kind: &str) {
    let mut names = BTreeSet::new();
    for key in LISTS {
        let defaulted = matches!(key, "default" | "defaultRequest");
        if kind == "Pod" && defaulted {
            if filled(limit, key) {
                errs.forbidden(&at.field(key), "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        let at = at.field(key);
        for (name, _) in entries(limit, key) {
            if matches!(kind, "Pod" | "Container") {
                resources::validate_container_name(errs, &at.key(name), name);
            } else {
                resources::validate_name(errs, &at.key(name), name);
            }
            names.insert(name);
        }
    }
    if kind == "PersistentVolumeClaim"
        && !has(part(limit, "min"), "storage")
        && !has(part(limit, "max"), "storage")
    {
        errs.required(
            &at.field("limits"),
            "either minimum or maximum storage value is required, but neither was provided",
        );
    }
    for name in names {
        compare(errs, at, limit, name);
    }
}

/// The figures for one resource must be in order: min, default request, default, max.
fn compare(errs: &mut Errors, at: &At<'_>, limit: &Value, name: &str) {
    // What a Pod may not have is not compared either.
    let ignored = |key: &str| text(limit, "type") == "Pod" && key.starts_with("default");
    let of = |key: &str| {
        let figures = Some(part(limit, key)).filter(|_| !ignored(key));
        figures?.get(name).and_then(Quantity::from_value)
    };
    let rules = [
        ("min", "min", "min", "max", "min value", "max value"),
        (
            "defaultRequest",
            "defaultRequest",
            "min",
            "defaultRequest",
            "min value",
            "default request value",
        ),
        (
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            "max",
            "default request value",
            "max value",
        ),
        (
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            "default",
            "default request value",
            "default limit value",
        ),
        ("default", "min", "min", "default", "min value", "default value"),
        ("default", "max", "default", "max", "default value", "max value"),
    ];
    for (field, shown, low, high, low_text, high_text) in rules {
        if let (Some(lower), Some(higher), Some(shown)) = (of(low), of(high), of(shown))
            && lower > higher
        {
            let at = at.field(field);
            errs.invalid(
                &at.key(name),
                shown.canonical(),
                format!(
                    "{low_text} {} is greater than {high_text} {}",
                    lower.canonical(),
                    higher.canonical()
                ),
            );
        }
    }
    let Some(ratio) = of("maxLimitRequestRatio") else {
        return;
    };
    let at = at.field("maxLimitRequestRatio");
    let at = at.key(name);
    if ratio < Quantity::from_int(1) {
        let detail = format!("ratio {} is less than 1", ratio.canonical());
        errs.invalid(&at, ratio.canonical(), detail);
    }
    if let (Some(min), Some(max)) = (of("min"), of("max")) {
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        let (allowed, asked) = (
            max.milli_value() as f64 / min.milli_value() as f64,
            ratio.milli_value() as f64 / 1000.0,
        );
        if asked > allowed {
            let detail = format!(
                "ratio {} is greater than max/min = {allowed:.6}",
                ratio.canonical()
            );
            errs.invalid(&at, ratio.canonical(), detail);
        }
    }
}
