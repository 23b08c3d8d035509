//! An agent between two servers that kubeconfigs lead to.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::Failure;
use fairway_controller::requests::Requests;
use fairway_kernel_tenancy::crds;
use fairway_kernel_tenancy::names::SYNCAGENT;
use http::Uri;
use kube::{Client, Config};
use serde_json::Value;

use crate::Agent;
use crate::consumers::Dial;
use crate::publications::PUBLISHED;

const SLICES: &str = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a new definition may take to be served, in steps.
const PATIENCE: u32 = 150;
const STEP: Duration = Duration::from_millis(200);

/// Where an agent works.
pub struct Sides {
    /// The service cluster.
    pub service: Config,
    /// The workspace of the APIExportEndpointSlice.
    pub kcp: Config,
    /// The APIExportEndpointSlice; that of an APIExport has its name.
    pub slice: String,
    /// The agent's name; without one, `<slice>-syncagent`.
    pub name: Option<String>,
    /// Which PublishedResources are this agent's, as a label selector; empty: all.
    pub selector: String,
    /// How many objects of a kind are worked on at once.
    pub workers: usize,
}

/// Why an agent cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A kubeconfig that leads nowhere.
    #[error("the {side} cannot be used as a server: {why}")]
    Unusable {
        /// Which side.
        side: &'static str,
        /// Why.
        why: String,
    },
    /// A request that was refused.
    #[error("{}", .0.sentence())]
    Refused(#[source] Failure),
    /// There is no such slice.
    #[error(
        "there is no APIExportEndpointSlice {0:?} in the workspace of --kcp-kubeconfig: create the APIExport first, and have the kubeconfig's server end in /clusters/<workspace>"
    )]
    NoSlice(String),
    /// A new kind that is not served.
    #[error("the service cluster does not serve PublishedResources after their definition was created")]
    NotServed,
}

/// Makes an agent: finds the export, and sees to it that PublishedResources can be written.
pub async fn agent(sides: Sides) -> Result<Agent, ConnectError> {
    let service = client(&sides.service, "service cluster")?;
    let slices = client(&sides.kcp, "workspace")?;
    let path = format!("{SLICES}/{}", sides.slice);
    let slice = Requests::new(slices.clone()).get(&path).await;
    let slice = slice.map_err(ConnectError::Refused)?;
    let slice = slice.ok_or_else(|| ConnectError::NoSlice(sides.slice.clone()))?;
    let text = |pointer: &str| slice.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (home, export) = (text("/spec/export/path"), text("/spec/export/name"));
    let mut provider = sides.kcp.clone();
    if !home.is_empty() {
        provider.cluster_url =
            retargeted(&provider.cluster_url, home).ok_or_else(|| ConnectError::Unusable {
                side: "workspace",
                why: format!(
                    "the APIExport is in {home:?}, and the address {} does not end in /clusters/<workspace>",
                    provider.cluster_url
                ),
            })?;
    }
    ensure_definition(&service).await?;
    Ok(Agent {
        name: sides.name.unwrap_or_else(|| format!("{}-syncagent", sides.slice)),
        export: export.to_owned(),
        slice: sides.slice,
        selector: sides.selector,
        service,
        provider: client(&provider, "workspace")?,
        slices,
        dial: dial(sides.kcp),
        workers: sides.workers,
    })
}

fn client(config: &Config, side: &'static str) -> Result<Client, ConnectError> {
    Client::try_from(config.clone()).map_err(|error| ConnectError::Unusable {
        side,
        why: error.to_string(),
    })
}

/// Virtual workspaces are reached with the same credentials as the workspace.
fn dial(config: Config) -> Dial {
    Arc::new(move |url| {
        let mut there = config.clone();
        there.cluster_url = url
            .parse()
            .map_err(|error| format!("the endpoint slice names {url:?}, which is no address: {error}"))?;
        // Credentials go where the kubeconfig's own server would send them: never in the clear, if that does not.
        if config.cluster_url.scheme() == Some(&http::uri::Scheme::HTTPS)
            && there.cluster_url.scheme() != Some(&http::uri::Scheme::HTTPS)
        {
            return Err(format!(
                "the endpoint slice names {url:?}, which is not encrypted"
            ));
        }
        Client::try_from(there).map_err(|error| format!("{url:?} cannot be used: {error}"))
    })
}

/// An address of a workspace, led to another one.
fn retargeted(url: &Uri, workspace: &str) -> Option<Uri> {
    let (before, after) = url.path().split_once("/clusters/")?;
    let rest = after.split_once('/').map_or("", |(_, rest)| rest);
    if rest.contains("/clusters/") {
        return None;
    }
    let path = format!("{before}/clusters/{workspace}");
    let path = if rest.is_empty() {
        path
    } else {
        format!("{path}/{rest}")
    };
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

async fn ensure_definition(service: &Client) -> Result<(), ConnectError> {
    let json = Requests::new(service.clone());
    let served = async || json.get(PUBLISHED).await.map_err(ConnectError::Refused);
    if served().await?.is_some() {
        return Ok(());
    }
    if let Some(definition) = crds::find(SYNCAGENT, "publishedresources") {
        let made = json.create(DEFINITIONS, &definition.crd()).await;
        made.map_err(ConnectError::Refused)?;
    }
    for _ in 0..PATIENCE {
        if served().await?.is_some() {
            return Ok(());
        }
        tokio::time::sleep(STEP).await;
    }
    Err(ConnectError::NotServed)
}

#[cfg(test)]
mod tests {
    use super::retargeted;

    #[test]
    fn an_address_is_led_to_another_workspace() {
        for (url, expected) in [
            ("https://h:1/clusters/root:a", Some("https://h:1/clusters/root:b")),
            (
                "https://h:1/x/clusters/root:a/",
                Some("https://h:1/x/clusters/root:b"),
            ),
            (
                "https://h:1/clusters/root:a/y",
                Some("https://h:1/clusters/root:b/y"),
            ),
            ("https://h:1/", None),
            ("https://h:1/clusters/a/clusters/b/clusters/c", None),
        ] {
            let made = retargeted(&url.parse().unwrap(), "root:b");
            assert_eq!(made.map(|it| it.to_string()).as_deref(), expected, "{url}");
        }
    }
}
