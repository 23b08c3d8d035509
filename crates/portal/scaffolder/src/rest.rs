//! Backstage's scaffolder API (`/api/scaffolder/v2/...`), as its clients know it. Tasks are Voyages, and are read and written as whoever
//! shows a token; what it answers is what that person may see.

mod answer;
mod autocomplete;
pub(crate) mod body;
mod events;
mod extensions;
mod retry;
mod shapes;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fairway_api::fairway::VOYAGE;
use fairway_apiservice::User;
use fairway_controller::{Requests, Shutdown, WorkspaceId};
use fairway_portal_template::files::{File, Files};
use fairway_portal_template::pages;
use fairway_portal_template::template::{Page, Template};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::ports::Person;
use crate::submit::{self, Submission};
use crate::who::{collection, is_name};
use crate::{World, actions, dry_run, templates};
use answer::Problem;

/// The largest request.
const MAX_BODY: usize = 1 << 20;
/// The largest question for a dry run: the files of its template come with it.
const MAX_DRY_RUN: usize = 10 << 20;
/// So many streams of events are open at once: each stays until its run is over.
const MAX_STREAMS: usize = 500;
/// By which a request says which workspace it is about.
const WORKSPACE: &str = "x-fairway-workspace";

/// An error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Answers requests.
#[derive(Clone)]
pub struct Rest {
    world: Arc<World>,
    /// A permit for each stream of events that may be open.
    streams: Arc<Semaphore>,
}

/// A request that was read.
struct Call {
    world: Arc<World>,
    workspace: WorkspaceId,
    person: Person,
    requests: Requests,
    /// Of each name the last.
    query: BTreeMap<String, String>,
    /// All of them.
    pairs: Vec<(String, String)>,
    body: Value,
}

impl Rest {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self {
            world,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    /// Whether a path is answered here.
    pub fn serves(path: &str) -> bool {
        path == "/api/scaffolder" || path.starts_with("/api/scaffolder/")
    }

