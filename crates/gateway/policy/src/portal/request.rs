//! The request that stands for a key in the product's namespace, and the approvals that name it.
//!
//! An approval belongs to the request that its reviewer saw: it is bound to its UID by an owner reference. When a consumer
//! changes what was asked for, or makes another key of the same name, the request is made anew, so nothing that was
//! approved before counts for it.

use serde_json::{Value, json};

use super::names::{names, product_of, request_name};
use super::{API_VERSION, Around};
use crate::status::Condition;

/// By which a request says which APIKey it stands for. One of the same name that was made later is another one.
const UID: &str = "fairway.dev/api-key-uid";

/// The request as it should be.
pub(super) fn wanted(key: &Value) -> Value {
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
        "metadata": {
            "name": request_name(namespace, name), "namespace": product_namespace,
            "annotations": {UID: key["metadata"]["uid"]},
        },
        "spec": spec,
    })
}

/// Whether a request asks for what the key does, and for the same key.
pub(super) fn is_current(request: &Value, wanted: &Value) -> bool {
    request["spec"] == wanted["spec"]
        && request["metadata"]["annotations"][UID] == wanted["metadata"]["annotations"][UID]
        && request["metadata"]["deletionTimestamp"].is_null()
}

/// The request by which an approval is held, if any.
fn owner(approval: &Value) -> Option<&Value> {
    let owners = approval["metadata"]["ownerReferences"].as_array()?;
    let mut owners = owners.iter().filter(|owner| owner["kind"] == "APIKeyRequest");
    owners.next().map(|owner| &owner["uid"])
}

fn of_request<'a>(request: &Value, around: &Around<'a>) -> impl Iterator<Item = &'a Value> {
    let (namespace, name) = names(request);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    around.approvals.iter().copied().filter(move |approval| {
        approval["metadata"]["namespace"] == namespace.as_str()
            && approval["metadata"]["deletionTimestamp"].is_null()
            && approval["spec"]["apiKeyRequestRef"]["name"] == name.as_str()
    })
}

/// The names of approvals that no request holds yet.
pub(super) fn to_adopt(request: &Value, around: &Around<'_>) -> Vec<String> {
    let free = of_request(request, around).filter(|approval| owner(approval).is_none());
    free.map(|approval| names(approval).1.to_owned()).collect()
}

/// The approval that counts: the oldest of those that this request holds, or that none holds yet.
pub(super) fn approval<'a>(request: &Value, around: &Around<'a>) -> Option<&'a Value> {
    let uid = &request["metadata"]["uid"];
    of_request(request, around)
        .filter(|approval| owner(approval).is_none_or(|held_by| held_by == uid))
        .min_by_key(|approval| {
            let text = |field: &str| approval["metadata"][field].as_str().unwrap_or("").to_owned();
            (text("creationTimestamp"), text("name"))
        })
}

/// By which a request holds an approval: it goes with the request.
pub fn owner_reference(request: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "APIKeyRequest", "name": request["metadata"]["name"],
        "uid": request["metadata"]["uid"], "controller": true,
    })
}

/// Products that approve by themselves do so at once.
pub(super) fn automatic(request: &Value, around: &Around<'_>) -> Option<Value> {
    if around.product?["spec"]["approvalMode"] != "automatic" {
        return None;
    }
    let (namespace, name) = names(request);
    let own = format!("{}-auto", name.chars().take(248).collect::<String>());
    Some(json!({
        "apiVersion": API_VERSION, "kind": "APIKeyApproval",
        "metadata": {"name": own, "namespace": namespace, "ownerReferences": [owner_reference(request)]},
        "spec": {
            "apiKeyRequestRef": {"name": name}, "approved": true, "reviewedBy": "system",
            "reviewedAt": around.timestamp, "reason": "AutoApproved",
            "message": "Automatically approved based on APIProduct approval mode",
        },
    }))
}

/// The `Valid` condition of an approval.
pub fn approval_condition(approval: &Value, request: Option<&Value>) -> Condition {
    let namespace = names(approval).0;
    let name = approval["spec"]["apiKeyRequestRef"]["name"]
        .as_str()
        .unwrap_or("");
    let not = |reason, message| Condition {
        r#type: "Valid",
        is_true: false,
        reason,
        message,
    };
    let Some(request) = request else {
        let message = format!("Referenced APIKeyRequest {namespace}/{name} not found");
        return not("APIKeyRequestNotFound", message);
    };
    if !request["metadata"]["deletionTimestamp"].is_null() {
        let message = format!("Referenced APIKeyRequest {namespace}/{name} is being deleted");
        return not("APIKeyRequestDeleting", message);
    }
    if owner(approval).is_some_and(|held_by| *held_by != request["metadata"]["uid"]) {
        let message = format!(
            "APIKeyRequest {namespace}/{name} has changed since; look at it and make another approval"
        );
        return not("APIKeyRequestChanged", message);
    }
    Condition {
        r#type: "Valid",
        is_true: true,
        reason: "Valid",
        message: format!("References existing APIKeyRequest {namespace}/{name}"),
    }
}
