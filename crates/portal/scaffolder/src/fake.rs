//! A world in memory that can be struck: right before or right after anything that changes it, whoever asked for the change is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fairway_controller::{ClientFactory, Requests, WorkspaceId};
use fairway_outbound::{AllowedHosts, Outbound};
use fairway_portal_template::files::Files;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::ports::{
    Actors, Apis, Forge, ForgeError, Gateways, Hosted, Mail, Mailer, Person, Place, Places, Renderer,
    Unrendered,
};
use crate::{Options, World};

/// At which change who asked is gone, and whether the change has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) at: usize,
    pub(crate) is_after: bool,
}

#[derive(Default)]
struct Things {
    objects: BTreeMap<String, Value>,
    /// Commits of branches of repositories: `web/main` and the messages.
    commits: BTreeMap<String, Vec<String>>,
    pulls: Vec<Value>,
    /// Requests to the portal that change something.
    asked: Vec<String>,
    version: u64,
    changes: usize,
}

#[derive(Default)]
pub(crate) struct Fake {
    things: Mutex<Things>,
    strike: Mutex<Option<Strike>>,
    pub(crate) struck: Notify,
}

impl Fake {
    pub(crate) fn put(&self, path: &str, mut object: Value) {
        let mut things = self.things.lock().unwrap();
        things.version += 1;
        object["metadata"]["resourceVersion"] = things.version.to_string().into();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("uid-{}", things.version).into();
        }
        things.objects.insert(path.to_owned(), object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.things.lock().unwrap().objects.get(path).cloned()
    }

    pub(crate) fn commit(&self, branch: &str, message: &str) {
        let mut things = self.things.lock().unwrap();
        let branch = things.commits.entry(branch.to_owned()).or_default();
        branch.push(message.to_owned());
    }

    /// From now on who asks for the change of this number is gone; how many there were is counted anew.
    pub(crate) fn strike(&self, strike: Option<Strike>) {
        self.things.lock().unwrap().changes = 0;
        *self.strike.lock().unwrap() = strike;
    }

    pub(crate) fn changes(&self) -> usize {
        self.things.lock().unwrap().changes
    }

    /// Everything that is there but for what differs from time to time.
    pub(crate) fn snapshot(&self) -> Value {
        let things = self.things.lock().unwrap();
        let mut objects = things.objects.clone();
        objects.retain(|path, _| !path.contains("/voyages/"));
        for object in objects.values_mut() {
            for field in ["resourceVersion", "uid"] {
                object["metadata"].as_object_mut().unwrap().shift_remove(field);
            }
        }
        let is_there = |branch: &str| {
            let repository = branch.split('/').next().unwrap_or("");
            things
                .objects
                .contains_key(&format!("/apis/fairway.dev/v1alpha1/repositories/{repository}"))
        };
        let commits: BTreeMap<&String, &Vec<String>> = things
            .commits
            .iter()
            .filter(|(branch, _)| is_there(branch))
            .collect();
        let pulls: Vec<&Value> = things
            .pulls
            .iter()
            .filter(|pull| {
                things
                    .commits
                    .contains_key(&format!("platform/{}", pull["head"]["ref"].as_str().unwrap()))
            })
            .collect();
        json!({"objects": objects, "commits": commits, "pulls": pulls, "asked": things.asked})
    }

    /// Makes a change, unless who asks for it is gone before; and does not come back if he is gone after it.
    async fn change<T>(&self, make: impl FnOnce(&mut Things) -> T) -> T {
        let number = {
            let mut things = self.things.lock().unwrap();
            things.changes += 1;
            things.changes
        };
        let strike = (*self.strike.lock().unwrap()).filter(|strike| strike.at == number);
        if strike.is_some_and(|strike| !strike.is_after) {
            self.gone().await;
        }
        let made = make(&mut self.things.lock().unwrap());
        if strike.is_some() {
            self.gone().await;
        }
        made
    }

    /// Whether the namespace of a path is there, or is to be taken for being there.
    fn has_room(&self, path: &str, query: &str) -> bool {
        let namespace = path
            .split_once("/namespaces/")
            .and_then(|(_, rest)| rest.split_once('/'));
        namespace.is_none_or(|(name, _)| {
            query.contains("presumeNamespace=true")
                || self.get(&format!("/api/v1/namespaces/{name}")).is_some()
        })
    }

