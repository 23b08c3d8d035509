//! An APIProduct's status: the plans and the authentication that its route has.

use serde_json::{Map, Value, json};

use crate::status::Condition;

/// What policies say of a product's route.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discovered<'a> {
    /// Whether the route exists, and some Gateway accepts it.
    pub route: Option<bool>,
    /// The PlanPolicy of the route, or of its Gateway.
    pub plan: Option<&'a Value>,
    /// The AuthPolicy of the route, or of its Gateway.
    pub auth: Option<&'a Value>,
}

/// A product's conditions, and the rest of its status.
pub fn product_status(product: &Value, found: &Discovered<'_>) -> (Vec<Condition>, Map<String, Value>) {
    let target = product["spec"]["targetRef"]["name"].as_str().unwrap_or("");
    let (is_ready, reason, message) = match found.route {
        Some(true) => (
            true,
            "HTTPRouteAvailable",
            format!("HTTPRoute {target} is accepted"),
        ),
        Some(false) => (
            false,
            "HTTPRouteNotAccepted",
            format!("HTTPRoute {target} is accepted by no Gateway"),
        ),
        None => (
            false,
            "HTTPRouteNotFound",
            format!("HTTPRoute {target} not found"),
        ),
    };
    let discovered = |r#type, object: Option<&Value>, kind: &str| {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        Condition {
            r#type,
            is_true: object.is_some(),
            reason: if object.is_some() { "Found" } else { "NotFound" },
            message: match object {
                Some(object) => format!("Discovered {kind} {}", name(object)),
                None => format!("{kind} not found"),
            },
        }
    };
    let conditions = vec![
        discovered("AuthPolicyDiscovered", found.auth, "AuthPolicy"),
        discovered("PlanPolicyDiscovered", found.plan, "PlanPolicy"),
        Condition {
            r#type: "Ready",
            is_true: is_ready,
            reason,
            message,
        },
    ];
    let mut status = Map::new();
    status.insert(
        "observedGeneration".to_owned(),
        product["metadata"]["generation"].clone(),
    );
    let plans: Vec<Value> = found.plan.map_or_else(Vec::new, |policy| {
        let plans = policy["spec"]["plans"].as_array();
        plans
            .into_iter()
            .flatten()
            .map(|plan| json!({"tier": plan["tier"], "limits": plan.get("limits").cloned().unwrap_or(json!({}))}))
            .collect()
    });
    if !plans.is_empty() {
        status.insert("discoveredPlans".to_owned(), Value::from(plans));
    }
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
