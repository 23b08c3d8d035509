//! The administrator's kubeconfig, and how it joins one that the user has already.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_apiserver::pki::Pair;
use serde_json::{Value, json};

/// The name of our cluster, user and context.
pub(crate) const NAME: &str = "fairway";

/// A kubeconfig with one context.
pub(crate) fn make(server: &str, authority: &str, admin: &Pair) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": "fairway-admin", "user": {
            "client-certificate-data": STANDARD.encode(&admin.certificate),
            "client-key-data": STANDARD.encode(&admin.key),
        }}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": "fairway-admin"}}],
        "current-context": NAME,
    })
}

/// Puts our entries into another kubeconfig. Only entries of our own names are replaced, and the current context is set
/// only where there is none.
pub(crate) fn merge(into: &mut Value, ours: &Value) {
    if !into.is_object() {
        *into = json!({"apiVersion": "v1", "kind": "Config"});
    }
    for section in ["clusters", "users", "contexts"] {
        if !into[section].is_array() {
            into[section] = json!([]);
        }
        for entry in ours[section].as_array().into_iter().flatten() {
            let Some(entries) = into[section].as_array_mut() else {
                continue;
            };
            match entries.iter_mut().find(|e| e["name"] == entry["name"]) {
                Some(place) => *place = entry.clone(),
                None => entries.push(entry.clone()),
            }
        }
    }
    if into["current-context"].as_str().unwrap_or("").is_empty() {
        into["current-context"] = ours["current-context"].clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_leaves_what_is_there() {
        let ours = json!({
            "clusters": [{"name": "fairway", "cluster": {"server": "new"}}],
            "users": [], "contexts": [], "current-context": "fairway",
        });
        let mut theirs = json!({
            "clusters": [{"name": "work", "cluster": {"server": "w"}}, {"name": "fairway", "cluster": {"server": "old"}}],
            "current-context": "work",
            "preferences": {"colors": true},
        });
        merge(&mut theirs, &ours);
        assert_eq!(theirs["clusters"][0]["cluster"]["server"], "w");
        assert_eq!(theirs["clusters"][1]["cluster"]["server"], "new");
        assert_eq!(theirs["current-context"], "work");
        assert_eq!(theirs["preferences"]["colors"], true);
        let mut empty = Value::Null;
        merge(&mut empty, &ours);
        assert_eq!(empty["current-context"], "fairway");
    }
}
