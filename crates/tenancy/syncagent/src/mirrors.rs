//! Which publications are mirrored: those that the export offers, once somebody is bound to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::{Metrics, Shutdown, ShutdownTrigger};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Agent;
use crate::catalog::{Catalog, EXPORTED, Publication, SYNCED, Word};
use crate::consumers::Consumers;
use crate::mirror;

struct Running {
    fingerprint: String,
    end: ShutdownTrigger,
    task: JoinHandle<()>,
}

/// Starts and ends mirrors until the end.
pub(crate) async fn keep(
    agent: Agent,
    catalog: Catalog,
    mut exported: watch::Receiver<u64>,
    mut endpoints: watch::Receiver<Vec<String>>,
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
) {
    let mut running: BTreeMap<String, Running> = BTreeMap::new();
    let mut publications = catalog.changes();
    // The addresses, and what they lead to.
    let mut consumers: (Vec<String>, Result<Consumers, Word>) = (Vec::new(), Err(nobody()));
    loop {
        let wanted = Arc::clone(&publications.borrow_and_update());
        exported.mark_unchanged();
        let urls = endpoints.borrow_and_update().clone();
        if consumers.0 != urls {
            // Another address is another place to look at.
            end_all(&mut running).await;
            let dialled = if urls.is_empty() {
                Err(nobody())
            } else {
                let unusable = |why: String| Word::error("EndpointUnusable", why);
                Consumers::dial(&urls, &agent.dial).map_err(unusable)
            };
            consumers = (urls, dialled);
        }
        let gone: Vec<String> = running
            .iter()
            .filter(|(name, it)| {
                wanted
                    .get(*name)
                    .is_none_or(|now| now.fingerprint != it.fingerprint)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(it) = running.remove(&name) {
                end(it).await;
            }
        }
        for (name, publication) in wanted.iter() {
            if running.contains_key(name) || !catalog.holds(name, EXPORTED) {
                continue;
            }
            match begin(&agent, &catalog, publication, &consumers.1, &metrics) {
                Ok(started) => {
                    running.insert(name.clone(), started);
                }
                Err(word) => catalog.say(name, SYNCED, word),
            }
        }
        tokio::select! {
            biased;
            () = shutdown.wait() => {
                end_all(&mut running).await;
                return;
            }
            _ = publications.changed() => {}
            _ = exported.changed() => {}
            _ = endpoints.changed() => {}
        }
    }
}

fn begin(
    agent: &Agent,
    catalog: &Catalog,
    publication: &Arc<Publication>,
    consumers: &Result<Consumers, Word>,
    metrics: &Arc<Metrics>,
) -> Result<Running, Word> {
    if !publication.published.enabled {
        return Err(Word::info(
            "Disabled",
            "spec.synchronization.enabled is false: the kind is offered, and objects are not synchronised",
        ));
    }
    let consumers = consumers.as_ref().map_err(Word::clone)?;
    let (end, token) = Shutdown::new();
    let task = mirror::run(
        agent.clone(),
        catalog.clone(),
        Arc::clone(publication),
        consumers.clone(),
        Arc::clone(metrics),
        token,
    );
    catalog.say(publication.name(), SYNCED, Word::Holds);
    Ok(Running {
        fingerprint: publication.fingerprint.clone(),
        end,
        task: tokio::spawn(task),
    })
}

fn nobody() -> Word {
    Word::info(
        "NoConsumers",
        "no workspace is bound to the APIExport yet, so its endpoint slice names no address",
    )
}

async fn end(running: Running) {
    running.end.shut_down();
    // A mirror that panicked has ended as well.
    let _ = running.task.await;
}

async fn end_all(running: &mut BTreeMap<String, Running>) {
    let ending = std::mem::take(running);
    for it in ending.values() {
        it.end.shut_down();
    }
    for it in ending.into_values() {
        end(it).await;
    }
}
