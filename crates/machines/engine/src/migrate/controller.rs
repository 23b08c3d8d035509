//! The controller of migrations.
//!
//! One migration is looked at at a time, so that limits hold: what was handed over counts before a watch has seen it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairway_api::kubevirt::{VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION};
use fairway_controller::commit::difference;
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_machines_plan::admission::{MIGRATION_FINALIZER, MIGRATION_SELECTOR_LABEL};
use fairway_machines_plan::compatibility::RunsOn;
use fairway_machines_plan::machine::CpuModel;
use fairway_machines_plan::node::{MIGRATION_PROGRESS, RUNS_ON_ANNOTATION, TARGET_NODE_LABEL};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::decide::{Next, Observed, Phase, decide};
use crate::nodes::{Heard, Patience};
use crate::objects::{
    about, collection, is_leaving, items, locked, moment, ours, path, text, without_finalizers,
};
use crate::schedule::ground::Ground;
use crate::schedule::needs::Needs;
use crate::schedule::place::Placement;
use crate::schedule::scheduler::volumes_elsewhere;
use crate::settings::SettingsOf;

/// How soon a migration is looked at again that waits for others, or for a node.
const SOON: Duration = Duration::from_secs(5);
/// How long no node may be found.
const UNPLACED: SignedDuration = SignedDuration::from_mins(5);
/// How long a target may take to get ready.
const UNREADY: SignedDuration = SignedDuration::from_mins(15);
/// How many migrations of an instance that are over are kept.
const KEPT: usize = 5;
/// The shortest wait after a machine could not be moved away from a node.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(20);

/// Moves machines.
pub(crate) struct Migrations {
    clients: Clients,
    recorder: Recorder,
    settings: Arc<SettingsOf>,
    ground: Arc<Ground>,
    heard: Arc<Heard>,
    patience: Patience,
    /// Migrations that failed, and not because somebody took them back.
    failed: Arc<AtomicU64>,
}

/// One look at one migration.
struct Pass<'p> {
    key: &'p ObjectKey,
    migration: &'p Value,
    vmi: Option<&'p Value>,
    requests: &'p Requests,
    now: Timestamp,
}

impl Pass<'_> {
    fn instance(&self) -> String {
        let name = text(self.migration, "/spec/vmiName");
        path(&VIRTUAL_MACHINE_INSTANCE, &self.key.namespace, name)
    }

    fn place(&self) -> String {
        path(
            &VIRTUAL_MACHINE_INSTANCE_MIGRATION,
            &self.key.namespace,
            &self.key.name,
        )
    }

    /// Whether so much time has passed since the migration came into a phase.
    fn is_past(&self, phase: Phase, time: SignedDuration) -> bool {
        let mut all = items(self.migration, "/status/phaseTransitionTimestamps");
        let reached = all.find(|it| it["phase"] == phase.word());
        let reached = reached.map(|it| text(it, "/phaseTransitionTimestamp"));
        let reached: Option<Timestamp> = reached.and_then(|it| it.parse().ok());
        reached.is_some_and(|it| self.now.duration_since(it) >= time)
    }
}

impl Migrations {
    pub(crate) fn new(
        clients: Clients,
        recorder: Recorder,
        settings: Arc<SettingsOf>,
        ground: Arc<Ground>,
        heard: Arc<Heard>,
        patience: Patience,
        failed: Arc<AtomicU64>,
    ) -> Self {
        Self {
            clients,
            recorder,
            settings,
            ground,
            heard,
            patience,
            failed,
        }
    }

    async fn pass(&self, pass: &Pass<'_>) -> Result<Outcome, Failure> {
        let state = pass.vmi.map(|it| &it["status"]["migrationState"]);
        let named = |side: &str| state.map(|it| text(it, side)).unwrap_or_default();
        let (source, target) = (named("/sourceNode"), named("/targetNode"));
        let observed = Observed {
            migration: pass.migration,
            vmi: pass.vmi,
            other: self.has_other(pass).await?,
            target_lost: !target.is_empty() && self.heard.is_lost(target, self.patience),
            target_ended: !target.is_empty() && self.heard.has_ended(target, self.patience),
            source_ended: !source.is_empty() && self.heard.has_ended(source, self.patience),
            too_late: pass.is_past(Phase::PreparingTarget, UNREADY),
        };
        match decide(&observed) {
            Next::Wait => self.say_progress(pass).await?,
            Next::To(phase) => {
                self.say(pass, phase, json!({})).await?;
                if phase == Phase::Succeeded {
                    let message = "Source node reported migration succeeded";
                    self.tell(pass, Severity::Normal, "SuccessfulMigration", message)
                        .await;
                }
                // What comes next is seen with the migration as it is then.
                return Ok(Outcome::Done);
            }
            Next::Fail(why) => {
                self.fail(pass, &why).await?;
                return Ok(Outcome::Done);
            }
            Next::Place => return self.place(pass).await,
            Next::End(why) => self.end(pass, why).await?,
            Next::Abort => self.abort(pass).await?,
            Next::Finish => {
                self.finish(pass).await?;
                return Ok(Outcome::Done);
            }
            Next::Remove => {
                self.remove(pass).await?;
                return Ok(Outcome::Done);
            }
        }
        // Nodes may be lost without a word.
        Ok(Outcome::Again(SOON))
    }

