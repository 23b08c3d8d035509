//! What a provider may see beyond its own kinds: objects say by a label who sees them, so when consent changes they are
//! labelled anew. The server does that with every write; here each object is written once without a change.

use std::collections::BTreeSet;

use fairway_controller::error::is_not_found;
use fairway_controller::kinds::discover;
use fairway_controller::{Attempt as _, Failure, Metadata};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::super::requests::Requests;

const APPLIED: &str = "appliedPermissionClaims";

/// Group and resource of every claim.
pub(super) fn claimed(claims: Option<&Value>) -> BTreeSet<(String, String)> {
    let text = |claim: &Value, field: &str| claim[field].as_str().unwrap_or_default().to_owned();
    claims
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|claim| (text(claim, "group"), text(claim, "resource")))
        .collect()
}

/// Writes a binding's status. Claims are called applied only after every object has been labelled, so that a crash
/// between the two is followed by another round.
pub(super) async fn write(
    client: &Client,
    here: &Requests,
    path: &str,
    object: &Value,
    status: &Value,
) -> Result<(), Failure> {
    let before = object.pointer(&format!("/status/{APPLIED}"));
    let now = status.get(APPLIED);
    let mut read = object.clone();
    if before != now {
        let mut first = status.clone();
        if let Some(first) = first.as_object_mut() {
            first.shift_remove(APPLIED);
            if let Some(before) = before {
                first.insert(APPLIED.to_owned(), before.clone());
            }
        }
        // The export must be on record before anything is labelled for it.
        if object.get("status") != Some(&first) {
            match here.replace_status(path, object, &first).await? {
                Some(written) => read = written,
                None => return Ok(()),
            }
        }
        let concerned = &claimed(before) | &claimed(now);
        label_anew(client, &concerned).await?;
    }
    here.replace_status(path, &read, status).await.map(drop)
}

/// Has every object of these kinds labelled as the bindings say now.
pub(super) async fn label_anew(client: &Client, kinds: &BTreeSet<(String, String)>) -> Result<(), Failure> {
    if kinds.is_empty() {
        return Ok(());
    }
    let served = discover(client).await?;
    for name in kinds {
        let Some(kind) = served.resource(name).filter(|it| it.can(&["list", "patch"])) else {
            continue;
        };
        let all: Api<Metadata> = kind.api(client.clone(), "");
        let objects = match all.list(&ListParams::default()).await {
            Err(error) if is_not_found(&error) => continue,
            answer => answer.attempting(format!("list {}", name.1))?,
        };
        for object in objects {
            let api: Api<Metadata> =
                kind.api(client.clone(), object.namespace().as_deref().unwrap_or_default());
            let patch = Patch::Merge(json!({}));
            match api
                .patch(&object.name_any(), &PatchParams::default(), &patch)
                .await
            {
                Err(error) if is_not_found(&error) => {}
                answer => answer
                    .attempting(format!("label {} {}", name.1, object.name_any()))
                    .map(drop)?,
            }
        }
    }
    Ok(())
}
