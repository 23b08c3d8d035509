//! The developer portal: an APIKey asks for access to an APIProduct, somebody or the product's own rule approves it, and a
//! Secret lets the key in.
//!
//! ```text
//! APIKey (consumer) ── APIKeyRequest (owner's namespace) ── APIKeyApproval (a person, or "-auto") ── Secret for the AuthPolicy
//! ```
//!
//! What counts is what people may write: the key in the consumer's namespace, the approval in the owner's. No decision reads
//! a status of either, which others might have written.

mod document;
mod names;
mod product;
mod request;
mod secrets;

use serde_json::{Map, Value, json};

pub use document::{Fetched, LARGEST, Told, Wanted, told, wanted, without_document};
pub use names::{enforcement_name, names, product_of, referenced_secret, request_name, secret_name};
pub use product::{Discovered, discover, is_accepted, product_status};
pub use request::{approval_condition, owner_reference};
pub use secrets::{KEY_OF, consumers_secret};

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
    /// The consumer's Secret: [`secret_name`] says which.
    pub secret: Option<&'a Value>,
    /// APIKeyRequests that say they stand for it, in any namespace.
    pub requests: &'a [&'a Value],
    /// APIKeyApprovals in the product's namespace.
    pub approvals: &'a [&'a Value],
    /// The first host name of the product's route.
    pub hostname: Option<&'a str>,
    /// Whether whoever asked for it is a user of a realm of this installation, and is gone or disabled.
    pub requester_is_out: bool,
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
    /// Approvals that the request is to hold from now on, before anything happens to it.
    pub adopted: Vec<String>,
    /// Requests that are to be deleted, by namespace and name.
    pub surplus: Vec<(String, String)>,
    /// A request that is to be made in the product's namespace.
    pub request: Option<Value>,
    /// An approval that is to be made.
    pub approval: Option<Value>,
    /// What becomes of a consumer's Secret that was made for them.
    pub own: Own,
    /// The Secret that is to exist; none: it is to be deleted.
    pub secret: Option<Value>,
    /// Seconds after which to look again.
    pub again_in: Option<i64>,
}

/// What becomes of the consumer's Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// It is there, or it is the consumer's own.
    Leave,
    /// A key is to be made.
    Make,
    /// The key is of no use any more: who is approved again gets another one.
    Remove,
}

/// Decides about one APIKey.
pub fn decide(key: &Value, around: &Around<'_>) -> Decided {
    let wanted = request::wanted(key);
    let place = names(&wanted);
    let there = (around.requests.iter().copied()).find(|request| names(request) == place);
    let current = there.filter(|there| request::is_current(there, &wanted));
    let failure = failure(key, around);
    let is_orphan = is_without_product(around);
    let condition = match &failure {
        Some((reason, message)) => is("Failed", reason, message.clone()),
        None => judged(key, current, around),
    };
    let is_approved = condition.r#type == "Approved";
    // What fails for a while must not cost the approval: the request stays as long as there is a product.
    let surplus = around.requests.iter().filter(|request| {
        let is_wanted = current.is_some_and(|current| std::ptr::eq(**request, current));
        !is_wanted || is_orphan
    });
    let surplus = surplus
        .map(|request| names(request))
        .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    let secret = match (is_approved, around.product, around.secret) {
        (true, Some(product), Some(secret)) => {
            secrets::enforcement(key, product, secret, around.system_namespace)
        }
        _ => None,
    };
    Decided {
        status: status(key, around, is_approved),
        adopted: there.map_or_else(Vec::new, |there| request::to_adopt(there, around)),
        surplus: surplus.collect(),
        approval: match (current, condition.r#type) {
            (Some(current), "Pending") => request::automatic(current, around),
            _ => None,
        },
        // One that is being deleted has to be gone first.
        request: (failure.is_none() && there.is_none()).then_some(wanted),
        own: own(key, around, &condition),
        secret,
        again_in: expiry(key)
            .map(|at| at.saturating_sub(around.now))
            .filter(|left| *left > 0 && is_approved),
        condition,
    }
}

