//! Secrets and tokens of the API server of tests: enough of them for compare-and-swap, labels and bound tokens.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// By workspace, namespace and name.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    pub(crate) all: BTreeMap<(String, String, String), Value>,
    /// Tokens that were issued, with the account and the name of the Secret.
    issued: Vec<(String, String, String)>,
    serial: u64,
}

fn failure(code: u16, reason: &str, name: &str) -> (u16, Value) {
    let message = format!("secrets {name:?}: {reason}");
    (
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": {"name": name}}),
    )
}

fn merge(into: &mut Value, patch: &Value) {
    match (into.is_object(), patch) {
        (true, Value::Object(fields)) => {
            for (name, value) in fields {
                merge(&mut into[name], value);
            }
        }
        _ => *into = patch.clone(),
    }
}

impl Secrets {
    fn stamp(&mut self, object: &mut Value) {
        self.serial += 1;
        object["metadata"]["resourceVersion"] = self.serial.to_string().into();
    }

    /// Whose token this is, if it was issued for these audiences and its Secret is there.
    pub(crate) fn reviewed(&self, workspace: &str, token: &str, audiences: &Value) -> Option<String> {
        let is_for_git = audiences
            .as_array()
            .is_some_and(|all| all.contains(&json!("fairway-git-host")));
        let (_, account, secret) = self.issued.iter().find(|(issued, ..)| issued == token)?;
        let there = self
            .all
            .keys()
            .any(|(home, _, name)| home == workspace && name == secret);
        (is_for_git && there).then(|| account.clone())
    }

    /// Answers what is about them; nothing if something else was asked for.
    pub(crate) fn answer(
        &mut self,
        workspace: &str,
        method: &str,
        path: &str,
        query: &str,
        body: &Value,
    ) -> Option<(u16, Value)> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match parts[..] {
            ["api", "v1", "namespaces", namespace, "serviceaccounts", name] => {
                let meta = json!({"name": name, "namespace": namespace, "uid": format!("uid-of-{name}")});
                Some((
                    200,
                    json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": meta}),
                ))
            }
            [
                "api",
                "v1",
                "namespaces",
                namespace,
                "serviceaccounts",
                name,
                "token",
            ] => {
                let secret = body["spec"]["boundObjectRef"]["name"].as_str().unwrap_or("");
                let claims = json!({"aud": body["spec"]["audiences"],
                                    "kubernetes.io": {"namespace": namespace, "secret": {"name": secret}}});
                let token = format!(
                    "h.{}.s{}",
                    URL_SAFE_NO_PAD.encode(claims.to_string()),
                    self.serial
                );
                let account = format!("system:serviceaccount:{namespace}:{name}");
                self.issued.push((token.clone(), account, secret.to_owned()));
                let mut answer = body.clone();
                answer["status"] = json!({"token": token, "expirationTimestamp": "2030-01-01T00:00:00Z"});
                Some((201, answer))
            }
            ["api", "v1", "namespaces", namespace, "secrets"] => Some(match method {
                "POST" => {
                    let name = body["metadata"]["name"].as_str().unwrap_or("");
                    let key = (workspace.to_owned(), namespace.to_owned(), name.to_owned());
                    if self.all.contains_key(&key) {
                        return Some(failure(409, "AlreadyExists", name));
                    }
                    let mut made = body.clone();
                    self.stamp(&mut made);
                    made["metadata"]["uid"] = format!("secret-{}", self.serial).into();
                    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
                    self.all.insert(key, made.clone());
                    (201, made)
                }
                _ => {
                    let wanted = query
                        .strip_prefix("&labelSelector=")
                        .unwrap_or(query.trim_start_matches("labelSelector="));
                    let wanted = wanted.replace("%2F", "/").replace("%3D", "=");
                    let (label, value) = wanted.split_once('=').unwrap_or(("", ""));
                    let fits =
                        |(home, at, _): &&(String, String, String)| home == workspace && at == namespace;
                    let items: Vec<&Value> = self
                        .all
                        .iter()
                        .filter(|(key, secret)| fits(key) && secret["metadata"]["labels"][label] == value)
                        .map(|(_, secret)| secret)
                        .collect();
                    (
                        200,
                        json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": items}),
                    )
                }
            }),
            ["api", "v1", "namespaces", namespace, "secrets", name] => {
                let key = (workspace.to_owned(), namespace.to_owned(), name.to_owned());
                let Some(known) = self.all.get(&key).cloned() else {
                    return Some(failure(404, "NotFound", name));
                };
                Some(match method {
                    "DELETE" => (200, self.all.remove(&key).unwrap_or_default()),
                    "PUT" if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"] => {
                        failure(409, "Conflict", name)
                    }
                    "PUT" | "PATCH" => {
                        let mut changed = known.clone();
                        merge(&mut changed, body);
                        changed["metadata"]["uid"] = known["metadata"]["uid"].clone();
                        self.stamp(&mut changed);
                        self.all.insert(key, changed.clone());
                        (200, changed)
                    }
                    _ => (200, known),
                })
            }
            _ => None,
        }
    }
}