    /// Answers a request.
    pub async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        match self.answer(request).await {
            Ok(answer) => answer,
            Err(problem) => problem.response(&method, uri.path()),
        }
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Problem> {
        let (parts, body) = request.into_parts();
        let pairs: Vec<(String, String)> = form_urlencoded::parse(parts.uri.query().unwrap_or("").as_bytes())
            .into_owned()
            .collect();
        let query: BTreeMap<String, String> = pairs.iter().cloned().collect();
        // Whoever asks from within the process is known already; no request from outside has this.
        let (workspace, person) = match parts.extensions.get::<User>() {
            Some(user) => (self.named(&parts.headers)?, Person::from(user)),
            None => self.caller(&parts.headers, query.get("workspace")).await?,
        };
        let most = match parts.uri.path().ends_with("/v2/dry-run") {
            true => MAX_DRY_RUN,
            false => MAX_BODY,
        };
        let bytes = body::read(body, most).await;
        let bytes = bytes.ok_or_else(|| {
            let why = format!("the request has more than {} MiB, or was broken off", most >> 20);
            Problem::input(&why)
        })?;
        let body = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes)
                .map_err(|error| Problem::input(&format!("the body is not JSON: {error}")))?,
        };
        let call = Call {
            requests: Requests::new(self.world.options.actors.client(&workspace, &person)),
            world: Arc::clone(&self.world),
            workspace,
            person,
            query,
            pairs,
            body,
        };
        let path = parts.uri.path().strip_prefix("/api/scaffolder/").unwrap_or("");
        let decoded: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| {
                form_urlencoded::parse(format!("k={}", part.replace('+', "%2B")).as_bytes())
                    .next()
                    .map_or(String::new(), |(_, v)| v.into_owned())
            })
            .collect();
        let path: Vec<&str> = decoded.iter().map(String::as_str).collect();
        match (&parts.method, &path[..]) {
            (&Method::GET, ["v2", "actions"]) => {
                let all: Vec<Value> = actions::ACTIONS.iter().map(actions::describe).collect();
                Ok(answer::json(200, &Value::Array(all)))
            }
            (&Method::GET, ["v2", "templating-extensions"]) => Ok(answer::json(200, &extensions::all())),
            (&Method::POST, ["v2", "autocomplete", provider, resource]) => {
                call.autocomplete(provider, resource).await
            }
            (&Method::GET, ["v2", "templates", namespace, kind, name, "parameter-schema"]) => {
                call.parameter_schema(&format!("{kind}:{namespace}/{name}")).await
            }
            // Not one of Backstage's: who has no expressions of his own asks which pages his answers lead to.
            (&Method::POST, ["v2", "templates", namespace, kind, name, "parameter-schema"]) => {
                call.parameter_schema(&format!("{kind}:{namespace}/{name}")).await
            }
            (&Method::POST, ["v2", "dry-run"]) => call.dry_run().await,
            (&Method::POST, ["v2", "tasks"]) => call.create().await,
            (&Method::GET, ["v2", "tasks"]) => call.list().await,
            (&Method::GET, ["v2", "tasks", id]) => {
                Ok(answer::json(200, &shapes::task(&call.voyage(id).await?)))
            }
            (&Method::GET, ["v2", "tasks", id, "events"]) => {
                let voyage = call.voyage(id).await?;
                let after = call.query.get("after").and_then(|after| after.parse().ok());
                Ok(answer::json(200, &Value::Array(events::after(&voyage, after))))
            }
            (&Method::GET, ["v2", "tasks", id, "eventstream"]) => {
                call.voyage(id).await?;
                let after = call.query.get("after").and_then(|after| after.parse().ok());
                let (namespace, name) = place(id)?;
                let path = format!("{}/{name}", collection(VOYAGE, &namespace));
                let permit = Arc::clone(&self.streams).try_acquire_owned();
                let permit = permit.map_err(|_| Problem::busy(MAX_STREAMS))?;
                Ok(events::stream(events::Listener::of(call, path, after, permit)))
            }
            (&Method::POST, ["v2", "tasks", id, "cancel"]) => {
                call.wish(id, |_| json!({"cancel": true})).await?;
                Ok(answer::json(200, &json!({"status": "cancelled"})))
            }
            (&Method::POST, ["v2", "tasks", id, "retry"]) => call.retry(id).await,
            _ => Err(Problem::not_found("there is nothing at this address")),
        }
    }

    /// The workspace that a request from within names.
    fn named(&self, headers: &HeaderMap) -> Result<WorkspaceId, Problem> {
        let named = headers.get(WORKSPACE).and_then(|value| value.to_str().ok());
        let found = named.and_then(|path| self.world.options.actors.workspace(path));
        found.ok_or_else(Problem::unauthenticated)
    }

    /// Who asks, and about which workspace: both are found out anew for each request.
    async fn caller(
        &self,
        headers: &HeaderMap,
        asked: Option<&String>,
    ) -> Result<(WorkspaceId, Person), Problem> {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .filter(|token| !token.is_empty())
            .ok_or_else(Problem::unauthenticated)?;
        let named = headers
            .get(WORKSPACE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let named = named
            .or_else(|| asked.cloned())
            .or_else(|| fairway_api::identity::home_of_token(token));
        let actors = &self.world.options.actors;
        let workspace = match named {
            None => WorkspaceId::root(),
            Some(path) => actors.workspace(&path).ok_or_else(Problem::unauthenticated)?,
        };
        let own = Requests::new(self.world.own.of(&workspace));
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let answer = own
            .post("/apis/authentication.k8s.io/v1/tokenreviews", &review)
            .await;
        let answer = answer.map_err(|_| Problem::unauthenticated())?;
        if answer["status"]["authenticated"] != true {
            return Err(Problem::unauthenticated());
        }
        let person = serde_json::from_value(answer["status"]["user"].clone());
        Ok((workspace, person.map_err(|_| Problem::unauthenticated())?))
    }
}

