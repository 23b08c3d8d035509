//! One pass over a set: what it stands for, what is there, what to do about it, and what to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairway_api::argoproj::{CLUSTER_SECRETS, CONTROL_PLANES};
use fairway_controller::events::Recorder;
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_gitops_appset::application::applications;
use fairway_gitops_appset::changes::{Desired, Policy, changes, may_be_empty};
use fairway_gitops_appset::rollout;
use fairway_gitops_appset::status::{self, PAUSE, Reason};
use fairway_gitops_appset::{Cluster, Error};
use fairway_gitops_sync::annotation;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::checks::{Surroundings, prepare};
use super::hands::{Hands, set_path};
use super::listings::{Listings, Look};
use super::pulls::SharedPulls;
use super::registry::{Before, Failed, Prepared, REFRESH, Registry, is_refresh};
use super::views::Views;
use super::world::{World, asks_for_pulls, clusters, interval};
use crate::settings::Catalog;

/// How soon a set is looked at again whose generators or Applications are wrong, as with Argo CD.
const WRONG: Duration = Duration::from_secs(180);
/// How soon what a generator looks at is tried again if it could not be read.
const UNREAD: Duration = Duration::from_secs(30);
/// How soon to look again whether the Applications were listed.
const UNLISTED: Duration = Duration::from_millis(20);
/// How soon an Application whose turn it is gets it, if it was changed in the same moment.
const LATE: Duration = Duration::from_millis(100);
/// On a set: `true` if no Applications at all is what its generators may mean.
const ALLOW_EMPTY: &str = "fairway.dev/allow-empty";

/// The sets, and what their passes need.
pub(crate) struct Sets {
    pub(crate) clients: Clients,
    pub(crate) catalog: Catalog,
    pub(crate) listings: Listings,
    pub(crate) pulls: SharedPulls,
    pub(crate) recorder: Recorder,
    pub(crate) applications: Arc<Views>,
    pub(crate) registry: Registry,
    /// The addresses of this API.
    pub(crate) urls: Vec<String>,
}

/// What a set stands for, and when to look again; or what is wrong with it.
type Found = Result<(Arc<Prepared>, Option<Duration>), Failed>;

impl Reconcile<ObjectKey> for Sets {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !CONTROL_PLANES.contains(&key.namespace.as_str()) {
            return Ok(Outcome::Done);
        }
        let requests = Requests::new(self.clients.of(&key.workspace));
        let Some(set) = requests.get(&set_path(key)).await? else {
            self.registry.gone(key);
            return Ok(Outcome::Done);
        };
        if !self.applications.is_synced() {
            return Ok(Outcome::Again(UNLISTED));
        }
        let secrets = format!("/api/v1/namespaces/{}/secrets", key.namespace);
        let secrets = requests.list_selected(&secrets, CLUSTER_SECRETS).await?;
        let clusters = clusters(&secrets);
        let hands = Hands {
            key,
            set: &set,
            requests: &requests,
            recorder: &self.recorder,
            applications: &self.applications,
            clusters: &clusters,
            urls: &self.urls,
            policy: Policy::of(&set).unwrap_or(Policy {
                updates: false,
                deletes: false,
            }),
        };
        match set["metadata"]["deletionTimestamp"].is_null() {
            true => self.pass(&hands).await,
            false => super::deletion::finalize(&hands).await,
        }
    }
}

impl Sets {
    async fn pass(&self, hands: &Hands<'_>) -> Result<Outcome, Failure> {
        let (prepared, mut again) = match self.prepared(hands).await? {
            Ok(found) => found,
            Err((reason, why, again)) => {
                let outcome = status::Outcome {
                    error: Some((reason, why)),
                    generated: false,
                };
                let status = status::failed(hands.set, &outcome, Timestamp::now());
                hands.write_status(&status).await?;
                self.refreshed(hands).await?;
                return Ok(Outcome::Again(again));
            }
        };
        let uid = hands.set["metadata"]["uid"].as_str().unwrap_or_default();
        let existing: Vec<Value> = self
            .applications
            .of_set(hands.key, uid)
            .iter()
            .map(|view| view.object.clone())
            .collect();
        let allowed = annotation::get(hands.set, ALLOW_EMPTY) == "true";
        let desired = Desired {
            applications: &prepared.applications,
            unsure: &prepared.unsure,
            may_be_empty: allowed || may_be_empty(&hands.set["spec"]),
        };
        let mut outcome = status::Outcome {
            error: prepared.error.clone(),
            generated: true,
        };
        let mut failed = false;
        match changes(hands.set, desired, &existing) {
            Ok(found) => {
                let mut problems = hands.carry_out(found.changes).await;
                problems.extend(found.refused.into_iter().map(|(_, why)| (Reason::Update, why)));
                failed = !problems.is_empty();
                let more = problems.len().saturating_sub(1);
                if let Some((reason, why)) = problems.into_iter().next() {
                    let why = match more {
                        0 => why,
                        more => format!("{why} (and {more} more)"),
                    };
                    outcome.error = Some((reason, why));
                } else if !found.held.is_empty() {
                    outcome.error = Some((Reason::Parameters, held(found.held.len())));
                }
            }
            Err(error) => outcome.error = Some((Reason::of(&error), error.to_string())),
        }
        if prepared.error.is_some() {
            again = Some(again.map_or(WRONG, |again| again.min(WRONG)));
        }
        let waits = self.tell(hands, &prepared, uid, &outcome).await?;
        self.refreshed(hands).await?;
        if failed {
            return Ok(Outcome::Poll);
        }
        Ok(match again.into_iter().chain(waits).min() {
            Some(again) => Outcome::Again(again),
            None => Outcome::Done,
        })
    }

