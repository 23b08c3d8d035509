//! HorizontalPodAutoscaler: stored as v2; v1 is a narrower view that keeps the rest in annotations.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::quantity::{self, Quantity};
use crate::read::{self, each_mut, has, int, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_new};
use crate::{resources, validation};

mod convert;

pub use convert::{v1_to_v2, v2_to_v1};

const DEFAULT_CPU_UTILIZATION: i64 = 80;
const STABILIZATION_MAX: i64 = 3600;
const PERIOD_MAX: i64 = 1800;
const SOURCES: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

pub(crate) struct HorizontalPodAutoscaler;

static PROFILE: Profile = Profile {
    status: true,
    ..Profile::NAMESPACED
};

impl Strategy for HorizontalPodAutoscaler {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let v1 = text(obj, "apiVersion") == "autoscaling/v1";
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "minReplicas", 1);
        if v1 {
            return;
        }
        if !read::filled(spec, "metrics") {
            read::set(spec, "metrics", json!([default_metric()]));
        }
        for metric in each_mut(spec, "metrics") {
            for (_, key) in SOURCES {
                if let Some(target) = metric.get_mut(*key).and_then(|source| source.get_mut("target")) {
                    quantity::canonicalize(target, "value");
                    quantity::canonicalize(target, "averageValue");
                }
            }
        }
        if let Some(behavior) = spec.get_mut("behavior") {
            let up = part_mut(behavior, "scaleUp");
            read::set_default(up, "stabilizationWindowSeconds", 0);
            default_rules(
                up,
                &json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent_policy()]),
            );
            default_rules(part_mut(behavior, "scaleDown"), &json!([percent_policy()]));
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(obj, "status", json!({"desiredReplicas": 0}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let (min, max) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or(0));
        if let Some(min) = min.filter(|m| *m < 1) {
            errs.invalid(
                &at.field("minReplicas"),
                min,
                "must be greater than or equal to 1",
            );
        }
        let to_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
        if min == Some(0) && !read::list(spec, "metrics").iter().any(to_zero) {
            errs.forbidden(
                &at.field("metrics"),
                "must specify at least one Object or External metric to support scaling to zero replicas",
            );
        }
        let max_at = at.field("maxReplicas");
        if max == 0 {
            errs.required(&max_at, "must be set and greater than 0");
        } else if max < 0 {
            errs.invalid(&max_at, max, "must be greater than or equal to 1");
        }
        if min.is_some_and(|min| max < min) {
            errs.invalid(&max_at, max, "must be greater than or equal to `minReplicas`");
        }
        validate_reference(errs, &at.field("scaleTargetRef"), part(spec, "scaleTargetRef"));
        let grouped =
            |obj: &Value| text(part(part(obj, "spec"), "scaleTargetRef"), "apiVersion").contains('/');
        if !grouped(obj) && old.is_none_or(grouped) {
            let version = text(part(spec, "scaleTargetRef"), "apiVersion");
            let at = at.field("scaleTargetRef");
            errs.invalid(
                &at.field("apiVersion"),
                version,
                "apiVersion must specify API group",
            );
        }
        let metrics_at = at.field("metrics");
        for (i, metric) in list(spec, "metrics").iter().enumerate() {
            validate_metric(errs, &metrics_at.index(i), metric);
        }
        let behavior_at = at.field("behavior");
        for key in ["scaleUp", "scaleDown"] {
            if let Some(rules) = part(spec, "behavior").get(key) {
                validate_rules(errs, &behavior_at.field(key), rules);
            }
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        errs.none_negative(
            &At::new("status"),
            part(obj, "status"),
            &["currentReplicas", "desiredReplicas"],
        );
    }
}

fn default_metric() -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION}}})
}

fn percent_policy() -> Value {
    json!({"type": "Percent", "value": 100, "periodSeconds": 15})
}

fn default_rules(rules: &mut Value, policies: &Value) {
    read::set_default(rules, "selectPolicy", "Max");
    read::set_default(rules, "policies", policies.clone());
    quantity::canonicalize(rules, "tolerance");
}

fn validate_reference(errs: &mut Errors, at: &At<'_>, reference: &Value) {
    for key in ["kind", "name"] {
        match text(reference, key) {
            "" => errs.required(&at.field(key), ""),
            value => errs.all_invalid(&at.field(key), value, validation::is_path_segment_name(value)),
        }
    }
    let version = text(reference, "apiVersion");
    if version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errs.invalid(&at.field("apiVersion"), version, detail);
    }
}