    /// Whether another migration of the instance is under way.
    async fn has_other(&self, pass: &Pass<'_>) -> Result<bool, Failure> {
        let Some(vmi) = pass.vmi.filter(|_| Phase::of(pass.migration) == Phase::Unset) else {
            return Ok(false);
        };
        let uid = &vmi["status"]["migrationState"]["migrationUid"];
        let others = self.of_instance(pass).await?;
        let other = others.iter().find(|it| it["metadata"]["uid"] == *uid);
        Ok(other.is_some_and(|it| *uid != pass.migration["metadata"]["uid"] && !Phase::of(it).is_final()))
    }

    /// All migrations of the instance, the newest first.
    async fn of_instance(&self, pass: &Pass<'_>) -> Result<Vec<Value>, Failure> {
        let name = text(pass.migration, "/spec/vmiName");
        let all = collection(&VIRTUAL_MACHINE_INSTANCE_MIGRATION, &pass.key.namespace);
        let selector = format!("{MIGRATION_SELECTOR_LABEL}={name}");
        let mut found = pass.requests.list_selected(&all, &selector).await?;
        found.sort_by_key(|it| text(it, "/metadata/creationTimestamp").to_owned());
        found.reverse();
        Ok(found)
    }

    /// Finds a node, and hands the migration over to it.
    async fn place(&self, pass: &Pass<'_>) -> Result<Outcome, Failure> {
        let Some(vmi) = pass.vmi else {
            return Ok(Outcome::Done);
        };
        if let Some(wait) = self.backoff(pass).await? {
            return Ok(Outcome::Again(wait));
        }
        let settings = self.settings.migrations().await?;
        let source = text(vmi, "/status/nodeName");
        let (all, outbound) = self.ground.moving(source);
        if all >= settings.parallel || outbound >= settings.parallel_outbound {
            return Ok(Outcome::Again(SOON));
        }
        let volumes = volumes_elsewhere(vmi, pass.requests).await?;
        let placement = match Needs::of(vmi, volumes) {
            Ok(mut needs) => {
                needs.excluded.push(source.to_owned());
                needs.goes_on = self.goes_on(vmi, source);
                let instance = ObjectKey::new(
                    &pass.key.workspace,
                    &pass.key.namespace,
                    text(vmi, "/metadata/name"),
                );
                let namespaces = self.ground.namespaces(&instance, &needs, pass.requests).await?;
                self.ground.choose(&instance, &needs, &namespaces)
            }
            Err(error) => Placement::None(format!("where the machine wants to run cannot be read: {error}")),
        };
        match placement {
            Placement::Node(target) => {
                self.hand_over(pass, vmi, &target, settings.configuration.clone())
                    .await
            }
            Placement::None(why) => self.unplaced(pass, &why).await,
        }
    }

    /// What the guest runs on. One that an earlier Fairway has started does not say it: what its node has counts.
    fn goes_on(&self, vmi: &Value, source: &str) -> Option<(RunsOn, CpuModel)> {
        let said = vmi["metadata"]["annotations"][RUNS_ON_ANNOTATION].as_str();
        let runs_on = said.and_then(|it| it.parse().ok()).or_else(|| {
            let nodes = self.ground.nodes.all().into_iter();
            let mut here = nodes.filter(|(_, it)| it.name == source);
            here.next()?.1.runs_on()
        })?;
        Some((runs_on, CpuModel::of(text(vmi, "/spec/domain/cpu/model"))))
    }

