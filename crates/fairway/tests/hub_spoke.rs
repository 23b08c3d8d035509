//! The example of a hub and its spokes with the whole program: one push and one root Application bring up the tree, no
//! Application of a wave before those of the earlier ones are healthy; what is wrong at a leaf is seen at the root; what
//! somebody changes or deletes comes back; what leaves the repository leaves the cluster.
//!
//! Nobody runs operators here. The test stands for them: a kind that an Application waits for is defined, and everything but
//! Applications is healthy unless it says that it is broken.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use process::Process;
use tools::{fairway, run};

/// How long a change may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const ROOT: &str = "root-applications";
const NAMESPACE: &str = "openshift-gitops";
/// Those that OpenShift has from the start.
const NAMESPACES: [&str; 6] = [
    NAMESPACE,
    "openshift-ingress",
    "openshift-config",
    "openshift-monitoring",
    "openshift-operators",
    "openshift-console",
];
const LEAF_HEALTH: &str = "local a = obj.metadata.annotations or {}\n\
                           if a.broken == 'true' then return {status = 'Degraded', message = 'is broken'} end\n\
                           return {status = 'Healthy'}";
/// As in the example's own settings.
const CHILD_HEALTH: &str =
    "local h = (obj.status or {}).health or {}\nreturn {status = h.status or 'Progressing'}";

fn api(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(
        client.clone(),
        NAMESPACE,
        &ApiResource::from_gvk_with_plural(&kind, plural),
    )
}

fn manifest(example: &Path, path: &str) -> Value {
    let text = std::fs::read_to_string(example.join(path)).unwrap();
    fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default()).unwrap()
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn merge(api: &Api<DynamicObject>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// Group and kind that an Application waits for, and the version that it wants.
fn awaited(application: &DynamicObject) -> Option<(String, String, String)> {
    let status = &application.data["status"];
    let message = status["operationState"]["message"].as_str()?;
    let rest = message.strip_prefix("waiting for the kind ")?;
    let (group, rest) = rest.split_once('/')?;
    let kind = rest.split(' ').next()?;
    let listed = status["resources"].as_array()?.iter();
    let mut of_kind = listed.filter(|entry| entry["kind"] == kind && entry["group"] == group);
    let version = of_kind
        .next()
        .map_or("v1", |entry| entry["version"].as_str().unwrap_or("v1"));
    Some((group.to_owned(), kind.to_owned(), version.to_owned()))
}

async fn define(client: &Client, (group, kind, version): &(String, String, String)) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let plural = format!("{}s", kind.to_lowercase());
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    let kinds = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kinds));
    create(&crds, crd).await;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    wave: i64,
    sync: String,
    health: String,
    phase: String,
}

impl Seen {
    fn of(application: &DynamicObject) -> Self {
        let word = |pointer: &str| {
            let found = application.data.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let wave = application.annotations().get("argocd.argoproj.io/sync-wave");
        Self {
            wave: wave.map_or(0, |wave| wave.parse().unwrap()),
            sync: word("/status/sync/status"),
            health: word("/status/health/status"),
            phase: word("/status/operationState/phase"),
        }
    }

    fn is_well(&self) -> bool {
        self.sync == "Synced" && self.health == "Healthy" && self.phase == "Succeeded"
    }
}

/// Follows the tree until the root is synced and healthy, plays the operators, and holds every new Application against the
/// waves before its own. What there is in the end.
async fn follow(client: &Client, applications: &Api<DynamicObject>) -> BTreeMap<String, Seen> {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut defined = BTreeSet::new();
    let watch = WatchParams::default().timeout(290);
    let mut events = applications.watch(&watch, "0").await.unwrap().boxed();
    let begun = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        let event = tokio::time::timeout(left, events.next()).await;
        let Ok(Some(event)) = event else {
            panic!("the tree is not up within {PATIENCE:?}: {seen:#?}");
        };
        let (WatchEvent::Added(application) | WatchEvent::Modified(application)) = event.unwrap() else {
            continue;
        };
        let (name, now) = (application.name_any(), Seen::of(&application));
        if name != ROOT && !seen.contains_key(&name) {
            let early: Vec<&String> = seen
                .iter()
                .filter(|(other, known)| {
                    other.as_str() != ROOT && known.wave < now.wave && known.health != "Healthy"
                })
                .map(|(other, _)| other)
                .collect();
            assert!(
                early.is_empty(),
                "{name} of wave {} comes before {early:?} are healthy",
                now.wave
            );
        }
        if let Some(kind) = awaited(&application)
            && defined.insert(kind.clone())
        {
            define(client, &kind).await;
        }
        seen.insert(name, now);
        if seen.len() > 1 && seen.values().all(Seen::is_well) {
            return seen;
        }
    }
}

