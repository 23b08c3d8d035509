//! Where hooks are kept: a Secret of the repository's workspace, because addresses and passwords of receivers are secrets.
//! It belongs to the Repository object and goes with it.

use fairway_controller::error::{is_already_exists, is_conflict};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use serde_json::{Value, json};

use super::hook::Hook;
use crate::catalog::{GROUP, Wanted};

/// The namespace that every workspace has.
pub(crate) const NAMESPACE: &str = "default";
const TYPE: &str = "fairway.dev/git-hooks";
const FIELD: &str = "hooks";
/// The most hooks of a repository.
const MAX_HOOKS: usize = 50;
/// How often somebody else may be quicker.
const ATTEMPTS: usize = 8;

fn name(wanted: &Wanted) -> String {
    format!("fairway-git-hooks-{}", wanted.name)
}

fn api(client: Client) -> Api<Secret> {
    Api::namespaced(client, NAMESPACE)
}

/// Why hooks cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("{0}")]
    Refused(String),
}

/// What the Secret says; nothing if it is somebody else's.
fn read(secret: &Secret, wanted: &Wanted) -> Option<Value> {
    let owners = secret.metadata.owner_references.as_deref().unwrap_or_default();
    let is_ours = secret.type_.as_deref() == Some(TYPE) && owners.iter().any(|owner| owner.uid == wanted.uid);
    let bytes = &secret.data.as_ref()?.get(FIELD)?.0;
    is_ours.then(|| serde_json::from_slice(bytes).ok()).flatten()
}

fn hooks(kept: &Value) -> Vec<Hook> {
    let kept = kept["hooks"].as_array().into_iter().flatten();
    kept.filter_map(Hook::read).collect()
}

/// The hooks of a repository.
pub(crate) async fn list(client: Client, wanted: &Wanted) -> Result<Vec<Hook>, kube::Error> {
    let secret = api(client).get_opt(&name(wanted)).await?;
    let kept = secret.and_then(|secret| read(&secret, wanted));
    Ok(kept.as_ref().map(hooks).unwrap_or_default())
}

/// Changes the hooks. The change gets a number that no hook had, and may be asked for again.
pub(crate) async fn change<T>(
    client: Client,
    wanted: &Wanted,
    mut change: impl FnMut(&mut Vec<Hook>, u64) -> Result<T, String>,
) -> Result<T, StoreError> {
    let api = api(client);
    for _ in 0..ATTEMPTS {
        let found = api.get_opt(&name(wanted)).await?;
        let kept = found
            .as_ref()
            .and_then(|secret| read(secret, wanted))
            .unwrap_or_default();
        let mut all = hooks(&kept);
        let next = kept["last"].as_u64().unwrap_or(0) + 1;
        let outcome = change(&mut all, next).map_err(StoreError::Refused)?;
        if all.len() > MAX_HOOKS {
            let why = format!("a repository has at most {MAX_HOOKS} hooks");
            return Err(StoreError::Refused(why));
        }
        let last = all.iter().map(|hook| hook.id).max().unwrap_or(0).max(next - 1);
        let records: Vec<Value> = all.iter().map(Hook::record).collect();
        let content = json!({"last": last, "hooks": records}).to_string().into_bytes();
        let version = found
            .as_ref()
            .and_then(|secret| secret.metadata.resource_version.clone());
        let secret = secret(wanted, version, content);
        let written = match found {
            None => api.create(&PostParams::default(), &secret).await,
            Some(_) => api.replace(&name(wanted), &PostParams::default(), &secret).await,
        };
        match written {
            Ok(_) => return Ok(outcome),
            Err(error) if is_conflict(&error) || is_already_exists(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Refused(
        "the hooks are changed by others all the time; try again".to_owned(),
    ))
}

fn secret(wanted: &Wanted, version: Option<String>, content: Vec<u8>) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name(wanted)),
            resource_version: version,
            owner_references: Some(vec![OwnerReference {
                api_version: format!("{GROUP}/v1alpha1"),
                kind: "Repository".to_owned(),
                name: wanted.name.clone(),
                uid: wanted.uid.clone(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some([(FIELD.to_owned(), ByteString(content))].into()),
        ..Secret::default()
    }
}
