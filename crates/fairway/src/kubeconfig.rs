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

/// Puts our entries right and leaves everything else as it is: other entries, and what somebody has added to ours (a
/// namespace in the context, a proxy). The current context is set only where there is none.
pub(crate) fn refresh(file: &mut Value, ours: &Value) {
    for (section, body) in [
        ("clusters", "cluster"),
        ("users", "user"),
        ("contexts", "context"),
    ] {
        for entry in ours[section].as_array().into_iter().flatten() {
            let old = file
                .get_mut(section)
                .and_then(Value::as_array_mut)
                .and_then(|all| all.iter_mut().find(|e| e["name"] == entry["name"]));
            if let Some(Value::Object(old)) = old.map(|e| &mut e[body])
                && let Some(new) = entry[body].as_object()
            {
                for (key, value) in new {
                    old.insert(key.clone(), value.clone());
                }
                // A file beside the data would be taken in its stead.
                for file in ["certificate-authority", "client-certificate", "client-key"] {
                    if new.contains_key(&format!("{file}-data")) {
                        old.shift_remove(file);
                    }
                }
            }
        }
    }
    let missing = missing(file, ours);
    merge(file, &missing);
}

/// Those of our entries that a file lacks.
fn missing(file: &Value, ours: &Value) -> Value {
    let mut left = ours.clone();
    for section in ["clusters", "users", "contexts"] {
        let there = file[section].as_array().cloned().unwrap_or_default();
        if let Some(entries) = left[section].as_array_mut() {
            entries.retain(|e| !there.iter().any(|t| t["name"] == e["name"]));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshing_changes_our_fields_only() {
        let pair = |text: &str| Pair {
            certificate: text.to_owned(),
            key: text.to_owned(),
        };
        let mut file = make("https://a", "old", &pair("old"));
        file["contexts"][0]["context"]["namespace"] = json!("harbour");
        file["clusters"][0]["cluster"]["certificate-authority"] = json!("/a/file");
        let other = json!({"name": "work", "user": {"token": "t"}});
        file["users"].as_array_mut().unwrap().insert(0, other.clone());
        file["current-context"] = json!("work");
        refresh(&mut file, &make("https://b", "new", &pair("new")));
        assert_eq!(file["users"][0], other);
        assert_eq!(
            file["users"][1]["user"]["client-key-data"],
            STANDARD.encode("new")
        );
        assert_eq!(file["clusters"][0]["cluster"]["server"], "https://b");
        assert!(
            file["clusters"][0]["cluster"]
                .get("certificate-authority")
                .is_none()
        );
        assert_eq!(file["contexts"][0]["context"]["namespace"], "harbour");
        assert_eq!(file["current-context"], "work");
        let mut none = Value::Null;
        let ours = make("https://b", "new", &pair("new"));
        refresh(&mut none, &ours);
        assert_eq!(none, ours);
    }

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