fn validate_rules(errs: &mut Errors, at: &At<'_>, rules: &Value) {
    let window_at = at.field("stabilizationWindowSeconds");
    match int(rules, "stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            errs.invalid(&window_at, window, "must be greater than or equal to zero");
        }
        Some(window) if window > STABILIZATION_MAX => {
            errs.invalid(
                &window_at,
                window,
                format!("must be less than or equal to {STABILIZATION_MAX}"),
            );
        }
        _ => {}
    }
    if has(rules, "selectPolicy") {
        errs.one_of(
            &at.field("selectPolicy"),
            text(rules, "selectPolicy"),
            &["Disabled", "Max", "Min"],
        );
    }
    let policies_at = at.field("policies");
    if !read::filled(rules, "policies") {
        errs.required(&policies_at, "must specify at least one Policy");
    }
    for (i, policy) in list(rules, "policies").iter().enumerate() {
        let at = policies_at.index(i);
        errs.one_of(&at.field("type"), text(policy, "type"), &["Percent", "Pods"]);
        for key in ["value", "periodSeconds"] {
            let number = int(policy, key).unwrap_or(0);
            if number <= 0 {
                errs.invalid(&at.field(key), number, "must be greater than zero");
            }
        }
        let period = int(policy, "periodSeconds").unwrap_or(0);
        if period > PERIOD_MAX {
            let detail = format!("must be less than or equal to {PERIOD_MAX}");
            errs.invalid(&at.field("periodSeconds"), period, detail);
        }
    }
    if let Some(tolerance) = rules.get("tolerance") {
        resources::validate_non_negative(errs, &at.field("tolerance"), tolerance);
    }
}

fn validate_metric(errs: &mut Errors, at: &At<'_>, metric: &Value) {
    let kind = text(metric, "type");
    let type_at = at.field("type");
    if kind.is_empty() {
        errs.required(&type_at, "must specify a metric source type");
    }
    let expected = SOURCES
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, key)| *key);
    match expected {
        None => errs.not_supported(
            &type_at,
            kind,
            &["ContainerResource", "External", "Object", "Pods", "Resource"],
        ),
        Some(key) if !has(metric, key) => {
            errs.required(
                &at.field(key),
                "must populate information for the given metric source",
            );
        }
        Some(_) => {}
    }
    let present: Vec<&str> = SOURCES
        .iter()
        .map(|(_, key)| *key)
        .filter(|key| has(metric, key))
        .collect();
    if let Some(first) = present.first() {
        validate_source(errs, &at.field(first), part(metric, first), first);
    }
    if present.len() > 1 {
        for extra in present.iter().filter(|key| Some(**key) != expected) {
            errs.forbidden(&at.field(extra), "must populate the given metric source only");
        }
    }
}

