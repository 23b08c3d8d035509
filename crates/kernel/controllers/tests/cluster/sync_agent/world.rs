//! A provider's workspace with a sync agent, and projects that use what it offers.

use std::sync::Arc;

use fairway_controller::{Metrics, Shutdown, ShutdownTrigger};
use fairway_tenancy_syncagent::hosted;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{Cluster, View, eventually};
use crate::tenancy::{bindings, condition, create, make, workspaces};

const PROJECT: &str =
    "ws-{{ .ClusterPath | trimPrefix \"root:\" | replace \":\" \"-\" }}-{{ .Object.metadata.namespace }}";

/// A provider's workspace with a kind, an export with an agent, and what the agent may do.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) service: View,
    agent: Option<(ShutdownTrigger, JoinHandle<()>)>,
}

pub(crate) fn published(place: &View) -> Api<DynamicObject> {
    let kind = "PublishedResource";
    place.api("syncagent.kcp.io/v1alpha1", kind, "publishedresources", "")
}

pub(crate) fn exports(place: &View) -> Api<DynamicObject> {
    place.api("apis.kcp.io/v1alpha2", "APIExport", "apiexports", "")
}

pub(crate) fn definitions(place: &View) -> Api<DynamicObject> {
    let kind = "CustomResourceDefinition";
    place.api("apiextensions.k8s.io/v1", kind, "customresourcedefinitions", "")
}

pub(crate) fn secrets(place: &View, namespace: &str) -> Api<DynamicObject> {
    place.api("v1", "Secret", "secrets", namespace)
}

/// The kind as consumers see it.
pub(crate) fn outer(place: &View, namespace: &str) -> Api<DynamicObject> {
    place.api("cloud.io/v1", "VirtualMachine", "virtualmachines", namespace)
}

/// The kind on the service's side.
pub(crate) fn inner(place: &View, namespace: &str) -> Api<DynamicObject> {
    place.api("inner.io/v1", "Machine", "machines", namespace)
}

pub(crate) fn definition() -> Value {
    let text = json!({"type": "string"});
    json!({"metadata": {"name": "machines.inner.io"}, "spec": {
        "group": "inner.io", "scope": "Namespaced",
        "names": {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "secretName": text, "host": text, "place": text, "tier": text}},
                "status": {"type": "object", "properties": {"phase": text, "host": text}},
            }}}}],
    }})
}

/// A PublishedResource; `more` is added to its spec.
pub(crate) fn publication(name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource",
        "metadata": {"name": name},
        "spec": {
            "resource": {"apiGroup": "inner.io", "kind": "Machine"},
            "projection": {"group": "cloud.io", "kind": "VirtualMachine", "shortNames": ["vm"], "categories": ["cloud"]},
            "naming": {"namespace": PROJECT, "name": "{{ .Object.metadata.name }}"},
            "enableWorkspacePaths": true,
        },
    });
    if let Value::Object(more) = more {
        for (key, value) in more {
            object["spec"][key] = value;
        }
    }
    object
}

pub(crate) async fn patch(api: &Api<DynamicObject>, name: &str, change: Value) {
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(change)).await.unwrap();
}

pub(crate) async fn machine(place: &View, namespace: &str, object: Value) -> DynamicObject {
    let mut object = object;
    object["apiVersion"] = json!("cloud.io/v1");
    object["kind"] = json!("VirtualMachine");
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    outer(place, namespace)
        .create(&PostParams::default(), &object)
        .await
        .unwrap()
}

/// Waits for a condition of a PublishedResource.
pub(crate) async fn told(place: &View, name: &str, kind: &str, reason: &str) -> String {
    let api = published(place);
    eventually(&format!("{name} says {kind} {reason}"), || async {
        let it = condition(&api.get(name).await.unwrap(), kind);
        match reason {
            "" => it["status"] == "True",
            reason => it["status"] == "False" && it["reason"] == reason,
        }
    })
    .await;
    let it = condition(&api.get(name).await.unwrap(), kind);
    it["message"].as_str().unwrap_or_default().to_owned()
}

impl World {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::start().await;
        let id = make(&cluster, "services", Some("universal")).await;
        let service = cluster.at(&id);
        create(&definitions(&service), definition()).await;
        let rbac = "rbac.authorization.k8s.io/v1";
        let all = ["create", "delete", "get", "list", "patch", "watch"];
        let role = json!({"metadata": {"name": "agent"}, "rules": [
            {"apiGroups": ["inner.io"], "resources": ["*"], "verbs": all},
            {"apiGroups": [""], "resources": ["configmaps", "namespaces", "secrets"], "verbs": all},
        ]});
        crate::harness::create(&service.api(rbac, "ClusterRole", "clusterroles", ""), role).await;
        let grant = json!({
            "metadata": {"name": "agent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "agent"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": hosted::USER}],
        });
        let api = service.api(rbac, "ClusterRoleBinding", "clusterrolebindings", "");
        crate::harness::create(&api, grant).await;
        let export =
            json!({"metadata": {"name": "cloud", "annotations": {hosted::ANNOTATION: ""}}, "spec": {}});
        create(&exports(&service), export).await;
        let mut world = Self {
            cluster,
            service,
            agent: None,
        };
        world.start_agent();
        world
    }

    pub(crate) fn start_agent(&mut self) {
        let (end, shutdown) = Shutdown::new();
        let clients = self.cluster.clients();
        let server = self.cluster.inside(hosted::USER);
        let metrics = Arc::<Metrics>::default();
        let task = tokio::spawn(hosted::run(clients, server, metrics, shutdown));
        self.agent = Some((end, task));
    }

    pub(crate) async fn stop_agent(&mut self) {
        if let Some((end, task)) = self.agent.take() {
            end.shut_down();
            let ended = tokio::time::timeout(std::time::Duration::from_secs(20), task).await;
            ended.expect("the agent does not end").unwrap();
        }
    }

    pub(crate) async fn stop(mut self) {
        self.stop_agent().await;
        self.cluster.stop().await;
    }

    pub(crate) async fn publish(&self, object: Value) {
        let api = published(&self.service);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// A project of an organisation that is bound to the export.
    pub(crate) async fn project(&self, organisation: &str, project: &str) -> View {
        let org = match workspaces(&self.cluster).get_opt(organisation).await.unwrap() {
            Some(it) => it.data["spec"]["cluster"].as_str().unwrap().to_owned(),
            None => make(&self.cluster, organisation, None).await,
        };
        let id = make(&self.cluster.at(&org), project, None).await;
        let place = self.cluster.at(&id);
        let accepted: Vec<Value> = [
            ("", "events"),
            ("", "namespaces"),
            ("", "secrets"),
            ("", "configmaps"),
            ("core.kcp.io", "logicalclusters"),
        ]
        .into_iter()
        .map(|(group, resource)| {
            json!({"group": group, "resource": resource, "verbs": ["*"], "state": "Accepted", "selector": {"matchAll": true}})
        })
        .collect();
        let binding = json!({"metadata": {"name": "cloud"}, "spec": {
            "reference": {"export": {"path": "root:services", "name": "cloud"}}, "permissionClaims": accepted,
        }});
        create(&bindings(&place), binding).await;
        eventually("the export is bound", || async {
            let it = bindings(&place).get("cloud").await.unwrap();
            it.data["status"]["phase"] == "Bound"
                && outer(&place, "").list(&ListParams::default()).await.is_ok()
        })
        .await;
        place
    }
}