/// The secrets that came with a request.
fn secrets_of(body: &Value) -> Result<BTreeMap<String, String>, Problem> {
    let secrets: BTreeMap<String, String> = body["secrets"]
        .as_object()
        .into_iter()
        .flatten()
        // Backstage's own clients put the token of who asks here; it is not needed, and not kept.
        .filter(|(name, _)| name.as_str() != "backstageToken")
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let is_key = |name: &String| is_name(name) && name.len() <= 100;
    match secrets.keys().find(|name| !is_key(name)) {
        Some(wrong) => Err(Problem::input(&format!(
            "{wrong:?} cannot be the name of a secret"
        ))),
        None => Ok(secrets),
    }
}

/// The namespace and name of the Voyage that a task is.
fn place(id: &str) -> Result<(String, String), Problem> {
    let missing = || Problem::not_found(&format!("there is no task {id:?}"));
    let (namespace, name) = id.split_once('.').ok_or_else(missing)?;
    match is_name(namespace) && is_name(name) {
        true => Ok((namespace.to_owned(), name.to_owned())),
        false => Err(missing()),
    }
}

impl Call {
    async fn voyage(&self, id: &str) -> Result<Value, Problem> {
        let (namespace, name) = place(id)?;
        let path = format!("{}/{name}", collection(VOYAGE, &namespace));
        let found = self
            .requests
            .get(&path)
            .await
            .map_err(|failure| Problem::api(&failure))?;
        found.ok_or_else(|| Problem::not_found(&format!("there is no task {id:?}")))
    }

    async fn wish(&self, id: &str, spec: impl FnOnce(&Value) -> Value) -> Result<(), Problem> {
        let voyage = self.voyage(id).await?;
        let (namespace, name) = place(id)?;
        let path = format!("{}/{name}", collection(VOYAGE, &namespace));
        let patch = json!({"spec": spec(&voyage)});
        let changed = self.requests.merge(&path, &patch).await;
        changed.map(drop).map_err(|failure| Problem::api(&failure))
    }

    fn submission(&self) -> Result<Submission, Problem> {
        let values = self.body["values"].as_object().cloned().unwrap_or_default();
        let secrets = secrets_of(&self.body)?;
        Ok(Submission {
            template: self.body["templateRef"].as_str().unwrap_or("").to_owned(),
            namespace: self
                .query
                .get("namespace")
                .cloned()
                .unwrap_or_else(|| "default".to_owned()),
            values,
            secrets,
            keep: self.body["keepOnFailure"] == true,
            suffix: suffix(),
        })
    }

    async fn template(&self, reference: &str) -> Result<(Value, Template), Problem> {
        let found = templates::find(&self.requests, &self.world.options.builtins, reference).await;
        let entity = found.map_err(|why| Problem::not_found(&why))?;
        let read = Template::read(&entity).map_err(|problems| Problem::input(&problems.join("; ")))?;
        Ok((entity, read))
    }

    async fn create(&self) -> Result<Response<Body>, Problem> {
        let mut submission = self.submission()?;
        let (_, template) = self.template(&submission.template).await?;
        let unknown = template.unknown_actions(&actions::names());
        if !unknown.is_empty() {
            return Err(Problem::input(&unknown.join("; ")));
        }
        let answers = submit::judge(&template, &submission.values, &submission.secrets).map_err(|complaints| {
            // Backstage's form shows these beside the questions.
            let errors = complaints.iter().map(|complaint| {
                json!({"path": [], "property": format!("instance.{}", complaint.path), "message": complaint.message, "stack": complaint.to_string()})
            });
            Problem::errors(errors.collect())
        })?;
        (submission.values, submission.secrets) = (answers.values, answers.secrets);
        submission.template = template.reference();
        let made = submit::submit(&self.requests, &submission)
            .await
            .map_err(|why| Problem::forbidden(&why))?;
        Ok(answer::json(201, &json!({"id": shapes::id(&made)})))
    }

    async fn list(&self) -> Result<Response<Body>, Problem> {
        let wanted = tasks::Wanted::read(&self.pairs).map_err(|why| Problem::input(&why))?;
        let found = self.requests.list(&collection(VOYAGE, "")).await;
        let found = found.map_err(|failure| Problem::api(&failure))?;
        let (tasks, total) = wanted.of(found);
        Ok(answer::json(200, &json!({"tasks": tasks, "totalTasks": total})))
    }

