//! The administrator's kubeconfig, and how it joins one that the user has already.

pub(crate) mod contexts;
pub(crate) mod files;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_apiserver::pki::Pair;
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_tenancy::navigation::WorkspaceUrl;
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

/// Our kubeconfig with one context, for one workspace, that has its name.
pub(crate) fn for_workspace(ours: &Value, workspace: &WorkspacePath) -> Option<Value> {
    let mut cluster = contexts::entry(ours, "clusters", NAME)?.clone();
    let mut context = contexts::entry(ours, "contexts", NAME)?.clone();
    let user = context["user"].as_str()?;
    let users = ours["users"]
        .as_array()?
        .iter()
        .filter(|entry| entry["name"] == user);
    let server = WorkspaceUrl::parse(cluster["server"].as_str()?)
        .ok()?
        .of(workspace);
    let users: Vec<&Value> = users.collect();
    let name = workspace.as_str();
    cluster["server"] = json!(server.to_string());
    context["cluster"] = json!(name);
    Some(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": users,
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }))
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
    refresh_workspaces(file, ours);
    let missing = missing(file, ours);
    merge(file, &missing);
}

/// Clusters that lead to workspaces of this server, as `fairway workspace use` makes them, trust what ours trusts.
fn refresh_workspaces(file: &mut Value, ours: &Value) {
    let Some(own) = contexts::entry(ours, "clusters", NAME) else {
        return;
    };
    let below = format!("{}/clusters/", own["server"].as_str().unwrap_or_default());
    let clusters = file.get_mut("clusters").and_then(Value::as_array_mut);
    for entry in clusters.into_iter().flatten() {
        let cluster = &mut entry["cluster"];
        let is_ours = cluster["server"]
            .as_str()
            .is_some_and(|it| it.starts_with(&below));
        if is_ours && cluster["certificate-authority-data"].is_string() {
            cluster["certificate-authority-data"] = own["certificate-authority-data"].clone();
        }
    }
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
    fn workspaces_of_this_server_are_refreshed_too() {
        let pair = Pair {
            certificate: "c".to_owned(),
            key: "k".to_owned(),
        };
        let mut file = make("https://a", "old", &pair);
        contexts::enter(&mut file, "https://a/clusters/root:w").unwrap();
        let other = json!({"server": "https://b/clusters/root:w", "certificate-authority-data": "other"});
        contexts::set_entry(&mut file, "clusters", "other", other.clone());
        refresh(&mut file, &make("https://a", "new", &pair));
        let current = contexts::entry(&file, "clusters", contexts::CURRENT).unwrap();
        assert_eq!(current["certificate-authority-data"], STANDARD.encode("new"));
        assert_eq!(contexts::entry(&file, "clusters", "other"), Some(&other));
        assert_eq!(file["current-context"], contexts::CURRENT);
    }

    #[test]
    fn a_kubeconfig_for_one_workspace() {
        let pair = Pair {
            certificate: "c".to_owned(),
            key: "k".to_owned(),
        };
        let mut file = make("https://a", "ca", &pair);
        contexts::enter(&mut file, "https://a/clusters/root:w").unwrap();
        let workspace = WorkspacePath::parse("root:acme").unwrap();
        let made = for_workspace(&file, &workspace).unwrap();
        assert_eq!(made["current-context"], "root:acme");
        assert_eq!(made["clusters"].as_array().unwrap().len(), 1);
        assert_eq!(
            made["clusters"][0]["cluster"]["server"],
            "https://a/clusters/root:acme"
        );
        assert_eq!(made["users"], file["users"]);
        assert_eq!(for_workspace(&json!({}), &workspace), None);
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
