//! PriorityClass, PodGroup, Workload, PodDisruptionBudget and RuntimeClass: what schedulers and evictors go by.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::NameRule;
use crate::pod::scheduling;
use crate::quantity;
use crate::read::{self, flag, has, int, list, part, text};
use crate::resources::{self, Level};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_new};
use crate::{conditions, meta, selector, validation, workload};

const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(crate) struct PriorityClass;

static PRIORITY_CLASS: Profile = Profile {
    generation: &["value"],
    ..Profile::CLUSTER
};

impl Strategy for PriorityClass {
    fn profile(&self) -> &'static Profile {
        &PRIORITY_CLASS
    }

    fn default(&self, obj: &mut Value) {
        read::set_default(obj, "preemptionPolicy", "PreemptLowerPriority");
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        let (name, value) = (meta::name(obj), int(obj, "value").unwrap_or(0));
        if name.starts_with("system-") {
            let why = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
                None => Some(format!("{name} is not a known system priority class")),
                Some((_, fixed)) if *fixed != value => {
                    Some(format!("value of {name} PriorityClass must be {fixed}"))
                }
                Some(_) if flag(obj, "globalDefault") => {
                    Some(format!("globalDefault of {name} PriorityClass must be false"))
                }
                Some(_) => None,
            };
            if let Some(why) = why {
                errs.forbidden(
                    &At::new("metadata.name"),
                    format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}"),
                );
            }
        } else if value > USER_PRIORITY_MAX {
            errs.forbidden(
                &At::new("value"),
                format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"),
            );
        }
        let policy = text(obj, "preemptionPolicy");
        errs.required_one_of(
            &At::new("preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        if int(obj, "value").unwrap_or(0) != int(old, "value").unwrap_or(0) {
            errs.forbidden(&At::new("value"), "may not be changed in an update.");
        }
        let key = "preemptionPolicy";
        errs.immutable(&At::new(key), obj.get(key), old.get(key));
    }
}

/// PodGroup and Workload, whose members nothing here runs.
pub(crate) struct Gang {
    profile: &'static Profile,
}

static POD_GROUP: Profile = Profile {
    status: true,
    ..Profile::NAMESPACED
};
static WORKLOAD: Profile = Profile::NAMESPACED;
pub(crate) static POD_GROUPS: Gang = Gang { profile: &POD_GROUP };
pub(crate) static WORKLOADS: Gang = Gang { profile: &WORKLOAD };

impl Strategy for Gang {
    fn profile(&self) -> &'static Profile {
        self.profile
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        let (new, old) = (part(obj, "spec"), part(old, "spec"));
        for key in [
            "podGroupTemplateRef",
            "podGroupTemplates",
            "schedulingPolicy",
            "controllerRef",
        ] {
            if has(old, key) {
                errs.immutable(&At::new("spec").field(key), new.get(key), old.get(key));
            }
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        conditions::validate(errs, &At::new("status"), part(obj, "status"));
    }
}

pub(crate) struct PodDisruptionBudget;

static BUDGET: Profile = Profile {
    name: NameRule::Own,
    unconditional_update: false,
    ..Profile::WORKLOAD
};

impl Strategy for PodDisruptionBudget {
    fn profile(&self) -> &'static Profile {
        &BUDGET
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&BUDGET, obj);
        read::set(
            obj,
            "status",
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        );
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
            errs.invalid(
                &at,
                go_budget(spec),
                "minAvailable and maxUnavailable cannot be both set",
            );
        }
        for key in ["minAvailable", "maxUnavailable"] {
            if let Some(value) = spec.get(key) {
                workload::int_or_percent(errs, &at.field(key), value);
                workload::not_more_than_all(errs, &at.field(key), value);
            }
        }
        selector::validate(errs, &at.field("selector"), part(spec, "selector"));
        let policy = "unhealthyPodEvictionPolicy";
        if has(spec, policy) {
            errs.one_of(
                &at.field(policy),
                text(spec, policy),
                &["AlwaysAllow", "IfHealthyBudget"],
            );
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        let at = At::new("status");
        let status = part(obj, "status");
        conditions::validate(errs, &at, status);
        errs.none_negative(
            &at,
            status,
            &[
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ],
        );
    }
}

pub(crate) struct RuntimeClass;

static RUNTIME_CLASS: Profile = Profile {
    create_on_update: true,
    unconditional_update: false,
    ..Profile::CLUSTER
};

impl Strategy for RuntimeClass {
    fn profile(&self) -> &'static Profile {
        &RUNTIME_CLASS
    }

    fn default(&self, obj: &mut Value) {
        if let Some(overhead) = obj.get_mut("overhead") {
            quantity::canonicalize_list(overhead, "podFixed");
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        if old.is_some() {
            return;
        }
        match text(obj, "handler") {
            "" => errs.required(&At::new("handler"), ""),
            handler => errs.all_invalid(
                &At::new("handler"),
                handler,
                validation::is_dns1123_label(handler),
            ),
        }
        let fixed = part(part(obj, "overhead"), "podFixed");
        let limits = json!({"limits": fixed});
        resources::validate_requirements(errs, &At::new("overhead"), &limits, Level::Container, &[]);
        let at = At::new("scheduling");
        let rules = part(obj, "scheduling");
        selector::validate_labels(
            errs,
            &at.field("nodeSelector"),
            read::entries(rules, "nodeSelector"),
        );
        let tolerations = list(rules, "tolerations");
        let at = at.field("tolerations");
        scheduling::tolerations(errs, &at, tolerations);
        let same = |a: &Value, b: &Value| {
            ["key", "operator", "value", "effect"]
                .iter()
                .all(|key| text(a, key) == text(b, key))
        };
        for (i, toleration) in tolerations.iter().enumerate() {
            if tolerations[..i].iter().any(|other| same(other, toleration)) {
                let fields = [
                    ("Key", "key", read::Unset::Text),
                    ("Operator", "operator", read::Unset::Text),
                    ("Value", "value", read::Unset::Text),
                    ("Effect", "effect", read::Unset::Text),
                    ("TolerationSeconds", "tolerationSeconds", read::Unset::Null),
                ];
                errs.duplicate(&at.index(i), read::go_struct(toleration, &fields));
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        errs.immutable(&At::new("handler"), obj.get("handler"), old.get("handler"));
    }
}

/// The spec of a PodDisruptionBudget as upstream prints it; its selector is a type that has names in JSON.
fn go_budget(spec: &Value) -> Value {
    use read::Unset::Null;
    let mut shown = read::go_struct(
        spec,
        &[
            ("MinAvailable", "minAvailable", Null),
            ("Selector", "selector", Null),
            ("MaxUnavailable", "maxUnavailable", Null),
            ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy", Null),
        ],
    );
    if has(spec, "selector") {
        shown["Selector"] = part(spec, "selector").clone();
    }
    shown
}
