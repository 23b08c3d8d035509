//! Following an Application until it is as somebody wants it.
//!
//! [`Progress`] is shown the Application again and again and says what has changed, whether the wait is over, and why it
//! failed. The rules are those of `argocd app wait`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::field::{flag, present, text};
use crate::resource::{ResourceState, grouped, states};
use crate::selection::Selected;

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Synced.
    pub sync: bool,
    /// Healthy.
    pub health: bool,
    /// No operation under way.
    pub operation: bool,
    /// Suspended.
    pub suspended: bool,
    /// Degraded.
    pub degraded: bool,
    /// Gone.
    pub delete: bool,
    /// Hydrated.
    pub hydrated: bool,
}

impl Goal {
    /// What is waited for if nothing was said.
    pub fn or_usual(self) -> Self {
        if self != Self::default() {
            return self;
        }
        Self {
            sync: true,
            health: true,
            operation: true,
            ..Self::default()
        }
    }

    fn is_met(&self, health: &str, sync: &str, is_requested: bool, hydrated: bool) -> bool {
        if self.delete {
            return false;
        }
        let asks_health = self.health || self.suspended || self.degraded;
        let healthy = !asks_health
            || self.health && health == "Healthy"
            || self.suspended && health == "Suspended"
            || self.degraded && health == "Degraded";
        let synced = !self.sync || sync == "Synced";
        synced && healthy && (!self.operation || !is_requested) && (!self.hydrated || hydrated)
    }
}

/// What one look at the Application came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is as it was wanted.
    Done,
    /// It became unhealthy.
    Failed(String),
    /// Not yet; these resources changed.
    Waiting(Vec<ResourceState>),
}

/// Follows one Application.
#[derive(Debug)]
pub struct Progress {
    name: String,
    goal: Goal,
    selected: Vec<Selected>,
    seen: BTreeMap<String, ResourceState>,
}

impl Progress {
    /// Begins to follow.
    pub fn new(name: &str, goal: Goal, selected: Vec<Selected>) -> Self {
        Self {
            name: name.to_owned(),
            goal,
            selected,
            seen: BTreeMap::new(),
        }
    }

    /// Looks at the Application as it is now.
    pub fn look(&mut self, application: &Value) -> Look {
        let is_requested = present(application, "/operation").is_some();
        let hydrated = is_hydrated(application);
        let met = |health: &str, sync: &str| self.goal.is_met(health, sync, is_requested, hydrated);
        let ready = if self.selected.is_empty() {
            met(
                text(application, "/status/health/status"),
                text(application, "/status/sync/status"),
            )
        } else {
            states(application, &self.selected)
                .iter()
                .all(|it| met(&it.health, &it.status))
        };
        if ready && (!self.goal.operation || !is_operating(application)) {
            return Look::Done;
        }
        let mut changed = Vec::new();
        for state in grouped(application, &self.selected) {
            let Some(known) = self.seen.get_mut(&state.key()) else {
                changed.push(state.clone());
                self.seen.insert(state.key(), state);
                continue;
            };
            let was_well = !matches!(known.health.as_str(), "Unknown" | "Degraded");
            if self.goal.health && was_well && state.health == "Degraded" {
                return Look::Failed(format!(
                    "application '{}' health state has transitioned from {} to {}",
                    self.name, known.health, state.health
                ));
            }
            if known.merge(&state) {
                changed.push(known.clone());
            }
        }
        Look::Waiting(changed)
    }
}

/// Whether an operation was asked for, runs, or has ended and what it did was not looked at since.
pub fn is_operating(application: &Value) -> bool {
    if present(application, "/operation").is_some() {
        return true;
    }
    let Some(state) = present(application, "/status/operationState") else {
        return false;
    };
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let Some(finished) = time(text(state, "/finishedAt")) else {
        return true;
    };
    let compared = time(text(application, "/status/reconciledAt"));
    !flag(state, "/operation/sync/dryRun") && compared.is_none_or(|compared| compared < finished)
}

