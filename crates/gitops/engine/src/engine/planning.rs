//! What a sync would do, before anybody does it: for another revision, for files that are in no repository yet, or for what is
//! declared now. Nothing is written, and nothing is remembered: requests are reads and dry runs, as the identity that would
//! sync.

use std::collections::BTreeMap;

use fairway_api::fairway::{IMPACT_ANNOTATION, IMPACT_REASON_ANNOTATION};
use fairway_controller::{Failure, ObjectKey};
use fairway_gitops_sync::annotation::{self, LAST_APPLIED};
use fairway_gitops_sync::automated::Automated;
use fairway_gitops_sync::diff::secret;
use fairway_gitops_sync::guard::{self, Held};
use fairway_gitops_sync::impact::{self, Change, Impact};
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::operation::{Plan, SyncOptions, Task};
use fairway_gitops_sync::{drift, hook};
use fairway_gitops_tree::Tree;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Engine;
use super::syncing::needed_by_others;
use crate::application::{Application, path_of};
use crate::desired::Rendered;
use crate::observe::{Observation, Observed, Scene, observe};
use crate::operation::{self, Record, Stage};
use crate::tombstones::Reason;

/// How many dry runs are asked for at once.
const AT_ONCE: usize = 8;

/// What a plan is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The revision of each source; empty ones are those of the source.
    pub(crate) revisions: Vec<String>,
    /// Files in place of the repository, and the directory of the Application among them.
    pub(crate) local: Option<(Tree, String)>,
    /// Whether Applications that the revision does not touch need no plan.
    pub(crate) only_touched: bool,
}

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// There is no such Application.
    NotFound,
    /// The Application, or what was asked for, cannot be; a sentence.
    Invalid(String),
    /// It could not be found out.
    Failed(Failure),
}

impl From<Failure> for NoPlan {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Engine {
    /// What a sync would do, as an object for people and programs.
    pub(crate) async fn plan(&self, key: &ObjectKey, asked: &Asked) -> Result<Value, NoPlan> {
        let requests = self.requests(&key.workspace);
        let object = requests.get(&path_of(key)).await?.ok_or(NoPlan::NotFound)?;
        let application = Application::read(key, object).map_err(|(why, _)| NoPlan::Invalid(why))?;
        let ground = self.ground(&requests, &application).await?;
        let ground = ground.map_err(|groundless| NoPlan::Invalid(groundless.condition.message))?;
        let scene = Scene {
            is_plan: true,
            ..ground.scene(&application, &self.destinations.hub)
        };
        let rendered = self.planned(&scene, asked).await?;
        let known = self.results.get(key);
        let is_touched = match (&known, &asked.local) {
            (Some(known), None) => !self.is_same(&scene, known, &rendered).await,
            _ => true,
        };
        let mut answer = json!({
            "apiVersion": fairway_api::argoproj::API_VERSION, "kind": "ApplicationPlan",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "touched": is_touched, "revisions": rendered.revisions, "changes": [],
            "impact": Impact::None.as_str(),
        });
        if let Some(known) = known {
            answer["comparedRevisions"] = json!(known.revisions);
        }
        if let Some(why) = &rendered.failure {
            answer["failure"] = format!("Failed to load target state: {why}").into();
            return Ok(answer);
        }
        if asked.only_touched && !is_touched {
            return Ok(answer);
        }
        let observation = observe(&scene, Some(&rendered)).await?;
        let problems: Vec<&str> = observation
            .conditions
            .iter()
            .filter(|condition| condition.kind.forbids_sync())
            .map(|condition| condition.message.as_str())
            .collect();
        if !problems.is_empty() {
            answer["failure"] = problems.join("; ").into();
        }
        let planned = self.sync_plan(&scene, &observation, &rendered);
        let approved = guard::approvals(&application.object);
        let held = guard::hold(&planned, &scene.project.guard);
        if let Some(held) = held.filter(|held| !held.is_approved(approved)) {
            answer["approval"] = approval(&held);
        }
        let changes = self.changes(&scene, &observation, &planned).await;
        let worst = changes.iter().map(|(_, impact)| *impact).max();
        answer["impact"] = worst.unwrap_or(Impact::None).as_str().into();
        answer["changes"] = changes.into_iter().map(|(change, _)| change).collect();
        Ok(answer)
    }

