//! A consumer asks for a virtual machine in his project's workspace, and gets one: the way of a request through workspace,
//! provider and composition, and back.
//!
//! The provider here is a stand-in of a few lines that knows nothing but HTTP: it comes in through the virtual workspace of
//! its export, mirrors claims into a service cluster (another workspace), composes what a claim stands for, and brings
//! the status back. What the consumer sees, and what he does not, is the platform's.

use std::sync::Arc;
use std::time::Duration;

use fairway_kernel_tenancy::naming::{FINALIZER, Naming, Original, PROJECT_NAMESPACE};
use fairway_kernel_tenancy::{ClusterId, WorkspacePath};
use http::Request;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{Cluster, View, eventually, gone};
use crate::tenancy::{bindings, condition, create, make};

const GROUP: &str = "compute.example.com/v1";
/// Kinds of the inner layers, which consumers have no business with.
const INNER: [(&str, &str, &str); 2] = [
    ("kubevirt.io", "VirtualMachine", "virtualmachines"),
    ("cdi.kubevirt.io", "DataVolume", "datavolumes"),
];

fn claims(place: &View) -> Api<DynamicObject> {
    place.api(GROUP, "VirtualMachine", "virtualmachines", "default")
}

fn definition(group: &str, kind: &str, plural: &str) -> Value {
    json!({"metadata": {"name": format!("{plural}.{group}")}, "spec": {
        "group": group, "scope": "Namespaced",
        "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }})
}

/// The provider's side: its workspace with the export, and the service cluster.
struct Provider {
    /// Everything, by its path.
    client: Client,
    /// `/services/apiexport/<id>/machines`.
    door: String,
    /// `/clusters/<id>` of the service cluster.
    service_cluster: String,
}

impl Provider {
    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let kind = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = body.map(|it| it.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind);
        self.client.request(request.body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> Option<Value> {
        self.send("GET", path, None).await.ok()
    }

    /// One look at everything that consumers want.
    async fn turn(&self) {
        let all = format!("{}/clusters/*/apis/{GROUP}/virtualmachines", self.door);
        let Some(list) = self.get(&all).await else {
            return;
        };
        for claim in list["items"].as_array().into_iter().flatten() {
            // What fails is tried again with the next turn.
            let _ = self.serve(claim).await;
        }
    }

    /// Mirrors one claim down, composes it, and brings its status up.
    async fn serve(&self, claim: &Value) -> Result<(), Error> {
        let id = claim["metadata"]["annotations"]["kcp.io/cluster"]
            .as_str()
            .unwrap();
        let consumer = format!("{}/clusters/{id}", self.door);
        let itself = format!("{consumer}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
        let itself = self.send("GET", &itself, None).await?;
        let path = itself["metadata"]["annotations"]["kcp.io/path"].as_str().unwrap();
        let original = Original {
            cluster: &ClusterId::parse(id).unwrap(),
            path: &WorkspacePath::parse(path).unwrap(),
            object: claim,
        };
        let naming = Naming {
            namespace: PROJECT_NAMESPACE.to_owned(),
            name: "{{ .Object.metadata.name }}".to_owned(),
        };
        let (namespace, name) = original.copy_name(&naming).unwrap();
        let text = |field: &str| claim["metadata"][field].as_str().unwrap_or_default();
        let here = format!(
            "{consumer}/apis/{GROUP}/namespaces/{}/virtualmachines/{}",
            text("namespace"),
            text("name")
        );
        let inner = |group: &str| format!("{}/apis/{group}/namespaces/{namespace}", self.service_cluster);
        let copies = format!("{}/virtualmachines", inner(GROUP));
        let copy = self.get(&format!("{copies}/{name}")).await;
        if claim["metadata"]["deletionTimestamp"].is_string() {
            // What was composed goes with the copy, by its owner references.
            if copy.is_some() {
                self.send(
                    "DELETE",
                    &format!("{copies}/{name}"),
                    Some(json!({"propagationPolicy": "Foreground"})),
                )
                .await?;
            } else {
                self.send("PATCH", &here, Some(json!({"metadata": {"finalizers": null}})))
                    .await?;
            }
            return Ok(());
        }
        if claim["metadata"]["finalizers"].is_null() {
            let hold = json!({"metadata": {"finalizers": [FINALIZER]}});
            self.send("PATCH", &here, Some(hold)).await?;
        }
        let Some(copy) = copy else {
            let home = json!({"metadata": {"name": namespace, "labels": original.labels()}});
            let _ = self
                .send(
                    "POST",
                    &format!("{}/api/v1/namespaces", self.service_cluster),
                    Some(home),
                )
                .await;
            let copy = json!({"apiVersion": GROUP, "kind": "VirtualMachine", "spec": claim["spec"],
                "metadata": {"name": name, "labels": original.labels()}});
            self.send("POST", &copies, Some(copy)).await?;
            return Ok(());
        };
        if copy["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        let owner = json!([{"apiVersion": GROUP, "kind": "VirtualMachine", "name": name,
            "uid": copy["metadata"]["uid"], "blockOwnerDeletion": true, "controller": true}]);
        let metadata = json!({"name": name, "ownerReferences": owner});
        for (collection, part) in [
            (
                format!("{}/virtualmachines", inner("kubevirt.io/v1")),
                json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": {"running": true}}),
            ),
            (
                format!("{}/datavolumes", inner("cdi.kubevirt.io/v1")),
                json!({"apiVersion": "cdi.kubevirt.io/v1", "kind": "DataVolume", "spec": {"source": {}}}),
            ),
            (
                format!("{}/api/v1/namespaces/{namespace}/services", self.service_cluster),
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 22}]}}),
            ),
        ] {
            let mut part = part;
            part["metadata"] = metadata.clone();
            if self.get(&format!("{collection}/{name}")).await.is_none() {
                self.send("POST", &collection, Some(part)).await?;
            }
        }
        let machine = format!("{}/virtualmachines/{name}", inner("kubevirt.io/v1"));
        let running = self
            .get(&machine)
            .await
            .is_some_and(|it| it["status"]["ready"] == true);
        let phase = if running { "Ready" } else { "Pending" };
        if claim["status"]["phase"] != phase {
            let status = json!({"status": {"phase": phase}});
            self.send("PATCH", &format!("{here}/status"), Some(status))
                .await?;
        }
        Ok(())
    }
}

