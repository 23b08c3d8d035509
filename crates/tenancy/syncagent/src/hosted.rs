//! Agents in the process, for exports of Fairway's own workspaces.
//!
//! An APIExport with the annotation `fairway.dev/published-resources` has an agent: the PublishedResources of the export's
//! own workspace that the annotation's label selector picks (an empty one: all) are published through it, and copies are
//! made in that workspace. What the agent may touch there beyond PublishedResources, definitions and the export, roles of
//! that workspace must allow it ([`USER`]): whoever may write a PublishedResource gets no more rights than that by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::{
    ClientFactory, Manager, Metrics, ObjectKey, Reach, Shutdown, ShutdownTrigger, WorkspaceId, watch,
};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::info;

use crate::Agent;
use crate::consumers::{Dial, beneath};

/// Who the agents are, in every workspace.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-sync-agent";
/// On an APIExport: which PublishedResources of its workspace it offers.
pub const ANNOTATION: &str = "fairway.dev/published-resources";

const WORKERS: usize = 4;

struct Running {
    selector: String,
    end: ShutdownTrigger,
    task: JoinHandle<()>,
}

/// Keeps an agent for every export that asks for one. `server` reaches the whole API as [`USER`], paths from the root.
pub async fn run(clients: ClientFactory, server: Client, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(clients, metrics, shutdown);
    let clients = manager.clients(USER);
    let (tell, told) = mpsc::unbounded_channel();
    let kind = ApiResource {
        group: "apis.kcp.io".to_owned(),
        version: "v1alpha2".to_owned(),
        api_version: "apis.kcp.io/v1alpha2".to_owned(),
        kind: "APIExport".to_owned(),
        plural: "apiexports".to_owned(),
    };
    let api: Api<kube::api::PartialObjectMeta<DynamicObject>> = Api::all_with(clients.every(), &kind);
    let reach = clients.reach().clone();
    manager.spawn(watch::follow(
        api,
        watcher::Config::default(),
        manager.shutdown(),
        move |event| {
            // The receiver lives until the end.
            let _ = match event {
                Event::Init => tell.send(News::List),
                Event::InitDone => tell.send(News::Listed),
                Event::Apply(it) | Event::InitApply(it) => {
                    let wish = it
                        .metadata
                        .annotations
                        .as_ref()
                        .and_then(|all| all.get(ANNOTATION));
                    tell.send(News::Export(ObjectKey::of(&reach, &it.metadata), wish.cloned()))
                }
                Event::Delete(it) => tell.send(News::Export(ObjectKey::of(&reach, &it.metadata), None)),
            };
        },
    ));
    let keep = keep(told, server, manager.metrics(), manager.shutdown());
    manager.spawn(keep);
    manager.run().await;
}

enum News {
    List,
    Listed,
    /// An export, and the selector in its annotation.
    Export(ObjectKey, Option<String>),
}

async fn keep(
    mut told: mpsc::UnboundedReceiver<News>,
    server: Client,
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
) {
    let mut running: BTreeMap<ObjectKey, Running> = BTreeMap::new();
    let mut listed: Option<Vec<ObjectKey>> = None;
    loop {
        let news = tokio::select! {
            biased;
            () = shutdown.wait() => None,
            news = told.recv() => news,
        };
        match news {
            None => break,
            Some(News::List) => listed = Some(Vec::new()),
            Some(News::Listed) => {
                let there = listed.take().unwrap_or_default();
                let gone: Vec<ObjectKey> = running
                    .keys()
                    .filter(|key| !there.contains(key))
                    .cloned()
                    .collect();
                for key in gone {
                    end(running.remove(&key)).await;
                }
            }
            Some(News::Export(key, wish)) => {
                if let (Some(listed), Some(_)) = (&mut listed, &wish) {
                    listed.push(key.clone());
                }
                if running.get(&key).map(|it| &it.selector) == wish.as_ref() {
                    continue;
                }
                end(running.remove(&key)).await;
                if let Some(selector) = wish {
                    info!(%key, selector, "an export has an agent");
                    running.insert(key.clone(), begin(&key, selector, &server, &metrics));
                }
            }
        }
    }
    for it in running.values() {
        it.end.shut_down();
    }
    for it in running.into_values() {
        end(Some(it)).await;
    }
}

fn begin(key: &ObjectKey, selector: String, server: &Client, metrics: &Arc<Metrics>) -> Running {
    let home = workspace_client(server, &key.workspace);
    let agent = Agent {
        name: format!("{}-syncagent", key.name),
        export: key.name.clone(),
        slice: key.name.clone(),
        selector: selector.clone(),
        service: home.clone(),
        slices: home.clone(),
        provider: home,
        dial: dial(server.clone(), key),
        workers: WORKERS,
    };
    let (end, token) = Shutdown::new();
    Running {
        selector,
        end,
        task: tokio::spawn(agent.run(Arc::clone(metrics), token)),
    }
}

fn workspace_client(server: &Client, workspace: &WorkspaceId) -> Client {
    // The root has no prefix, and with one it is the same place.
    let reach = Reach::One(workspace.clone());
    let prefix = reach.url_prefix().unwrap_or_else(|| "/clusters/root".to_owned());
    beneath(server, &prefix)
}

/// The virtual workspace is in the same process. The address in a slice is written in the provider's workspace, and the
/// agent may look into every export's: so an address that leads to another's is refused.
fn dial(server: Client, home: &ObjectKey) -> Dial {
    let own = format!("/services/apiexport/{}/{}", home.workspace, home.name);
    Arc::new(move |url| {
        let address = url
            .parse::<http::Uri>()
            .map_err(|error| format!("the endpoint slice names {url:?}, which is no address: {error}"))?;
        if address.path().trim_end_matches('/') != own {
            return Err(format!(
                "the endpoint slice names {url:?}, which is not the virtual workspace of this export"
            ));
        }
        Ok(beneath(&server, &own))
    })
}

async fn end(running: Option<Running>) {
    if let Some(it) = running {
        it.end.shut_down();
        // An agent that panicked has ended as well.
        let _ = it.task.await;
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::fake::Failing;

    use super::*;

    #[tokio::test]
    async fn an_address_leads_to_the_own_export_only() {
        let server = Failing::with(500, "InternalError").client();
        let home = ObjectKey::new(&WorkspaceId::parse("abc").unwrap(), "", "cloud");
        let dial = dial(server, &home);
        for (url, expected) in [
            ("https://h:1/services/apiexport/abc/cloud", true),
            ("https://h:1/services/apiexport/abc/cloud/", true),
            ("https://h:1/services/apiexport/abc/other", false),
            ("https://h:1/services/apiexport/xyz/cloud", false),
            ("https://h:1/services/apiexport/abc/cloud/../../xyz/cloud", false),
            ("https://h:1/clusters/xyz", false),
            ("https://h:1", false),
            ("not an address", false),
        ] {
            assert_eq!(dial(url).is_ok(), expected, "{url}");
        }
    }
}