    /// Writes the status, and syncs those whose turn it is; when to look again.
    async fn tell(
        &self,
        hands: &Hands<'_>,
        prepared: &Prepared,
        uid: &str,
        outcome: &status::Outcome,
    ) -> Result<Option<Duration>, Failure> {
        // What was made just now may not have been seen yet, and counts.
        let mut all: BTreeMap<String, Value> = prepared
            .applications
            .iter()
            .map(|it| {
                let name = it["metadata"]["name"].as_str().unwrap_or_default();
                (name.to_owned(), it.clone())
            })
            .collect();
        for view in self.applications.of_set(hands.key, uid) {
            all.insert(view.name().to_owned(), view.object.clone());
        }
        let all: Vec<Value> = all.into_values().collect();
        let now = Timestamp::now();
        let found = match status::status(hands.set, &all, outcome, now) {
            Ok(found) => found,
            Err(error) => {
                let outcome = status::Outcome {
                    error: Some((Reason::of(&error), error.to_string())),
                    generated: true,
                };
                let status = status::failed(hands.set, &outcome, now);
                hands.write_status(&status).await?;
                return Ok(None);
            }
        };
        hands.write_status(&found.status).await?;
        let mut is_late = false;
        if hands.policy.updates {
            for name in &found.sync {
                let wanted = all.iter().find(|it| it["metadata"]["name"] == **name);
                let operation =
                    rollout::operation(wanted.unwrap_or(&Value::Null), prepared.prunes.contains(name));
                is_late |= !hands.sync(name, &operation).await?;
            }
        }
        // What changed may concern no set, so that nobody would look again because of it.
        Ok(match is_late {
            true => Some(LATE),
            false => found.again.then(|| PAUSE.unsigned_abs()),
        })
    }

    /// What a set stands for: as it was found before, if nothing has happened since.
    async fn prepared(&self, hands: &Hands<'_>) -> Result<Found, Failure> {
        let (key, set) = (hands.key, hands.set);
        let interval = interval(&set["spec"]);
        if is_refresh(set) {
            self.registry.forget(key);
        }
        let begun = match self.registry.prepared(key) {
            Before::Good(prepared, due) => return Ok(Ok((prepared, due))),
            Before::Bad(reason, why, again) => return Ok(Err((reason, why, again))),
            Before::Nothing { begun } => begun,
            Before::Perhaps {
                begun,
                prepared,
                looks,
            } => {
                let oldest = interval.unwrap_or(WRONG);
                // Pull requests are asked for each time, and what is wrong is tried again.
                let is_all = prepared.error.is_none() && !asks_for_pulls(&set["spec"]);
                if is_all && let Ok(Some(looks)) = self.listings.unchanged(&looks, oldest).await {
                    let found = (Arc::clone(&prepared), looks);
                    self.registry.remember(key, begun, found, interval);
                    return Ok(Ok((prepared, interval)));
                }
                begun
            }
        };
        let (yielded, looks) = match self.generate(hands, interval).await {
            Ok(found) => found,
            Err(error) => {
                let again = match &error {
                    Error::Source(_) => interval.map_or(UNREAD, |interval| interval.min(UNREAD)),
                    _ => WRONG,
                };
                let failed = (Reason::of(&error), error.to_string(), again);
                self.registry.remember_failure(key, begun, failed.clone());
                return Ok(Err(failed));
            }
        };
        let around = Surroundings {
            requests: hands.requests,
            catalog: &self.catalog,
            clusters: hands.clusters,
            urls: &self.urls,
        };
        let prepared = Arc::new(prepare(key, set, yielded, around).await?);
        let valid = match prepared.error.is_some() {
            true => Some(interval.map_or(WRONG, |interval| interval.min(WRONG))),
            false => interval,
        };
        let found = (Arc::clone(&prepared), looks);
        self.registry.remember(key, begun, found, valid);
        Ok(Ok((prepared, valid)))
    }

    async fn generate(
        &self,
        hands: &Hands<'_>,
        interval: Option<Duration>,
    ) -> Result<(Vec<Value>, Vec<Look>), Error> {
        let set = hands.set.clone();
        let project = set["spec"]["template"]["spec"]["project"]
            .as_str()
            .unwrap_or_default();
        let oldest = match is_refresh(&set) {
            true => Duration::ZERO,
            false => interval.unwrap_or(WRONG),
        };
        let world = World {
            set: hands.key.clone(),
            requests: hands.requests.clone(),
            listings: self.listings.clone(),
            pulls: self.pulls.clone(),
            registry: self.registry.clone(),
            clusters: Vec::<Cluster>::from(hands.clusters),
            project: match project.contains("{{") {
                true => String::new(),
                false => project.to_owned(),
            },
            oldest,
            handle: Handle::current(),
            seen: Mutex::default(),
        };
        let generated = tokio::task::spawn_blocking(move || {
            let yielded = applications(&set, &world)?;
            Ok((yielded, world.looks()))
        })
        .await;
        generated.unwrap_or_else(|broken| Err(Error::Source(format!("generating failed: {broken}"))))
    }

    /// That what was asked for has been done.
    async fn refreshed(&self, hands: &Hands<'_>) -> Result<(), Failure> {
        if is_refresh(hands.set) {
            let patch = json!({"metadata": {"annotations": {REFRESH: null}}});
            hands.requests.merge(&set_path(hands.key), &patch).await?;
        }
        Ok(())
    }
}

fn held(count: usize) -> String {
    format!(
        "the generators yield no Applications at all, so that the {count} of this set are kept; if they are to be deleted, \
         annotate the set with {ALLOW_EMPTY}=true"
    )
}
