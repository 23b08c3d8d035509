//! The developer portal: an APIKey asks for access to an APIProduct, somebody or the product's own rule approves it, and a
//! Secret lets the key in.
//!
//! ```text
//! APIKey (consumer) ── APIKeyRequest (owner's namespace) ── APIKeyApproval (a person, or "-auto") ── Secret for the AuthPolicy
//! ```

mod product;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use product::{Discovered, product_status};

use crate::status::Condition;

pub const API_VERSION: &str = "devportal.kuadrant.io/v1alpha1";
/// The field of a Secret that holds an API key.
pub const API_KEY: &str = "api_key";
/// Secrets must say that they are for Authorino.
pub const MANAGED_BY: (&str, &str) = ("authorino.kuadrant.io/managed-by", "authorino");
/// Secrets that come from approved APIKeys.
pub const ENFORCEMENT: &str = "devportal.kuadrant.io/enforcement";

/// What is known around an APIKey.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The APIProduct that it refers to.
    pub product: Option<&'a Value>,
    /// The consumer's Secret that it refers to.
    pub secret: Option<&'a Value>,
    /// APIKeyApprovals in the product's namespace.
    pub approvals: &'a [Value],
    /// The first host name of the product's route.
    pub hostname: Option<&'a str>,
    /// Where Secrets for authentication are kept.
    pub system_namespace: &'a str,
    /// Seconds since 1970.
    pub now: i64,
    /// The time as the API writes it, for an approval that is made now.
    pub timestamp: &'a str,
}

/// What is to be done for an APIKey.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The one condition that it has; the others are removed.
    pub condition: Condition,
    /// The rest of its status.
    pub status: Map<String, Value>,
    /// The request that is to exist in the product's namespace; none: it is to be deleted.
    pub request: Option<Value>,
    /// An approval that is to be created now.
    pub approval: Option<Value>,
    /// The Secret that is to exist; none: it is to be deleted.
    pub secret: Option<Value>,
    /// Seconds after which to look again.
    pub again_in: Option<i64>,
}

/// The conditions that an APIKey can have; it has one of them.
pub const CONDITIONS: [&str; 5] = ["Approved", "Denied", "Expired", "Failed", "Pending"];

/// Decides about one APIKey.
pub fn decide(key: &Value, around: &Around<'_>) -> Decided {
    let condition = condition(key, around);
    let is_failed = condition.r#type == "Failed";
    let is_approved = condition.r#type == "Approved";
    let request = (!is_failed).then(|| request(key));
    let approval = match (&request, condition.r#type) {
        (Some(request), "Pending") => automatic(request, around),
        _ => None,
    };
    let expiry = expiry(key);
    Decided {
        status: status(key, around),
        secret: is_approved.then(|| enforcement(key, around)).flatten(),
        again_in: expiry
            .map(|at| at.saturating_sub(around.now))
            .filter(|left| *left > 0 && is_approved),
        condition,
        request,
        approval,
    }
}

/// Namespace and name of the product that a key is for.
pub fn product_of(key: &Value) -> (String, String) {
    let reference = &key["spec"]["apiProductRef"];
    let namespace = reference["namespace"].as_str().filter(|name| !name.is_empty());
    let namespace = namespace.or(key["metadata"]["namespace"].as_str()).unwrap_or("");
    (
        namespace.to_owned(),
        reference["name"].as_str().unwrap_or("").to_owned(),
    )
}

fn names(key: &Value) -> (&str, &str) {
    let metadata = &key["metadata"];
    (
        metadata["namespace"].as_str().unwrap_or(""),
        metadata["name"].as_str().unwrap_or(""),
    )
}

fn suffix(key: &Value) -> String {
    let (namespace, name) = names(key);
    let digest = Sha256::digest(format!("{namespace}/{name}"));
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// The name of the request that stands for a key in the product's namespace.
pub fn request_name(key: &Value) -> String {
    let (namespace, name) = names(key);
    format!("{namespace}-{name}-{}", suffix(key))
}

/// The name of the Secret that lets a key in.
pub fn enforcement_name(key: &Value) -> String {
    let (namespace, name) = names(key);
    format!("devportal-{namespace}-{name}-{}", suffix(key))
}

fn condition(key: &Value, around: &Around<'_>) -> Condition {
    let is = |r#type, reason, message| Condition {
        r#type,
        is_true: true,
        reason,
        message,
    };
    if let Some((reason, message)) = failure(key, around) {
        return is("Failed", reason, message);
    }
    let Some(approval) = approval_of(key, around) else {
        let message = "API key request is awaiting approval".to_owned();
        return is("Pending", "AwaitingApproval", message);
    };
    let spec = &approval["spec"];
    let by = spec["reviewedBy"].as_str().unwrap_or("");
    let told = |word: &str| match spec["message"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => format!("API key request {word} by {by}: {text}"),
        None => format!("API key request {word} by {by}"),
    };
    if spec["approved"] != true {
        return is("Denied", "Denied", told("denied"));
    }
    match expiry(key) {
        Some(at) if at <= around.now => {
            let when = key["spec"]["expiresAt"].as_str().unwrap_or("");
            is("Expired", "KeyExpired", format!("API key expired at {when}"))
        }
        _ => is("Approved", "Approved", told("approved")),
    }
}

