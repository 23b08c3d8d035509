//! What is asked of a server, and what is not.

use std::sync::Arc;

use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{NEAR, Near, Served, groups_to_read};
use crate::clients::ClientFactory;
use crate::fake::Script;
use crate::key::WorkspaceId;
use crate::kinds::{Kind, Kinds};

fn kind(group: &str, plural: &str, identity: &str) -> Kind {
    Kind {
        resource: ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: if group.is_empty() {
                "v1".to_owned()
            } else {
                format!("{group}/v1")
            },
            kind: plural.to_uppercase(),
            plural: plural.to_owned(),
        },
        identity: identity.to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    }
}

fn kinds(all: impl IntoIterator<Item = Kind>) -> Kinds {
    let mut kinds = Kinds::default();
    all.into_iter().for_each(|kind| kinds.add(kind));
    kinds
}

fn workspace(id: &str) -> WorkspaceId {
    WorkspaceId::parse(id).unwrap()
}

/// Discovery of a workspace that serves pods and perhaps widgets.
fn discovered(script: Script, prefix: &str, widgets: bool) -> Script {
    let resource = |plural: &str| json!({"resource": plural, "responseKind": {"kind": plural.to_uppercase()}, "scope": "Namespaced", "verbs": []});
    let group = |name: &str, resources: &Value| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]});
    let custom: Vec<Value> = widgets
        .then(|| group("e.x", &json!([resource("widgets")])))
        .into_iter()
        .collect();
    let script = script
        .expect(
            "GET",
            &format!("{prefix}/api"),
            200,
            json!({"items": [group("", &json!([resource("pods")]))]}),
        )
        .expect("GET", &format!("{prefix}/apis"), 200, json!({"items": custom}));
    if !widgets {
        return script;
    }
    let crds = format!("{prefix}/apis/apiextensions.k8s.io/v1/customresourcedefinitions?");
    let crd = json!({"metadata": {"name": "widgets.e.x", "uid": "2"}});
    script.expect("GET", &crds, 200, json!({"metadata": {}, "items": [crd]}))
}

fn served(script: &Script, every: Kinds) -> Served {
    let service = script.service();
    Served {
        clients: ClientFactory::across_workspaces(move |_| service.clone()).clients("u"),
        every: watch::channel(Arc::new(every)).1,
        near: Arc::default(),
    }
}

#[tokio::test]
async fn a_workspace_is_asked_once_and_only_about_what_is_not_common() {
    let script = discovered(Script::new(), "/clusters/a", true);
    let script = discovered(script, "/clusters/b", false);
    let script = discovered(script, "/clusters/a", false);
    let served = served(
        &script,
        kinds([kind("", "pods", ""), kind("e.x", "widgets", "1")]),
    );
    let (a, b) = (workspace("a"), workspace("b"));
    for (workspace, api_version, name, want) in [
        (&a, "v1", "PODS", true),
        (&b, "v1", "PODS", true),
        (&a, "e.x/v2", "WIDGETS", false),
        (&a, "e.x/v1", "WIDGETS", true),
        (&a, "e.x/v1", "WIDGETS", true),
        (&b, "e.x/v1", "WIDGETS", false),
        (&b, "e.x/v1", "WIDGETS", false),
    ] {
        let found = served.kind(workspace, api_version, name).await.unwrap();
        assert_eq!(found.is_some(), want, "{workspace} {api_version} {name}");
    }
    let widgets = served.kind(&a, "e.x/v1", "WIDGETS").await.unwrap().unwrap();
    assert_eq!(
        widgets.name().1,
        "widgets:2",
        "which one is told, whatever others there are"
    );
    served.near().forget([&a]);
    let found = served.kind(&a, "e.x/v1", "WIDGETS").await.unwrap();
    assert!(found.is_none(), "the workspace has changed and is asked again");
    script.finish();
}

#[tokio::test]
async fn a_workspace_that_is_gone_serves_nothing() {
    let script = Script::new().refuse("GET", "/clusters/a/api", 404, "NotFound");
    let served = served(&script, kinds([kind("e.x", "widgets", "1")]));
    assert!(served.of(&workspace("a")).await.unwrap().is_empty());
    script.finish();
}

#[tokio::test]
async fn a_plain_cluster_serves_the_same_everywhere() {
    let script = Script::new();
    let plain = Served {
        clients: script.clients(),
        every: watch::channel(Arc::new(kinds([kind("e.x", "widgets", "")]))).1,
        near: Arc::default(),
    };
    assert!(
        plain
            .kind(&WorkspaceId::root(), "e.x/v1", "WIDGETS")
            .await
            .unwrap()
            .is_some()
    );
    script.finish();
}

#[test]
fn only_a_few_workspaces_are_kept_and_no_answer_that_was_overtaken() {
    let mut near = Near::default();
    let first = workspace("w0");
    for number in 0..3 * NEAR {
        near.put(&workspace(&format!("w{number}")), &Arc::default(), 0);
        assert!(near.get(&first).is_some(), "who is asked for often stays");
    }
    assert_eq!(near.kinds.len(), NEAR);
    let before = near.changes;
    near.forget([&first]);
    near.put(&first, &Arc::default(), before);
    assert!(near.get(&first).is_none());
}

#[test]
fn bindings_of_what_is_known_ask_for_no_reading() {
    let known = kinds([kind("e.x", "widgets", "1")]);
    let binding = |identity: &str| {
        json!({"status": {"boundResources": [
            {"group": "e.x", "resource": "widgets", "schema": {"identityHash": identity}},
        ]}})
    };
    let group = Some("e.x".to_owned());
    for (name, binding, gone, want) in [
        ("known", binding("1"), false, vec![None]),
        ("new", binding("2"), false, vec![None, group.clone()]),
        ("gone", binding("1"), true, vec![None, group]),
        ("not bound yet", json!({}), false, vec![None]),
    ] {
        let groups = groups_to_read(&binding, gone, &known);
        assert_eq!(groups, want.into_iter().collect(), "{name}");
    }
}
