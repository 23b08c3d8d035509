//! Whether an application syncs by itself now, and what a sync that runs has to give way to.

use std::time::Duration;

use serde_json::Value;

use crate::compare::{ResourceState, SyncStatus};
use crate::key::ResourceKey;
use crate::operation::OperationPhase;

/// `spec.syncPolicy.automated`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Automated {
    /// Whether extra objects are pruned.
    pub prune: bool,
    /// Whether what others change is put right.
    pub self_heal: bool,
    /// Whether everything may be pruned at once.
    pub allow_empty: bool,
}

impl Automated {
    /// Reads a sync policy; none if nothing is automated. `enabled: false` is as if it were not there.
    pub fn read(policy: &Value) -> Option<Self> {
        let automated = policy.get("automated").filter(|value| value.is_object())?;
        let on = |field: &str| automated[field].as_bool().unwrap_or(false);
        automated["enabled"].as_bool().unwrap_or(true).then(|| Self {
            prune: on("prune"),
            self_heal: on("selfHeal"),
            allow_empty: on("allowEmpty"),
        })
    }
}

/// The last sync that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// How it ended.
    pub phase: OperationPhase,
    /// What it synced to, of each source.
    pub revisions: Vec<String>,
    /// What the sources were.
    pub sources: Value,
    /// What was said at its end.
    pub message: String,
}

/// What is known when the decision is taken.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// What is automated.
    pub policy: Automated,
    /// Whether the application is in sync.
    pub status: SyncStatus,
    /// Its objects.
    pub resources: &'a [(ResourceKey, ResourceState)],
    /// What a sync would sync to.
    pub revisions: &'a [String],
    /// What the sources are.
    pub sources: &'a Value,
    /// The last sync.
    pub last: Option<&'a Attempt>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Rest,
    /// A sync of everything.
    Sync,
    /// A sync of what was changed.
    Heal(Vec<ResourceKey>),
    /// Nothing, and somebody should know why: the message of a `SyncError`.
    Refuse(String),
}

/// Whether to sync.
pub fn decide(situation: &Situation<'_>) -> Decision {
    let Situation {
        policy,
        status,
        resources,
        revisions,
        sources,
        last,
    } = *situation;
    if status != SyncStatus::OutOfSync {
        return Decision::Rest;
    }
    let is_off = |state: &ResourceState| state.counts;
    let only_extra = resources
        .iter()
        .all(|(_, state)| !is_off(state) || state.requires_pruning);
    if !policy.prune && only_extra {
        return Decision::Rest;
    }
    let listed = format!("[{}]", revisions.join(" "));
    let before = last.filter(|last| last.revisions == revisions && last.sources == *sources);
    if let Some(before) = before {
        if before.phase != OperationPhase::Succeeded {
            return Decision::Refuse(format!(
                "Failed last sync attempt to {listed}: {}",
                before.message
            ));
        }
        if !policy.self_heal {
            return Decision::Rest;
        }
    }
    let would_empty = resources.iter().all(|(_, state)| state.requires_pruning);
    if policy.prune && !policy.allow_empty && would_empty {
        return Decision::Refuse(format!(
            "Skipping sync attempt to {listed}: auto-sync will wipe out all resources"
        ));
    }
    match before {
        None => Decision::Sync,
        Some(_) => Decision::Heal(
            resources
                .iter()
                .filter(|(_, state)| is_off(state))
                .map(|(key, _)| key.clone())
                .collect(),
        ),
    }
}

/// How many times somebody's change is put right at once; then more and more slowly.
const QUICK_HEALS: u32 = 3;
/// After so much quiet, heals are counted anew.
const QUIET: Duration = Duration::from_secs(60);
/// The longest pause between two heals.
const LONGEST: Duration = Duration::from_secs(300);

/// How many heals in a row there were, counting one that begins now, and how long it has to wait. Whoever writes the same
/// field again and again must not make the engine do so, too. `since` is the time since the last sync ended.
pub fn heal(in_a_row: u32, since: Duration) -> (u32, Duration) {
    if since >= QUIET && since >= pause(in_a_row) {
        return (1, Duration::ZERO);
    }
    (in_a_row.saturating_add(1), pause(in_a_row).saturating_sub(since))
}

fn pause(in_a_row: u32) -> Duration {
    match in_a_row.checked_sub(QUICK_HEALS) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(2_u64 << more.min(16)).min(LONGEST),
    }
}