    async fn unplaced(&self, pass: &Pass<'_>, why: &str) -> Result<Outcome, Failure> {
        let name = text(pass.migration, "/spec/vmiName");
        let place = format!("{}/{name}", pass.key.namespace);
        if pass.is_past(Phase::Pending, UNPLACED) {
            let why = format!(
                "Migration target pod for VMI [{place}]: unschedulable timeout period exceeded: {why}"
            );
            self.fail(pass, &why).await?;
            return Ok(Outcome::Done);
        }
        let message = format!("Migration target pod for VMI [{place}] is currently unschedulable. {why}");
        self.tell(
            pass,
            Severity::Warning,
            "migrationTargetPodUnschedulable",
            &message,
        )
        .await;
        Ok(Outcome::Again(SOON))
    }

    async fn hand_over(
        &self,
        pass: &Pass<'_>,
        vmi: &Value,
        target: &str,
        configuration: Value,
    ) -> Result<Outcome, Failure> {
        let state = json!({
            "migrationUid": pass.migration["metadata"]["uid"],
            "sourceNode": vmi["status"]["nodeName"],
            "targetNode": target,
            "migrationConfiguration": configuration,
        });
        let metadata = json!({"labels": {TARGET_NODE_LABEL: target}});
        let Some(patch) = with_state(vmi, &state, metadata) else {
            return Ok(Outcome::Done);
        };
        let Some(written) = pass.requests.merge(&ours(&pass.instance()), &patch).await? else {
            return Ok(Outcome::Done);
        };
        let instance = ObjectKey::new(
            &pass.key.workspace,
            &pass.key.namespace,
            text(vmi, "/metadata/name"),
        );
        self.ground.assume_target(&instance, &written, target);
        self.say(pass, Phase::Scheduled, json!({})).await?;
        let message = "Migration target pod is ready for preparation by virt-handler.";
        self.tell(pass, Severity::Normal, "SuccessfulHandOver", message)
            .await;
        Ok(Outcome::Again(SOON))
    }

    /// How long a machine that could not be moved away from its node stays there before it is tried again.
    async fn backoff(&self, pass: &Pass<'_>) -> Result<Option<Duration>, Failure> {
        let evacuates = |it: &Value| it["metadata"]["annotations"][super::evacuate::ANNOTATION].is_string();
        if !evacuates(pass.migration) {
            return Ok(None);
        }
        let earlier = self.of_instance(pass).await?;
        let earlier = earlier
            .iter()
            .filter(|it| evacuates(it) && it["metadata"]["uid"] != pass.migration["metadata"]["uid"]);
        let failed: Vec<&Value> = earlier.take_while(|it| Phase::of(it) == Phase::Failed).collect();
        let Some(last) = failed.first() else {
            return Ok(None);
        };
        let doublings = u32::try_from(failed.len() - 1).unwrap_or(u32::MAX).min(10);
        let wait = FIRST_WAIT * i32::try_from(1_u32 << doublings).unwrap_or(i32::MAX);
        let mut transitions = items(last, "/status/phaseTransitionTimestamps");
        let since = transitions.find(|it| it["phase"] == "Failed");
        let since: Option<Timestamp> =
            since.and_then(|it| text(it, "/phaseTransitionTimestamp").parse().ok());
        let left = since.map(|it| wait - pass.now.duration_since(it));
        Ok(left
            .and_then(|it| Duration::try_from(it).ok())
            .filter(|it| !it.is_zero()))
    }

    /// Ends what no node will.
    async fn end(&self, pass: &Pass<'_>, why: &str) -> Result<(), Failure> {
        let Some(vmi) = pass.vmi else {
            return Ok(());
        };
        let now = moment(pass.now);
        let mut state = vmi["status"]["migrationState"].clone();
        if state["startTimestamp"].is_null() {
            state["startTimestamp"] = json!(now);
        }
        if is_leaving(pass.migration) {
            state["abortRequested"] = json!(true);
            state["abortStatus"] = json!("Succeeded");
        }
        for (field, value) in [
            ("endTimestamp", json!(now)),
            ("failed", json!(true)),
            ("completed", json!(true)),
            ("failureReason", json!(why)),
        ] {
            state[field] = value;
        }
        if let Some(patch) = with_state(vmi, &state, json!({})) {
            pass.requests.merge(&ours(&pass.instance()), &patch).await?;
        }
        let uid = text(pass.migration, "/metadata/uid");
        let message = format!("VirtualMachineInstance migration uid {uid} failed. reason: {why}");
        let happening = Happening {
            severity: Severity::Warning,
            reason: "FailedMigration",
            message,
        };
        let about = about(&VIRTUAL_MACHINE_INSTANCE, vmi);
        self.recorder.record(&pass.key.workspace, &about, happening).await;
        Ok(())
    }