    async fn gone(&self) {
        self.struck.notify_one();
        std::future::pending::<()>().await;
    }

    async fn answer(&self, method: &str, uri: &str, kind: &str, body: Value) -> (u16, Value) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let is_dry = query.contains("dryRun=All");
        let known = self.get(path);
        match method {
            "GET" => match known {
                Some(object) => (200, object),
                None if path.ends_with("resourcequotas") => (200, json!({"items": []})),
                None => failure(404, "NotFound"),
            },
            "POST" if path.ends_with("selfsubjectreviews") => (201, json!({})),
            "POST" | "PATCH" if is_dry && !self.has_room(path, query) => failure(404, "NotFound"),
            "POST" if is_dry => (201, body),
            "POST" => {
                let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
                self.change(|things| match things.objects.contains_key(&path) {
                    true => failure(409, "AlreadyExists"),
                    false => (201, things.put(&path, body)),
                })
                .await
            }
            "PATCH" if kind.contains("json-patch+json") => {
                let path = path.trim_end_matches("/status").to_owned();
                self.change(|things| {
                    let Some(mut object) = things.objects.get(&path).cloned() else {
                        return failure(404, "NotFound");
                    };
                    if object["metadata"]["resourceVersion"] != body[0]["value"] {
                        return failure(409, "Conflict");
                    }
                    object["status"] = body[1]["value"].clone();
                    (200, things.put(&path, object))
                })
                .await
            }
            "PATCH" if is_dry => (200, merged(known.unwrap_or(json!({"metadata": {}})), &body)),
            "PATCH" => {
                self.change(|things| {
                    let object = things
                        .objects
                        .get(path)
                        .cloned()
                        .unwrap_or(json!({"metadata": {}}));
                    (200, things.put(path, merged(object, &body)))
                })
                .await
            }
            "DELETE" => {
                self.change(|things| match things.objects.remove(path) {
                    Some(_) => (200, json!({"kind": "Status", "status": "Success"})),
                    None => failure(404, "NotFound"),
                })
                .await
            }
            other => panic!("{other} {uri}"),
        }
    }

    fn client(self: &Arc<Self>) -> Client {
        let fake = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = Arc::clone(&fake);
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let kind = parts.headers.get("content-type").and_then(|it| it.to_str().ok());
                let (code, answer) = fake
                    .answer(
                        parts.method.as_str(),
                        &parts.uri.to_string(),
                        kind.unwrap_or(""),
                        body,
                    )
                    .await;
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        Client::new(service, "default")
    }
}

impl Things {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        }
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    (code, status)
}

/// A merge patch, which for what is applied here does the same as an apply.
fn merged(mut object: Value, patch: &Value) -> Value {
    let Value::Object(fields) = patch else {
        return patch.clone();
    };
    for (key, value) in fields {
        match value {
            Value::Null => {
                object.as_object_mut().unwrap().shift_remove(key);
            }
            Value::Object(_) if object[key].is_object() => object[key] = merged(object[key].take(), value),
            value => object[key] = value.clone(),
        }
    }
    object
}

/// The fake, as each port.
#[derive(Clone)]
struct Port(Arc<Fake>);

impl Actors for Port {
    fn client(&self, _: &WorkspaceId, _: &Person) -> Client {
        self.0.client()
    }

    fn workspace(&self, _: &str) -> Option<WorkspaceId> {
        Some(WorkspaceId::root())
    }
}

impl Forge for Port {
    fn url(&self) -> String {
        "https://git.test".to_owned()
    }

    fn owner<'a>(&'a self, _: &'a WorkspaceId) -> BoxFuture<'a, Result<String, ForgeError>> {
        async { Ok("root".to_owned()) }.boxed()
    }

