//! Going from one workspace to another in a kubeconfig: the contexts that kcp's `kubectl ws` writes, so that both can be used
//! on one file.
//!
//! The present workspace is the context and cluster `workspace.kcp.io/current`, the one before it
//! `workspace.kcp.io/previous`. Everything else in the file, known or not, stays as it is.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// Context and cluster of the workspace that one is in.
pub(crate) const CURRENT: &str = "workspace.kcp.io/current";
/// Context and cluster of the workspace that one was in before.
pub(crate) const PREVIOUS: &str = "workspace.kcp.io/previous";

/// The entry of a name in `clusters`, `contexts` or `users`, without the name.
pub(crate) fn entry<'a>(config: &'a Value, section: &str, name: &str) -> Option<&'a Value> {
    let entries = config[section].as_array()?;
    let found = entries.iter().find(|entry| entry["name"] == name)?;
    found.get(body_of(section))
}

fn body_of(section: &str) -> &'static str {
    match section {
        "clusters" => "cluster",
        "contexts" => "context",
        _ => "user",
    }
}

/// Puts an entry in place; what else the old one of that name has beside its body is kept.
pub(crate) fn set_entry(config: &mut Value, section: &str, name: &str, body: Value) {
    if !config[section].is_array() {
        config[section] = json!([]);
    }
    let Some(entries) = config[section].as_array_mut() else {
        return;
    };
    match entries.iter_mut().find(|entry| entry["name"] == name) {
        Some(entry) => entry[body_of(section)] = body,
        None => entries.push(json!({body_of(section): body, "name": name})),
    }
}

/// The current context, and the name and address of its cluster.
struct Present {
    context: Value,
    cluster_name: String,
    cluster: Value,
}

fn present(config: &Value) -> anyhow::Result<Present> {
    let name = config["current-context"].as_str().unwrap_or_default();
    if name.is_empty() {
        bail!("the kubeconfig has no current context; choose one with `kubectl config use-context NAME`");
    }
    let context = entry(config, "contexts", name)
        .with_context(|| format!("the current context {name:?} is not in the kubeconfig"))?;
    let cluster_name = context["cluster"].as_str().unwrap_or_default().to_owned();
    let cluster = entry(config, "clusters", &cluster_name).with_context(|| {
        format!("the cluster {cluster_name:?} of context {name:?} is not in the kubeconfig")
    })?;
    Ok(Present {
        context: context.clone(),
        cluster_name,
        cluster: cluster.clone(),
    })
}

/// The address of the server that the current context means.
pub(crate) fn current_server(config: &Value) -> anyhow::Result<String> {
    let server = present(config)?.cluster["server"].clone();
    let server = server.as_str().unwrap_or_default();
    if server.is_empty() {
        bail!("the cluster of the current context has no server");
    }
    Ok(server.to_owned())
}

/// The address of the server that a context means.
pub(crate) fn server_of(config: &Value, name: &str) -> anyhow::Result<String> {
    let context = entry(config, "contexts", name).with_context(|| {
        let all = config["contexts"].as_array().into_iter().flatten();
        let names: Vec<&str> = all.filter_map(|it| it["name"].as_str()).collect();
        format!(
            "context {name:?} is not in the kubeconfig; there are: {}",
            names.join(", ")
        )
    })?;
    let cluster = context["cluster"].as_str().unwrap_or_default();
    let server = entry(config, "clusters", cluster).and_then(|it| it["server"].as_str());
    match server {
        Some(server) if !server.is_empty() => Ok(server.to_owned()),
        _ => bail!("the cluster {cluster:?} of context {name:?} has no server"),
    }
}

/// Makes a workspace the current one, and the current one the previous. User, certificates, proxy and namespace stay.
pub(crate) fn enter(config: &mut Value, server: &str) -> anyhow::Result<()> {
    let was = present(config)?;
    remember(config, &was);
    let mut cluster = was.cluster;
    cluster["server"] = json!(server);
    let mut context = was.context;
    context["cluster"] = json!(CURRENT);
    set_entry(config, "clusters", CURRENT, cluster);
    set_entry(config, "contexts", CURRENT, context);
    config["current-context"] = json!(CURRENT);
    Ok(())
}

/// Goes back to where one was before `enter`, and says to what server.
pub(crate) fn go_back(config: &mut Value) -> anyhow::Result<String> {
    let was = present(config)?;
    let Some(mut context) = entry(config, "contexts", PREVIOUS).cloned() else {
        bail!("there is no workspace to go back to: the kubeconfig has no context {PREVIOUS:?}");
    };
    let name = context["cluster"].as_str().unwrap_or_default().to_owned();
    let cluster = entry(config, "clusters", &name)
        .cloned()
        .with_context(|| format!("the cluster {name:?} of context {PREVIOUS:?} is not in the kubeconfig"))?;
    remember(config, &was);
    if name == PREVIOUS {
        context["cluster"] = json!(CURRENT);
        set_entry(config, "clusters", CURRENT, cluster);
    }
    set_entry(config, "contexts", CURRENT, context);
    config["current-context"] = json!(CURRENT);
    current_server(config)
}

