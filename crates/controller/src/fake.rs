//! An API server for tests: it follows a script of calls and answers, or fails on purpose.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::clients::{ClientFactory, Clients};

/// A call that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The verb.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// How the body is written.
    pub content_type: String,
    /// How the answer shall be written.
    pub accept: String,
    /// The body; null without one.
    pub body: Value,
}

#[derive(Debug)]
struct Expected {
    method: String,
    uri: String,
    prefix: bool,
    code: u16,
    answer: Value,
}

#[derive(Debug, Default)]
struct Story {
    ahead: VecDeque<Expected>,
    any_order: bool,
    made: Vec<Called>,
    wrong: Vec<String>,
}

/// A server that expects calls in an order, and answers each as told. Silence is a script too.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Story>>);

impl Script {
    /// A script without calls.
    pub fn new() -> Self {
        Self::default()
    }

    fn story(&self) -> std::sync::MutexGuard<'_, Story> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the calls come in any order, for what is done at once.
    #[must_use]
    pub fn in_any_order(self) -> Self {
        self.story().any_order = true;
        self
    }

    fn push(self, method: &str, uri: &str, prefix: bool, code: u16, answer: Value) -> Self {
        let expected = Expected {
            method: method.to_owned(),
            uri: uri.to_owned(),
            prefix,
            code,
            answer,
        };
        self.story().ahead.push_back(expected);
        self
    }

    /// Expects a call next.
    #[must_use]
    pub fn expect(self, method: &str, uri: &str, code: u16, answer: Value) -> Self {
        self.push(method, uri, false, code, answer)
    }

    /// Expects a call next whose path only begins like this.
    #[must_use]
    pub fn expect_prefix(self, method: &str, uri: &str, code: u16, answer: Value) -> Self {
        self.push(method, uri, true, code, answer)
    }

    /// Expects a call next, and refuses it.
    #[must_use]
    pub fn refuse(self, method: &str, uri: &str, code: u16, reason: &str) -> Self {
        self.push(method, uri, false, code, refusal(code, reason))
    }

    /// A client of this server. Needs a runtime.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// The clients of a user of this server, which has one workspace. Needs a runtime.
    pub fn clients(&self) -> Clients {
        let client = self.client();
        ClientFactory::plain(move |_| client.clone()).clients("test")
    }

    /// The server itself.
    pub fn service(&self) -> Service<Self> {
        Service(Arc::new(self.clone()))
    }

    /// The calls that were made.
    ///
    /// # Panics
    /// If a call was not as expected, or one is missing.
    pub fn finish(&self) -> Vec<Called> {
        let story = self.story();
        assert!(story.wrong.is_empty(), "unexpected calls: {:#?}", story.wrong);
        assert!(
            story.ahead.is_empty(),
            "calls that were not made: {:#?}",
            story.ahead
        );
        story.made.clone()
    }
}

/// A server that refuses everything, or is not there at all.
#[derive(Clone, Debug)]
pub struct Failing {
    code: u16,
    reason: String,
}

impl Failing {
    /// Refuses with this status.
    pub fn with(code: u16, reason: &str) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
        }
    }

    /// A client of this server. Needs a runtime.
    pub fn client(&self) -> Client {
        Client::new(Service(Arc::new(self.clone())), "default")
    }

    /// The clients of a user of this server, which has one workspace. Needs a runtime.
    pub fn clients(&self) -> Clients {
        let client = self.client();
        ClientFactory::plain(move |_| client.clone()).clients("test")
    }
}

fn refusal(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": format!("refused: {reason}"),
    })
}

/// Who answers calls.
pub trait Answer: Send + Sync + 'static {
    /// The code and the body for a call.
    fn answer(&self, call: Called) -> (u16, Value);
}

impl Answer for Failing {
    fn answer(&self, _: Called) -> (u16, Value) {
        (self.code, refusal(self.code, &self.reason))
    }
}

impl Answer for Script {
    fn answer(&self, call: Called) -> (u16, Value) {
        let mut story = self.story();
        let said = format!("{} {}", call.method, call.uri);
        let fits = |next: &Expected| {
            let uri = if next.prefix {
                call.uri.starts_with(&next.uri)
            } else {
                call.uri == next.uri
            };
            uri && next.method == call.method
        };
        let place = if story.any_order {
            story.ahead.iter().position(fits).unwrap_or_default()
        } else {
            0
        };
        let next = story.ahead.remove(place);
        let fits = next.as_ref().is_some_and(fits);
        story.made.push(call);
        match next {
            Some(next) if fits => (next.code, next.answer),
            Some(next) => {
                story
                    .wrong
                    .push(format!("{said}, where {} {} was expected", next.method, next.uri));
                (500, refusal(500, "InternalError"))
            }
            None => {
                story.wrong.push(format!("{said}, after the end of the script"));
                (500, refusal(500, "InternalError"))
            }
        }
    }
}

/// An API server for `kube::Client`.
#[derive(Debug)]
pub struct Service<A>(Arc<A>);

impl<A> Clone for Service<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Answer> tower::Service<Request<Body>> for Service<A> {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            let header = |name: &str| {
                let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let call = Called {
                method: parts.method.to_string(),
                uri: parts.uri.to_string(),
                content_type: header("content-type"),
                accept: header("accept"),
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            };
            let (code, answer) = server.answer(call);
            let mut response = Response::new(Full::from(answer.to_string()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
            Ok(response)
        })
    }
}