/// When a key ends. A time that cannot be read has passed.
fn expiry(key: &Value) -> Option<i64> {
    let text = key["spec"]["expiresAt"].as_str()?;
    let at = text.parse::<jiff::Timestamp>();
    Some(at.map_or(i64::MIN, jiff::Timestamp::as_second))
}

fn failure(key: &Value, around: &Around<'_>) -> Option<(&'static str, String)> {
    let (product_namespace, product_name) = product_of(key);
    let product_key = format!("{product_namespace}/{product_name}");
    let Some(product) = around.product else {
        let message = format!("Referenced APIProduct {product_key} not found");
        return Some(("APIProductNotFound", message));
    };
    if !product["metadata"]["deletionTimestamp"].is_null() {
        let message = format!("Referenced APIProduct {product_key} is being deleted");
        return Some(("APIProductDeleting", message));
    }
    let secret_name = key["spec"]["secretRef"]["name"].as_str().unwrap_or("");
    let secret_key = format!("{}/{secret_name}", names(key).0);
    let Some(secret) = around.secret else {
        let message = format!("Referenced secret {secret_key} not found");
        return Some(("SecretNotFound", message));
    };
    match secret["data"][API_KEY].as_str() {
        None => {
            let message = format!("Secret {secret_key} does not contain \"{API_KEY}\" entry");
            return Some(("SecretAPIKeyNotFound", message));
        }
        Some("") => {
            let message = format!("Secret {secret_key} has empty \"{API_KEY}\" entry");
            return Some(("SecretAPIKeyEmpty", message));
        }
        Some(_) => {}
    }
    let scheme = &product["status"]["discoveredAuthScheme"];
    if !scheme.is_object() {
        let message = format!("APIProduct {product_key} does not have a discovered authentication scheme");
        return Some(("AuthSchemeNotFound", message));
    }
    if api_key_scheme(product).is_none() {
        let message =
            format!("APIProduct {product_key} does not have an API key authentication scheme configured");
        return Some(("APIKeyAuthSchemeNotFound", message));
    }
    None
}

/// The first authentication by API keys, by name.
fn api_key_scheme(product: &Value) -> Option<&Value> {
    let authentication = product["status"]["discoveredAuthScheme"]["authentication"].as_object()?;
    let mut schemes: Vec<(&String, &Value)> = authentication
        .iter()
        .filter(|(_, one)| one["apiKey"].is_object())
        .collect();
    schemes.sort_by_key(|(name, _)| *name);
    schemes.first().map(|(_, scheme)| *scheme)
}

/// The approval that counts: the oldest for this request that names an existing one, which this is.
fn approval_of<'a>(key: &Value, around: &Around<'a>) -> Option<&'a Value> {
    let (namespace, _) = product_of(key);
    let request = request_name(key);
    around
        .approvals
        .iter()
        .filter(|approval| {
            approval["metadata"]["namespace"] == namespace.as_str()
                && approval["metadata"]["deletionTimestamp"].is_null()
                && approval["spec"]["apiKeyRequestRef"]["name"] == request.as_str()
        })
        .min_by_key(|approval| {
            let metadata = &approval["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap_or("").to_owned();
            (text("creationTimestamp"), text("name"))
        })
}

fn request(key: &Value) -> Value {
    let (namespace, name) = names(key);
    let (product_namespace, product) = product_of(key);
    let mut spec = json!({
        "apiProductRef": {"name": product}, "planTier": key["spec"]["planTier"],
        "useCase": key["spec"]["useCase"].as_str().unwrap_or(""), "requestedBy": key["spec"]["requestedBy"],
        "apiKeyRef": {"name": name, "namespace": namespace},
    });
    if let Some(expiry) = key["spec"].get("expiresAt") {
        spec["expiresAt"] = expiry.clone();
    }
    json!({
        "apiVersion": API_VERSION, "kind": "APIKeyRequest",
        "metadata": {"name": request_name(key), "namespace": product_namespace}, "spec": spec,
    })
}

