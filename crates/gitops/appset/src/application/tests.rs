//! Templates, patches, policies, and what stays on Applications.

use serde_json::json;

use super::*;
use crate::Cluster;

struct Nowhere;

impl Sources for Nowhere {
    fn clusters(&self) -> Result<Vec<Cluster>, String> {
        Ok(Vec::new())
    }
    fn directories(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
    fn files(&self, _: &str, _: &str, _: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        Ok(BTreeMap::new())
    }
    fn others(&self, _: &str, _: &Value) -> Result<Vec<Params>, String> {
        Ok(Vec::new())
    }
}

fn set(more: Value) -> Value {
    let mut spec = json!({
        "goTemplate": true,
        "generators": [{"list": {"elements": [{"name": "a", "env": "dev"}, {"name": "b", "env": "prod"}]}}],
        "template": {"metadata": {"name": "{{ .name }}", "labels": {"env": "{{ .env }}"}},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": "apps/{{ .name }}"}}},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": "s", "namespace": "argocd"}, "spec": spec})
}

fn made(more: Value) -> Result<Vec<Value>, String> {
    applications(&set(more), &Nowhere).map_err(|error| error.to_string())
}

#[test]
fn templates_become_applications() {
    let all = made(json!({})).unwrap();
    assert_eq!(
        all[0],
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a", "labels": {"env": "dev"}, "namespace": "argocd", "finalizers": [RESOURCES_FINALIZER]},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": "apps/a"}}})
    );
    let kept = made(json!({"syncPolicy": {"preserveResourcesOnDeletion": true}})).unwrap();
    assert!(kept[0]["metadata"].get("finalizers").is_none());
    let own = json!({"generators": [{"list": {"elements": [{"name": "a", "env": "x"}],
        "template": {"metadata": {"name": ""}, "spec": {"project": "other"}}}}]});
    let own = made(own).unwrap();
    assert_eq!(
        (&own[0]["spec"]["project"], &own[0]["spec"]["source"]["path"]),
        (&json!("other"), &json!("apps/a"))
    );
    let twice = json!({"generators": [{"list": {"elements": [{"name": "a", "env": "x"}, {"name": "a", "env": "y"}]}}]});
    assert_eq!(
        made(twice).unwrap_err(),
        "ApplicationSet s contains applications with duplicate name: a"
    );
    let nameless = json!({"generators": [{"list": {"elements": [{"name": "", "env": "x"}]}}]});
    assert!(made(nameless).unwrap_err().contains("without a name"));
}

#[test]
fn patches_go_over_templates() {
    let patch = "{{ if eq .env \"prod\" }}\nspec:\n  syncPolicy:\n    automated: {}\n  source:\n    path: null\n{{ end }}";
    let all = made(json!({"templatePatch": patch})).unwrap();
    assert!(all[0]["spec"].get("syncPolicy").is_none());
    assert_eq!(
        all[1]["spec"],
        json!({"project": "default", "source": {"repoURL": "r"}, "syncPolicy": {"automated": {}}})
    );
    for (patch, expected) in [
        ("spec: {project: admin}", "may not change spec/project"),
        ("metadata: {name: other}", "may not change metadata/name"),
        ("- a", "yields no map"),
        ("a: [", "templatePatch:"),
    ] {
        assert!(
            made(json!({"templatePatch": patch}))
                .unwrap_err()
                .contains(expected),
            "{patch}"
        );
    }
}

#[test]
fn policies_say_what_may_change() {
    let desired = made(json!({})).unwrap();
    let mut changed = desired[0].clone();
    changed["spec"]["source"]["path"] = json!("elsewhere");
    let mut extra = desired[0].clone();
    extra["metadata"]["name"] = json!("extra");
    let existing = [changed, extra];
    let kinds = |policy: &str| -> Vec<String> {
        let set = set(json!({"syncPolicy": {"applicationsSync": policy}}));
        let changes = changes(&set, &desired, &existing, false).unwrap();
        let show = |change: &Change| match change {
            Change::Create(application) => format!("create {}", name(application)),
            Change::Update(application) => format!("update {}", name(application)),
            Change::Delete(name) => format!("delete {name}"),
        };
        changes.changes.iter().map(show).collect()
    };
    assert_eq!(kinds("sync"), ["update a", "create b", "delete extra"]);
    assert_eq!(kinds("create-only"), ["create b"]);
    assert_eq!(kinds("create-update"), ["update a", "create b"]);
    assert_eq!(kinds("create-delete"), ["create b", "delete extra"]);
    let wrong = set(json!({"syncPolicy": {"applicationsSync": "never"}}));
    assert!(changes(&wrong, &desired, &existing, false).is_err());
}

#[test]
fn generators_that_suddenly_yield_nothing_delete_nothing() {
    let existing = made(json!({})).unwrap();
    let held = changes(&set(json!({})), &[], &existing, false).unwrap();
    assert_eq!(
        (held.changes.len(), held.held),
        (0, vec!["a".to_owned(), "b".to_owned()])
    );
    let meant = changes(&set(json!({})), &[], &existing, true).unwrap();
    assert_eq!(
        meant.changes,
        [Change::Delete("a".to_owned()), Change::Delete("b".to_owned())]
    );
}

#[test]
fn what_others_write_on_applications_stays() {
    let set = set(json!({
        "preservedFields": {"annotations": ["mine"], "labels": ["team"]},
        "ignoreApplicationDifferences": [{"jsonPointers": ["/spec/source/targetRevision"]}],
    }));
    let desired = applications(&set, &Nowhere).unwrap();
    let mut live = desired[0].clone();
    live["metadata"]["annotations"] =
        json!({"mine": "1", "other": "2", "argocd.argoproj.io/refresh": "hard"});
    live["metadata"]["labels"]["team"] = json!("red");
    live["metadata"]["finalizers"] = json!([
        RESOURCES_FINALIZER,
        "post-delete-finalizer.argocd.argoproj.io/cleanup"
    ]);
    live["metadata"]["uid"] = json!("u");
    live["spec"]["source"]["targetRevision"] = json!("v2");
    live["status"] = json!({"health": {}});
    let changes = changes(&set, &desired[..1], &[live.clone()], false).unwrap();
    let [Change::Update(updated)] = changes.changes.as_slice() else {
        panic!("{changes:?}");
    };
    let mut expected = live;
    expected["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .shift_remove("other");
    assert_eq!(
        *updated, expected,
        "only the annotation that nobody preserves goes"
    );
}