    fn call<'a>(
        &'a self,
        _: &'a WorkspaceId,
        _: &'a Person,
        method: Method,
        path: &'a str,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, ForgeError>> {
        async move {
            let path = path.split('?').next().unwrap_or("");
            let parts: Vec<&str> = path.split('/').collect();
            let text = |key: &str| body[key].as_str().unwrap_or("").to_owned();
            let missing = || ForgeError {
                code: 404,
                message: format!("there is no {path}"),
            };
            match (method.as_str(), &parts[3..]) {
                ("GET", ["branches", branch]) => {
                    let things = self.0.things.lock().unwrap();
                    let commits = things.commits.get(&format!("{}/{branch}", parts[2]));
                    let last = commits.and_then(|all| all.last()).ok_or_else(missing)?;
                    Ok(json!({"commit": {"id": "c0ffee", "message": last}}))
                }
                ("DELETE", ["branches", branch]) => {
                    let name = format!("{}/{branch}", parts[2]);
                    self.0.change(|things| things.commits.remove(&name)).await;
                    Ok(Value::Null)
                }
                ("POST", ["contents"]) => {
                    let branch = match text("new_branch") {
                        new if new.is_empty() => text("branch"),
                        new => new,
                    };
                    let name = format!("{}/{branch}", parts[2]);
                    let commit = |things: &mut Things| {
                        things.commits.entry(name).or_default().push(text("message"));
                    };
                    self.0.change(commit).await;
                    Ok(json!({"commit": {"sha": "c0ffee"}}))
                }
                ("GET", ["pulls"]) => Ok(self.0.things.lock().unwrap().pulls.clone().into()),
                ("POST", ["pulls"]) => {
                    let open = |things: &mut Things| {
                        let number = things.pulls.len() + 1;
                        let pull = json!({
                            "number": number, "html_url": format!("https://git.test/pulls/{number}"),
                            "head": {"ref": text("head")}, "base": {"ref": text("base")},
                        });
                        things.pulls.push(pull.clone());
                        pull
                    };
                    Ok(self.0.change(open).await)
                }
                _ => Err(missing()),
            }
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        _: &'a WorkspaceId,
        _: &'a Person,
        repository: &'a Hosted,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(String, Files), ForgeError>> {
        panic!("nobody reads {repository}")
    }
}

impl Apis for Port {
    fn ask<'a>(
        &'a self,
        _: &'a WorkspaceId,
        _: &'a Person,
        request: Request<Vec<u8>>,
        _: usize,
    ) -> BoxFuture<'a, Result<Response<Vec<u8>>, String>> {
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            self.0.change(|things| things.asked.push(line)).await;
            Ok(Response::new(Vec::new()))
        }
        .boxed()
    }
}

/// By the path of the Application: a chart, files that come to nothing, and such that need others. Of anything else nothing comes.
impl Renderer for Port {
    fn render<'a>(
        &'a self,
        _: &'a Files,
        application: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Value>, Unrendered>> {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rendered"}});
        let found = match application["spec"]["source"]["path"].as_str() {
            Some("chart") => Ok(vec![map]),
            Some("broken") => Err(Unrendered::Wrong("no".to_owned())),
            Some("remote") => Err(Unrendered::Unknown("far".to_owned())),
            _ => Ok(Vec::new()),
        };
        async { found }.boxed()
    }
}

impl Mailer for Port {
    fn send<'a>(&'a self, _: &'a WorkspaceId, mail: &'a Mail) -> BoxFuture<'a, Result<(), (String, bool)>> {
        panic!("the outbox is not part of this: {mail:?}")
    }
}

impl Places for Port {
    fn foresee<'a>(
        &'a self,
        _: &'a WorkspaceId,
        _: &'a Requests,
        _: &'a [Value],
    ) -> BoxFuture<'a, Vec<Place>> {
        async { Vec::new() }.boxed()
    }
}

impl Gateways for Port {
    fn domain(&self) -> &'static str {
        "apps.test"
    }

    fn port(&self, wanted: u16) -> u16 {
        wanted
    }
}

/// A process in that world.
pub(crate) fn process(fake: &Arc<Fake>) -> Arc<World> {
    let port = Port(Arc::clone(fake));
    let of_clients = Arc::clone(fake);
    World::new(Options {
        clients: ClientFactory::plain(move |_| of_clients.client()),
        actors: Arc::new(port.clone()),
        forge: Arc::new(port.clone()),
        apis: Arc::new(port.clone()),
        mailer: Arc::new(port.clone()),
        outbound: Arc::new(Outbound::new(AllowedHosts::parse("").unwrap())),
        builtins: Arc::new([]),
        places: Arc::new(port.clone()),
        renderer: Arc::new(port.clone()),
        gateways: Arc::new(port),
        portal: "https://portal.test".to_owned(),
    })
}
