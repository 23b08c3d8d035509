//! Brings the disk to what `Repository` objects say, and says so in their status.
//!
//! ```text
//! object there → directory made, default branch set, status written; a mirror fetches, now and every so often
//! object gone  → directory moved aside
//! at the start → directories whose object is gone are looked at, too
//! ```

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::error::is_not_found;
use fairway_controller::{
    Attempt as _, ClientFactory, Clients, Controller, Failure, Json, Manager, Metrics, ObjectKey, Outcome,
    Queue, Reconcile, Shutdown, WorkspaceId, watch,
};
use fairway_gitops_git::Repository;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::catalog::{self, Mirror, Wanted};
use crate::gitea::shapes::now;
use crate::host::Host;
use crate::place::PlaceError;
use crate::route::Slug;
use crate::{USER, mirror, owner};

const NAME: &str = "git-host";
const WORKERS: usize = 4;
/// How often what was moved aside is looked at.
const SWEEP: Duration = Duration::from_secs(3600);

struct Repositories {
    host: Arc<Host>,
    clients: Clients,
}

/// Keeps repositories until the end.
pub async fn run(host: Arc<Host>, clients: ClientFactory, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(clients, metrics, shutdown);
    let clients = manager.clients(USER);
    let queue: Queue<ObjectKey> = Queue::default();
    host.mirrors().use_queue(queue.clone());
    let (sink, reach, on_disk) = (queue.clone(), clients.reach().clone(), Arc::clone(&host));
    manager.spawn(watch::follow(
        catalog::api(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        move |event: Event<Json>| match event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                sink.add(ObjectKey::of(&reach, &object.metadata));
            }
            Event::Init => {}
            // What was deleted while nobody looked is told by no event.
            Event::InitDone => {
                for found in on_disk.place().list() {
                    if let Ok(workspace) = WorkspaceId::parse(&found.workspace) {
                        sink.add(ObjectKey {
                            workspace,
                            namespace: String::new(),
                            name: found.name,
                        });
                    }
                }
            }
        },
    ));
    crate::hooks::deliver::start(&mut manager, &host);
    let swept = Arc::clone(&host);
    let mut ending = manager.shutdown();
    manager.spawn(async move {
        loop {
            let place = Arc::clone(&swept);
            let _ = tokio::task::spawn_blocking(move || place.place().sweep()).await;
            tokio::select! {
                () = ending.wait() => return,
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
    });
    let controller = Controller::new(NAME, queue, Repositories { host, clients }).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    manager.run().await;
}

impl Reconcile<ObjectKey> for Repositories {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let client = self.clients.of(&key.workspace);
        let object = match catalog::api(client.clone()).get(&key.name).await {
            Ok(object) => object,
            Err(error) if is_gone(&error) => {
                self.host.mirrors().note(key, None);
                let removed = self
                    .host
                    .place()
                    .remove(key.workspace.as_str(), &key.name, None)
                    .await;
                match removed {
                    Ok(true) => info!(%key, "a repository whose object is gone was moved aside"),
                    Ok(false) => {}
                    Err(error) => warn!(%key, %error, "a repository could not be moved aside"),
                }
                return Ok(Outcome::Done);
            }
            // The kind is not served, or the workspace is offline: no reason to touch anything.
            Err(error) if is_not_found(&error) => return Ok(Outcome::Done),
            Err(error) => return Err(error).attempting("look at a Repository"),
        };
        if object.value.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(Outcome::Done);
        }
        let wanted = Wanted::read(key.workspace.as_str(), &object.value);
        if !owner::is_repository_name(&wanted.name) {
            let why = "the name is not one that an address can have: lower-case letters, digits, dashes and single dots, not \
                       ending in .git or .wiki";
            return self
                .write(client, &object.value, &wanted, Err(why.to_owned()))
                .await;
        }
        self.host.mirrors().note(key, wanted.mirror.as_ref());
        let wanted = Arc::new(wanted);
        let place = self.host.place();
        let settled = async {
            let repository = place.ensure(&wanted).await?;
            if wanted.mirror.is_none() {
                place.settle(&repository, &wanted).await?;
            }
            Ok::<_, PlaceError>(repository)
        };
        let repository = match settled.await {
            Ok(repository) => repository,
            Err(error) => {
                self.write(client, &object.value, &wanted, Err(error.to_string()))
                    .await?;
                return Ok(Outcome::Poll);
            }
        };
        let Some(mirror) = &wanted.mirror else {
            return self.write(client, &object.value, &wanted, Ok(())).await;
        };
        let followed = self
            .follow(client.clone(), key, &wanted, mirror, &repository)
            .await;
        let is_failing = followed.is_err();
        self.write(client, &object.value, &wanted, followed).await?;
        Ok(match is_failing {
            true => Outcome::Poll,
            false => Outcome::Again(mirror.interval),
        })
    }
}