fn is_hydrated(application: &Value) -> bool {
    let (Some(now), Some(last)) = (
        present(application, "/status/sourceHydrator/currentOperation"),
        present(application, "/status/sourceHydrator/lastSuccessfulOperation"),
    ) else {
        return false;
    };
    text(now, "/phase") == "Hydrated"
        && now.get("sourceHydrator") == last.get("sourceHydrator")
        && now.get("drySHA") == last.get("drySHA")
}

/// Why a sync that has ended did not do what was asked; nothing if it did. `whole`: all resources were meant.
pub fn complaint(application: &Value, whole: bool) -> Option<String> {
    let state = present(application, "/status/operationState")?;
    if flag(state, "/operation/sync/dryRun") {
        return None;
    }
    match text(state, "/phase") {
        "Succeeded" => {}
        phase => return Some(format!("Operation has completed with phase: {phase}")),
    }
    if !whole || text(application, "/status/sync/status") == "Synced" {
        return None;
    }
    let results = crate::field::list(state, "/syncResult/resources").iter();
    let left = results.filter(|it| text(it, "/status") == "PruneSkipped").count();
    (left > 0).then(|| format!("{left} resources require pruning"))
}

/// The heading of [`lines`].
pub fn heading() -> String {
    row([
        "TIMESTAMP",
        "GROUP",
        "KIND",
        "NAMESPACE",
        "NAME",
        "STATUS",
        "HEALTH",
        "HOOK",
        "MESSAGE",
    ]
    .map(str::to_owned))
}

/// A line for each resource that changed.
pub fn lines(changed: &[ResourceState], now: Timestamp) -> String {
    let time = now.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string();
    let line = |it: &ResourceState| {
        let of = [
            &time,
            &it.group,
            &it.kind,
            &it.namespace,
            &it.name,
            &it.status,
            &it.health,
            &it.hook,
            &it.message,
        ];
        row(of.map(Clone::clone))
    };
    changed.iter().map(line).collect()
}

