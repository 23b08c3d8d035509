//! What a provider may see beyond its own kinds: objects say by a label who sees them, so when consent changes they are
//! labelled anew. The server does that with every write; here each object is written once without a change.

use std::collections::BTreeSet;

use fairway_controller::Requests;
use fairway_controller::error::is_not_found;
use fairway_controller::kinds::discover;
use fairway_controller::{Attempt as _, Failure, Metadata};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

const APPLIED: &str = "appliedPermissionClaims";
const CONDITION: &str = "PermissionClaimsApplied";

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

/// Writes a binding's status. Before anything is labelled, the status says that this is not done yet, and for which kinds:
/// whoever finds it so, after a crash or a change in between, begins again.
pub(super) async fn write(
    client: &Client,
    here: &Requests,
    path: &str,
    object: &Value,
    status: &Value,
) -> Result<(), Failure> {
    let before = object.get("status").unwrap_or(&Value::Null);
    let concerned = &claimed(before.get(APPLIED)) | &claimed(status.get(APPLIED));
    let mut read = object.clone();
    if !concerned.is_empty() && (before.get(APPLIED) != status.get(APPLIED) || !is_labelled(before)) {
        let interim = unlabelled(before, status);
        if *before != interim {
            match here.replace_status(path, object, &interim).await? {
                Some(written) => read = written,
                None => return Ok(()),
            }
        }
        label_anew(client, &concerned).await?;
    }
    here.replace_status(path, &read, status).await.map(drop)
}

fn is_labelled(status: &Value) -> bool {
    let all = status.get("conditions").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .any(|it| it["type"] == CONDITION && it["status"] == "True")
}

/// The status as long as objects are being labelled: it names the kinds of before and of now.
fn unlabelled(before: &Value, now: &Value) -> Value {
    let list = |status: &Value| {
        let claims = status.get(APPLIED).and_then(Value::as_array);
        claims.cloned().unwrap_or_default()
    };
    let same = |a: &Value, b: &Value| {
        ["group", "resource", "identityHash"]
            .iter()
            .all(|field| a.get(*field) == b.get(*field))
    };
    let mut claims = list(now);
    for claim in list(before) {
        if !claims.iter().any(|it| same(it, &claim)) {
            claims.push(claim);
        }
    }
    let mut status = now.clone();
    status[APPLIED] = Value::Array(claims);
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if condition["type"] == CONDITION {
            condition["status"] = json!("False");
            condition["severity"] = json!("Info");
            condition["reason"] = json!("LabellingObjects");
            condition["message"] = json!("Objects are being labelled for the provider");
        }
    }
    status
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is_labelled, unlabelled};

    #[test]
    fn an_unfinished_labelling_can_be_taken_up_again() {
        let claim = |resource: &str, verb: &str| json!({"resource": resource, "verbs": [verb]});
        let status = |claims: Value| json!({"appliedPermissionClaims": claims, "conditions": [{"type": "PermissionClaimsApplied", "status": "True"}]});
        let before = status(json!([claim("configmaps", "get"), claim("secrets", "get")]));
        let now = status(json!([claim("configmaps", "*")]));
        let interim = unlabelled(&before, &now);
        assert!(is_labelled(&now) && !is_labelled(&interim));
        let named = json!([claim("configmaps", "*"), claim("secrets", "get")]);
        assert_eq!(interim["appliedPermissionClaims"], named);
        assert_eq!(
            unlabelled(&interim, &now)["appliedPermissionClaims"],
            named,
            "until it is done"
        );
    }
}
