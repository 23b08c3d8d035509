//! What the commands for Applications, ApplicationSets, projects and clusters share: the API that is meant, finding
//! objects by the names that people use, and asking back.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use fairway_api::Kind;
use fairway_api::argoproj::{APPLICATION, CONTROL_PLANES};
use fairway_controller::{Failure, Requests};
use fairway_gitops_view::field::{list, qualified_name, text};
use fairway_kernel_tenancy::WorkspacePath;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::workspace::server::Server;
use crate::cli::gitops::Place;

/// What `argocd` ends with when something went wrong.
const GENERIC: u8 = 20;

/// Runs a command. Errors end with the code that scripts know from `argocd`.
pub(super) fn run(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
    Ok(runtime.block_on(command).unwrap_or_else(|error| {
        eprintln!("fairway: {error:#}");
        ExitCode::from(GENERIC)
    }))
}

/// What a server answered, in its own words.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where errors are handed on"
)]
pub(super) fn told(failure: Failure) -> anyhow::Error {
    anyhow!("{}", failure.sentence())
}

/// The API that a command speaks to.
pub(super) struct Session {
    pub(super) requests: Requests,
    client: Client,
    server: Server,
}

impl Session {
    /// The API of the chosen context and workspace.
    pub(super) async fn open(place: &Place) -> anyhow::Result<Self> {
        let server = Server::of_context(&place.place, place.context.as_deref()).await?;
        let client = match &place.workspace {
            None => server.own_client()?,
            Some(path) => {
                let path = WorkspacePath::parse(path.trim_start_matches(':'));
                server.client(&path.with_context(|| "this is not the path of a workspace".to_owned())?)?
            }
        };
        Ok(Self {
            requests: Requests::new(client.clone()),
            client,
            server,
        })
    }

    /// The server of another context of the same kubeconfig.
    pub(super) async fn other(&self, place: &Place, context: &str) -> anyhow::Result<Server> {
        Server::of_context(&place.place, Some(context)).await
    }

    /// The address of the workspace.
    pub(super) fn address(&self) -> String {
        self.server.here.to_string()
    }

    /// A kind in one namespace, for watching.
    pub(super) fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let named = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, kind.plural);
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// All objects of a kind, in one namespace or all, sorted by name.
    pub(super) async fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> anyhow::Result<Vec<Value>> {
        let path = collection(kind, namespace);
        let found = match selector {
            Some(selector) => self.requests.list_selected(&path, selector).await,
            None => self.requests.list(&path).await,
        };
        let mut found = found.map_err(told)?;
        for object in &mut found {
            complete(object, kind);
        }
        found.sort_by_key(qualified_name);
        Ok(found)
    }

    /// The object that a name means: `NAMESPACE/NAME`, a name in the given namespace, or a name that there is once.
    pub(super) async fn find(
        &self,
        kind: Kind,
        name: &str,
        namespace: Option<&str>,
    ) -> anyhow::Result<Value> {
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (namespace, name),
        };
        if name.is_empty() || name.contains('/') {
            bail!("{name:?} is not the name of an object: write NAME or NAMESPACE/NAME");
        }
        let namespaces = namespace.map_or_else(|| CONTROL_PLANES.to_vec(), |one| vec![one]);
        for one in namespaces {
            let path = format!("{}/{name}", collection(kind, Some(one)));
            let found = match self.requests.get(&path).await {
                Err(failure) if is_forbidden(&failure) && kind == APPLICATION => {
                    // Who came with the token of a project's role is shown what its policies allow.
                    self.view(&path).await.map_err(|_| told(failure))?
                }
                found => found.map_err(told)?,
            };
            if let Some(mut object) = found {
                complete(&mut object, kind);
                return Ok(object);
            }
        }
        if namespace.is_none() {
            let all = self.list(kind, None, None).await.unwrap_or_default();
            let mut named: Vec<Value> = all
                .into_iter()
                .filter(|it| text(it, "/metadata/name") == name)
                .collect();
            match named.len() {
                0 => {}
                1 => return Ok(named.remove(0)),
                _ => {
                    let names: Vec<String> = named.iter().map(qualified_name).collect();
                    bail!(
                        "there are several {} named {name}: choose one of {}",
                        kind.plural,
                        names.join(", ")
                    );
                }
            }
        }
        let place = namespace.map_or_else(|| "any namespace".to_owned(), |it| format!("namespace {it}"));
        bail!(
            "{} {name:?} not found in {place} of {}",
            kind.kind,
            self.address()
        )
    }

    /// An Application as the engine shows it to whoever its own policies let see it; nothing if there is no engine to ask, or no
    /// such Application.
    pub(super) async fn view(&self, path: &str) -> Result<Option<Value>, Failure> {
        self.requests.get(&format!("{path}/view")).await
    }

    /// Asks the engine for something. Nothing if there is none at this server, or Kubernetes' roles let one not ask: then one
    /// can still write what one may write.
    pub(super) async fn ask_engine(&self, path: &str, body: &Value) -> anyhow::Result<Option<Value>> {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .context("the request cannot be made")?;
        let answer: Result<Value, _> = self.client.request(request).await;
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 403 && is_of_kubernetes(&status.message) => {
                Ok(None)
            }
            Err(error) => Err(anyhow!("{}", fairway_controller::error::sentence(&error))),
        }
    }

    /// What the server answers to something that is asked of it, and not stored.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .context("the request cannot be made")?;
        let answer: Result<Value, _> = self.client.request(request).await;
        answer.map_err(|error| anyhow!("{}", fairway_controller::error::sentence(&error)))
    }

    /// Where the objects of a kind are that is known by its name alone.
    pub(super) async fn collection_of(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> anyhow::Result<String> {
        let root = match api_version.contains('/') {
            true => format!("/apis/{api_version}"),
            false => format!("/api/{api_version}"),
        };
        let document = self.requests.get(&root).await.map_err(told)?;
        let resources = document.as_ref().map_or(&[][..], |it| list(it, "/resources"));
        let is_meant = |it: &&Value| text(it, "/kind") == kind && !text(it, "/name").contains('/');
        let Some(resource) = resources.iter().find(is_meant) else {
            bail!("{} does not serve {kind} of {api_version}", self.address());
        };
        let plural = text(resource, "/name");
        Ok(match resource["namespaced"] == true {
            true => format!("{root}/namespaces/{namespace}/{plural}"),
            false => format!("{root}/{plural}"),
        })
    }

    /// Who one is to the server, for operations.
    pub(super) async fn user(&self) -> String {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        let Ok(request) = request else {
            return String::new();
        };
        let answer: Result<Value, _> = self.client.request(request).await;
        answer.map_or_else(
            |_| String::new(),
            |it| text(&it, "/status/userInfo/username").to_owned(),
        )
    }
}

