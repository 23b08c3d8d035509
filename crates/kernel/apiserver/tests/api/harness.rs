//! What every test of the server stands on: a kernel in memory, clients of chosen users, answers and watches.
//!
//! Nothing is mocked: requests take the same way as those of a controller in the process, through authentication,
//! authorization, admission and the store.

mod provided;
mod reply;
mod server;
mod watch;

pub(crate) use reply::{NO_PAGE, Reply, names, version};
pub(crate) use server::{Client, Server};
pub(crate) use watch::shown;

use serde_json::{Value, json};

/// Beginnings of messages for which Kubernetes itself answers 500 although the request was at fault, and which clients
/// know by these words.
const UPSTREAMS_500: [&str; 14] = [
    // Apply.
    "failed to create typed patch object",
    // Versions.
    "resourceVersion should not be set on objects to be created",
    "resourceVersion: Invalid value: ",
    "strconv.ParseUint: parsing ",
    // Strategic patches that do not fit the type of the object.
    "unknown patch type: ",
    "map: map[",
    "expected slice or array type",
    "unable to find api field in struct",
    "merging an object in json but data type is not struct, instead is: ",
    "merging lists cannot yet be specified in the patch",
    "cannot merge lists without merge key for ",
    "list element types are not identical: ",
    "no elements in any of the given slices",
    "The order in patch list:\n",
];

/// Whether an answer refuses a request as the client's fault.
pub(crate) fn is_refusal(reply: &Reply) -> bool {
    match reply.code {
        400..=499 => true,
        500 => {
            let status = reply.json();
            let message = status["message"].as_str().unwrap_or("");
            let of_type = message
                .strip_prefix("expected a ")
                .is_some_and(|rest| rest.contains(", but received a "));
            of_type || UPSTREAMS_500.iter().any(|known| message.starts_with(known))
        }
        _ => false,
    }
}

/// The path of ConfigMaps in `default`: the kind with the fewest rules of its own.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A ConfigMap with a label.
pub(crate) fn labelled(name: &str, key: &str, value: &str) -> Value {
    let mut object = config_map(name);
    object["metadata"]["labels"] = json!({key: value});
    object
}

/// A Deployment of two replicas.
pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "registry.test/i:1"}]},
            },
        },
    })
}

/// A namespaced CRD `<plural>.test.dev` with one version and this schema of `spec`.
pub(crate) fn definition(plural: &str, kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.dev")},
        "spec": {
            "group": "test.dev", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": spec,
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

/// Where CRDs are.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Writes so many bytes elsewhere that the window of ConfigMaps in memory forgets everything before: what is older can
/// then be served by the store alone.
pub(crate) async fn push_out_of_window(admin: &Client) {
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    admin.post(elsewhere, &config_map("ballast")).await.expect(201);
    for i in 0..12 {
        let text = i.to_string().repeat(500_000);
        admin
            .patch(
                "merge",
                &format!("{elsewhere}/ballast"),
                &json!({"data": {"k": text}}),
            )
            .await
            .expect(200);
    }
}