impl Repositories {
    /// Fetches what is new elsewhere, and tells watchers.
    async fn follow(
        &self,
        client: kube::Client,
        key: &ObjectKey,
        wanted: &Arc<Wanted>,
        mirror: &Mirror,
        repository: &Repository,
    ) -> Result<(), String> {
        let mut remote = mirror::remote(client.clone(), mirror).await?;
        remote.max_bytes = wanted.limits.max_size;
        let fetched = remote.mirror(repository).await.map_err(|error| error.full())?;
        let path = match key.workspace.is_root() {
            true => Some("root".to_owned()),
            false => workspace_path(client).await.map_err(|error| error.to_string())?,
        };
        let owner = owner::of_workspace(path.as_deref().unwrap_or(key.workspace.as_str()));
        if let Some(push) = mirror::news(wanted, &owner, repository, fetched) {
            info!(%key, references = push.updates.len(), "a mirror has followed");
            crate::hooks::payload::pushed(&self.host, &push).await;
            drop(self.host.tell(&push));
        }
        Ok(())
    }

    /// Writes the status, if it would say something new.
    async fn write(
        &self,
        client: kube::Client,
        object: &Value,
        wanted: &Wanted,
        outcome: Result<(), String>,
    ) -> Result<Outcome, Failure> {
        let path = match wanted.workspace.as_str() {
            "root" => "root".to_owned(),
            _ => workspace_path(client.clone())
                .await?
                .unwrap_or_else(|| wanted.workspace.clone()),
        };
        let slug = Slug {
            owner: owner::of_workspace(&path),
            name: wanted.name.clone(),
        };
        let old = object.get("status").cloned().unwrap_or_default();
        let new = status(&old, wanted, &path, &self.host.clone_url(&slug), &outcome, &now());
        if new != old {
            let patch = json!({"status": new});
            catalog::api(client)
                .patch_status(&wanted.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .attempting("write the status of a Repository")?;
        }
        Ok(Outcome::Done)
    }
}

/// The path of a client's workspace.
pub(crate) async fn workspace_path(client: kube::Client) -> Result<Option<String>, Failure> {
    let resource = kube::core::ApiResource {
        group: "core.kcp.io".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "core.kcp.io/v1alpha1".to_owned(),
        kind: "LogicalCluster".to_owned(),
        plural: "logicalclusters".to_owned(),
    };
    let itself: Json = Api::all_with(client, &resource)
        .get("cluster")
        .await
        .attempting("read the path of a workspace")?;
    let path = itself.value.pointer("/metadata/annotations/kcp.io~1path");
    Ok(path.and_then(Value::as_str).map(str::to_owned))
}

/// Whether the API has said that this object is gone; of a kind that is not served it says something else.
fn is_gone(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            let named = status
                .details
                .as_ref()
                .is_some_and(|details| !details.name.is_empty());
            status.code == 404 && named
        }
        _ => false,
    }
}

/// What the status says; its condition keeps its time as long as it stays the same.
fn status(
    old: &Value,
    wanted: &Wanted,
    owner: &str,
    clone_url: &str,
    outcome: &Result<(), String>,
    now: &str,
) -> Value {
    let (truth, reason, message) = match outcome {
        Ok(()) if wanted.mirror.is_some() => {
            ("True", "Mirrored", "the repository is as the one that it follows")
        }
        Ok(()) => ("True", "Served", "the repository can be cloned and pushed to"),
        Err(why) if wanted.mirror.is_some() => ("False", "MirrorFailed", why.as_str()),
        Err(why) => ("False", "NotServed", why.as_str()),
    };
    let known = |condition: &&Value| condition["type"] == "Ready";
    let conditions = old["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().find(known);
    let since = before
        .filter(|before| before["status"] == truth)
        .map(|before| before["lastTransitionTime"].clone());
    let ready = json!({
        "type": "Ready", "status": truth, "reason": reason, "message": message,
        "observedGeneration": wanted.generation,
        "lastTransitionTime": since.unwrap_or_else(|| now.into()),
    });
    let mut all: Vec<Value> = conditions
        .into_iter()
        .filter(|condition| !known(&condition))
        .collect();
    all.push(ready);
    let mut new = old.as_object().cloned().unwrap_or_default();
    new.insert("cloneURL".to_owned(), clone_url.into());
    new.insert("owner".to_owned(), owner.into());
    new.insert("observedGeneration".to_owned(), wanted.generation.into());
    new.insert("conditions".to_owned(), all.into());
    Value::Object(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_says_nothing_new_stays() {
        let wanted = Wanted::read("root", &json!({"metadata": {"name": "a", "generation": 2}}));
        let first = status(
            &Value::Null,
            &wanted,
            "root",
            "https://x/root/a.git",
            &Ok(()),
            "t1",
        );
        assert_eq!(first["cloneURL"], "https://x/root/a.git");
        assert_eq!(first["conditions"][0]["lastTransitionTime"], "t1");
        let second = status(&first, &wanted, "root", "https://x/root/a.git", &Ok(()), "t2");
        assert_eq!(first, second);
        let failed = status(
            &second,
            &wanted,
            "root",
            "https://x/root/a.git",
            &Err("disk".to_owned()),
            "t3",
        );
        assert_eq!(failed["conditions"][0]["status"], "False");
        assert_eq!(failed["conditions"][0]["lastTransitionTime"], "t3");
        let other = json!({"conditions": [{"type": "Mirrored", "status": "True"}], "size": 5});
        let kept = status(&other, &wanted, "root", "u", &Ok(()), "t4");
        assert_eq!(
            (kept["conditions"][0]["type"].as_str(), &kept["size"]),
            (Some("Mirrored"), &json!(5))
        );
    }
}
