//! The API that a command speaks to, the namespace that it means, and what is answered.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use fairway_api::kubevirt::{VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE};
use fairway_kernel_tenancy::WorkspacePath;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;

use super::target::{Kind, Target};
use crate::cli::vm::Place;
use crate::command::workspace::server::Server;

/// Where the subresources are.
const SUBRESOURCES: &str = "/apis/subresources.kubevirt.io/v1";

/// The API, and a namespace.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) config: Config,
    server: Arc<Server>,
    namespace: String,
    place: Place,
}

/// What a server answered instead of doing it. Nothing at all has no code.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: u16,
    pub(super) message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    pub(super) fn is_not_found(&self) -> bool {
        self.code == 404
    }

    pub(in crate::command::vm) fn unreachable(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            // Many layers say what those below them say.
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self { code: 0, message }
    }

    /// What a failure's body says: a `Status`, or text.
    pub(in crate::command::vm) fn of(code: u16, body: &[u8]) -> Self {
        let status: Option<Value> = serde_json::from_slice(body).ok();
        let message = status.as_ref().and_then(|it| it["message"].as_str());
        let text = String::from_utf8_lossy(body).trim().to_owned();
        let message = match (message, text.is_empty()) {
            (Some(message), _) => message.to_owned(),
            (None, false) => text,
            (None, true) => format!("the server answered {code}"),
        };
        Self { code, message }
    }
}

impl Session {
    /// The API of the chosen context and workspace.
    pub(super) async fn open(place: &Place) -> anyhow::Result<Self> {
        let server = Server::of_context(&place.kubeconfig(), place.context.as_deref()).await?;
        let client = match &place.workspace {
            None => server.own_client()?,
            Some(path) => {
                let path = WorkspacePath::parse(path.trim_start_matches(':'));
                server.client(&path.with_context(|| "this is not the path of a workspace".to_owned())?)?
            }
        };
        let config = server.config().clone();
        let namespace = place.namespace.clone();
        Ok(Self {
            client,
            namespace: namespace.unwrap_or_else(|| config.default_namespace.clone()),
            config,
            server: Arc::new(server),
            place: place.clone(),
        })
    }

    /// All objects of a kind, in the namespace that is meant or in all, with a selector.
    pub(super) async fn all(
        &self,
        kind: Kind,
        is_everywhere: bool,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, Refused> {
        let group = VIRTUAL_MACHINE.api_version();
        let mut path = match is_everywhere {
            true => format!("/apis/{group}/{}", kind.plural()),
            false => format!("/apis/{group}/namespaces/{}/{}", self.namespace, kind.plural()),
        };
        if let Some(selector) = selector {
            path.push_str("?labelSelector=");
            for byte in selector.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                        path.push(char::from(byte));
                    }
                    other => path.push_str(&format!("%{other:02X}")),
                }
            }
        }
        self.list(&path).await
    }

    /// The namespace that is meant where a name does not say.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether somebody said which namespace is meant.
    pub(super) fn names_namespace(&self) -> bool {
        self.place.namespace.is_some()
    }

    /// The same API in the root of all workspaces.
    pub(super) fn root(&self) -> anyhow::Result<Self> {
        Ok(Self {
            client: self.server.client(&WorkspacePath::root())?,
            ..self.clone()
        })
    }

    /// The machine that a word means.
    pub(super) fn target(&self, word: &str) -> anyhow::Result<Located> {
        Ok(self.locate(Target::parse(word)?))
    }

    /// The same with the namespace in place.
    pub(super) fn locate(&self, target: Target) -> Located {
        Located {
            kind: target.kind,
            namespace: target.namespace.unwrap_or_else(|| self.namespace.clone()),
            name: target.name,
        }
    }

    /// What makes another `fairway vm` speak to the same API.
    pub(super) fn flags(&self) -> Vec<OsString> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: Option<OsString>| {
            if let Some(value) = value {
                flags.extend([flag.into(), value]);
            }
        };
        add("--context", self.place.context.clone().map(Into::into));
        add("--workspace", self.place.workspace.clone().map(Into::into));
        add("--kubeconfig", self.place.kubeconfig.clone().map(Into::into));
        add("--data", self.place.data.clone().map(Into::into));
        flags
    }

    /// Sends a request; what came back, whatever it is.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Refused> {
        let sent = self.client.send(request).await;
        sent.map_err(|error| Refused::unreachable(&error))
    }

    /// Sends a request; what came back, if it was done.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Bytes, Refused> {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = body.map(|it| it.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .header("accept", "application/json, */*")
            .body(Body::from(bytes));
        let request = request.map_err(|error| Refused::unreachable(&error))?;
        judged(self.send(request).await?).await
    }

    /// An object.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Refused> {
        let body = self.ask("GET", path, None).await?;
        serde_json::from_slice(&body).map_err(|error| Refused::unreachable(&error))
    }

    /// What there is of a kind.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>, Refused> {
        match self.get(path).await?["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }
}

/// The body of an answer that is none of failure.
pub(super) async fn judged(response: Response<Body>) -> Result<Bytes, Refused> {
    let status = response.status();
    let body = response.into_body().collect().await;
    let body = body.map_err(|error| Refused::unreachable(&error))?.to_bytes();
    match status.is_success() {
        true => Ok(body),
        false => Err(Refused::of(status.as_u16(), &body)),
    }
}

/// A machine with its namespace.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) kind: Option<Kind>,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Located {
    /// Where the object is.
    pub(super) fn object(&self, kind: Kind) -> String {
        let Self { namespace, name, .. } = self;
        let group = match kind {
            Kind::Machine => VIRTUAL_MACHINE.api_version(),
            Kind::Instance => VIRTUAL_MACHINE_INSTANCE.api_version(),
        };
        format!("/apis/{group}/namespaces/{namespace}/{}/{name}", kind.plural())
    }

    /// Where one of its subresources is.
    pub(super) fn subresource(&self, kind: Kind, what: &str) -> String {
        let Self { namespace, name, .. } = self;
        format!(
            "{SUBRESOURCES}/namespaces/{namespace}/{}/{name}/{what}",
            kind.plural()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_the_server_says() {
        for (code, body, expected) in [
            (
                409,
                &br#"{"kind":"Status","message":"VM is already running"}"#[..],
                "VM is already running",
            ),
            (500, b"VMI is not running\n", "VMI is not running"),
            (502, b"", "the server answered 502"),
        ] {
            let refused = Refused::of(code, body);
            assert_eq!((refused.code, refused.message.as_str()), (code, expected));
        }
    }
}
