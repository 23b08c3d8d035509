//! Disks that are made of objects: seeds of cloud-init, Secrets, ConfigMaps, tokens.
//!
//! What is read and what becomes of it is decided by `plan::seed`; here it is fetched from the instance's own workspace and
//! namespace, and nowhere else, and written.

use std::collections::BTreeSet;

use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_plan::seed::{Content, Objects, Reference, SeedError};
use serde_json::{Value, json};

use crate::paths;

/// How long a token for a guest is good: the guest has no way to ask for another, and its disk is made anew at each start.
const TOKEN_SECONDS: u64 = 365 * 24 * 3600;
/// The authority of the API server, for whoever has a token.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Why objects are not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectsError {
    /// The API does not answer, or refuses.
    #[error("{}", .0.sentence())]
    Api(Failure),
    /// An object is not what it should be.
    #[error(transparent)]
    Seed(#[from] SeedError),
}

/// Reads all objects that exist of those that are wanted.
pub(crate) async fn read(
    api: &Requests,
    of: &ObjectKey,
    wanted: BTreeSet<Reference>,
) -> Result<Objects, ObjectsError> {
    let mut objects = Objects::default();
    for reference in wanted {
        let (plural, name) = match &reference {
            Reference::Secret(name) => ("secrets", name),
            Reference::ConfigMap(name) => ("configmaps", name),
            Reference::ServiceAccount(name) => {
                if let Some(content) = token(api, of, name).await.map_err(ObjectsError::Api)? {
                    objects.0.insert(reference, content);
                }
                continue;
            }
        };
        let Some(path) = paths::beside(of, plural, name) else {
            continue;
        };
        if let Some(mut object) = api.get(&path).await.map_err(ObjectsError::Api)? {
            // Servers leave it out of single objects, and what is read depends on it.
            let kind = if plural == "secrets" {
                "Secret"
            } else {
                "ConfigMap"
            };
            object["kind"] = kind.into();
            objects.add(reference, &object)?;
        }
    }
    Ok(objects)
}

/// The files that a pod of a service account would have; nothing if there is no such account.
async fn token(api: &Requests, of: &ObjectKey, account: &str) -> Result<Option<Content>, Failure> {
    let Some(path) = paths::beside(of, "serviceaccounts", account) else {
        return Ok(None);
    };
    if api.get(&path).await?.is_none() {
        return Ok(None);
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    });
    let answer = api.post(&format!("{path}/token"), &request).await?;
    let token = answer.pointer("/status/token").and_then(Value::as_str);
    let mut content = Content::from([
        ("token".to_owned(), token.unwrap_or_default().as_bytes().to_vec()),
        ("namespace".to_owned(), of.namespace.as_bytes().to_vec()),
    ]);
    if let Some(path) = paths::beside(of, "configmaps", ROOT_CA)
        && let Some(map) = api.get(&path).await?
        && let Some(text) = map["data"]["ca.crt"].as_str()
    {
        content.insert("ca.crt".to_owned(), text.as_bytes().to_vec());
    }
    Ok(Some(content))
}
