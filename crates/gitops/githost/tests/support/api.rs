//! An API server of three questions: who is this, may he do that, and what is this Repository.

#[path = "secrets.rs"]
mod secrets;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// What it knows. Tokens are user names; rights are `user verb name`, objects are by workspace and name.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub users: Vec<String>,
    pub rights: Vec<String>,
    pub objects: BTreeMap<(String, String), Value>,
    pub secrets: secrets::Secrets,
    serial: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Api(pub(crate) Arc<Mutex<Known>>);

impl Api {
    /// A user with rights such as `update app`.
    pub(crate) fn user(&self, name: &str, rights: &[&str]) {
        let mut known = self.0.lock().unwrap();
        known.users.push(name.to_owned());
        known
            .rights
            .extend(rights.iter().map(|right| format!("{name} {right}")));
    }

    /// Makes or changes a Repository of the root workspace.
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over JSON literals")]
    pub(crate) fn repository(&self, name: &str, spec: Value) {
        let mut known = self.0.lock().unwrap();
        known.serial += 1;
        let key = ("root".to_owned(), name.to_owned());
        let uid = known
            .objects
            .get(&key)
            .map(|object| object["metadata"]["uid"].clone());
        let uid = uid.unwrap_or_else(|| format!("uid-{}", known.serial).into());
        let object = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Repository",
            "metadata": {"name": name, "uid": uid, "generation": known.serial, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec,
        });
        known.objects.insert(key, object);
    }

    pub(crate) fn delete(&self, name: &str) {
        let key = ("root".to_owned(), name.to_owned());
        self.0.lock().unwrap().objects.remove(&key);
    }

    pub(crate) fn client(&self, workspace: &str) -> Client {
        let (api, workspace) = (self.clone(), workspace.to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (api, workspace) = (api.clone(), workspace.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let (method, path) = (parts.method.as_str(), parts.uri.path());
                let query = parts.uri.query().unwrap_or("");
                let kept = {
                    let secrets = &mut api.0.lock().unwrap().secrets;
                    secrets.answer(&workspace, method, path, query, &body)
                };
                let (status, answer) = kept.unwrap_or_else(|| api.answer(&workspace, method, path, body));
                let response = Response::builder()
                    .status(status)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(response.unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, workspace: &str, method: &str, path: &str, mut body: Value) -> (u16, Value) {
        let mut known = self.0.lock().unwrap();
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let gone = |name: &str| {
            let details = json!({"group": "fairway.dev", "kind": "repositories", "name": name});
            json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "details": details,
                   "message": format!("repositories.fairway.dev {name:?} not found")})
        };
        match (method, name) {
            ("POST", "tokenreviews") => {
                let token = body["spec"]["token"].as_str().unwrap_or("").to_owned();
                let audiences = &body["spec"]["audiences"];
                let issued = known.secrets.reviewed(workspace, &token, audiences);
                let is_user = audiences.is_null() && known.users.contains(&token);
                let token = issued.clone().unwrap_or(token);
                body["status"] = match is_user || issued.is_some() {
                    true => {
                        json!({"authenticated": true, "user": {"username": token, "groups": ["system:authenticated"]}})
                    }
                    false => json!({"error": "invalid bearer token"}),
                };
                (201, body)
            }
            ("POST", "subjectaccessreviews") => {
                let spec = &body["spec"];
                let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
                let asked = &spec["resourceAttributes"];
                let right = format!(
                    "{} {} {}",
                    text(&spec["user"]),
                    text(&asked["verb"]),
                    text(&asked["name"])
                );
                let allowed = known.rights.contains(&right.trim_end().to_owned());
                body["status"] = json!({"allowed": allowed});
                (201, body)
            }
            ("GET", "repositories") => {
                let items: Vec<&Value> = known
                    .objects
                    .iter()
                    .filter(|((home, _), _)| home == workspace)
                    .map(|(_, object)| object)
                    .collect();
                (
                    200,
                    json!({"kind": "RepositoryList", "apiVersion": "fairway.dev/v1alpha1", "metadata": {}, "items": items}),
                )
            }
            ("POST", "repositories") => {
                let name = body["metadata"]["name"].as_str().unwrap_or("").to_owned();
                let key = (workspace.to_owned(), name);
                if known.objects.contains_key(&key) {
                    return (
                        409,
                        json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "AlreadyExists", "message": "already exists"}),
                    );
                }
                known.serial += 1;
                body["metadata"]["uid"] = format!("uid-{}", known.serial).into();
                body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
                known.objects.insert(key, body.clone());
                (201, body)
            }
            (_, name) if group.ends_with("/repositories") => {
                let key = (workspace.to_owned(), name.to_owned());
                if method == "DELETE" {
                    return match known.objects.remove(&key) {
                        Some(object) => (200, object),
                        None => (404, gone(name)),
                    };
                }
                match known.objects.get_mut(&key) {
                    None => (404, gone(name)),
                    Some(object) => {
                        if method == "PATCH" {
                            for (field, value) in body["spec"].as_object().into_iter().flatten() {
                                object["spec"][field] = value.clone();
                            }
                        }
                        (200, object.clone())
                    }
                }
            }
            _ => (
                404,
                json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": path}),
            ),
        }
    }
}