    /// What is declared there.
    async fn planned(&self, scene: &Scene<'_>, asked: &Asked) -> Result<std::sync::Arc<Rendered>, NoPlan> {
        let application = scene.application;
        let mut sources = application.sources();
        let Some((tree, directory)) = &asked.local else {
            if asked.revisions.len() > sources.len() {
                return Err(NoPlan::Invalid(format!(
                    "{} revisions were given, and the application has {} sources",
                    asked.revisions.len(),
                    sources.len()
                )));
            }
            let found = self.declared(scene, &sources, &asked.revisions).await?;
            return found.map_err(|error| NoPlan::Invalid(format!("Failed to load target state: {error}")));
        };
        let [source] = sources.as_mut_slice() else {
            return Err(NoPlan::Invalid(
                "an application with several sources cannot be compared with local files".to_owned(),
            ));
        };
        directory.clone_into(&mut source.path);
        let surroundings = self.surroundings(scene, &sources).await?;
        let rendered = self
            .renderer
            .render_files(application, &sources, tree.clone(), &surroundings)
            .await;
        let rendered = rendered.map_err(|error| NoPlan::Invalid(error.to_string()))?;
        Ok(std::sync::Arc::new(rendered))
    }

    /// Whether a result is of the same files as another.
    async fn is_same(&self, scene: &Scene<'_>, known: &Rendered, planned: &Rendered) -> bool {
        let application = scene.application;
        let same = self
            .renderer
            .is_untouched(application, &application.sources(), known, &planned.revisions)
            .await;
        same.unwrap_or(false) && known.failure.is_none()
    }

    /// What a sync would do in which order; extra objects go unless the application syncs by itself and does not prune.
    fn sync_plan(&self, scene: &Scene<'_>, observation: &Observation, rendered: &Rendered) -> Plan {
        let application = scene.application;
        let policy = Automated::read(&application.object["spec"]["syncPolicy"]);
        let prune = policy.is_none_or(|policy| policy.prune);
        let operation = json!({"sync": {"prune": prune, "syncOptions": application.sync_options()}});
        let mut record = Record::begin(application, operation, Timestamp::now());
        record.revisions.clone_from(&rendered.revisions);
        let stage = Stage {
            scene,
            observation,
            kept: needed_by_others(scene, observation),
            reason: Reason::Pruned,
            revision: String::new(),
            answers: &self.answers,
        };
        operation::plan(&stage, &record)
    }

