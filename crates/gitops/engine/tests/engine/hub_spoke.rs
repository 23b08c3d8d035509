//! The example of a hub and its spokes: one root Application brings up its whole tree, wave by wave.
//!
//! Nobody runs operators here. The test stands for them: a kind that an Application waits for is defined, and everything but
//! Applications is healthy.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{At, World};

const REPO: &str = "https://git.example.com/platform/openshift-virtualization-gitops.git";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications";

fn gather(below: &Path, directory: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(below, &path, files);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            files.push((
                path.strip_prefix(below).unwrap().to_string_lossy().into_owned(),
                text,
            ));
        }
    }
}

fn manifest(files: &[(String, String)], path: &str) -> Value {
    let (_, text) = files.iter().find(|(own, _)| own == path).unwrap();
    fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default()).unwrap()
}

/// Group, kind and name of what an Application waits for.
fn awaited(application: &Value) -> Option<(String, String)> {
    let message = application["status"]["operationState"]["message"].as_str()?;
    let rest = message.strip_prefix("waiting for the kind ")?;
    let (group, rest) = rest.split_once('/')?;
    Some((group.to_owned(), rest.split(' ').next()?.to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_application_brings_up_its_tree() {
    if std::env::var("FAIRWAY_ENGINE_KUBECONFIG").is_ok() {
        return;
    }
    let world = World::start(At::Root).await;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/hub-spoke");
    let mut files = Vec::new();
    gather(&example, &example, &mut files);
    let texts: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world.sources.commit(REPO, &texts);
    // Those that OpenShift has from the start.
    for name in [
        "openshift-gitops",
        "openshift-ingress",
        "openshift-config",
        "openshift-monitoring",
        "openshift-operators",
        "openshift-console",
    ] {
        world
            .create("/api/v1/namespaces", json!({"metadata": {"name": name}}))
            .await;
    }
    let maps = "/api/v1/namespaces/openshift-gitops/configmaps";
    world
        .create(maps, manifest(&files, ".bootstrap/environment/hub.yaml"))
        .await;
    let healthy = "return {status = 'Healthy'}";
    let child = "local a = obj.metadata.annotations or {}\nif a['app-of-app/awaited'] == 'false' then return {status = 'Healthy'} end\nlocal h = (obj.status or {}).health or {}\nreturn {status = h.status or 'Progressing'}";
    let settings = json!({
        "metadata": {"name": "argocd-cm"},
        "data": {
            "resource.customizations": json!({"*": {"health.lua": healthy}}).to_string(),
            "resource.customizations.health.argoproj.io_Application": child,
        },
    });
    world.create(maps, settings).await;
    let mut root = manifest(&files, ".bootstrap/root-application.yaml");
    let text = root["spec"]["source"]
        .to_string()
        .replace("${CLUSTER_NAME}", "hub")
        .replace("${INFRA_GITOPS_REPO}", REPO);
    root["spec"]["source"] = serde_json::from_str(&text).unwrap();
    root["spec"]["source"]["repoURL"] = json!(REPO);
    root["spec"]["source"]["targetRevision"] = json!("main");
    let name = root["metadata"]["name"].as_str().unwrap().to_owned();
    world.create(APPLICATIONS, root).await;
    let begun = Instant::now();
    let mut defined: BTreeSet<(String, String)> = BTreeSet::new();
    let all = loop {
        let all = world.api.list(APPLICATIONS).await.unwrap();
        for application in &all {
            let Some(kind) = awaited(application) else {
                continue;
            };
            if !defined.insert(kind.clone()) {
                continue;
            }
            let resources = application["status"]["resources"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let found = resources
                .iter()
                .find(|r| r["kind"] == kind.1.as_str() && r["group"].as_str().unwrap_or_default() == kind.0);
            let version = found.map_or("v1", |r| r["version"].as_str().unwrap_or("v1"));
            define(&world, &kind.0, &kind.1, version).await;
        }
        let root = all
            .iter()
            .find(|application| application["metadata"]["name"] == name.as_str())
            .unwrap();
        if root["status"]["operationState"]["phase"] == "Succeeded" {
            break all;
        }
        let shown = || -> Vec<String> {
            all.iter()
                .map(|a| {
                    format!(
                        "{}: {} {} {}",
                        a["metadata"]["name"],
                        a["status"]["sync"]["status"],
                        a["status"]["health"]["status"],
                        a["status"]["operationState"]["message"]
                    )
                })
                .collect()
        };
        assert!(begun.elapsed() < Duration::from_secs(120), "{:#?}", shown());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut born: Vec<(i64, String)> = all
        .iter()
        .filter(|application| application["metadata"]["name"] != name.as_str())
        .map(|application| {
            let wave = application["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]
                .as_str()
                .unwrap_or("0");
            (
                wave.parse().unwrap(),
                application["metadata"]["creationTimestamp"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            )
        })
        .collect();
    born.sort();
    println!(
        "{} applications and {} kinds after {:?}",
        all.len(),
        defined.len(),
        begun.elapsed()
    );
    assert!(born.len() > 10, "{born:?}");
    assert!(
        born.windows(2).all(|pair| pair[0].1 <= pair[1].1),
        "waves come one after the other: {born:?}"
    );
    world.end().await;
}

async fn define(world: &World, group: &str, kind: &str, version: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    world
        .api
        .create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd)
        .await
        .unwrap();
}