fn validate_source(errs: &mut Errors, at: &At<'_>, source: &Value, kind: &str) {
    let target = part(source, "target");
    let target_at = at.field("target");
    let (value, average) = (has(target, "value"), has(target, "averageValue"));
    let utilization = has(target, "averageUtilization");
    match kind {
        "object" | "external" | "pods" => {
            let metric_at = at.field("metric");
            match text(part(source, "metric"), "name") {
                "" => errs.required(&metric_at.field("name"), "must specify a metric name"),
                name => errs.all_invalid(
                    &metric_at.field("name"),
                    name,
                    validation::is_path_segment_name(name),
                ),
            }
        }
        _ => {
            if text(source, "name").is_empty() {
                errs.required(&at.field("name"), "must specify a resource name");
            }
            if kind == "containerResource" {
                match text(source, "container") {
                    "" => errs.required(&at.field("container"), "must specify a container"),
                    name => {
                        errs.all_invalid(&at.field("container"), name, validation::is_dns1123_label(name));
                    }
                }
            }
        }
    }
    if kind == "object" {
        validate_reference(
            errs,
            &at.field("describedObject"),
            part(source, "describedObject"),
        );
    }
    validate_target(errs, &target_at, target);
    let average_at = target_at.field("averageValue");
    match kind {
        "object" if !value && !average => {
            errs.required(&average_at, "must set either a target value or averageValue");
        }
        "external" if !value && !average => {
            errs.required(
                &average_at,
                "must set either a target value for metric or a per-pod target",
            );
        }
        "external" if value && average => errs.forbidden(
            &target_at.field("value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        "pods" if !average => errs.required(&average_at, "must specify a positive target averageValue"),
        "resource" | "containerResource" if !utilization && !average => errs.required(
            &target_at.field("averageUtilization"),
            "must set either a target raw value or a target utilization",
        ),
        "resource" | "containerResource" if utilization && average => {
            errs.forbidden(
                &average_at,
                "may not set both a target raw value and a target utilization",
            );
        }
        _ => {}
    }
}

fn validate_target(errs: &mut Errors, at: &At<'_>, target: &Value) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errs.required(&at.field("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        errs.invalid(
            &at.field("type"),
            kind,
            "must be either Utilization, Value, or AverageValue",
        );
    }
    for key in ["value", "averageValue"] {
        if let Some(amount) = target.get(key)
            && Quantity::from_value(amount).is_none_or(|q| q.sign() <= 0)
        {
            errs.invalid(&at.field(key), amount.clone(), "must be positive");
        }
    }
    if let Some(percent) = int(target, "averageUtilization").filter(|p| *p < 1) {
        errs.invalid(&at.field("averageUtilization"), percent, "must be greater than 0");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{v1_to_v2, v2_to_v1};
    use crate::check::create;

    fn autoscaler(spec: Value) -> Value {
        let mut object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "ns"},
            "spec": {"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
        object["spec"]
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        object
    }

    #[test]
    fn defaults() {
        let object = create(
            "autoscaling",
            "horizontalpodautoscalers",
            autoscaler(json!({"behavior": {"scaleDown": {}}})),
        )
        .ok();
        assert_eq!(object["spec"]["minReplicas"], 1);
        assert_eq!(
            object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            80
        );
        assert_eq!(
            object["spec"]["behavior"]["scaleUp"]["policies"][0],
            json!({"type": "Pods", "value": 4, "periodSeconds": 15})
        );
        assert_eq!(object["spec"]["behavior"]["scaleDown"]["selectPolicy"], "Max");
    }

    #[test]
    fn mistakes() {
        let cases: Vec<(Value, &[&str])> = vec![
            (
                json!({"maxReplicas": 0, "minReplicas": 0}),
                &[
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
                    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                    "spec.maxReplicas: Required value: must be set and greater than 0",
                ],
            ),
            (
                json!({"minReplicas": 9}),
                &["spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"],
            ),
            (
                json!({"scaleTargetRef": {}}),
                &[
                    "spec.scaleTargetRef.kind: Required value",
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
                    "spec.scaleTargetRef.name: Required value",
                ],
            ),
            (
                json!({"metrics": [{"type": "Pods"}]}),
                &[
                    "spec.metrics[0].pods: Required value: must populate information for the given metric source",
                ],
            ),
        ];
        for (spec, expected) in cases {
            create("autoscaling", "horizontalpodautoscalers", autoscaler(spec)).fails(expected);
        }
    }

    #[test]
    fn v1_keeps_what_it_cannot_say() {
        let v2 = autoscaler(json!({
            "minReplicas": 2,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        }));
        let v1 = v2_to_v1(&v2);
        assert_eq!(v1["apiVersion"], "autoscaling/v1");
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 70);
        assert!(v1["spec"].get("metrics").is_none());
        assert!(
            v1["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
                .as_str()
                .unwrap()
                .contains("targetAverageValue")
        );
        let back = v1_to_v2(&v1);
        let kinds: Vec<&Value> = back["spec"]["metrics"].as_array().unwrap().iter().collect();
        assert_eq!(kinds.len(), 3);
        assert!(
            v2["spec"]["metrics"]
                .as_array()
                .unwrap()
                .iter()
                .all(|m| kinds.contains(&m)),
            "{kinds:#?}"
        );
        assert_eq!(back["spec"]["behavior"], v2["spec"]["behavior"]);
        assert_eq!(back["metadata"], v2["metadata"], "no annotation is left over");
        let plain =
            v1_to_v2(&json!({"apiVersion": "autoscaling/v1", "metadata": {}, "spec": {"maxReplicas": 1}}));
        assert_eq!(
            plain["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            80
        );
    }
}