/// Cells of a width that most fit into, so that lines that come one by one stand below each other.
fn row(cells: [String; 9]) -> String {
    const WIDTHS: [usize; 9] = [25, 5, 10, 10, 20, 9, 11, 10, 0];
    let cells = cells.iter().zip(WIDTHS).enumerate();
    let padded = cells.map(|(at, (cell, width))| {
        if (1..8).contains(&at) {
            format!("{cell:>width$}")
        } else {
            format!("{cell:<width$}")
        }
    });
    format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(sync: &str, health: &str) -> Value {
        json!({"status": {"sync": {"status": sync}, "health": {"status": health},
               "resources": [{"kind": "Service", "name": "s", "status": sync, "health": {"status": health}}]}})
    }

    #[test]
    fn goals() {
        let usual = Goal::default().or_usual();
        for (goal, sync, health, done) in [
            (usual, "Synced", "Healthy", true),
            (usual, "Synced", "Progressing", false),
            (usual, "OutOfSync", "Healthy", false),
            (
                Goal {
                    sync: true,
                    ..Goal::default()
                },
                "Synced",
                "Degraded",
                true,
            ),
            (
                Goal {
                    health: true,
                    suspended: true,
                    ..Goal::default()
                },
                "OutOfSync",
                "Suspended",
                true,
            ),
            (
                Goal {
                    degraded: true,
                    ..Goal::default()
                },
                "OutOfSync",
                "Degraded",
                true,
            ),
            (
                Goal {
                    degraded: true,
                    ..Goal::default()
                },
                "OutOfSync",
                "Healthy",
                false,
            ),
            (
                Goal {
                    delete: true,
                    ..Goal::default()
                },
                "Synced",
                "Healthy",
                false,
            ),
            (
                Goal {
                    hydrated: true,
                    ..Goal::default()
                },
                "Synced",
                "Healthy",
                false,
            ),
        ] {
            let look = Progress::new("a", goal, Vec::new()).look(&application(sync, health));
            assert_eq!(look == Look::Done, done, "{goal:?} {sync} {health}");
        }
    }

    #[test]
    fn only_what_changed_is_told() {
        let mut progress = Progress::new("a", Goal::default().or_usual(), Vec::new());
        let changed = |look: Look| match look {
            Look::Waiting(changed) => changed.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(changed(progress.look(&application("OutOfSync", "Missing"))), 1);
        assert_eq!(changed(progress.look(&application("OutOfSync", "Missing"))), 0);
        assert_eq!(changed(progress.look(&application("Synced", "Progressing"))), 1);
        assert_eq!(
            progress.look(&application("Synced", "Degraded")),
            Look::Failed(
                "application 'a' health state has transitioned from Progressing to Degraded".to_owned()
            )
        );
    }

    #[test]
    fn selected_resources_alone_count() {
        let application = json!({"status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Missing"}, "resources": [
            {"kind": "Service", "name": "s", "status": "Synced", "health": {"status": "Healthy"}},
            {"kind": "Pod", "name": "p", "status": "OutOfSync"}]}});
        let look = |words: &str| {
            let selected = vec![Selected::parse(words).unwrap()];
            Progress::new("a", Goal::default().or_usual(), selected).look(&application)
        };
        assert_eq!(look(":Service:s"), Look::Done);
        assert!(matches!(look(":Pod:*"), Look::Waiting(_)));
    }

    #[test]
    fn an_operation_is_over_when_it_was_looked_at() {
        let state = |finished: Value, compared: Value, dry: bool| {
            json!({"status": {"reconciledAt": compared, "operationState": {
                "finishedAt": finished, "operation": {"sync": {"dryRun": dry}}}}})
        };
        for (application, expected) in [
            (json!({}), false),
            (json!({"operation": {"sync": {}}}), true),
            (state(Value::Null, json!("2026-11-16T10:00:00Z"), false), true),
            (
                state(
                    json!("2026-11-16T10:00:00Z"),
                    json!("2026-11-16T09:00:00Z"),
                    false,
                ),
                true,
            ),
            (
                state(
                    json!("2026-11-16T10:00:00Z"),
                    json!("2026-11-16T10:00:00Z"),
                    false,
                ),
                false,
            ),
            (state(json!("2026-11-16T10:00:00Z"), Value::Null, true), false),
        ] {
            assert_eq!(is_operating(&application), expected, "{application}");
        }
    }

    #[test]
    fn lines_stand_below_each_other() {
        let state = ResourceState {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "web".to_owned(),
            name: "front".to_owned(),
            status: "OutOfSync".to_owned(),
            health: "Missing".to_owned(),
            ..ResourceState::default()
        };
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        assert_eq!(
            heading() + &lines(&[state], now),
            "TIMESTAMP                  GROUP        KIND   NAMESPACE                  NAME     STATUS       HEALTH        HOOK  MESSAGE\n\
             2026-11-16T10:00:00+00:00   apps  Deployment         web                 front  OutOfSync      Missing\n"
        );
    }

    #[test]
    fn complaints() {
        let ended = |phase: &str, sync: &str, status: &str, dry: bool| {
            json!({"status": {"sync": {"status": sync}, "operationState": {
                "phase": phase, "operation": {"sync": {"dryRun": dry}},
                "syncResult": {"resources": [{"status": status}]}}}})
        };
        for (application, whole, expected) in [
            (ended("Succeeded", "Synced", "Synced", false), true, None),
            (
                ended("Failed", "Synced", "Synced", false),
                true,
                Some("Operation has completed with phase: Failed"),
            ),
            (ended("Failed", "Synced", "Synced", true), true, None),
            (
                ended("Succeeded", "OutOfSync", "PruneSkipped", false),
                true,
                Some("1 resources require pruning"),
            ),
            (
                ended("Succeeded", "OutOfSync", "PruneSkipped", false),
                false,
                None,
            ),
        ] {
            assert_eq!(complaint(&application, whole).as_deref(), expected);
        }
    }
}