    async fn abort(&self, pass: &Pass<'_>) -> Result<(), Failure> {
        let Some(vmi) = pass.vmi else {
            return Ok(());
        };
        let mut state = vmi["status"]["migrationState"].clone();
        state["abortRequested"] = json!(true);
        if let Some(patch) = with_state(vmi, &state, json!({})) {
            pass.requests.merge(&ours(&pass.instance()), &patch).await?;
            let message = "Migration is ready to be canceled by virt-handler.";
            self.tell(pass, Severity::Normal, "SuccessfulAbortMigration", message)
                .await;
        }
        let condition = json!({"type": "migrationAbortRequested", "status": "True"});
        self.say(
            pass,
            Phase::of(pass.migration),
            json!({"conditions": [condition]}),
        )
        .await
    }

    async fn fail(&self, pass: &Pass<'_>, why: &str) -> Result<(), Failure> {
        let mut more = match is_leaving(pass.migration) {
            true => json!({"conditions": [{"type": "migrationAbortRequested", "status": "True"}]}),
            false => json!({}),
        };
        let uid = &pass.migration["metadata"]["uid"];
        let handed_over = pass
            .vmi
            .is_some_and(|it| it["status"]["migrationState"]["migrationUid"] == *uid);
        if !handed_over {
            // Otherwise events alone would say why, and they do not stay.
            more["migrationState"] =
                json!({"migrationUid": uid, "failed": true, "completed": true, "failureReason": why});
        }
        self.say(pass, Phase::Failed, more).await?;
        if !is_leaving(pass.migration) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.tell(pass, Severity::Warning, "FailedMigration", why).await;
        Ok(())
    }

    /// Says of a migration what the source says of its progress in the instance.
    async fn say_progress(&self, pass: &Pass<'_>) -> Result<(), Failure> {
        let phase = Phase::of(pass.migration);
        let Some(vmi) = pass.vmi.filter(|_| phase == Phase::Running) else {
            return Ok(());
        };
        match with_progress(&pass.migration["status"], &vmi["status"]) {
            Some(conditions) => self.say(pass, phase, json!({ "conditions": conditions })).await,
            None => Ok(()),
        }
    }

    /// Writes how far a migration is.
    async fn say(&self, pass: &Pass<'_>, phase: Phase, more: Value) -> Result<(), Failure> {
        let before = &pass.migration["status"];
        let now = moment(pass.now);
        let mut transitions: Vec<Value> = items(before, "/phaseTransitionTimestamps").cloned().collect();
        let scheduled = [Phase::Pending, Phase::Scheduling].into_iter();
        let passed = scheduled.filter(|_| phase == Phase::Scheduled);
        for reached in passed.chain([phase]).filter(|it| *it != Phase::Unset) {
            if !transitions.iter().any(|it| it["phase"] == reached.word()) {
                transitions.push(json!({"phase": reached.word(), "phaseTransitionTimestamp": now}));
            }
        }
        let mut status = json!({"phase": phase.word(), "phaseTransitionTimestamps": transitions});
        if let Some(conditions) = with_progress(before, &json!({})).filter(|_| phase.is_final()) {
            status["conditions"] = conditions.into();
        }
        for (field, value) in more.as_object().into_iter().flatten() {
            status[field] = value.clone();
        }
        let patch = json!({"metadata": locked(pass.migration, json!({})), "status": status});
        let place = format!("{}/status", pass.place());
        pass.requests.merge(&ours(&place), &patch).await.map(drop)
    }

    /// Keeps what became of a migration, lets it go, and removes those that nobody needs any more.
    async fn finish(&self, pass: &Pass<'_>) -> Result<(), Failure> {
        let mut migration = pass.migration.clone();
        let state = pass.vmi.map(|it| &it["status"]["migrationState"]);
        let own = state.filter(|it| it["migrationUid"] == migration["metadata"]["uid"]);
        if let Some(own) = own.filter(|it| migration["status"]["migrationState"] != **it) {
            let patch = json!({"metadata": locked(&migration, json!({})), "status": {"migrationState": own}});
            let place = format!("{}/status", pass.place());
            match pass.requests.merge(&ours(&place), &patch).await? {
                Some(written) => migration = written,
                None => return Ok(()),
            }
        }
        if let Some(patch) = without_finalizers(&migration, &[MIGRATION_FINALIZER]) {
            pass.requests.merge(&ours(&pass.place()), &patch).await?;
        }
        let all = self.of_instance(pass).await?;
        let over = all.iter().filter(|it| Phase::of(it).is_final());
        for old in over.skip(KEPT) {
            let place = path(
                &VIRTUAL_MACHINE_INSTANCE_MIGRATION,
                &pass.key.namespace,
                text(old, "/metadata/name"),
            );
            pass.requests.delete_read(&place, old).await?;
        }
        Ok(())
    }