/// A platform with a provider at work: `root:services` offers machines, `root:cluster` is where they are made.
async fn platform() -> (Cluster, JoinHandle<()>, String) {
    let cluster = Cluster::start().await;
    let services = make(&cluster, "services", Some("universal")).await;
    let inner = make(&cluster, "cluster", Some("universal")).await;
    let place = cluster.at(&services);
    let schema = json!({"metadata": {"name": "v1.virtualmachines.compute.example.com"}, "spec": {
        "group": "compute.example.com", "scope": "Namespaced",
        "names": {"plural": "virtualmachines", "singular": "virtualmachine", "kind": "VirtualMachine",
                  "listKind": "VirtualMachineList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "string"}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}],
    }});
    let kind = "APIResourceSchema";
    create(
        &place.api("apis.kcp.io/v1alpha1", kind, "apiresourceschemas", ""),
        schema,
    )
    .await;
    let export = json!({"metadata": {"name": "machines"}, "spec": {
        "resources": [{"group": "compute.example.com", "name": "virtualmachines",
                       "schema": "v1.virtualmachines.compute.example.com", "storage": {"crd": {}}}],
        "permissionClaims": [{"group": "core.kcp.io", "resource": "logicalclusters", "verbs": ["get"]}],
    }});
    create(
        &place.api("apis.kcp.io/v1alpha2", "APIExport", "apiexports", ""),
        export,
    )
    .await;
    let inside = cluster.at(&inner);
    let kind = "CustomResourceDefinition";
    let definitions = inside.api("apiextensions.k8s.io/v1", kind, "customresourcedefinitions", "");
    create(
        &definitions,
        definition("compute.example.com", "VirtualMachine", "virtualmachines"),
    )
    .await;
    for (group, kind, plural) in INNER {
        create(&definitions, definition(group, kind, plural)).await;
    }
    let provider = Arc::new(Provider {
        client: cluster.everything("provider", &["system:masters"]),
        door: format!("/services/apiexport/{services}/machines"),
        service_cluster: format!("/clusters/{inner}"),
    });
    let work = tokio::spawn(async move {
        loop {
            provider.turn().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    (cluster, work, inner)
}

/// A project of an organisation that may use machines.
async fn project(cluster: &Cluster, organisation: &View, name: &str) -> View {
    let id = make(organisation, name, Some("universal")).await;
    let place = cluster.at(&id);
    let binding = json!({"metadata": {"name": "machines"}, "spec": {
        "reference": {"export": {"path": "root:services", "name": "machines"}},
        "permissionClaims": [{"group": "core.kcp.io", "resource": "logicalclusters", "verbs": ["get"],
                              "state": "Accepted", "selector": {"matchAll": true}}],
    }});
    create(&bindings(&place), binding).await;
    eventually("the export is bound", || async {
        let it = bindings(&place).get("machines").await.unwrap();
        it.data["status"]["phase"] == "Bound" && condition(&it, "Ready")["status"] == "True"
    })
    .await;
    place
}

async fn order(place: &View, size: &str) {
    let claim = json!({"apiVersion": GROUP, "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"size": size}});
    create(&claims(place), claim).await;
}

async fn phase(place: &View, want: &str) {
    eventually(&format!("the claim is {want}"), || async {
        claims(place).get("web").await.unwrap().data["status"]["phase"] == want
    })
    .await;
}

fn machines(inner: &View, namespace: &str) -> Api<DynamicObject> {
    inner.api("kubevirt.io/v1", "VirtualMachine", "virtualmachines", namespace)
}

/// The node on which a machine runs says so.
async fn runs(inner: &View, namespace: &str) {
    let api = machines(inner, namespace);
    eventually("the machine is composed", || async {
        api.get_opt("web").await.unwrap().is_some()
    })
    .await;
    let status = kube::api::Patch::Merge(json!({"status": {"ready": true}}));
    api.patch_status("web", &kube::api::PatchParams::default(), &status)
        .await
        .unwrap();
}

/// The flow of a request, step by step: the consumer applies a claim in his project's workspace, the provider sees it and
/// makes a copy in the consumer's namespace of the service cluster, composition makes a machine, a disk and a Service, the
/// machine runs, and the status comes back until the claim is Ready. The consumer sees the claim alone, from Pending to
/// Ready, and no object or kind of the inner layers. Deleting the claim removes the three composed objects and the copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_becomes_a_machine_and_goes_without_a_trace() {
    let (cluster, work, inner) = platform().await;
    let organisation = cluster.at(&make(&cluster, "org-acme", None).await);
    let frontend = project(&cluster, &organisation, "frontend").await;
    let service_cluster = cluster.at(&inner);
    order(&frontend, "small").await;
    phase(&frontend, "Pending").await;
    let namespace = "ws-org-acme-frontend-default";
    runs(&service_cluster, namespace).await;
    phase(&frontend, "Ready").await;
    let copies = service_cluster.api(GROUP, "VirtualMachine", "virtualmachines", namespace);
    assert_eq!(copies.get("web").await.unwrap().data["spec"]["size"], "small");
    let disks = service_cluster.api("cdi.kubevirt.io/v1", "DataVolume", "datavolumes", namespace);
    let services = service_cluster.api("v1", "Service", "services", namespace);
    disks.get("web").await.unwrap();
    services.get("web").await.unwrap();
    // The consumer sees the claim, and nothing of how it was done.
    let shown = claims(&frontend).get("web").await.unwrap();
    assert_eq!(shown.data["status"], json!({"phase": "Ready"}));
    for (group, kind, plural) in INNER {
        let api = frontend.api(&format!("{group}/v1"), kind, plural, "default");
        let answer = api.list(&ListParams::default()).await;
        assert!(
            matches!(answer, Err(Error::Api(status)) if status.code == 404),
            "{group}"
        );
    }
    let services_there = frontend.api("v1", "Service", "services", "default");
    assert_eq!(
        services_there
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    let spaces = frontend.namespaces().list(&ListParams::default()).await.unwrap();
    let spaces: Vec<_> = spaces
        .items
        .iter()
        .map(|it| it.metadata.name.clone().unwrap())
        .collect();
    assert_eq!(spaces, ["default"]);
    // The end.
    claims(&frontend)
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    gone(&claims(&frontend), "web").await;
    gone(&copies, "web").await;
    gone(&machines(&service_cluster, namespace), "web").await;
    gone(&disks, "web").await;
    gone(&services, "web").await;
    work.abort();
    cluster.stop().await;
}

/// Each project has an API endpoint of its own: objects and kinds of one workspace are not visible in another. Services are
/// offered by APIExport and used by APIBinding; without a binding the kind is unknown. Namespaces of a project on the service
/// cluster are named `ws-<organisation>-<project>-*`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_share_a_service_and_nothing_else() {
    let (cluster, work, inner) = platform().await;
    let organisation = cluster.at(&make(&cluster, "org-acme", None).await);
    let without = cluster.at(&make(&organisation, "idle", Some("universal")).await);
    let answer = claims(&without).list(&ListParams::default()).await;
    assert!(
        matches!(answer, Err(Error::Api(status)) if status.code == 404),
        "no binding, no kind"
    );
    let frontend = project(&cluster, &organisation, "frontend").await;
    let backend = project(&cluster, &organisation, "backend").await;
    // The same name in both, each with its own.
    order(&frontend, "small").await;
    order(&backend, "large").await;
    let service_cluster = cluster.at(&inner);
    for (namespace, size) in [
        ("ws-org-acme-frontend-default", "small"),
        ("ws-org-acme-backend-default", "large"),
    ] {
        runs(&service_cluster, namespace).await;
        let copies = service_cluster.api(GROUP, "VirtualMachine", "virtualmachines", namespace);
        assert_eq!(copies.get("web").await.unwrap().data["spec"]["size"], size);
    }
    phase(&frontend, "Ready").await;
    phase(&backend, "Ready").await;
    // A kind that one project defines is the other's neither by name nor in its API.
    let kind = "CustomResourceDefinition";
    let definitions = frontend.api("apiextensions.k8s.io/v1", kind, "customresourcedefinitions", "");
    create(&definitions, definition("front.example.com", "Page", "pages")).await;
    let pages = |place: &View| place.api("front.example.com/v1", "Page", "pages", "default");
    assert_eq!(
        pages(&frontend)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    let answer = pages(&backend).list(&ListParams::default()).await;
    assert!(matches!(answer, Err(Error::Api(status)) if status.code == 404));
    // What one deletes, the other keeps.
    claims(&frontend)
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    gone(&claims(&frontend), "web").await;
    phase(&backend, "Ready").await;
    machines(&service_cluster, "ws-org-acme-backend-default")
        .get("web")
        .await
        .unwrap();
    work.abort();
    cluster.stop().await;
}
