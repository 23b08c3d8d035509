//! How the data plane asks whether a request may pass, without knowing who decides: the seam between `proxy`, which moves
//! bytes, and policies, which judge.
//!
//! Most answers are known at once ([`Judgement::Now`]), and then nothing is allocated for them; who has to ask somebody else
//! (a key server, a token review) answers later. The crate must not know policies, routes or sockets.

mod secrets;

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};

pub use secrets::{HIDDEN, is_secret};

/// A request as guards see it, before any filter has changed it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub method: &'a Method,
    /// As backends get it: the path without dot segments, and of its escapes only those decoded that mean nothing.
    pub uri: &'a Uri,
    /// Lower case, without port.
    pub host: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    pub version: Version,
    /// What they say of where the request came from, the data plane has written.
    pub headers: &'a HeaderMap,
    pub client: IpAddr,
    pub client_port: u16,
    /// Where it came in: the address and port that the client connected to.
    pub door: SocketAddr,
    /// Of this request, in logs and traces.
    pub id: &'a str,
    /// Nanoseconds since 1970, read once for each request.
    pub now: u128,
    /// Asked to see what the answer would be: nothing is counted, and nothing is forwarded.
    pub probe: bool,
}

/// What a guard says of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It goes on, with what backends are to be told.
    Allow(Passage),
    Deny(Refusal),
}

/// What changes on the way of a request that may pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    /// Headers that nobody but the guard may write. They are taken away from what the client sent, also where the guard does not
    /// write them this time.
    pub withheld: Arc<[HeaderName]>,
    /// Written over what the client sent: nobody but a guard says who somebody is.
    pub request_headers: Vec<(HeaderName, HeaderValue)>,
    pub response_headers: Vec<(HeaderName, HeaderValue)>,
    /// For the access log: who it was, which plan.
    pub told: Vec<(&'static str, String)>,
    /// What lets the request through may end before the request does: WebSockets and streams last for hours. None: nobody can
    /// tell from memory.
    pub standing: Option<Standing>,
}

/// What a request is let through by: a token, a key.
pub trait Credential: Send + Sync + 'static {
    /// Why it lets nobody through any more, if so. Asked every second for as long as something goes on by it, so it answers from
    /// memory, and must never panic. `now` is nanoseconds since 1970.
    fn lapsed(&self, now: u128) -> Option<&'static str>;
}

/// A [`Credential`] that is kept with what it let through. It is shared with whoever knows it, so that a request allocates
/// nothing for it.
#[derive(Clone)]
pub struct Standing(pub Arc<dyn Credential>);

impl PartialEq for Standing {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}

/// The answer instead of the backend's.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// The policy that says no, as metrics and logs name it: `AuthPolicy/team/api`.
    pub by: Cow<'static, str>,
    /// Why, for the log and `fairway gateway explain`; never for the client.
    pub why: String,
}

/// A verdict, or the wait for one.
pub enum Judgement<'a> {
    Now(Verdict),
    Later(BoxFuture<'a, Verdict>),
}

/// One thing that was looked at on the way to a verdict, for `fairway gateway explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `AuthPolicy/team/api authentication "api-key"`.
    pub what: String,
    /// What matched, and the values that expressions had.
    pub seen: String,
    /// `None` where the step decides nothing by itself.
    pub passes: Option<bool>,
}

/// All policies of one rule, as one.
pub trait Guard: Send + Sync + 'static {
    /// Asked for every request, so it must be quick, and must never panic.
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a>;

    /// The same, told step by step. Nothing is counted.
    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)>;

    /// What is asked of those who want to pass, as a number: as long as it is the same, what was let through may go on. Never
    /// zero for a guard that asks for something, because a rule without a guard counts as zero.
    fn print(&self) -> u64 {
        0
    }
}