/// Whether a sync that was begun by itself gives way to a newer revision: when it only waits, and what it waits for may
/// never come.
pub fn is_superseded(automated: bool, is_waiting: bool, syncs_to: &[String], wanted: &[String]) -> bool {
    automated && is_waiting && !syncs_to.is_empty() && syncs_to != wanted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(status: SyncStatus, requires_pruning: bool) -> ResourceState {
        ResourceState {
            status: Some(status),
            hook: false,
            requires_pruning,
            requires_deletion_confirmation: false,
            wave: 0,
            counts: status == SyncStatus::OutOfSync,
        }
    }

    #[test]
    fn policies() {
        let all = Automated {
            prune: true,
            self_heal: true,
            allow_empty: true,
        };
        for (policy, expected) in [
            (json!({}), None),
            (json!({"automated": null}), None),
            (json!({"automated": {}}), Some(Automated::default())),
            (json!({"automated": {"enabled": false, "prune": true}}), None),
            (
                json!({"automated": {"prune": true, "selfHeal": true, "allowEmpty": true}}),
                Some(all),
            ),
        ] {
            assert_eq!(Automated::read(&policy), expected, "{policy}");
        }
    }

    #[test]
    fn when_an_application_syncs_by_itself() {
        use SyncStatus::{OutOfSync, Synced, Unknown};
        let key = |name: &str| ResourceKey::new("", "ConfigMap", "shop", name);
        let (fine, off, extra) = (
            state(Synced, false),
            state(OutOfSync, false),
            state(OutOfSync, true),
        );
        let sources = json!([{"repoURL": "r"}]);
        let attempt = |phase, revision: &str| Attempt {
            phase,
            revisions: vec![revision.to_owned()],
            sources: sources.clone(),
            message: "no".to_owned(),
        };
        let heal = Automated {
            self_heal: true,
            ..Automated::default()
        };
        let prune = Automated {
            prune: true,
            ..Automated::default()
        };
        let none = Automated::default();
        let (good, bad) = (OperationPhase::Succeeded, OperationPhase::Failed);
        let cases = [
            ("in sync", none, Synced, vec![&fine], None, Decision::Rest),
            ("not known", none, Unknown, vec![&fine], None, Decision::Rest),
            (
                "the first time",
                none,
                OutOfSync,
                vec![&off],
                None,
                Decision::Sync,
            ),
            (
                "a new revision",
                none,
                OutOfSync,
                vec![&off],
                Some(attempt(good, "old")),
                Decision::Sync,
            ),
            (
                "a new revision after a failure",
                none,
                OutOfSync,
                vec![&off],
                Some(attempt(bad, "old")),
                Decision::Sync,
            ),
            (
                "the same after a failure",
                none,
                OutOfSync,
                vec![&off],
                Some(attempt(bad, "new")),
                Decision::Refuse("Failed last sync attempt to [new]: no".to_owned()),
            ),
            (
                "somebody's change stays",
                none,
                OutOfSync,
                vec![&off],
                Some(attempt(good, "new")),
                Decision::Rest,
            ),
            (
                "somebody's change goes",
                heal,
                OutOfSync,
                vec![&fine, &off],
                Some(attempt(good, "new")),
                Decision::Heal(vec![key("1")]),
            ),
            (
                "extra ones stay",
                none,
                OutOfSync,
                vec![&fine, &extra],
                None,
                Decision::Rest,
            ),
            (
                "extra ones go",
                prune,
                OutOfSync,
                vec![&fine, &extra],
                None,
                Decision::Sync,
            ),
            (
                "all would go",
                prune,
                OutOfSync,
                vec![&extra],
                None,
                Decision::Refuse(
                    "Skipping sync attempt to [new]: auto-sync will wipe out all resources".to_owned(),
                ),
            ),
            (
                "all may go",
                Automated {
                    allow_empty: true,
                    ..prune
                },
                OutOfSync,
                vec![&extra],
                None,
                Decision::Sync,
            ),
        ];
        for (reason, policy, status, states, last, expected) in cases {
            let resources: Vec<(ResourceKey, ResourceState)> = states
                .into_iter()
                .enumerate()
                .map(|(place, state)| (key(&place.to_string()), state.clone()))
                .collect();
            let situation = Situation {
                policy,
                status,
                resources: &resources,
                revisions: &["new".to_owned()],
                sources: &sources,
                last: last.as_ref(),
            };
            assert_eq!(decide(&situation), expected, "{reason}");
        }
    }

    #[test]
    fn heals_slow_down_when_somebody_insists() {
        for (in_a_row, since, expected) in [
            (0, 0, (1, 0)),
            (2, 1, (3, 0)),
            (3, 0, (4, 2)),
            (4, 1, (5, 3)),
            (30, 10, (31, 290)),
            (30, 70, (31, 230)),
            (4, 60, (1, 0)),
            (30, 300, (1, 0)),
        ] {
            let (count, delay) = heal(in_a_row, Duration::from_secs(since));
            assert_eq!(
                (count, delay.as_secs()),
                expected,
                "{in_a_row} in a row, {since} s ago"
            );
        }
    }

    #[test]
    fn only_what_waits_by_itself_gives_way() {
        let at = |text: &str| vec![text.to_owned()];
        for (reason, automated, waiting, wanted, expected) in [
            ("nothing new", true, true, "a", false),
            ("new", true, true, "b", true),
            ("at work", true, false, "b", false),
            ("somebody's own", false, true, "b", false),
        ] {
            assert_eq!(
                is_superseded(automated, waiting, &at("a"), &at(wanted)),
                expected,
                "{reason}"
            );
        }
    }
}
