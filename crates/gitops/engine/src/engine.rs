//! One pass over an Application: look, sync if there is something to sync, look again, write.
//!
//! Order of things: permission ([`checks`]), then a sync that was asked for or is under way, then the comparison with what the
//! Application declares now, then a sync that starts by itself, then one write. Deletion takes another way
//! ([`deletion`]).

mod automatic;
mod checks;
mod children;
mod deletion;
pub(crate) mod planning;
pub(crate) mod proposed;
mod syncing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_api::argoproj::{API_VERSION, REFRESH_ANNOTATION};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, WorkspaceId};
use fairway_gitops_sync::guard;
use fairway_gitops_view::answer::{Action, Notice};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Map, Value};

use crate::act::Hands;
use crate::answers::Answers;
use crate::application::{Application, path_of};
use crate::cluster::Cluster;
use crate::conditions::{Condition, Type};
use crate::desired::{Rendered, Renderer, Results, Surroundings};
use crate::destination::{Destinations, Place};
use crate::observe::{Observation, Scene, observe};
use crate::operation::Record;
use crate::pen::Pen;
use crate::permissions::Permissions;
use crate::report::{Report, timestamp};
use crate::settings::{Catalog, Project, Settings};
use crate::sources::SourceError;

/// How soon a source that could not be reached is tried again.
const UNREACHABLE: Duration = Duration::from_secs(10);

/// The engine.
pub(crate) struct Engine {
    pub(crate) clients: Clients,
    pub(crate) catalog: Catalog,
    pub(crate) destinations: Destinations,
    pub(crate) renderer: Renderer,
    pub(crate) results: Results,
    pub(crate) recorder: Recorder,
    pub(crate) answers: Answers,
    pub(crate) permissions: Permissions,
    looked: children::Looked,
    /// The versions that the engine itself has written: it need not look at them again.
    own_writes: Mutex<HashMap<ObjectKey, String>>,
}

/// Where an application goes, and what it may do there.
pub(crate) struct Ground {
    pub(crate) place: Place,
    pub(crate) project: Arc<Project>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) hands: Hands,
}

impl Ground {
    /// What an observation is made of.
    pub(crate) fn scene<'a>(&'a self, application: &'a Application, home: &'a Cluster) -> Scene<'a> {
        Scene {
            application,
            place: &self.place,
            project: &self.project,
            settings: &self.settings,
            hands: &self.hands,
            home,
            is_plan: false,
        }
    }
}

/// Why an application may not go anywhere.
pub(crate) struct Groundless {
    pub(crate) condition: Condition,
    /// Whether its destination is not there, so that nothing of it can be, either.
    pub(crate) is_lost: bool,
}

/// What a comparison found.
pub(crate) struct Comparison {
    observation: Observation,
    revisions: Vec<String>,
    rendered: Option<Arc<Rendered>>,
    /// When to look again, if the sources could not be reached.
    again: Option<Duration>,
}

impl Engine {
    pub(crate) fn new(
        clients: Clients,
        destinations: Destinations,
        renderer: Renderer,
        recorder: Recorder,
        answers: Answers,
    ) -> Self {
        Self {
            clients,
            catalog: Catalog::default(),
            destinations,
            renderer,
            results: Results::default(),
            recorder,
            answers,
            permissions: Permissions::default(),
            looked: children::Looked::default(),
            own_writes: Mutex::default(),
        }
    }

    /// Whether a version of an Application is one that the engine wrote.
    pub(crate) fn is_own_write(&self, key: &ObjectKey, version: &str) -> bool {
        let writes = self.own_writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.get(key).is_some_and(|own| own == version)
    }

