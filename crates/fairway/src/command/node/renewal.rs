//! A node's certificate is replaced before it ends, by one that the node asks for with the one that it has.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use fairway_controller::Shutdown;
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_x509::renewal_moment;
use kube::Client;
use serde_json::Value;
use tracing::{info, warn};

use super::credentials;
use super::remote::Remote;
use crate::data_dir::{DataDir, read_if_there, write_private};

/// How long the server may take to sign.
const PATIENCE: Duration = Duration::from_secs(60);
/// How soon a new certificate is looked at.
const AGAIN: Duration = Duration::from_secs(1);
/// How soon what failed is tried again.
const RETRY: Duration = Duration::from_secs(30);
/// The longest sleep: clocks may be set.
const LOOK: Duration = Duration::from_secs(3_600);

/// Until the end. Who came with a kubeconfig of his own looks after it himself.
pub(super) async fn run(data: DataDir, remote: Remote, mut shutdown: Shutdown) {
    if remote.file() != data.node_kubeconfig() {
        return;
    }
    loop {
        let wait = match renew(&data.node_kubeconfig(), &remote.client(), Clock.unix()).await {
            Ok(Renewal::NoNode) => return,
            Ok(Renewal::In(wait)) => wait.min(LOOK),
            Ok(Renewal::Done(node)) => match remote.reload().await {
                Ok(()) => {
                    info!(node, "the certificate of this node is renewed");
                    AGAIN
                }
                Err(error) => {
                    warn!("the certificate of this node is renewed, but not used yet: {error:#}");
                    RETRY
                }
            },
            Err(error) => {
                warn!("the certificate of this node is not renewed; trying again: {error:#}");
                RETRY
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// What came of a look at a certificate.
#[derive(Debug, PartialEq, Eq)]
enum Renewal {
    /// It is none of a node.
    NoNode,
    /// It is good for now, and renewed after so long.
    In(Duration),
    /// The file holds a new one, of this node.
    Done(String),
}

/// Renews the certificate in a node's kubeconfig if it is time. The old one stays until there is a new one.
async fn renew(path: &Path, client: &Client, now: i64) -> anyhow::Result<Renewal> {
    let content = read_if_there(path)?.with_context(|| format!("{} is gone", path.display()))?;
    let mut kubeconfig: Value = fairway_text_yaml::from_slice(&content, fairway_text_yaml::Limits::default())
        .with_context(|| format!("{} cannot be understood", path.display()))?;
    let Some((certificate, node)) = credentials::of_kubeconfig(&kubeconfig) else {
        return Ok(Renewal::NoNode);
    };
    let due = renewal_moment(&certificate.life, certificate.chance());
    let left = due.saturating_sub(now);
    if let Some(left) = u64::try_from(left).ok().filter(|it| *it > 0) {
        return Ok(Renewal::In(Duration::from_secs(left)));
    }
    let pair = credentials::ask(client, &node, PATIENCE).await?;
    let fresh = credentials::kubeconfig("", "", &node, &pair);
    kubeconfig["users"] = fresh["users"].clone();
    write_private(path, fairway_text_yaml::to_string(&kubeconfig).as_bytes())?;
    Ok(Renewal::Done(node))
}

#[cfg(test)]
mod tests;