    /// Removes a migration whose instance is gone, as nobody else would.
    async fn remove(&self, pass: &Pass<'_>) -> Result<(), Failure> {
        if let Some(patch) = without_finalizers(pass.migration, &[MIGRATION_FINALIZER]) {
            pass.requests.merge(&ours(&pass.place()), &patch).await?;
        }
        match is_leaving(pass.migration) {
            true => Ok(()),
            false => pass.requests.delete_read(&pass.place(), pass.migration).await,
        }
    }

    async fn tell(&self, pass: &Pass<'_>, severity: Severity, reason: &'static str, message: &str) {
        let happening = Happening {
            severity,
            reason,
            message: message.to_owned(),
        };
        let about = about(&VIRTUAL_MACHINE_INSTANCE_MIGRATION, pass.migration);
        self.recorder.record(&pass.key.workspace, &about, happening).await;
    }
}

/// A patch that makes the migration state of an instance this one; nothing if it is.
fn with_state(vmi: &Value, state: &Value, metadata: Value) -> Option<Value> {
    let before = match vmi["status"]["migrationState"].is_object() {
        true => vmi["status"]["migrationState"].clone(),
        false => json!({}),
    };
    let change = difference(&before, state)?;
    Some(json!({"metadata": locked(vmi, metadata), "status": {"migrationState": change}}))
}

/// The conditions of a migration with what the source says of its progress, or without if it says nothing any more; nothing if they are so already.
fn with_progress(migration: &Value, instance: &Value) -> Option<Vec<Value>> {
    let is_progress = |it: &&Value| it["type"] == MIGRATION_PROGRESS;
    let said = items(instance, "/conditions").find(is_progress);
    let known = items(migration, "/conditions").find(is_progress);
    let is_said = match (said, known) {
        (Some(said), Some(known)) => said["reason"] == known["reason"] && said["message"] == known["message"],
        (said, known) => said.is_none() && known.is_none(),
    };
    let others = items(migration, "/conditions").filter(|it| !is_progress(it));
    (!is_said).then(|| others.chain(said).cloned().collect())
}

impl Reconcile<ObjectKey> for Migrations {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let place = path(&VIRTUAL_MACHINE_INSTANCE_MIGRATION, &key.namespace, &key.name);
        let Some(migration) = requests.get(&place).await? else {
            return Ok(Outcome::Done);
        };
        if !self.ground.is_synced() {
            return Ok(Outcome::Again(Duration::from_millis(20)));
        }
        let name = text(&migration, "/spec/vmiName");
        let vmi = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, name);
        let vmi = crate::objects::read(&requests, &vmi).await?;
        self.pass(&Pass {
            key,
            migration: &migration,
            vmi: vmi.as_ref(),
            requests: &requests,
            now: Timestamp::now(),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_said_when_it_is_another() {
        let progress = |message: &str| json!({"type": "MigrationProgress", "status": "True", "reason": "r", "message": message});
        let abort = json!({"type": "migrationAbortRequested", "status": "True"});
        let with = |all: &[&Value]| json!({ "conditions": all });
        let (one, two) = (progress("1 of 2"), progress("2 of 2"));
        let none = json!({});
        for (migration, instance, expected, reason) in [
            (none.clone(), none.clone(), None, "nothing to say"),
            (
                none.clone(),
                with(&[&one]),
                Some(vec![one.clone()]),
                "the first time",
            ),
            (with(&[&one]), with(&[&one]), None, "said already"),
            (
                with(&[&abort, &one]),
                with(&[&two]),
                Some(vec![abort.clone(), two.clone()]),
                "it goes on",
            ),
            (
                with(&[&one, &abort]),
                none.clone(),
                Some(vec![abort.clone()]),
                "it is over",
            ),
            (with(&[&abort]), none, None, "others are no progress"),
        ] {
            assert_eq!(with_progress(&migration, &instance), expected, "{reason}");
        }
    }
}