    fn note_write(&self, key: &ObjectKey, pen: &Pen) {
        if let Some(version) = &pen.written {
            let mut writes = self.own_writes.lock().unwrap_or_else(PoisonError::into_inner);
            writes.insert(key.clone(), version.clone());
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.results.forget(key);
        self.looked.forget(key);
        self.destinations.forget(key);
        self.own_writes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    fn requests(&self, workspace: &WorkspaceId) -> Requests {
        Requests::new(self.clients.of(workspace))
    }

    async fn pass(&self, application: &Application, pen: &mut Pen) -> Result<Outcome, Failure> {
        let requests = self.requests(&application.key.workspace);
        let refresh = application.annotation(REFRESH_ANNOTATION);
        if !refresh.is_empty() {
            let known = self.results.get(&application.key);
            let is_hard = refresh == "hard";
            self.renderer
                .refresh(application, known.as_deref(), is_hard)
                .await;
            if is_hard {
                self.results.forget(&application.key);
            }
        }
        let ground = match self.ground(&requests, application).await? {
            Ok(ground) => ground,
            Err(Groundless { condition, .. }) => {
                self.write(application, pen, None, None, &[condition]).await?;
                return Ok(Outcome::Done);
            }
        };
        let scene = ground.scene(application, &self.destinations.hub);
        let mut waits = None;
        // The sync that this pass took further, if there was one: only what has changed is written.
        let mut ran = Record::of(application, Timestamp::now());
        if let Some(running) = ran.as_mut() {
            waits = self.sync(&scene, running, pen).await?;
        }
        let mut compared = self.compare(&scene).await?;
        self.answers.tell(&application.key, || noticed(&compared));
        let mut conditions = checks::complaints(&scene);
        if ran.as_ref().is_none_or(|ran| ran.state.phase.is_completed()) {
            let earlier = Record::read(application, &application.status()["operationState"]);
            let started = self
                .start(&scene, &compared, ran.as_ref().or(earlier.as_ref()))
                .await?;
            conditions.extend(
                started
                    .refusal
                    .map(|message| Condition::new(Type::SyncError, message)),
            );
            waits = waits.or(started.again);
            if let Some(why) = started.held {
                self.answers.tell(&application.key, || Notice::Held(why));
            }
            let is_first = ran.is_none();
            match (started.record, is_first) {
                // One after the other, so that the end of each is written.
                (Some(_), false) => waits = Some(Duration::ZERO),
                (Some(mut begun), true) => {
                    self.tell_start(&scene, &compared, &begun).await;
                    waits = self.sync(&scene, &mut begun, pen).await?;
                    compared = self.compare(&scene).await?;
                    if let Some(refusal) = automatic::failure(&compared, application, &begun) {
                        conditions.push(Condition::new(Type::SyncError, refusal));
                    }
                    ran = Some(begun);
                }
                (None, _) => {}
            }
        }
        let later = self.look_for_children(&scene, &mut compared.observation).await;
        conditions.extend(compared.observation.conditions.iter().cloned());
        conditions.extend(checks::orphans(&scene, &compared.observation).await);
        let again = compared.again.into_iter().chain(later).min();
        self.write(application, pen, Some(&compared), ran.as_ref(), &conditions)
            .await?;
        Ok(match waits.into_iter().chain(again).min() {
            Some(delay) => Outcome::Again(delay),
            None => Outcome::Done,
        })
    }

    /// Compares what is declared now with what is there.
    async fn compare(&self, scene: &Scene<'_>) -> Result<Comparison, Failure> {
        let application = scene.application;
        let sources = application.sources();
        let (mut failure, mut again) = (None, None);
        let mut revisions = Vec::new();
        let mut rendered = None;
        self.results.expect(application, &sources);
        match self.declared(scene, &sources, &[]).await? {
            Ok(found) => {
                revisions.clone_from(&found.revisions);
                failure.clone_from(&found.failure);
                self.results.put(&application.key, Arc::clone(&found));
                rendered = Some(found);
            }
            Err(error) => {
                if matches!(error, SourceError::Unreachable(_)) {
                    again = Some(UNREACHABLE);
                }
                failure = Some(error.to_string());
                let unresolved = Rendered::unresolved(application, &sources);
                self.results.put(&application.key, Arc::new(unresolved));
            }
        }
        let mut observation = observe(scene, rendered.as_deref()).await?;
        if let Some(why) = failure {
            let message = format!("Failed to load target state: {why}");
            observation
                .conditions
                .push(Condition::new(Type::ComparisonError, message));
        }
        Ok(Comparison {
            observation,
            revisions,
            rendered,
            again,
        })
    }

    /// What sources declare at revisions; the inner error is the sources'.
    async fn declared(
        &self,
        scene: &Scene<'_>,
        sources: &[crate::application::Source],
        wanted: &[String],
    ) -> Result<Result<Arc<Rendered>, SourceError>, Failure> {
        let application = scene.application;
        let revisions = match self.renderer.resolve(application, sources, wanted).await {
            Ok(revisions) => revisions,
            Err(error) => return Ok(Err(error)),
        };
        let known = self.results.get(&application.key);
        let surroundings = self.surroundings(scene, sources).await?;
        let rendered = self
            .renderer
            .render(application, sources, revisions, &surroundings, known.as_deref())
            .await;
        Ok(rendered.map(Arc::new))
    }

    async fn surroundings(
        &self,
        scene: &Scene<'_>,
        sources: &[crate::application::Source],
    ) -> Result<Surroundings, Failure> {
        let place = scene.place;
        place.cluster.ready().await;
        let variables = match sources.iter().any(|source| source.plugin.is_some()) {
            true => {
                let requests = self.requests(&scene.application.key.workspace);
                self.catalog.variables(&requests, scene.application).await?
            }
            false => Default::default(),
        };
        Ok(Surroundings {
            kube_version: place.cluster.version(&place.workspace).await,
            api_versions: place.cluster.api_versions(),
            variables,
            value_schemes: scene.settings.value_schemes.clone(),
            fetches_charts: scene.settings.fetches_charts,
            permitted: scene.project.spec.clone(),
        })
    }

    /// Writes what was found out: one patch, or none.
    async fn write(
        &self,
        application: &Application,
        pen: &mut Pen,
        compared: Option<&Comparison>,
        record: Option<&Record>,
        conditions: &[Condition],
    ) -> Result<(), Failure> {
        let now = timestamp(Timestamp::now());
        let report = Report {
            application,
            observation: compared.map(|compared| &compared.observation),
            revisions: compared.map_or(&[], |compared| compared.revisions.as_slice()),
            rendered: compared.and_then(|compared| compared.rendered.as_deref()),
            conditions,
            now: &now,
        };
        let before = pen.status().clone();
        let mut status = report.status(&before);
        let mut more = Map::new();
        let mut ended = None;
        if let Some(record) = record {
            let state = record.write(application);
            let is_new = before["operationState"] != state;
            if record.state.phase.is_completed() {
                if pen.has_operation() {
                    more.insert("operation".to_owned(), Value::Null);
                }
                if is_new {
                    syncing::note_history(application, record, &mut status);
                    ended = Some(record);
                }
            } else if !pen.has_operation() {
                more.insert("operation".to_owned(), record.operation.clone());
            }
            status["operationState"] = state;
        }
        let is_refresh = !application.annotation(REFRESH_ANNOTATION).is_empty();
        let (mut metadata, mut annotations) = (Map::new(), Map::new());
        if is_refresh {
            annotations.insert(REFRESH_ANNOTATION.to_owned(), Value::Null);
        }
        let spent = record.and_then(|record| record.spent.as_ref());
        if let Some(left) = spent.and_then(|spent| spent.leaves(guard::approvals(pen.object()))) {
            let left = Some(left).filter(|left| !left.is_empty());
            annotations.insert(guard::APPROVE.to_owned(), left.into());
            // Somebody may be approving something else at this moment.
            metadata.insert("resourceVersion".to_owned(), pen.version());
        }
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Value::Object(annotations));
        }
        let hooks = compared.map_or(&[][..], |compared| compared.observation.hooks.as_slice());
        if let Some(finalizers) = deletion::missing_finalizers(application, hooks) {
            let version = pen.version();
            metadata.insert("finalizers".to_owned(), serde_json::json!(finalizers));
            metadata.insert("resourceVersion".to_owned(), version);
        }
        if !metadata.is_empty() {
            more.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if is_refresh || !more.is_empty() || status != before {
            status["reconciledAt"] = now.as_str().into();
        }
        pen.write(&status, more).await?;
        self.note_write(&application.key, pen);
        self.answers
            .tell(&application.key, || Notice::Written(pen.object().clone()));
        self.tell(application, &before, &status, ended).await;
        Ok(())
    }

    /// Events for what has changed.
    async fn tell(&self, application: &Application, before: &Value, after: &Value, ended: Option<&Record>) {
        if let Some(record) = ended {
            self.happened(application, syncing::ending(record)).await;
        }
        for (what, pointer) in [("sync", "/sync/status"), ("health", "/health/status")] {
            let word = |status: &Value| {
                let word = status.pointer(pointer).and_then(Value::as_str);
                word.unwrap_or_default().to_owned()
            };
            let (old, new) = (word(before), word(after));
            if old != new {
                let happening = Happening {
                    severity: Severity::Normal,
                    reason: "ResourceUpdated",
                    message: format!("Updated {what} status: {old} -> {new}"),
                };
                self.happened(application, happening).await;
            }
        }
    }

    async fn happened(&self, application: &Application, happening: Happening) {
        let about = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("Application".to_owned()),
            name: Some(application.key.name.clone()),
            namespace: Some(application.key.namespace.clone()),
            uid: Some(application.uid().to_owned()),
            ..ObjectReference::default()
        };
        self.recorder
            .record(&application.key.workspace, &about, happening)
            .await;
    }
}