    async fn parameter_schema(&self, reference: &str) -> Result<Response<Body>, Problem> {
        let (entity, template) = self.template(reference).await?;
        let given = self.body["values"].as_object().cloned().unwrap_or_default();
        // Conditions of later pages may want answers that nobody has given yet.
        let asked = pages::asked_so_far(&template, &given);
        let steps: Vec<Value> = template
            .pages
            .iter()
            .zip(asked.is_shown)
            .map(|(page, is_shown)| page_of(page, is_shown))
            .collect();
        Ok(answer::json(
            200,
            &json!({
                "title": template.title, "description": template.description, "steps": steps,
                "presentation": entity["spec"]["presentation"], "EXPERIMENTAL_formDecorators": entity["spec"]["EXPERIMENTAL_formDecorators"],
            }),
        ))
    }

    /// The files beside a template, as Backstage's clients send them for a dry run.
    fn beside(&self) -> Result<Option<Files>, Problem> {
        let Some(given) = self.body["directoryContents"]
            .as_array()
            .filter(|given| !given.is_empty())
        else {
            return Ok(None);
        };
        let mut files = Files::default();
        for file in given {
            let path = file["path"].as_str().unwrap_or("");
            let content = STANDARD.decode(file["base64Content"].as_str().unwrap_or(""));
            let content = content.map_err(|error| {
                Problem::input(&format!("the content of {path:?} is not base64: {error}"))
            })?;
            files
                .write(path, File::new(content))
                .map_err(|error| Problem::input(&error.to_string()))?;
        }
        Ok(Some(files))
    }

    async fn dry_run(&self) -> Result<Response<Body>, Problem> {
        let mut submission = self.submission()?;
        let template = self
            .body
            .get("template")
            .filter(|template| template.is_object())
            .cloned();
        if template.is_none() && submission.template.is_empty() {
            return Err(Problem::input("template or templateRef is missing"));
        }
        if let Some(template) = &template {
            submission.template = format!(
                "template:default/{}",
                template["metadata"]["name"].as_str().unwrap_or("dry-run")
            );
        }
        let template = match template {
            Some(template) => Some((template, self.beside()?)),
            None => None,
        };
        let (_trigger, shutdown) = Shutdown::new();
        let done = dry_run::dry_run(
            &self.world,
            &self.workspace,
            &self.person,
            template,
            &submission,
            shutdown,
        )
        .await;
        done.map(|report| answer::json(200, &report))
            .map_err(|why| Problem::input(&why))
    }
}

/// A page as Backstage shows it, with its condition if it has one; and whether it is asked.
fn page_of(page: &Page, is_shown: bool) -> Value {
    let mut shown = json!({
        "title": page.title, "description": page.description, "schema": page.schema, "isShown": is_shown,
    });
    if let Some(when) = &page.when {
        shown["when"] = when.clone();
    }
    shown
}

/// What makes the name of a Voyage unlike others; the API refuses one that is taken.
fn suffix() -> String {
    let nanos = jiff::Timestamp::now().as_nanosecond();
    let mut rest = u64::try_from(nanos % 60_466_176_000).unwrap_or(0);
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = String::new();
    for _ in 0..7 {
        let at = usize::try_from(rest % 27).unwrap_or(0);
        text.push(char::from(letters[at]));
        rest /= 27;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shown_with_its_condition_beside_the_schema() {
        let template = Template::read(&json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [{"action": "debug:log"}], "parameters": [
                {"title": "A", "properties": {"a": {}}},
                {"title": "B", "when": "${{ parameters.a }}", "properties": {"b": {}}},
            ]},
        }))
        .unwrap();
        let first = page_of(&template.pages[0], true);
        assert_eq!((first.get("when"), &first["isShown"]), (None, &json!(true)));
        let second = page_of(&template.pages[1], false);
        assert_eq!(
            second,
            json!({"title": "B", "description": "", "isShown": false, "when": "${{ parameters.a }}",
                "schema": {"title": "B", "properties": {"b": {}}}})
        );
    }
}
