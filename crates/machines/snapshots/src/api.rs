//! Where objects are, and how they are changed.

use fairway_controller::{Attempt as _, Failure, ObjectKey, Requests, requests};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// A kind of a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    Machines,
    Instances,
    Snapshots,
    Contents,
    Restores,
    Clones,
    VolumeSnapshots,
    DataVolumes,
    Claims,
    Revisions,
}

impl At {
    /// The collection in a namespace.
    pub(crate) fn all(self, namespace: &str) -> String {
        let (group, plural) = match self {
            Self::Machines => ("apis/kubevirt.io/v1", "virtualmachines"),
            Self::Instances => ("apis/kubevirt.io/v1", "virtualmachineinstances"),
            Self::Snapshots => ("apis/snapshot.kubevirt.io/v1beta1", "virtualmachinesnapshots"),
            Self::Contents => (
                "apis/snapshot.kubevirt.io/v1beta1",
                "virtualmachinesnapshotcontents",
            ),
            Self::Restores => ("apis/snapshot.kubevirt.io/v1beta1", "virtualmachinerestores"),
            Self::Clones => ("apis/clone.kubevirt.io/v1beta1", "virtualmachineclones"),
            Self::VolumeSnapshots => ("apis/snapshot.storage.k8s.io/v1", "volumesnapshots"),
            Self::DataVolumes => ("apis/cdi.kubevirt.io/v1beta1", "datavolumes"),
            Self::Claims => ("api/v1", "persistentvolumeclaims"),
            Self::Revisions => ("apis/apps/v1", "controllerrevisions"),
        };
        format!("/{group}/namespaces/{namespace}/{plural}")
    }

    /// One of them.
    pub(crate) fn one(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.all(namespace))
    }
}

/// A text in an object; what is not there is empty.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether an object is going.
pub(crate) fn is_leaving(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// Now, as the API writes it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reads an object that a name leads to; an empty name leads nowhere.
pub(crate) async fn get(
    api: &Requests,
    at: At,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Failure> {
    match name {
        "" => Ok(None),
        name => api.get(&at.one(namespace, name)).await,
    }
}

/// Adds a finalizer; whether it was missing.
pub(crate) async fn protect(
    api: &Requests,
    path: &str,
    object: &Value,
    finalizer: &str,
) -> Result<bool, Failure> {
    let mut all = finalizers(object);
    if all.iter().any(|it| it == finalizer) {
        return Ok(false);
    }
    all.push(finalizer.to_owned());
    set_finalizers(api, path, object, &all).await?;
    Ok(true)
}

/// Takes a finalizer away, if the object is there and has it.
pub(crate) async fn release(api: &Requests, path: &str, finalizer: &str) -> Result<(), Failure> {
    let Some(object) = api.get(path).await? else {
        return Ok(());
    };
    let all = finalizers(&object);
    let rest: Vec<String> = all.iter().filter(|it| *it != finalizer).cloned().collect();
    match rest.len() == all.len() {
        true => Ok(()),
        false => set_finalizers(api, path, &object, &rest).await,
    }
}

fn finalizers(object: &Value) -> Vec<String> {
    let all = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

async fn set_finalizers(api: &Requests, path: &str, object: &Value, all: &[String]) -> Result<(), Failure> {
    let patch = json!({"metadata": {"resourceVersion": requests::version(object), "finalizers": all}});
    api.merge(path, &patch).await.map(drop)
}

/// Asks something of a machine that runs (`pause`, `freeze`, ...).
pub(crate) async fn order(
    client: &Client,
    instance: &ObjectKey,
    what: &str,
    body: &Value,
) -> Result<(), Failure> {
    let path = format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}/{what}",
        instance.namespace, instance.name
    );
    let request = Request::put(&path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)
        .attempting(format!("ask for {what}"))?;
    client
        .request_text(request)
        .await
        .attempting(format!("{what} the machine {}", instance.name))
        .map(drop)
}

/// Changes an object by steps.
pub(crate) async fn json_patch(client: &Client, path: &str, steps: &Value) -> Result<(), Failure> {
    let request = Request::patch(path)
        .header("content-type", "application/json-patch+json")
        .body(steps.to_string().into_bytes())
        .map_err(kube::Error::HttpError)
        .attempting(format!("change {path}"))?;
    let answer: Result<Value, kube::Error> = client.request(request).await;
    answer.attempting(format!("change {path}")).map(drop)
}