/// Writes the present place down as the previous one. A context of the user's own keeps its cluster.
fn remember(config: &mut Value, was: &Present) {
    let mut context = was.context.clone();
    if was.cluster_name == CURRENT {
        context["cluster"] = json!(PREVIOUS);
        set_entry(config, "clusters", PREVIOUS, was.cluster.clone());
    }
    set_entry(config, "contexts", PREVIOUS, context);
}

/// Adds a context of its own name for a workspace, with the current context's user.
pub(crate) fn add(config: &mut Value, name: &str, server: &str, overwrite: bool) -> anyhow::Result<()> {
    if entry(config, "contexts", name).is_some() && !overwrite {
        bail!("the kubeconfig has a context {name:?} already; choose another name");
    }
    let was = present(config)?;
    let (mut cluster, mut context) = (was.cluster, was.context);
    cluster["server"] = json!(server);
    context["cluster"] = json!(name);
    set_entry(config, "clusters", name, cluster);
    set_entry(config, "contexts", name, context);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {"colors": true}, "x-own": [1],
            "clusters": [
                {"name": "c", "cluster": {"server": "https://h/clusters/root", "proxy-url": "p", "extensions": []}},
                {"name": "other", "cluster": {"server": "https://o"}},
            ],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [
                {"name": "mine", "context": {"cluster": "c", "user": "u", "namespace": "n"}},
                {"name": "work", "context": {"cluster": "other", "user": "u"}},
            ],
            "current-context": "mine",
        })
    }

    fn servers(config: &Value) -> (String, Option<String>) {
        let previous = entry(config, "contexts", PREVIOUS).map(|context| {
            let name = context["cluster"].as_str().unwrap();
            entry(config, "clusters", name).unwrap()["server"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        (current_server(config).unwrap(), previous)
    }

    #[test]
    fn going_there_and_back_again() {
        let mut now = config();
        let at = |name: &str| format!("https://h/clusters/{name}");
        assert_eq!(servers(&now), (at("root"), None));
        enter(&mut now, &at("root:a")).unwrap();
        assert_eq!(servers(&now), (at("root:a"), Some(at("root"))));
        let context = entry(&now, "contexts", CURRENT).unwrap();
        assert_eq!(
            *context,
            json!({"cluster": CURRENT, "user": "u", "namespace": "n"})
        );
        let previous = entry(&now, "contexts", PREVIOUS).unwrap();
        assert_eq!(previous["cluster"], "c", "the user's own cluster is not copied");
        assert_eq!(entry(&now, "clusters", CURRENT).unwrap()["proxy-url"], "p");
        enter(&mut now, &at("root:a:b")).unwrap();
        assert_eq!(servers(&now), (at("root:a:b"), Some(at("root:a"))));
        for (here, there) in [
            ("root:a", "root:a:b"),
            ("root:a:b", "root:a"),
            ("root:a", "root:a:b"),
        ] {
            assert_eq!(go_back(&mut now).unwrap(), at(here));
            assert_eq!(servers(&now), (at(here), Some(at(there))));
        }
        // What was there is there.
        let before = config();
        for section in ["users", "preferences", "x-own"] {
            assert_eq!(now[section], before[section]);
        }
        for (section, name) in [
            ("clusters", "c"),
            ("clusters", "other"),
            ("contexts", "mine"),
            ("contexts", "work"),
        ] {
            assert_eq!(
                entry(&now, section, name),
                entry(&before, section, name),
                "{name}"
            );
        }
    }

    #[test]
    fn going_back_to_a_context_of_the_users_own() {
        let mut now = config();
        enter(&mut now, "https://h/clusters/root:a").unwrap();
        now["current-context"] = json!("work");
        enter(&mut now, "https://o/clusters/root:b").unwrap();
        assert_eq!(go_back(&mut now).unwrap(), "https://o");
        assert_eq!(entry(&now, "contexts", CURRENT).unwrap()["cluster"], "other");
        assert_eq!(go_back(&mut now).unwrap(), "https://o/clusters/root:b");
    }

    #[test]
    fn what_is_missing_is_told_and_nothing_is_changed() {
        let broken = |edit: fn(&mut Value)| {
            let mut config = config();
            edit(&mut config);
            config
        };
        for (config, word) in [
            (broken(|c| c["current-context"] = json!("")), "no current context"),
            (broken(|c| c["current-context"] = json!("gone")), "\"gone\""),
            (broken(|c| c["clusters"] = json!([])), "the cluster \"c\""),
            (broken(|c| c["contexts"] = json!("text")), "\"mine\""),
            (json!(null), "no current context"),
        ] {
            let mut now = config.clone();
            let error = enter(&mut now, "https://x").unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
            assert!(go_back(&mut now).is_err());
            assert_eq!(now, config);
        }
        let mut now = config();
        let error = go_back(&mut now).unwrap_err().to_string();
        assert!(error.contains("no workspace to go back to"), "{error}");
        assert_eq!(now, config());
    }

    #[test]
    fn a_context_of_its_own_name() {
        let mut now = config();
        add(&mut now, "acme", "https://h/clusters/root:acme", false).unwrap();
        assert_eq!(now["current-context"], "mine");
        assert_eq!(entry(&now, "contexts", "acme").unwrap()["user"], "u");
        assert!(add(&mut now, "acme", "https://x", false).is_err());
        add(&mut now, "acme", "https://x", true).unwrap();
        assert_eq!(entry(&now, "clusters", "acme").unwrap()["server"], "https://x");
    }
}
