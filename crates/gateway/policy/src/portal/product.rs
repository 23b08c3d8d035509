//! An APIProduct's status: the plans and the authentication that its route has.

use serde_json::{Map, Value, json};

use super::document::Told;
use super::names::names;
use crate::status::Condition;

/// What policies say of a product's route.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Discovered<'a> {
    /// Whether the route exists, and some Gateway accepts it.
    pub route: Option<bool>,
    /// The PlanPolicy of the route, or of its Gateway.
    pub plan: Option<&'a Value>,
    /// The AuthPolicy of the route, or of its Gateway.
    pub auth: Option<&'a Value>,
}

/// Finds what belongs to a route, which may not exist.
pub fn discover<'a>(route: Option<&Value>, auth: &[&'a Value], plans: &[&'a Value]) -> Discovered<'a> {
    let Some(route) = route else {
        return Discovered::default();
    };
    let is_accepted = is_accepted(route);
    Discovered {
        route: Some(is_accepted),
        plan: of_route(route, plans),
        auth: of_route(route, auth),
    }
}

/// Whether some Gateway accepts a route.
pub fn is_accepted(route: &Value) -> bool {
    let parents = route["status"]["parents"].as_array();
    let conditions = parents
        .into_iter()
        .flatten()
        .filter_map(|it| it["conditions"].as_array());
    (conditions.flatten()).any(|it| it["type"] == "Accepted" && it["status"] == "True")
}

/// The policy that counts for a whole route: overrides of its Gateway, then its own, then those of its Gateway. Of several the
/// newest, as policies merge.
fn of_route<'a>(route: &Value, policies: &[&'a Value]) -> Option<&'a Value> {
    let (namespace, name) = names(route);
    let is_parent = |policy: &Value| {
        let parents = route["spec"]["parentRefs"].as_array();
        parents.into_iter().flatten().any(|parent| {
            let of = parent["namespace"].as_str().unwrap_or(namespace);
            parent["name"] == policy["spec"]["targetRef"]["name"] && names(policy).0 == of
        })
    };
    let rank = |policy: &Value| {
        let target = &policy["spec"]["targetRef"];
        match target["kind"].as_str()? {
            "HTTPRoute" if target["name"] == name && names(policy).0 == namespace => Some(1),
            "Gateway" if is_parent(policy) => match policy["spec"]["overrides"].is_object() {
                true => Some(2),
                false => Some(0),
            },
            _ => None,
        }
    };
    let created = |policy: &Value| {
        let text = |field: &str| policy["metadata"][field].as_str().unwrap_or("").to_owned();
        (text("creationTimestamp"), text("name"))
    };
    let fitting = policies.iter().copied().filter(|policy| {
        policy["metadata"]["deletionTimestamp"].is_null()
            && policy["spec"]["targetRef"]["sectionName"].is_null()
            && rank(policy).is_some()
    });
    fitting.max_by_key(|policy| (rank(policy), created(policy)))
}

fn is_ready(policy: &Value) -> bool {
    let conditions = policy["status"]["conditions"].as_array();
    let has = |kind: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == kind && it["status"] == "True")
    };
    has("Accepted") && has("Enforced")
}

/// A product's conditions, and the rest of its status.
pub fn product_status(
    product: &Value,
    found: &Discovered<'_>,
    document: Option<&Told>,
) -> (Vec<Condition>, Map<String, Value>) {
    let route = format!(
        "{}/{}",
        names(product).0,
        product["spec"]["targetRef"]["name"].as_str().unwrap_or("")
    );
    let (is_accepted, reason, message) = match found.route {
        Some(true) => (true, "HTTPRouteAccepted", format!("HTTPRoute {route} accepted")),
        Some(false) => (
            false,
            "HTTPRouteNotAccepted",
            format!("HTTPRoute {route} not accepted"),
        ),
        None => (false, "HTTPRouteNotFound", format!("HTTPRoute {route} not found")),
    };
    let mut conditions = vec![
        of_auth(found.auth),
        discovered("PlanPolicyDiscovered", found.plan, "PlanPolicy"),
        Condition {
            r#type: "Ready",
            is_true: is_accepted,
            reason,
            message,
        },
    ];
    if let Some(told) = document {
        conditions.push(told.condition.clone());
    }
    conditions.sort_by_key(|condition| condition.r#type);
    let mut status = Map::new();
    let generation = product["metadata"]["generation"].clone();
    status.insert("observedGeneration".to_owned(), generation);
    if let Some(told) = document {
        status.insert("openapi".to_owned(), told.openapi.clone());
    }
    let plans = found.plan.and_then(|policy| policy["spec"]["plans"].as_array());
    let plans: Vec<Value> = plans
        .into_iter()
        .flatten()
        .map(|plan| json!({"tier": plan["tier"], "limits": plan.get("limits").cloned().unwrap_or(json!({}))}))
        .collect();
    if !plans.is_empty() {
        status.insert("discoveredPlans".to_owned(), Value::from(plans));
    }
    // A policy that is not enforced for a moment keeps its scheme: those who have keys would lose them.
    if let Some(policy) = found.auth {
        let spec = &policy["spec"];
        let proper = ["defaults", "overrides"]
            .iter()
            .find_map(|part| spec.get(part))
            .unwrap_or(spec);
        if let Some(rules) = proper.get("rules") {
            status.insert("discoveredAuthScheme".to_owned(), rules.clone());
        }
    }
    (conditions, status)
}

fn of_auth(policy: Option<&Value>) -> Condition {
    let condition = discovered("AuthPolicyDiscovered", policy, "AuthPolicy");
    match policy.is_none_or(is_ready) {
        true => condition,
        false => Condition {
            is_true: false,
            reason: "AuthPolicyNotReady",
            message: "AuthPolicy not accepted or not enforced".to_owned(),
            ..condition
        },
    }
}

fn discovered(r#type: &'static str, policy: Option<&Value>, kind: &str) -> Condition {
    let target = |policy: &Value| {
        let text = |field: &str| {
            policy["spec"]["targetRef"][field]
                .as_str()
                .unwrap_or("")
                .to_owned()
        };
        format!("{} {}", text("kind"), text("name"))
    };
    Condition {
        r#type,
        is_true: policy.is_some(),
        reason: if policy.is_some() { "Found" } else { "NotFound" },
        message: match policy {
            Some(policy) => format!(
                "Discovered {kind} {} targeting {}",
                names(policy).1,
                target(policy)
            ),
            None => format!("{kind} not found"),
        },
    }
}
