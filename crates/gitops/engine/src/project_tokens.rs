//! Tokens of projects' roles: issued, revoked, and taken for what they say.
//!
//! They are signed with the key in the Secret `argocd-secret` of the control plane (`server.secretkey`), which is made when the
//! first token is; so tokens of an Argo CD whose Secret and projects were brought along stay good.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL};
use fairway_api::argoproj::{API_VERSION, CONTROL_PLANES};
use fairway_controller::requests::version;
use fairway_controller::{Clients, Failure, ObjectKey, Requests, WorkspaceId};
use fairway_gitops_sync::rbac::token::{self, ISSUER, ProjectToken};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

/// The Secret, and the key in it.
const SECRET: &str = "argocd-secret";
const KEY: &str = "server.secretkey";
/// The longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;
/// How often a write is tried again because somebody else was quicker.
const ATTEMPTS: usize = 10;

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// `proj:PROJECT:ROLE`.
    pub name: String,
    /// The namespace of the control plane.
    pub control_plane: String,
}

/// Why there is no token.
pub(crate) enum NoToken {
    NotFound(String),
    Invalid(String),
    Failed(Failure),
}

impl From<Failure> for NoToken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Finds out whom tokens stand for.
#[derive(Clone)]
pub struct ProjectTokens {
    clients: Clients,
}

impl ProjectTokens {
    /// With these clients, who must be able to read Secrets and projects.
    pub fn new(clients: Clients) -> Self {
        Self { clients }
    }

    /// Whom a token stands for in a workspace; none if it does not claim to be one of ours.
    pub async fn authenticate(&self, workspace: &str, token: &str) -> Option<Result<Bearer, String>> {
        // Every request with a token comes by here. Other kinds are told by their short head, before their claims are read.
        if token.len() > MAX_TOKEN || !is_signed_as_ours(token) || claims_of(token)?["iss"] != ISSUER {
            return None;
        }
        Some(self.check(workspace, token).await)
    }

    async fn check(&self, workspace: &str, token: &str) -> Result<Bearer, String> {
        let workspace = WorkspaceId::parse(workspace).map_err(|error| error.to_string())?;
        let requests = Requests::new(self.clients.of(&workspace));
        for namespace in CONTROL_PLANES {
            let secret = requests.get(&secret_path(namespace)).await;
            let Some(key) = secret
                .map_err(|failure| failure.sentence())?
                .as_ref()
                .and_then(key_in)
            else {
                continue;
            };
            let Some(claims) = verified(token, &key) else {
                continue;
            };
            let said = ProjectToken::read(&claims, now())?;
            let path = project_path(namespace, &said.project);
            let project = requests.get(&path).await.map_err(|failure| failure.sentence())?;
            return match project.is_some_and(|project| said.is_listed(&project)) {
                true => Ok(Bearer {
                    name: fairway_gitops_sync::rbac::roles::subject(&said.project, &said.role),
                    control_plane: namespace.to_owned(),
                }),
                false => Err(format!(
                    "the project {} does not know the token any more",
                    said.project
                )),
            };
        }
        Err("no control plane of the workspace has signed the token".to_owned())
    }
}

/// Makes a token of a role, and lists it in the project.
pub(crate) async fn issue(
    requests: &Requests,
    project: &ObjectKey,
    role: &str,
    id: &str,
    lifetime: i64,
) -> Result<String, NoToken> {
    if lifetime < 0 {
        return Err(NoToken::Invalid("expiresIn must not be negative".to_owned()));
    }
    if id.len() > 253 || id.chars().any(char::is_control) {
        return Err(NoToken::Invalid(
            "the id is too long, or cannot be printed".to_owned(),
        ));
    }
    let key = signing_key(requests, &project.namespace).await?;
    let issued = now();
    let made = ProjectToken {
        project: project.name.clone(),
        role: role.to_owned(),
        id: match id {
            "" => random_id()?,
            id => id.to_owned(),
        },
        issued,
        expires: if lifetime == 0 {
            0
        } else {
            issued.saturating_add(lifetime)
        },
    };
    change(requests, project, |object| made.listing(object, issued)).await?;
    Ok(signed(&made.claims(), &key))
}

/// Revokes a token, by its id or the time at which it was made.
pub(crate) async fn revoke(
    requests: &Requests,
    project: &ObjectKey,
    role: &str,
    id: &str,
) -> Result<(), NoToken> {
    change(requests, project, |object| token::revocation(object, role, id)).await
}

async fn change(
    requests: &Requests,
    key: &ObjectKey,
    make: impl Fn(&Value) -> Result<Value, String>,
) -> Result<(), NoToken> {
    let missing = || NoToken::NotFound(format!("appprojects.argoproj.io {:?} not found", key.name));
    let path = project_path(&key.namespace, &key.name);
    for _ in 0..ATTEMPTS {
        let object = requests.get(&path).await?.ok_or_else(missing)?;
        let mut patch = make(&object).map_err(NoToken::Invalid)?;
        patch["metadata"] = json!({"resourceVersion": version(&object)});
        match requests.merge(&path, &patch).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => return Err(missing()),
            Err(failure) if failure.is_conflict() => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let why = format!("the project {} changes too often; try again", key.name);
    Err(NoToken::Failed(Failure::NotYet(why)))
}

fn project_path(namespace: &str, name: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/appprojects/{name}")
}

fn secret_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets/{SECRET}")
}