/// Products that approve by themselves do so at once.
fn automatic(request: &Value, around: &Around<'_>) -> Option<Value> {
    if around.product?["spec"]["approvalMode"] != "automatic" {
        return None;
    }
    let name = request["metadata"]["name"].as_str().unwrap_or("");
    Some(json!({
        "apiVersion": API_VERSION, "kind": "APIKeyApproval",
        "metadata": {"name": format!("{name}-auto"), "namespace": request["metadata"]["namespace"]},
        "spec": {
            "apiKeyRequestRef": {"name": name}, "approved": true, "reviewedBy": "system",
            "reviewedAt": around.timestamp, "reason": "AutoApproved",
            "message": "Automatically approved based on APIProduct approval mode",
        },
    }))
}

fn status(key: &Value, around: &Around<'_>) -> Map<String, Value> {
    let mut status = Map::new();
    status.insert(
        "observedGeneration".to_owned(),
        key["metadata"]["generation"].clone(),
    );
    let Some(product) = around.product else {
        return status;
    };
    if let Some(hostname) = around.hostname {
        status.insert("apiHostname".to_owned(), Value::from(hostname));
    }
    if let Some(scheme) = api_key_scheme(product) {
        let mut shown = json!({"authenticationSpec": scheme["apiKey"]});
        if let Some(credentials) = scheme.get("credentials") {
            shown["credentials"] = credentials.clone();
        }
        status.insert("authScheme".to_owned(), shown);
    }
    let plans = product["status"]["discoveredPlans"].as_array();
    let plan = plans
        .into_iter()
        .flatten()
        .find(|plan| plan["tier"] == key["spec"]["planTier"]);
    if let Some(limits) = plan.and_then(|plan| plan.get("limits")) {
        status.insert("limits".to_owned(), limits.clone());
    }
    status
}

fn enforcement(key: &Value, around: &Around<'_>) -> Option<Value> {
    let (namespace, name) = names(key);
    let (product_namespace, product_name) = product_of(key);
    let scheme = api_key_scheme(around.product?)?;
    // What the controller says of a Secret counts more than what a selector of the same name would.
    let mut labels = scheme["apiKey"]["selector"]["matchLabels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (label, value) in [
        (ENFORCEMENT, "true"),
        ("devportal.kuadrant.io/apiproduct", product_name.as_str()),
        (
            "devportal.kuadrant.io/apiproduct-namespace",
            product_namespace.as_str(),
        ),
        ("devportal.kuadrant.io/apikey", name),
        ("devportal.kuadrant.io/apikey-namespace", namespace),
        MANAGED_BY,
    ] {
        labels.insert(label.to_owned(), Value::from(value));
    }
    let spec = &key["spec"];
    let mut annotations = json!({
        "secret.kuadrant.io/plan-id": spec["planTier"], "secret.kuadrant.io/user-id": spec["requestedBy"]["userId"],
    });
    if let Some(expiry) = spec.get("expiresAt") {
        annotations["secret.kuadrant.io/expires-at"] = expiry.clone();
    }
    Some(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": enforcement_name(key), "namespace": around.system_namespace,
            "labels": labels, "annotations": annotations,
        },
        "data": {API_KEY: around.secret?["data"][API_KEY]},
    }))
}

/// The `Valid` condition of an approval.
pub fn approval_condition(approval: &Value, request: Option<&Value>) -> Condition {
    let namespace = approval["metadata"]["namespace"].as_str().unwrap_or("");
    let name = approval["spec"]["apiKeyRequestRef"]["name"]
        .as_str()
        .unwrap_or("");
    let (is_true, reason, message) = match request {
        None => (
            false,
            "APIKeyRequestNotFound",
            format!("Referenced APIKeyRequest {namespace}/{name} not found"),
        ),
        Some(request) if !request["metadata"]["deletionTimestamp"].is_null() => (
            false,
            "APIKeyRequestDeleting",
            format!("Referenced APIKeyRequest {namespace}/{name} is being deleted"),
        ),
        Some(_) => (
            true,
            "Valid",
            format!("References existing APIKeyRequest {namespace}/{name}"),
        ),
    };
    Condition {
        r#type: "Valid",
        is_true,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests;