fn is(r#type: &'static str, reason: &'static str, message: String) -> Condition {
    Condition {
        r#type,
        is_true: true,
        reason,
        message,
    }
}

/// What the approval of a request says.
fn judged(key: &Value, request: Option<&Value>, around: &Around<'_>) -> Condition {
    let Some(approval) = request.and_then(|request| request::approval(request, around)) else {
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

fn is_without_product(around: &Around<'_>) -> bool {
    let leaves = |product: &Value| !product["metadata"]["deletionTimestamp"].is_null();
    around.product.is_none_or(leaves)
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
    if let Some(failure) = failure_of_secret(key, around) {
        return Some(failure);
    }
    if around.requester_is_out {
        let user = key["spec"]["requestedBy"]["userId"].as_str().unwrap_or("");
        let message = format!(
            "{user}, who asked for the key, is disabled or gone; it counts again once the user is enabled, or once \
             spec.requestedBy names somebody else and the owner of the API approves that"
        );
        return Some(("RequesterDisabled", message));
    }
    if !product["status"]["discoveredAuthScheme"].is_object() {
        let message = format!("APIProduct {product_key} does not have a discovered authentication scheme");
        return Some(("AuthSchemeNotFound", message));
    }
    let Some(scheme) = secrets::api_key_scheme(product) else {
        let message =
            format!("APIProduct {product_key} does not have an API key authentication scheme configured");
        return Some(("APIKeyAuthSchemeNotFound", message));
    };
    if !secrets::is_selectable(key, scheme) {
        let message = format!(
            "the AuthPolicy of APIProduct {product_key} selects keys by more than matchLabels, so none that is made here would \
             be selected; select them by matchLabels alone"
        );
        return Some(("SelectorNotSupported", message));
    }
    None
}

fn failure_of_secret(key: &Value, around: &Around<'_>) -> Option<(&'static str, String)> {
    let place = format!("{}/{}", names(key).0, secret_name(key));
    if referenced_secret(key).is_none() {
        // Whoever may make Secrets there must not choose the key of somebody else.
        let is_foreign = (around.secret).is_some_and(|secret| !secrets::is_made_for(secret, key));
        let message = format!(
            "Secret {place} is in the place of the key that is to be made; delete it, or name a Secret in spec.secretRef"
        );
        return is_foreign.then_some(("SecretExists", message));
    }
    let Some(secret) = around.secret else {
        let message = format!("Referenced secret {place} not found");
        return Some(("SecretNotFound", message));
    };
    match secret["data"][API_KEY].as_str() {
        None => {
            let message = format!("Secret {place} does not contain \"{API_KEY}\" entry");
            Some(("SecretAPIKeyNotFound", message))
        }
        Some("") => {
            let message = format!("Secret {place} has empty \"{API_KEY}\" entry");
            Some(("SecretAPIKeyEmpty", message))
        }
        Some(_) => None,
    }
}

/// A key is made when it is approved, and thrown away when it is no more.
fn own(key: &Value, around: &Around<'_>, condition: &Condition) -> Own {
    if referenced_secret(key).is_some() {
        return Own::Leave;
    }
    match (condition.r#type, around.secret) {
        ("Approved", None) => Own::Make,
        ("Pending" | "Denied" | "Expired", Some(_)) => Own::Remove,
        (_, Some(secret)) if is_without_product(around) && secrets::is_made_for(secret, key) => Own::Remove,
        _ => Own::Leave,
    }
}

fn status(key: &Value, around: &Around<'_>, is_approved: bool) -> Map<String, Value> {
    let mut status = Map::new();
    let generation = key["metadata"]["generation"].clone();
    status.insert("observedGeneration".to_owned(), generation);
    if is_approved && referenced_secret(key).is_none() {
        let place = json!({"name": secret_name(key), "key": API_KEY});
        status.insert("secretRef".to_owned(), place);
    }
    let Some(product) = around.product else {
        return status;
    };
    if let Some(hostname) = around.hostname {
        status.insert("apiHostname".to_owned(), Value::from(hostname));
    }
    if let Some(scheme) = secrets::api_key_scheme(product) {
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

#[cfg(test)]
mod tests;
