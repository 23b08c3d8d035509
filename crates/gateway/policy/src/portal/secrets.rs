//! The Secrets of the portal: the one that lets a key in, and the consumer's, which may be made for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::names::{enforcement_name, label, names, product_of, secret_name};
use super::{API_KEY, ENFORCEMENT, MANAGED_BY};
use crate::labels::LabelSelector;

/// By which a Secret in the system's namespace says whose key it holds: `namespace/name`. Labels are too short for some names.
pub const KEY_OF: &str = "fairway.dev/api-key";

/// The first authentication by API keys of a product, by name.
pub(super) fn api_key_scheme(product: &Value) -> Option<&Value> {
    let authentication = product["status"]["discoveredAuthScheme"]["authentication"].as_object()?;
    let schemes = authentication.iter().filter(|(_, one)| one["apiKey"].is_object());
    schemes.min_by_key(|(name, _)| *name).map(|(_, scheme)| scheme)
}

/// The labels of the Secret that lets a key in. What the controller says of it counts more than a selector's word of the same
/// name.
fn labels(key: &Value, scheme: &Value) -> Map<String, Value> {
    let (namespace, name) = names(key);
    let (product_namespace, product_name) = product_of(key);
    let selected = scheme["apiKey"]["selector"]["matchLabels"].as_object();
    let mut labels = selected.cloned().unwrap_or_default();
    for (one, value) in [
        (ENFORCEMENT, "true".to_owned()),
        ("devportal.kuadrant.io/apiproduct", label(&product_name)),
        (
            "devportal.kuadrant.io/apiproduct-namespace",
            label(&product_namespace),
        ),
        ("devportal.kuadrant.io/apikey", label(name)),
        ("devportal.kuadrant.io/apikey-namespace", label(namespace)),
        (MANAGED_BY.0, MANAGED_BY.1.to_owned()),
    ] {
        labels.insert(one.to_owned(), Value::from(value));
    }
    labels
}

/// Whether Secrets that are made for a product's keys can be those that its AuthPolicy selects.
pub(super) fn is_selectable(key: &Value, scheme: &Value) -> bool {
    let selector = match &scheme["apiKey"]["selector"] {
        Value::Null => LabelSelector::default(),
        selector => match serde_json::from_value(selector.clone()) {
            Ok(selector) => selector,
            Err(_) => return false,
        },
    };
    let labels: BTreeMap<String, String> = labels(key, scheme)
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
        .collect();
    selector.matches(&labels)
}

/// The Secret that lets a key in.
pub(super) fn enforcement(key: &Value, product: &Value, secret: &Value, namespace: &str) -> Option<Value> {
    let (own_namespace, name) = names(key);
    let spec = &key["spec"];
    let mut annotations = json!({
        "secret.kuadrant.io/plan-id": spec["planTier"],
        "secret.kuadrant.io/user-id": spec["requestedBy"]["userId"],
        KEY_OF: format!("{own_namespace}/{name}"),
    });
    if let Some(expiry) = spec.get("expiresAt") {
        annotations["secret.kuadrant.io/expires-at"] = expiry.clone();
    }
    let value = secret["data"][API_KEY].as_str().filter(|text| !text.is_empty())?;
    Some(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": enforcement_name(own_namespace, name), "namespace": namespace,
            "labels": labels(key, api_key_scheme(product)?), "annotations": annotations,
        },
        "data": {API_KEY: value},
    }))
}

/// The consumer's Secret, for a key that brings none; `value` is the key. It goes with the APIKey.
pub fn consumers_secret(key: &Value, value: &str) -> Value {
    let (namespace, name) = names(key);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": secret_name(key), "namespace": namespace,
            "labels": {"devportal.kuadrant.io/apikey": label(name)},
            "ownerReferences": [{
                "apiVersion": super::API_VERSION, "kind": "APIKey", "name": name, "uid": key["metadata"]["uid"],
            }],
        },
        "stringData": {API_KEY: value},
    })
}

/// Whether a Secret was made for this very key.
pub(super) fn is_made_for(secret: &Value, key: &Value) -> bool {
    let owners = secret["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| owner["kind"] == "APIKey" && owner["uid"] == key["metadata"]["uid"])
}
