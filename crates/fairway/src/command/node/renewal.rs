//! A node's certificate is replaced before it ends, by one that the node asks for with the one that it has.

use std::time::Duration;

use anyhow::Context;
use fairway_controller::Shutdown;
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_x509::renewal_moment;
use serde_json::Value;
use tracing::{info, warn};

use super::credentials;
use super::remote::Remote;
use crate::data_dir::{DataDir, read_if_there, write_private};

/// How long the server may take to sign.
const PATIENCE: Duration = Duration::from_secs(60);
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
        let wait = match renew(&data, &remote).await {
            Ok(Some(wait)) => wait.min(LOOK),
            Ok(None) => return,
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

/// Renews the certificate if it is time; how long until then. Nothing if it is none of a node.
async fn renew(data: &DataDir, remote: &Remote) -> anyhow::Result<Option<Duration>> {
    let path = data.node_kubeconfig();
    let content = read_if_there(&path)?.with_context(|| format!("{} is gone", path.display()))?;
    let mut kubeconfig: Value = fairway_text_yaml::from_slice(&content, fairway_text_yaml::Limits::default())
        .with_context(|| format!("{} cannot be understood", path.display()))?;
    let Some((certificate, node)) = credentials::of_kubeconfig(&kubeconfig) else {
        return Ok(None);
    };
    let due = renewal_moment(&certificate.life, certificate.chance());
    let left = due.saturating_sub(Clock.unix());
    if let Some(left) = u64::try_from(left).ok().filter(|it| *it > 0) {
        return Ok(Some(Duration::from_secs(left)));
    }
    let pair = credentials::ask(&remote.client(), &node, PATIENCE).await?;
    let fresh = credentials::kubeconfig("", "", &node, &pair);
    kubeconfig["users"] = fresh["users"].clone();
    write_private(&path, fairway_text_yaml::to_string(&kubeconfig).as_bytes())?;
    remote.reload().await?;
    info!(node, "the certificate of this node is renewed");
    Ok(Some(Duration::from_secs(1)))
}
