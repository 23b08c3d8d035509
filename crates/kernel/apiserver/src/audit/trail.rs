//! The lines that one request leaves, stage by stage.
//!
//! The policy is asked once, when it is known who asks. A watch begins with one line and ends with another, which is
//! written when its body is dropped, whoever ended it.

use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_authz::UserInfo;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};

use super::Entry;
use super::capture::{self, MAX_OBJECT, Outcome};
use super::policy::{Level, Stage, Verdict};
use crate::authn::Peer;
use crate::http::body::{ResponseBody, keeping};
use crate::kernel::Kernel;
use crate::request::RequestInfo;

/// The longest id that is taken over from a client.
const MAX_ID: usize = 64;

/// What is known of a request while it is served, for the log.
pub(crate) struct Trail {
    id: String,
    received: String,
    verdict: Option<Verdict>,
    sent: Option<Bytes>,
    /// What is asked.
    pub(crate) info: Option<Arc<RequestInfo>>,
    /// Who asks.
    pub(crate) user: Option<Arc<UserInfo>>,
    /// As whom.
    pub(crate) impersonated: Option<Arc<UserInfo>>,
    /// Whether it was allowed, and why.
    pub(crate) decision: Option<(&'static str, String)>,
}

impl Trail {
    /// Of a request that has just come in. Its id is the client's, if it gives one, as upstream does.
    pub(crate) fn new(kernel: &Kernel, headers: &HeaderMap) -> Self {
        let given = headers.get("audit-id").and_then(|v| v.to_str().ok());
        Self {
            id: given
                .filter(|id| !id.is_empty() && id.len() <= MAX_ID)
                .map_or_else(|| kernel.random.uuid(), str::to_owned),
            received: kernel.clock.rfc3339_micros(),
            verdict: None,
            sent: None,
            info: None,
            user: None,
            impersonated: None,
            decision: None,
        }
    }

    /// Asks the policy, now that it is known who asks (or that it is not), and writes the first line.
    pub(crate) fn begin(&mut self, kernel: &Kernel, parts: &Parts, peer: &Peer) {
        let Some(info) = &self.info else { return };
        let verdict = kernel.audit.decide(self.user.as_deref(), info);
        self.verdict = Some(verdict);
        self.line(kernel, parts, peer, Stage::RequestReceived, None);
    }

    /// Keeps what was sent, if the policy wants it.
    pub(crate) fn keep(&mut self, body: &Bytes) {
        if self.verdict.is_some_and(|v| v.level >= Level::Request) {
            self.sent = Some(if body.len() > MAX_OBJECT {
                // Only that it was too large is remembered.
                Bytes::from_static(&[0; MAX_OBJECT + 1])
            } else {
                body.clone()
            });
        }
    }

    /// The server failed on it.
    pub(crate) fn panicked(&self, kernel: &Kernel, parts: &Parts, peer: &Peer, reason: &str) {
        self.line(
            kernel,
            parts,
            peer,
            Stage::Panic,
            Some(&mut Outcome::panicked(reason)),
        );
    }

    /// Writes what is left to write of an answered request, and gives the answer its id.
    pub(crate) async fn end(
        mut self,
        kernel: &Arc<Kernel>,
        parts: Parts,
        peer: &Peer,
        mut response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        if let Ok(value) = HeaderValue::from_str(&self.id) {
            response.headers_mut().insert("audit-id", value);
        }
        let Some(info) = &self.info else { return response };
        let watch = info.verb == "watch";
        if self.verdict.is_none() {
            self.begin(kernel, &parts, peer);
        }
        let verdict = self.verdict.unwrap_or_default();
        if verdict.level == Level::None {
            return response;
        }
        let mut outcome = if watch && response.status().is_success() {
            Outcome::of_code(response.status().as_u16())
        } else {
            capture::answer(&mut response, verdict).await
        };
        if !watch {
            self.line(kernel, &parts, peer, Stage::ResponseComplete, Some(&mut outcome));
            return response;
        }
        self.line(kernel, &parts, peer, Stage::ResponseStarted, Some(&mut outcome));
        let ended = Ended {
            kernel: Arc::clone(kernel),
            parts,
            peer: peer.clone(),
            trail: self,
            outcome,
        };
        response.map(|body| keeping(body, ended))
    }

    fn line(&self, kernel: &Kernel, parts: &Parts, peer: &Peer, stage: Stage, outcome: Option<&mut Outcome>) {
        let (Some(info), Some(verdict)) = (&self.info, self.verdict) else {
            return;
        };
        if !verdict.wants(stage) {
            return;
        }
        let (sent, too_large) = match &self.sent {
            Some(body) if stage != Stage::RequestReceived => capture::request(&parts.headers, body, verdict),
            _ => (None, false),
        };
        let outcome = outcome.map(|outcome| {
            outcome.truncated |= too_large;
            &*outcome
        });
        let agent = parts.headers.get(http::header::USER_AGENT);
        kernel.audit.record(&Entry {
            id: &self.id,
            info,
            uri: parts
                .uri
                .path_and_query()
                .map_or("", http::uri::PathAndQuery::as_str),
            user: self.user.as_deref(),
            impersonated: self.impersonated.as_deref(),
            peer,
            user_agent: agent.and_then(|v| v.to_str().ok()).unwrap_or(""),
            level: verdict.level,
            stage,
            outcome,
            sent,
            received: &self.received,
            answered: &kernel.clock.rfc3339_micros(),
            decision: self.decision.as_ref().map(|(d, r)| (*d, r.as_str())),
        });
    }
}

/// A watch's last line.
struct Ended {
    kernel: Arc<Kernel>,
    parts: Parts,
    peer: Peer,
    trail: Trail,
    outcome: Outcome,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let outcome = Some(&mut self.outcome);
        self.trail.line(
            &self.kernel,
            &self.parts,
            &self.peer,
            Stage::ResponseComplete,
            outcome,
        );
    }
}