/// What a comparison says to who listens.
fn noticed(compared: &Comparison) -> Notice {
    let changes = compared.observation.objects.iter().filter_map(|observed| {
        let action = match (&observed.pair.target, &observed.pair.live) {
            (Some(_), None) => Action::Create,
            (Some(_), Some(_)) if observed.state.counts => Action::Change,
            (None, Some(_)) if observed.state.requires_pruning => Action::Prune,
            _ => return None,
        };
        Some((observed.pair.key.clone(), action))
    });
    Notice::Compared {
        revisions: compared.revisions.clone(),
        changes: changes.collect(),
    }
}

/// The engine as a controller knows it.
pub(crate) struct Passes(pub(crate) Arc<Engine>);

impl Reconcile<ObjectKey> for Passes {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        self.0.look_at(key).await
    }
}

impl Engine {
    async fn look_at(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = self.requests(&key.workspace);
        let Some(object) = requests.get(&path_of(key)).await? else {
            self.forget(key);
            return Ok(Outcome::Done);
        };
        let application = match Application::read(key, object) {
            Ok(application) => application,
            Err((why, object)) => {
                let application = Application {
                    key: key.clone(),
                    object,
                    spec: Default::default(),
                };
                let mut pen = Pen::new(requests, &application);
                let condition = Condition::new(Type::InvalidSpecError, why);
                self.write(&application, &mut pen, None, None, &[condition])
                    .await?;
                return Ok(Outcome::Done);
            }
        };
        if application.is_skipped() {
            return Ok(Outcome::Done);
        }
        let mut pen = Pen::new(requests, &application);
        let outcome = match application.is_deleting() {
            true => self.finalize(&application, &mut pen).await,
            false => self.pass(&application, &mut pen).await,
        };
        self.note_write(key, &pen);
        outcome
    }
}
