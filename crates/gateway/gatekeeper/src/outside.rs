//! Whom guards ask: servers on the network, and the cluster's own API.

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

/// Both.
#[derive(Clone)]
pub struct Outside {
    pub web: Arc<dyn Web>,
    pub cluster: Arc<dyn Cluster>,
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
    pub fn new(outbound: Arc<Outbound>, cluster: Arc<dyn Cluster>) -> Self {
        Self {
            web: Arc::new(Judged(outbound)),
            cluster,
        }
    }
}
