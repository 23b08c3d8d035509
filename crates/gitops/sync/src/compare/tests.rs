//! Pairs, and what makes an application OutOfSync.

use serde_json::json;

use super::*;
use crate::diff::{self, Options};

fn map(name: &str, namespace: Option<&str>, annotations: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn scopes(group: &str, kind: &str) -> Option<bool> {
    match (group, kind) {
        ("", "ConfigMap" | "Job") => Some(true),
        ("", "Namespace") => Some(false),
        _ => None,
    }
}

#[test]
fn objects_are_paired_by_what_they_are() {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "odd"}});
    let hook = map("h", None, json!({"argocd.argoproj.io/hook": "PreSync"}));
    let targets = vec![
        map("a", None, json!({})),
        map("a", Some("shop"), json!({})),
        hook,
        namespace,
        map("b", Some("x"), json!({})),
    ];
    let live: BTreeMap<ResourceKey, Value> = [
        map("a", Some("shop"), json!({})),
        map("extra", Some("shop"), json!({})),
    ]
    .into_iter()
    .map(|object| (ResourceKey::of(&object), object))
    .collect();
    let pairs = pair(targets, &live, "shop", &scopes);
    let shown: Vec<String> = pairs
        .managed
        .iter()
        .map(|pair| format!("{} {} {}", pair.key, pair.target.is_some(), pair.live.is_some()))
        .collect();
    assert_eq!(
        shown,
        [
            "/ConfigMap/shop/a true true",
            "/ConfigMap/x/b true false",
            "/Namespace//n true false",
            "/ConfigMap/shop/extra false true"
        ]
    );
    assert_eq!(pairs.repeated, [ResourceKey::new("", "ConfigMap", "shop", "a")]);
    assert_eq!(pairs.hooks.len(), 1);
}

#[test]
fn applications_are_in_sync_when_all_that_counts_is() {
    let tracking = Tracking::default();
    let marked = |name: &str, annotations: Value| {
        let mut object = map(name, Some("shop"), annotations);
        tracking.mark(&mut object, "app", "shop");
        object
    };
    let plain = marked("a", json!({}));
    let mut changed = plain.clone();
    changed["data"] = json!({"k": "v"});
    let mut copy = plain.clone();
    copy["metadata"]["name"] = json!("copy");
    let skipped = marked("a", json!({"argocd.argoproj.io/hook": "Skip"}));
    let hook = marked("a", json!({"argocd.argoproj.io/hook": "Sync"}));
    let extraneous = marked(
        "a",
        json!({"argocd.argoproj.io/compare-options": "IgnoreExtraneous"}),
    );
    let confirm = marked("a", json!({"argocd.argoproj.io/sync-options": "Delete=confirm"}));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    use SyncStatus::{OutOfSync, Synced};
    type Case<'a> = (
        &'a str,
        Option<&'a Value>,
        Option<&'a Value>,
        Option<SyncStatus>,
        bool,
    );
    let cases: Vec<Case<'_>> = vec![
        ("the same", Some(&plain), Some(&plain), Some(Synced), false),
        ("changed", Some(&changed), Some(&plain), Some(OutOfSync), true),
        ("missing", Some(&plain), None, Some(OutOfSync), true),
        ("extra", None, Some(&plain), Some(OutOfSync), true),
        (
            "extra, and that is fine",
            None,
            Some(&extraneous),
            Some(OutOfSync),
            false,
        ),
        ("a copy of the mark", None, Some(&copy), None, false),
        ("skipped", Some(&skipped), None, None, false),
        ("a hook that ran", None, Some(&hook), None, false),
        (
            "a namespace that the application creates",
            Some(&namespace),
            None,
            Some(Synced),
            false,
        ),
        ("needs confirmation", None, Some(&confirm), Some(OutOfSync), true),
    ];
    let policy = Policy {
        managed_namespace: "shop",
        ..Policy::default()
    };
    for (reason, target, live, status, counts) in cases {
        let pair = Pair {
            key: ResourceKey::default(),
            target: target.cloned(),
            live: live.cloned(),
        };
        let difference = diff::three_way(target, live, &Options::default());
        let state = judge(&pair, &difference, &tracking, policy, true);
        assert_eq!((state.status, state.counts), (status, counts), "{reason}");
        assert_eq!(
            state.requires_deletion_confirmation,
            reason == "needs confirmation"
        );
        let expected = if counts { OutOfSync } else { Synced };
        assert_eq!(overall([&state], false), expected, "{reason}");
        assert_eq!(overall([&state], true), SyncStatus::Unknown, "{reason}");
        let refused = judge(&pair, &difference, &tracking, policy, false);
        assert_eq!(refused.status, status.map(|_| SyncStatus::Unknown), "{reason}");
    }
}