fn key_in(secret: &Value) -> Option<Vec<u8>> {
    let key = BASE64.decode(secret["data"][KEY].as_str()?).ok()?;
    // An empty key would be everybody's.
    (!key.is_empty()).then_some(key)
}

/// The key of a control plane, made if there is none.
async fn signing_key(requests: &Requests, namespace: &str) -> Result<Vec<u8>, NoToken> {
    let path = secret_path(namespace);
    for _ in 0..ATTEMPTS {
        let secret = requests.get(&path).await?;
        if let Some(key) = secret.as_ref().and_then(key_in) {
            return Ok(key);
        }
        let mut fresh = [0; 32];
        fill(&mut fresh)?;
        let data = json!({KEY: BASE64.encode(fresh)});
        match secret {
            None => {
                let labels = json!({"app.kubernetes.io/name": SECRET, "app.kubernetes.io/part-of": "argocd"});
                let made = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                    "metadata": {"name": SECRET, "namespace": namespace, "labels": labels},
                });
                requests
                    .create(&format!("/api/v1/namespaces/{namespace}/secrets"), &made)
                    .await?;
            }
            Some(secret) => {
                let patch = json!({"data": data, "metadata": {"resourceVersion": version(&secret)}});
                match requests.merge(&path, &patch).await {
                    Err(failure) if !failure.is_conflict() => return Err(failure.into()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
    let why = format!("the Secret {namespace}/{SECRET} changes too often; try again");
    Err(NoToken::Failed(Failure::NotYet(why)))
}

fn fill(bytes: &mut [u8]) -> Result<(), NoToken> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| NoToken::Failed(Failure::NotYet("the machine gives no randomness".to_owned())))
}

/// A random UUID.
fn random_id() -> Result<String, NoToken> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Whether a token says that it is signed in the one way in which ours are: a token does not choose how it is checked.
fn is_signed_as_ours(token: &str) -> bool {
    let head = token
        .split('.')
        .next()
        .and_then(|head| BASE64_URL.decode(head).ok());
    let head: Option<Value> = head.and_then(|head| serde_json::from_slice(&head).ok());
    head.is_some_and(|head| head["alg"] == "HS256")
}

/// The claims of a token, unverified.
fn claims_of(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    serde_json::from_slice(&BASE64_URL.decode(claims).ok()?).ok()
}

fn signed(claims: &Value, key: &[u8]) -> String {
    let header = BASE64_URL.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let text = format!("{header}.{}", BASE64_URL.encode(claims.to_string()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = BASE64_URL.encode(hmac::sign(&key, text.as_bytes()));
    format!("{text}.{signature}")
}

/// The claims of a token that this key has signed.
fn verified(token: &str, key: &[u8]) -> Option<Value> {
    let (text, signature) = token.rsplit_once('.')?;
    let (_, claims) = text.split_once('.')?;
    if !is_signed_as_ours(token) || claims.contains('.') {
        return None;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::verify(&key, text.as_bytes(), &BASE64_URL.decode(signature).ok()?).ok()?;
    serde_json::from_slice(&BASE64_URL.decode(claims).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_key_signed_is_taken() {
        let claims = json!({"iss": ISSUER, "sub": "proj:shop:ci", "iat": 1});
        let token = signed(&claims, b"secret");
        assert_eq!(verified(&token, b"secret"), Some(claims.clone()));
        assert_eq!(claims_of(&token), Some(claims));
        assert_eq!(verified(&token, b"other"), None);
        let (text, signature) = token.rsplit_once('.').unwrap();
        let (_, body) = text.split_once('.').unwrap();
        for forged in [
            format!("{text}."),
            format!("{}.{body}.{signature}", BASE64_URL.encode(r#"{"alg":"none"}"#)),
            format!("{text}x.{signature}"),
            format!("{text}.{signature}.x"),
            "a.b".to_owned(),
            String::new(),
        ] {
            assert_eq!(verified(&forged, b"secret"), None, "{forged}");
        }
    }

    /// The token that everybody's documentation shows, which other programs have signed.
    #[test]
    fn signatures_are_those_of_others() {
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
        let claims = verified(token, b"your-256-bit-secret").unwrap();
        assert_eq!(claims["name"], "John Doe");
    }

    #[test]
    fn ids_are_random_uuids() {
        let (Ok(one), Ok(other)) = (random_id(), random_id()) else {
            panic!("no randomness")
        };
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
    }

    #[test]
    fn an_empty_key_is_none() {
        assert_eq!(key_in(&json!({"data": {KEY: ""}})), None);
        assert_eq!(key_in(&json!({"data": {}})), None);
        assert_eq!(key_in(&json!({"data": {KEY: "YQ=="}})), Some(b"a".to_vec()));
    }
}
