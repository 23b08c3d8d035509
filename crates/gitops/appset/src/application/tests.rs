//! Templates, patches, policies, and what stays on Applications.

use std::collections::BTreeMap;

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
    fn pull_requests(&self, _: &Value) -> Result<Vec<generator::PullRequest>, String> {
        Ok(Vec::new())
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
    let twice = made(twice).unwrap();
    assert_eq!((twice.len(), duplicates(&twice)), (2, ["a".to_owned()].into()));
    assert!(duplicates(&all).is_empty());
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
    // As Argo CD: a name may be given, a project or a namespace may not, and finalizers are added.
    let patch = "kind: Other\nmetadata: {name: 'p-{{ .name }}', namespace: kube-system, finalizers: [mine]}\nspec: {project: admin}";
    let all = made(json!({"templatePatch": patch})).unwrap();
    assert_eq!(
        all[0],
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "p-a", "labels": {"env": "dev"}, "namespace": "argocd",
                "finalizers": [RESOURCES_FINALIZER, "mine"]},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": "apps/a"}}})
    );
    for (patch, expected) in [
        ("spec: null", "leaves no spec"),
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
fn what_says_nothing_is_left_out() {
    for (spec, expected) in [
        (json!({}), json!({"project": "default"})),
        (
            json!({"project": "", "syncPolicy": {}, "source": {"helm": {"skipCrds": false}, "path": "p"}}),
            json!({"project": "default", "source": {"path": "p"}}),
        ),
        (
            json!({"project": "p", "syncPolicy": {"automated": {}, "syncOptions": []}}),
            json!({"project": "p", "syncPolicy": {"automated": {}, "syncOptions": []}}),
        ),
        (
            json!({"project": "p", "syncPolicy": {"syncOptions": []}}),
            json!({"project": "p"}),
        ),
    ] {
        assert_eq!(normalized(&spec), expected);
    }
}