    /// What becomes of each object, and what that does.
    async fn changes(
        &self,
        scene: &Scene<'_>,
        observation: &Observation,
        plan: &Plan,
    ) -> Vec<(Value, Impact)> {
        let tasks: BTreeMap<&ResourceKey, &Task> = plan
            .tasks
            .iter()
            .filter(|task| !task.is_hook)
            .map(|task| (&task.id.key, task))
            .collect();
        let jobs: Vec<_> = observation
            .objects
            .iter()
            .map(|observed| {
                change(
                    scene,
                    observation,
                    observed,
                    tasks.get(&observed.pair.key).copied(),
                )
            })
            .collect();
        let mut found: Vec<(Value, Impact)> = futures::stream::iter(jobs)
            .buffered(AT_ONCE)
            .filter_map(async |change| change)
            .collect()
            .await;
        for object in &observation.hooks {
            if let hook::Role::Hook(phases) = hook::role(object) {
                let phases: Vec<&str> = phases.iter().map(|phase| phase.as_str()).collect();
                let key = ResourceKey::of(object);
                let mut change = named(&key, "hook", Impact::None);
                change["message"] = phases.join(", ").into();
                found.push((change, Impact::None));
            }
        }
        found
    }
}

fn approval(held: &Held) -> Value {
    json!({"reasons": held.reasons, "digest": held.digest})
}

fn named(key: &ResourceKey, action: &str, impact: Impact) -> Value {
    json!({
        "group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name,
        "action": action, "impact": impact.as_str(),
    })
}

/// What becomes of one object; nothing if nothing does.
async fn change(
    scene: &Scene<'_>,
    observation: &Observation,
    observed: &Observed,
    task: Option<&Task>,
) -> Option<(Value, Impact)> {
    let pair = &observed.pair;
    let Some(target) = &pair.target else {
        let keep = match task {
            Some(task) => task.keep,
            None => Some("it is not this application's"),
        };
        let kind = pair.live.as_ref().and_then(|live| observation.kinds.of(live));
        let answer = match kind.filter(|_| keep.is_none() && impact::is_answered(&pair.key)) {
            Some(kind) => scene.hands.dry_run_delete(kind, &pair.key).await,
            None => None,
        };
        let (action, what) = match keep {
            Some(_) => ("keep", Change::Stays),
            None => (
                "prune",
                Change::Goes {
                    live: pair.live.as_ref(),
                    answer: answer.as_ref(),
                },
            ),
        };
        let impact = impact::judge(&pair.key, what, IMPACT_ANNOTATION);
        let mut change = named(&pair.key, action, impact);
        if let Some(why) = keep {
            change["message"] = why.into();
        } else if let Some(answer) = &answer {
            tell_reason(&mut change, answer);
        }
        show(&mut change, observation, observed, scene);
        return Some((change, impact));
    };
    if pair.live.is_some() && !observed.state.counts {
        return None;
    }
    let answer = match observation.kinds.of(target) {
        Some(kind) => {
            let options = SyncOptions::read(scene.application.sync_options().iter().map(String::as_str));
            let mode = options.mode_for(target, pair.live.is_some());
            Some(
                scene
                    .hands
                    .dry_run(kind, target, mode)
                    .await
                    .map_err(|refusal| refusal.message),
            )
        }
        None => None,
    };
    let said = answer
        .as_ref()
        .map(|answer| answer.as_ref().map_err(String::as_str));
    let what = Change::Written {
        live: pair.live.as_ref(),
        target,
        answer: said,
    };
    let impact = impact::judge(&pair.key, what, IMPACT_ANNOTATION);
    let action = if pair.live.is_none() { "create" } else { "change" };
    let mut change = named(&pair.key, action, impact);
    match said {
        Some(Err(why)) => change["message"] = why.into(),
        None => change["message"] = "its kind is not defined yet".into(),
        Some(Ok(object)) => tell_reason(&mut change, object),
    }
    if let Some((_, why)) = observation.refused.iter().find(|(key, _)| *key == pair.key) {
        change["message"] = why.as_str().into();
    }
    show(&mut change, observation, observed, scene);
    Some((change, impact))
}

/// Puts in why a change does what it does, as far as the domain of its kind says so.
fn tell_reason(change: &mut Value, answer: &Value) {
    let why = annotation::get(answer, IMPACT_REASON_ANNOTATION);
    if !why.is_empty() {
        change["message"] = why.into();
    }
}

/// Puts in what an object is and would be. What is secret is masked, and what is not the application's is not shown: who may
/// ask for a plan need not be allowed to read everything that the engine can.
fn show(change: &mut Value, observation: &Observation, observed: &Observed, scene: &Scene<'_>) {
    let difference = &observed.difference;
    change["fields"] = match difference.is_modified() && !difference.live.is_null() {
        true => drift::fields(difference).into(),
        false => json!([]),
    };
    let there = |value: &Value| (!value.is_null()).then(|| value.clone());
    let (target, live) = secret::mask(
        there(&difference.predicted).as_ref(),
        there(&difference.live).as_ref(),
    );
    let owner = observed
        .pair
        .live
        .as_ref()
        .and_then(|live| observation.tracking.owner(live));
    let is_own = owner.as_deref() == Some(&scene.application.instance());
    if !is_own && live.is_some() {
        change["adopted"] = true.into();
        change["fields"] = json!([]);
        // What would become of it has everything that it is now.
        change["target"] = secret::mask(observed.pair.target.as_ref(), None).0.into();
        return;
    }
    for (name, object) in [("live", live), ("target", target)] {
        if let Some(mut object) = object {
            annotation::remove(&mut object, LAST_APPLIED);
            change[name] = object;
        }
    }
}
