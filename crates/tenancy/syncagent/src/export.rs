//! The APIExport of an agent: it offers what is published, and asks consumers for what that needs.

use fairway_controller::requests::Requests;
use fairway_controller::{Controller, Failure, Manager, Outcome, Queue, Reconcile, watch};
use fairway_kernel_tenancy::offering::{Offer, Verdict, decide, superseded};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as latest;

use crate::Agent;
use crate::catalog::{Catalog, EXPORTED, Word};

const EXPORTS: &str = "/apis/apis.kcp.io/v1alpha2/apiexports";

struct Export {
    provider: Requests,
    name: String,
    agent: String,
    catalog: Catalog,
    exported: latest::Sender<u64>,
}

/// Keeps the export; the number changes whenever its word about a publication may have.
pub(crate) fn register(manager: &mut Manager, agent: &Agent, catalog: &Catalog) -> latest::Receiver<u64> {
    let queue: Queue<String> = Queue::default();
    let (exported, told) = latest::channel(0);
    let named = watcher::Config::default().fields(&format!("metadata.name={}", agent.export));
    let api: Api<DynamicObject> = Api::all_with(
        agent.provider.clone(),
        &apis("v1alpha2", "APIExport", "apiexports"),
    );
    let (changed, name) = (queue.clone(), agent.export.clone());
    manager.spawn(watch::follow(api, named, manager.shutdown(), move |event| {
        if !matches!(event, Event::Init | Event::InitApply(_)) {
            changed.add(name.clone());
        }
    }));
    let (changed, name) = (queue.clone(), agent.export.clone());
    let (mut publications, mut shutdown) = (catalog.changes(), manager.shutdown());
    manager.spawn(async move {
        loop {
            changed.add(name.clone());
            tokio::select! {
                () = shutdown.wait() => return,
                more = publications.changed() => if more.is_err() { return },
            }
        }
    });
    let reconciler = Export {
        provider: Requests::new(agent.provider.clone()),
        name: agent.export.clone(),
        agent: agent.name.clone(),
        catalog: catalog.clone(),
        exported,
    };
    let controller = Controller::new("syncagent-export", queue, reconciler);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    told
}

/// The addresses of the export's virtual workspace, as they change.
pub(crate) fn endpoints(manager: &mut Manager, agent: &Agent) -> latest::Receiver<Vec<String>> {
    let (tell, told) = latest::channel(Vec::new());
    let named = watcher::Config::default().fields(&format!("metadata.name={}", agent.slice));
    let kind = apis("v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices");
    let api: Api<DynamicObject> = Api::all_with(agent.slices.clone(), &kind);
    manager.spawn(watch::follow(api, named, manager.shutdown(), move |event| {
        let urls = match event {
            Event::Apply(slice) | Event::InitApply(slice) => urls(&slice.data),
            Event::Delete(_) => Vec::new(),
            Event::Init | Event::InitDone => return,
        };
        tell.send_if_modified(|known| {
            let changed = *known != urls;
            *known = urls;
            changed
        });
    }));
    told
}

fn urls(slice: &Value) -> Vec<String> {
    let endpoints = slice.pointer("/status/endpoints").and_then(Value::as_array);
    let each = endpoints.into_iter().flatten();
    each.filter_map(|it| it.get("url")?.as_str().map(str::to_owned))
        .collect()
}

impl Reconcile<String> for Export {
    async fn reconcile(&self, _: &String) -> Result<Outcome, Failure> {
        let publications = self.catalog.publications();
        let path = format!("{EXPORTS}/{}", self.name);
        let export = self.provider.get(&path).await?;
        let offers: Vec<Offer<'_>> = publications
            .values()
            .map(|it| Offer {
                published: &it.published,
                schema: &it.schema,
            })
            .collect();
        let late = superseded(&offers);
        let common = match &export {
            None => Word::error(
                "APIExportNotFound",
                format!(
                    "there is no APIExport {:?}: create it, empty, in the provider's workspace",
                    self.name
                ),
            ),
            Some(export) => match decide(export, &offers, &self.agent) {
                Verdict::UpToDate => Word::Holds,
                Verdict::Change(patch) => match self.provider.merge(&path, &patch).await {
                    Ok(Some(_)) => Word::Holds,
                    Ok(None) => return Ok(Outcome::Again(crate::UNTIL_SYNCED)),
                    Err(failure) if failure.is_conflict() => return Err(failure),
                    Err(failure) => {
                        self.say(
                            publications.keys(),
                            &Word::error("APIExportRefused", failure.sentence()),
                        );
                        return Err(failure);
                    }
                },
                Verdict::Anothers(other) => Word::error(
                    "AnotherAgent",
                    format!(
                        "APIExport {:?} is kept by agent {other:?}: end that one and remove the export's annotation \
                         syncagent.kcp.io/agent-name, or use another export",
                        self.name
                    ),
                ),
            },
        };
        for name in publications.keys() {
            let word = match late.get(name.as_str()) {
                Some(winner) => Word::error(
                    "AlreadyPublished",
                    format!(
                        "PublishedResource {winner:?} publishes the same kind: delete one of them, or project it elsewhere"
                    ),
                ),
                None => common.clone(),
            };
            self.catalog.say(name, EXPORTED, word);
        }
        self.exported.send_modify(|it| *it += 1);
        Ok(Outcome::Done)
    }
}

impl Export {
    fn say<'a>(&self, names: impl Iterator<Item = &'a String>, word: &Word) {
        for name in names {
            self.catalog.say(name, EXPORTED, word.clone());
        }
    }
}

fn apis(version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: "apis.kcp.io".to_owned(),
        version: version.to_owned(),
        api_version: format!("apis.kcp.io/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
