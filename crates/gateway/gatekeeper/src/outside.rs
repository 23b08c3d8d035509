//! Whom guards ask: servers on the network, the cluster's own API, and the installation's own realms.

use std::sync::Arc;

use fairway_gateway_policy::auth::SecretRef;
use fairway_outbound::{Message, Outbound, Reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

/// Servers of others: key servers, metadata, callbacks.
pub trait Web: Send + Sync + 'static {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Reply, String>>;
}

/// The API of the cluster, as the policies' workspace sees it. Answers must come in time: nobody else bounds them but the
/// timeouts of the rules.
pub trait Cluster: Send + Sync + 'static {
    /// The fields of a Secret.
    fn secret(&self, secret: SecretRef) -> BoxFuture<'static, Result<Value, String>>;

    /// Carries out a TokenReview or a SubjectAccessReview and gives its `status`.
    fn review(&self, review: Review) -> BoxFuture<'static, Result<Value, String>>;
}

/// A question to the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    pub workspace: String,
    /// `authentication.k8s.io/v1` or `authorization.k8s.io/v1`.
    pub api_version: &'static str,
    /// `TokenReview` or `SubjectAccessReview`.
    pub kind: &'static str,
    pub spec: Value,
}

/// The realms of this installation. It is asked with every request that brings a token, and answers from memory.
pub trait Realms: Send + Sync + 'static {
    /// What a realm publishes at an address: what discovery finds, or its keys. None if the address is no realm's.
    fn document(&self, url: &str) -> Option<Value>;

    /// Why a token with such claims, whose signature and times are good, stands for nobody: its user is gone or disabled, or the
    /// session has ended. None if it does, and for tokens of other issuers, whose users nobody knows here.
    fn lapsed(&self, claims: &Value, now: i64) -> Option<&'static str>;

    /// Whether a user name is one of a realm's, and its user is gone or disabled. Nothing is known of other names.
    fn is_out(&self, _user: &str) -> bool {
        false
    }

    /// Moves on whenever a user may sign in no longer, or again; none if that never happens.
    fn comings_and_goings(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        None
    }
}

/// An installation without any.
#[derive(Debug, Clone, Copy)]
pub struct NoRealms;

impl Realms for NoRealms {
    fn document(&self, _: &str) -> Option<Value> {
        None
    }

    fn lapsed(&self, _: &Value, _: i64) -> Option<&'static str> {
        None
    }
}

/// All of them.
#[derive(Clone)]
pub struct Outside {
    pub web: Arc<dyn Web>,
    pub cluster: Arc<dyn Cluster>,
    pub realms: Arc<dyn Realms>,
}

/// Requests to addresses that were judged.
#[derive(Clone)]
struct Judged(Arc<Outbound>);

impl Web for Judged {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Reply, String>> {
        let outbound = self.0.clone();
        async move { outbound.send(message).await.map_err(|error| error.to_string()) }.boxed()
    }
}

impl Outside {
    pub fn new(outbound: Arc<Outbound>, cluster: Arc<dyn Cluster>, realms: Arc<dyn Realms>) -> Self {
        Self {
            web: Arc::new(Judged(outbound)),
            cluster,
            realms,
        }
    }
}