async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !look().await {
        assert!(
            begun.elapsed() < PATIENCE,
            "{what} did not come within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn look(applications: &Api<DynamicObject>, name: &str) -> Option<Seen> {
    applications.get_opt(name).await.unwrap().as_ref().map(Seen::of)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_push_and_one_application_bring_up_the_hub() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hub-spoke");
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let client = process.client().await;
    let address = fairway(&data, &["repo", "create", "root/platform", "--with-token"]);
    let plain = format!("https://{}", address.split_once('@').unwrap().1);
    let push = format!("git add -A && git commit -qm change && git push -q {address} main 2>&1");
    let copy = format!(
        "cp -r {}/. . && git init -q -b main . && {push}",
        example.display()
    );
    run(&data, &work, &copy);

    let namespaces: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")),
    );
    for name in NAMESPACES {
        create(&namespaces, json!({"metadata": {"name": name}})).await;
    }
    let maps = api(&client, "", "v1", "ConfigMap", "configmaps");
    let mut variables = manifest(&example, ".bootstrap/environment/hub.yaml");
    variables["data"]["INFRA_GITOPS_REPO"] = plain.as_str().into();
    create(&maps, variables).await;
    let settings = json!({
        "metadata": {"name": "argocd-cm"},
        "data": {
            "resource.customizations": json!({"*": {"health.lua": LEAF_HEALTH}}).to_string(),
            "resource.customizations.health.argoproj.io_Application": CHILD_HEALTH,
        },
    });
    create(&maps, settings).await;
    let root = manifest(&example, ".bootstrap/root-application.yaml").to_string();
    let root = root
        .replace("${CLUSTER_NAME}", "hub")
        .replace("${INFRA_GITOPS_REPO}", &plain);
    let applications = api(&client, "argoproj.io", "v1alpha1", "Application", "applications");
    create(&applications, serde_json::from_str(&root).unwrap()).await;

    let tree = follow(&client, &applications).await;
    let waves: BTreeSet<i64> = tree.values().map(|seen| seen.wave).collect();
    assert_eq!(
        waves.into_iter().collect::<Vec<_>>(),
        [0, 5, 15, 20, 25, 30],
        "{tree:#?}"
    );
    assert_eq!(tree.len(), 26, "{tree:#?}");

    // What is wrong at a leaf is seen in its Application and at the root, and so is that it is well again.
    let hub = GroupVersionKind::gvk("operator.open-cluster-management.io", "v1", "MultiClusterHub");
    let hub = ApiResource::from_gvk_with_plural(&hub, "multiclusterhubs");
    let hubs: Api<DynamicObject> = Api::namespaced_with(client.clone(), "open-cluster-management", &hub);
    for (broken, health) in [(json!("true"), "Degraded"), (Value::Null, "Healthy")] {
        let patch = json!({"metadata": {"annotations": {"broken": broken}}});
        merge(&hubs, "multiclusterhub", patch).await;
        for name in ["acm-instance", ROOT] {
            until(&format!("{name} to be {health}"), async || {
                look(&applications, name)
                    .await
                    .is_some_and(|seen| seen.health == health)
            })
            .await;
        }
    }

    // A child that somebody changes is put right, and one that somebody deletes comes back with its objects.
    let path = |application: &DynamicObject| application.data["spec"]["source"]["path"].clone();
    merge(
        &applications,
        "kube-ops-view",
        json!({"spec": {"source": {"path": "components/nowhere"}}}),
    )
    .await;
    until("the old path", async || {
        let found = applications.get("kube-ops-view").await.unwrap();
        path(&found) == "components/kube-ops-view" && Seen::of(&found).is_well()
    })
    .await;
    let before = applications.get("kube-ops-view").await.unwrap().uid();
    applications
        .delete("kube-ops-view", &DeleteParams::default())
        .await
        .unwrap();
    until("the lost child", async || {
        let found = applications.get_opt("kube-ops-view").await.unwrap();
        found.is_some_and(|found| found.uid() != before && Seen::of(&found).is_well())
    })
    .await;

    // What leaves the repository leaves the cluster, and the others stay as they are.

    let disable = "sed -i '/^  ova-server:/,$d' clusters/hub/values.yaml";
    run(&data, &work, &format!("{disable} && {push}"));
    until("the end of a child", async || {
        applications.get_opt("ova-server").await.unwrap().is_none()
    })
    .await;
    until("the root to be well", async || {
        look(&applications, ROOT).await.is_some_and(|seen| seen.is_well())
    })
    .await;
    assert_eq!(
        applications.list(&Default::default()).await.unwrap().items.len(),
        tree.len() - 1
    );
}