/// Whether a refusal is one of Kubernetes' roles, and not of somebody behind them.
fn is_of_kubernetes(message: &str) -> bool {
    message.contains("cannot create resource")
}

/// Whether one may not do something.
pub(super) fn is_forbidden(failure: &Failure) -> bool {
    match failure {
        Failure::Api { source, .. } => {
            fairway_controller::error::status(source).is_some_and(|status| status.code == 403)
        }
        _ => false,
    }
}

/// Items of lists do not say what they are.
fn complete(object: &mut Value, kind: Kind) {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
}

/// Where the objects of a kind are.
pub(super) fn collection(kind: Kind, namespace: Option<&str>) -> String {
    let Kind {
        group,
        version,
        plural,
        ..
    } = kind;
    match namespace {
        Some(namespace) => format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/apis/{group}/{version}/{plural}"),
    }
}

/// Where an object is.
pub(super) fn path_of(kind: Kind, object: &Value) -> String {
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    format!("{}/{name}", collection(kind, Some(namespace)))
}

/// The time.
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// Prints a value as JSON or YAML.
pub(super) fn print_value(value: &Value, yaml: bool) {
    if yaml {
        print!("{}", fairway_text_yaml::to_string(value));
    } else {
        println!("{value:#}");
    }
}

/// What somebody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Do it.
    Yes,
    /// Leave it.
    No,
    /// Do it, and all that follow.
    All,
}

/// Asks, where there is somebody to ask.
pub(super) fn confirm(question: &str, several: bool) -> anyhow::Result<Answer> {
    if !std::io::stdout().is_terminal() {
        return Ok(Answer::All);
    }
    let choices = if several { "[y/n/a]" } else { "[y/n]" };
    loop {
        print!("{question} {choices} ");
        std::io::stdout()
            .flush()
            .context("the question cannot be asked")?;
        let mut line = String::new();
        let read = std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("there is no answer")?;
        match line.trim() {
            "y" | "yes" => return Ok(Answer::Yes),
            "n" | "no" => return Ok(Answer::No),
            "a" if several => return Ok(Answer::All),
            _ if read == 0 => return Ok(Answer::No),
            _ => {}
        }
    }
}

/// `KEY=VALUE` words.
pub(super) fn pairs(words: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let pair = |word: &String| match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(anyhow!("{word:?} is not of the form KEY=VALUE")),
    };
    words.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_pairs() {
        let words = ["a=b=c".to_owned(), "d=".to_owned()];
        let expected = [("a", "b=c"), ("d", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(pairs(&words).unwrap(), expected);
        assert!(pairs(&["=x".to_owned()]).is_err() && pairs(&["x".to_owned()]).is_err());
    }

    #[test]
    fn collections() {
        let kind = fairway_api::argoproj::APPLICATION;
        assert_eq!(collection(kind, None), "/apis/argoproj.io/v1alpha1/applications");
        let object = json!({"metadata": {"namespace": "n", "name": "a"}});
        assert_eq!(
            path_of(kind, &object),
            "/apis/argoproj.io/v1alpha1/namespaces/n/applications/a"
        );
    }
}
