//! Tombstones: which are meant, how they are listed, and what comes back.

use fairway_gitops_sync::annotation::{self, INSTALLATION_ID, TRACKING_ID};
use fairway_gitops_sync::tracking::DEFAULT_LABEL;
use jiff::Timestamp;
use serde_json::Value;

use crate::field::text;
use crate::table::Table;
use crate::time::age;

/// Which tombstones are meant.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// `KIND/NAME`, or names of tombstones; none: all.
    pub names: Vec<String>,
    /// The namespace that the object was in.
    pub namespace: Option<String>,
    /// The Application that it belonged to: `NAME` or `NAMESPACE/NAME`.
    pub application: Option<String>,
}

/// Those that are meant. Of one object that was deleted several times, the last counts, unless the tombstone is named.
pub fn chosen<'v>(all: &'v [Value], wanted: &Wanted) -> Vec<&'v Value> {
    let mut found: Vec<&Value> = all
        .iter()
        .filter(|stone| {
            let application = text(stone, "/spec/application");
            let of_application = wanted.application.as_deref().is_none_or(|named| {
                named == application || application.split_once('/').is_some_and(|(_, name)| name == named)
            });
            let there = text(stone, "/spec/object/metadata/namespace");
            let of_namespace = wanted.namespace.as_deref().is_none_or(|named| named == there);
            let is_named = wanted.names.is_empty() || wanted.names.iter().any(|name| fits(stone, name));
            of_application && of_namespace && is_named
        })
        .collect();
    found.sort_by_key(|stone| std::cmp::Reverse(text(stone, "/spec/deletedAt").to_owned()));
    let mut seen = Vec::new();
    found.retain(|stone| {
        let by_name = wanted
            .names
            .iter()
            .any(|name| name == text(stone, "/metadata/name"));
        let object = &stone["spec"]["object"];
        let key = (
            object["apiVersion"].clone(),
            object["kind"].clone(),
            object["metadata"]["namespace"].clone(),
            object["metadata"]["name"].clone(),
        );
        let is_first = !seen.contains(&key);
        seen.push(key);
        is_first || by_name
    });
    found
}

fn fits(stone: &Value, name: &str) -> bool {
    if text(stone, "/metadata/name") == name {
        return true;
    }
    let Some((kind, object)) = name.split_once('/') else {
        return false;
    };
    let own = text(stone, "/spec/object/kind").to_lowercase();
    let kind = kind.to_lowercase();
    // `virtualmachine`, `virtualmachines`, and with their group as kubectl takes it.
    let kind = kind.split('.').next().unwrap_or(&kind);
    let is_kind =
        own == kind || kind.strip_suffix('s') == Some(&own) || kind.strip_suffix("es") == Some(&own);
    is_kind && text(stone, "/spec/object/metadata/name") == object
}

/// What comes back: the object, and no Application's unless the owner is kept.
pub fn restored(stone: &Value, keep_owner: bool) -> Value {
    let mut object = stone["spec"]["object"].clone();
    if keep_owner {
        return object;
    }
    let is_marked = annotation::has(&object, TRACKING_ID);
    for name in [TRACKING_ID, INSTALLATION_ID] {
        annotation::remove(&mut object, name);
    }
    // Where labels mark, the label goes; elsewhere it is the author's.
    let (_, application) = text(stone, "/spec/application")
        .split_once('/')
        .unwrap_or_default();
    if !is_marked && annotation::label(&object, DEFAULT_LABEL) == application {
        annotation::remove_label(&mut object, DEFAULT_LABEL);
    }
    object
}

/// A list for people.
pub fn table(stones: &[&Value], now: Timestamp) -> String {
    let mut table = Table::new([
        "KIND",
        "NAMESPACE",
        "NAME",
        "APPLICATION",
        "DELETED",
        "EXPIRES",
        "TOMBSTONE",
    ]);
    for stone in stones {
        table.line([
            text(stone, "/spec/object/kind").to_owned(),
            text(stone, "/spec/object/metadata/namespace").to_owned(),
            text(stone, "/spec/object/metadata/name").to_owned(),
            text(stone, "/spec/application").to_owned(),
            format!("{} ago", age(text(stone, "/spec/deletedAt"), now)),
            text(stone, "/spec/expiresAt").to_owned(),
            text(stone, "/metadata/name").to_owned(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stone(name: &str, kind: &str, object: &str, application: &str, at: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"application": application, "deletedAt": at, "expiresAt": "later",
            "object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": object, "namespace": "shop",
                "annotations": {"argocd.argoproj.io/tracking-id": "x", "own": "1"},
                "labels": {"app.kubernetes.io/instance": "web"}}}}})
    }

    #[test]
    fn what_is_meant() {
        let all = [
            stone("a-1", "ConfigMap", "a", "argocd/web", "2026-01-01T00:00:00Z"),
            stone("a-2", "ConfigMap", "a", "argocd/web", "2026-01-02T00:00:00Z"),
            stone("b-1", "Ingress", "b", "argocd/other", "2026-01-01T00:00:00Z"),
        ];
        let names = |names: &[&str], namespace: Option<&str>, application: Option<&str>| -> Vec<String> {
            let wanted = Wanted {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                namespace: namespace.map(str::to_owned),
                application: application.map(str::to_owned),
            };
            let found = chosen(&all, &wanted);
            found
                .iter()
                .map(|stone| text(stone, "/metadata/name").to_owned())
                .collect()
        };
        for (words, namespace, application, expected) in [
            (&[][..], None, None, &["a-2", "b-1"][..]),
            (&["configmap/a"], None, None, &["a-2"]),
            (&["configmaps/a"], Some("shop"), None, &["a-2"]),
            (&["ConfigMap/a"], Some("elsewhere"), None, &[]),
            (&["ingresses.networking.k8s.io/b"], None, None, &["b-1"]),
            (&["a-1"], None, None, &["a-1"]),
            (&[], None, Some("web"), &["a-2"]),
            (&[], None, Some("argocd/other"), &["b-1"]),
            (&["secret/a"], None, None, &[]),
        ] {
            assert_eq!(
                names(words, namespace, application),
                expected,
                "{words:?} {namespace:?} {application:?}"
            );
        }
    }

    #[test]
    fn what_comes_back_is_nobodys() {
        let marked = stone("a-1", "ConfigMap", "a", "argocd/web", "");
        let back = restored(&marked, false);
        assert_eq!(back["metadata"]["annotations"], json!({"own": "1"}));
        assert_eq!(back["metadata"]["labels"]["app.kubernetes.io/instance"], "web");
        assert_eq!(restored(&marked, true), marked["spec"]["object"]);
        let mut labelled = marked;
        labelled["spec"]["object"]["metadata"]["annotations"] = json!({});
        assert!(
            restored(&labelled, false)["metadata"]["labels"]
                .get("app.kubernetes.io/instance")
                .is_none()
        );
    }

    #[test]
    fn a_list() {
        let one = stone("a-1", "ConfigMap", "a", "argocd/web", "2026-01-01T00:00:00Z");
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(
            table(&[&one], now),
            "KIND       NAMESPACE  NAME  APPLICATION  DELETED  EXPIRES  TOMBSTONE\n\
             ConfigMap  shop       a     argocd/web   60m ago  later    a-1\n"
        );
    }
}
