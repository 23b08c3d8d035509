//! Events of other Git hosts: who in this installation follows the repository, and whether his workspace believes the sender.

use std::collections::BTreeSet;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use serde_json::Value;
use tracing::{debug, info};

use super::{Host, not_allowed};
use crate::transport::{Body, Input, text};
use crate::webhook::{self, NAMESPACES, SECRET, Sender};

/// The largest event.
const MAX_EVENT: u64 = 4 << 20;
/// The most workspaces that are asked what they think of an event.
const MAX_WORKSPACES: usize = 256;

impl Host {
    /// Somebody says that there is something new in a repository elsewhere. He is not believed: those who follow it look for themselves.
    pub(super) async fn webhook(&self, request: Request<Body>) -> Response<Body> {
        if request.method() != Method::POST {
            return not_allowed("POST");
        }
        let (parts, body) = request.into_parts();
        let Some(sender) = Sender::of(&parts.headers) else {
            let why = "Unknown webhook event: send those of Gitea, GitHub, GitLab, Bitbucket or Azure DevOps, as JSON.";
            return text(StatusCode::BAD_REQUEST, why);
        };
        let Ok(_turn) = self.hearing.try_acquire() else {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many events at once; send it again in a moment.",
            );
        };
        let body = match Input::new(body, false, MAX_EVENT).whole().await {
            Ok(body) => body,
            Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let Ok(event) = serde_json::from_slice::<Value>(&body) else {
            return text(
                StatusCode::BAD_REQUEST,
                "The event is not JSON; choose application/json as its content type.",
            );
        };
        if !webhook::is_news(sender, &parts.headers, &event) {
            return text(StatusCode::OK, "Nothing follows from this event.");
        }
        let addresses = webhook::addresses(sender, &event);
        if addresses.is_empty() {
            return text(StatusCode::BAD_REQUEST, "The event names no repository.");
        }
        let (looking, doubting) = self.hear(sender, &parts.headers, &body, &addresses).await;
        match (looking, doubting) {
            (0, 1..) => text(
                StatusCode::BAD_REQUEST,
                "Webhook processing failed: the signature does not fit the secret in argocd-secret.",
            ),
            _ => text(
                StatusCode::OK,
                &format!("{looking} followers of {} look now.", addresses[0]),
            ),
        }
    }

    /// Wakes followers; how many look, and how many workspaces did not believe it.
    async fn hear(
        &self,
        sender: Sender,
        headers: &HeaderMap,
        body: &[u8],
        addresses: &[String],
    ) -> (usize, usize) {
        let watchers = self.remote_watchers();
        let mut workspaces: BTreeSet<String> = self.mirrors.followers(addresses);
        for watcher in &watchers {
            workspaces.extend(watcher.followers(addresses));
        }
        let (mut looking, mut doubting) = (0, 0);
        for workspace in workspaces.iter().take(MAX_WORKSPACES) {
            if !self.believes(workspace, sender, headers, body).await {
                debug!(workspace, ?sender, "an event with a wrong signature");
                doubting += 1;
                continue;
            }
            looking += self.mirrors.wake(workspace, addresses);
            for watcher in &watchers {
                looking += watcher.wake(workspace, addresses);
            }
        }
        info!(
            ?sender,
            repository = addresses[0],
            looking,
            doubting,
            "an event came"
        );
        (looking, doubting)
    }

    async fn believes(&self, workspace: &str, sender: Sender, headers: &HeaderMap, body: &[u8]) -> bool {
        let client = self.client_at(workspace);
        for namespace in NAMESPACES {
            let secret = Api::<Secret>::namespaced(client.clone(), namespace)
                .get_opt(SECRET)
                .await;
            let Ok(secret) = secret else { return false };
            let Some(secret) = secret else { continue };
            let field = |name: &str| secret.data.as_ref()?.get(name).map(|bytes| bytes.0.clone());
            if !webhook::is_believed(sender, headers, body, field) {
                return false;
            }
        }
        true
    }
}
