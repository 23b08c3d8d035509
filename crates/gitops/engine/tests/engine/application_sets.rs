//! ApplicationSets: what each generator yields, what becomes of the Applications, and what the set says.

mod generators;
mod life;
mod rollouts;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{REPO, World};

const SETS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

/// A set with a template in Go's form: an Application for each `.name`, of the directory `apps/NAME`, that syncs by itself.
fn set(name: &str, generators: Value, more: Value) -> Value {
    let mut spec = json!({
        "goTemplate": true,
        "goTemplateOptions": ["missingkey=error"],
        "template": {
            "metadata": {"name": "{{ .name }}"},
            "spec": {
                "project": "default",
                "source": {"repoURL": REPO, "path": "apps/{{ .name }}", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
                "syncPolicy": {"automated": {"prune": true}},
            },
        },
    });
    spec["generators"] = generators;
    laid_over(&mut spec, more);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": "argocd"}, "spec": spec,
    })
}

/// Puts fields into an object.
fn laid_over(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// A list generator of names.
fn list(names: &[&str]) -> Value {
    let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!([{"list": {"elements": elements}}])
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What a condition of a set says: status, reason, message.
fn condition(set: &Value, kind: &str) -> (String, String, String) {
    let all = set["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.into_iter().find(|it| it["type"] == kind);
    let word = |pointer: &str| found.map_or("", |it| text(it, pointer)).to_owned();
    (word("/status"), word("/reason"), word("/message"))
}

impl World {
    async fn set(&self, set: Value) {
        assert!(self.api.create(SETS, &set).await.unwrap());
    }

    async fn get_set(&self, name: &str) -> Value {
        let found = self.api.get(&format!("{SETS}/{name}")).await.unwrap();
        found.unwrap_or_default()
    }

    async fn patch_set(&self, name: &str, patch: Value) {
        self.api.merge(&format!("{SETS}/{name}"), &patch).await.unwrap();
    }

    /// The names of all Applications.
    async fn names(&self) -> Vec<String> {
        let all = self.api.list(APPLICATIONS).await.unwrap();
        let mut names: Vec<String> = all
            .iter()
            .map(|it| text(it, "/metadata/name").to_owned())
            .collect();
        names.sort();
        names
    }

    /// Waits until there are exactly these Applications.
    async fn until_names(&self, expected: &[&str]) {
        let begun = Instant::now();
        loop {
            let names = self.names().await;
            if names == expected {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{names:?} instead of {expected:?}; {}",
                self.api.list(SETS).await.unwrap()[0]["status"]
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a set is as wanted, and returns it.
    async fn until_set(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get_set(name).await;
            if holds(&found) {
                return found;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{name}: not {what}: {}",
                serde_json::to_string_pretty(&found["status"]).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until a set is up to date.
    async fn up_to_date(&self, name: &str) -> Value {
        self.until_set(name, "up to date", |set| {
            condition(set, "ResourcesUpToDate").0 == "True"
        })
        .await
    }

    /// Waits until a set says that something is wrong, with these words in it.
    async fn wrong(&self, name: &str, words: &str) -> Value {
        self.until_set(name, words, |set| {
            let (status, _, message) = condition(set, "ErrorOccurred");
            status == "True" && message.contains(words)
        })
        .await
    }
}
