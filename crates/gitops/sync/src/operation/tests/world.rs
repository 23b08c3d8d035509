//! A cluster of one's own. Objects become what their annotation `test/health` says, `Healthy` if it says nothing; those
//! that are not workloads have no health. Names in `refused` are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fairway_gitops_health::{Health, Status};
use serde_json::{Value, json};

use crate::annotation::{self, HOOK_FINALIZER};
use crate::compare::{Pair, pair};
use crate::key::{self, ResourceKey};
use crate::operation::{Action, Desired, Observed, OperationPhase, Outcome, Plan, State, Task, plan, step};

pub(super) struct World {
    pub(super) live: BTreeMap<ResourceKey, Value>,
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) refused: BTreeSet<&'static str>,
    /// Refused when they are really applied only.
    pub(super) refused_late: BTreeSet<&'static str>,
    pub(super) unserved: BTreeSet<&'static str>,
    pub(super) wait_for_kinds: bool,
    outcomes: Vec<Outcome>,
    log: String,
}

/// An object with annotations.
pub(super) fn object(kind: &str, name: &str, annotations: &[(&str, &str)]) -> Value {
    let group = match kind {
        "Deployment" => "apps/v1",
        "Job" => "batch/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Widget" => "example.com/v1",
        _ => "v1",
    };
    let map: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|(name, value)| {
            let name = match *name {
                "wave" => annotation::SYNC_WAVE,
                "hook" => annotation::HOOK,
                "delete" => annotation::HOOK_DELETE_POLICY,
                "options" => annotation::SYNC_OPTIONS,
                other => other,
            };
            (name.to_owned(), Value::from(*value))
        })
        .collect();
    json!({"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "shop", "annotations": map}})
}

pub(super) fn pairs(targets: Vec<Value>, live: &[Value]) -> (Vec<Pair>, Vec<Value>) {
    let live: BTreeMap<ResourceKey, Value> = live
        .iter()
        .map(|object| (ResourceKey::of(object), object.clone()))
        .collect();
    let pairs = pair(targets, &live, "shop", &|_, _| None);
    (pairs.managed, pairs.hooks)
}

impl World {
    pub(super) fn new(targets: Vec<Value>, live: &[Value], desired: Desired<'_>) -> Self {
        let (managed, hooks) = pairs(targets, live);
        let plan = plan(&Desired {
            pairs: &managed,
            hooks: &hooks,
            revision: "0123456789abcdef",
            started_at: 1000,
            ..desired
        });
        Self::with_plan(plan, live)
    }

    pub(super) fn with_plan(plan: Plan, live: &[Value]) -> Self {
        Self {
            live: live
                .iter()
                .map(|object| (ResourceKey::of(object), object.clone()))
                .collect(),
            plan,
            state: State::default(),
            refused: BTreeSet::new(),
            refused_late: BTreeSet::new(),
            unserved: BTreeSet::new(),
            wait_for_kinds: false,
            outcomes: Vec::new(),
            log: String::new(),
        }
    }

    pub(super) fn say(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.log, "# {text}");
        self
    }

    /// Takes a step and carries it out.
    pub(super) fn turn(&mut self) -> &mut Self {
        self.decide(false);
        self
    }

    pub(super) fn terminate(&mut self) -> &mut Self {
        self.decide(true);
        self
    }

    /// Takes a step, stores it, carries out the first so many actions, and dies.
    pub(super) fn crash_after(&mut self, actions: usize) -> &mut Self {
        let step = self.step(false);
        self.state = serde_json::from_value(serde_json::to_value(step.state).unwrap()).unwrap();
        for action in step.actions.iter().take(actions) {
            self.act(action);
        }
        self.outcomes.clear();
        let _ = writeln!(self.log, "! crash after {actions} of {}", step.actions.len());
        self
    }

    fn step(&self, terminate: bool) -> crate::operation::Step {
        let health = |object: &Value| {
            let judged = ["Deployment", "Job"].contains(&key::kind(object));
            let word = object["status"]["health"].as_str().unwrap_or("Healthy");
            judged.then(|| Health::new(Status::parse(word).unwrap(), word.to_lowercase()))
        };
        let is_served = |task: &Task| !self.unserved.contains(task.id.key.kind.as_str());
        let observed = Observed {
            live: &self.live,
            outcomes: &self.outcomes,
            health: &health,
            is_served: &is_served,
            wait_for_kinds: self.wait_for_kinds,
            terminate,
        };
        step(&self.plan, &self.state, &observed)
    }

    fn decide(&mut self, terminate: bool) {
        let step = self.step(terminate);
        self.state = step.state;
        self.outcomes.clear();
        for action in &step.actions {
            self.act(action);
        }
        let _ = writeln!(self.log, "= {:?}: {}", self.state.phase, self.state.message);
    }

    /// Steps until nothing happens any more.
    pub(super) fn settle(&mut self) -> &mut Self {
        for _ in 0..50 {
            let before = (self.state.clone(), self.live.clone());
            self.decide(false);
            let quiet = self.outcomes.is_empty() && before == (self.state.clone(), self.live.clone());
            if self.state.phase != OperationPhase::Running || quiet {
                break;
            }
        }
        self
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Apply {
                task,
                object,
                dry_run,
                ..
            } => {
                let name = task.key.name.as_str();
                let refused = self.refused.contains(name) || !dry_run && self.refused_late.contains(name);
                let how = if *dry_run { "try" } else { "apply" };
                let verdict = if refused { " (refused)" } else { "" };
                let _ = writeln!(self.log, "> {how} {} {name}{verdict}", task.key.kind);
                let result = match refused {
                    true => Err(format!("{name} is refused")),
                    false => Ok(format!("{name} applied")),
                };
                if !refused && !dry_run {
                    let mut live = object.clone();
                    let becomes = annotation::get(object, "test/health").to_owned();
                    if !becomes.is_empty() {
                        live["status"] = json!({"health": becomes});
                    }
                    self.live.insert(task.key.clone(), live);
                }
                self.outcomes.push(match dry_run {
                    true => Outcome::DryRun(task.clone(), result),
                    false => Outcome::Applied(task.clone(), result),
                });
            }
            Action::Delete { task, propagation } => {
                let _ = writeln!(
                    self.log,
                    "> delete {} {} {propagation:?}",
                    task.key.kind, task.key.name
                );
                let held = self.live.get(&task.key).is_some_and(|live| {
                    live["metadata"]["finalizers"]
                        .as_array()
                        .is_some_and(|list| !list.is_empty())
                });
                match (held, self.live.get_mut(&task.key)) {
                    (true, Some(live)) => live["metadata"]["deletionTimestamp"] = json!("now"),
                    _ => {
                        self.live.remove(&task.key);
                    }
                }
                self.outcomes.push(Outcome::Deleted(task.clone(), Ok(())));
            }
            Action::ReleaseHook { key } => {
                let _ = writeln!(self.log, "> release {} {}", key.kind, key.name);
                if let Some(live) = self.live.get_mut(key) {
                    let list = live["metadata"]["finalizers"].as_array_mut().unwrap();
                    list.retain(|name| name != HOOK_FINALIZER);
                    if !live["metadata"]["deletionTimestamp"].is_null() {
                        self.live.remove(key);
                    }
                }
            }
        }
    }

    /// Makes an object what it says.
    pub(super) fn becomes(&mut self, kind: &str, name: &str, health: &str) -> &mut Self {
        let _ = writeln!(self.log, "# {kind} {name} becomes {health}");
        let found = self
            .live
            .iter_mut()
            .find(|(key, _)| key.kind == kind && key.name == name);
        found.unwrap().1["status"] = json!({"health": health});
        self
    }

    pub(super) fn log(&self) -> String {
        let mut log = self.log.clone();
        for result in &self.state.resources {
            let _ = writeln!(
                log,
                "{:?} {} {}: {} {} {}",
                result.sync_phase,
                result.key.kind,
                result.key.name,
                result
                    .status
                    .map_or("-".to_owned(), |status| format!("{status:?}")),
                result
                    .hook_phase
                    .map_or("-".to_owned(), |phase| format!("{phase:?}")),
                result.message
            );
        }
        log
    }
}
