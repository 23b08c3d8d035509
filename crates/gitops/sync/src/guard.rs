//! What a sync should not delete without being asked: too much at once, machines, and disks.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::key::ResourceKey;
use crate::operation::{Plan, ResultCode, State};

/// How the message of a sync begins that waits for approval.
pub const WAITING: &str = "waiting for approval";
/// On an Application: the deletions that somebody has approved, by their digest.
pub const APPROVE: &str = "fairway.dev/approve-sync";

/// Kinds whose loss cannot be made good by syncing again.
const PRECIOUS: &[(&str, &str, &str)] = &[
    ("", "PersistentVolumeClaim", "disk"),
    ("cdi.kubevirt.io", "DataVolume", "disk"),
    ("kubevirt.io", "VirtualMachine", "virtual machine"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot", "snapshot"),
    ("snapshot.kubevirt.io", "VirtualMachineSnapshot", "snapshot"),
];

/// Kinds that take everything in them along.
const CONTAINERS: &[(&str, &str)] = &[
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// What a project says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// How many objects may go at once; none: any number.
    pub max_deletions: Option<usize>,
    /// Whether machines and disks need approval.
    pub precious: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            max_deletions: Some(10),
            precious: true,
        }
    }
}

/// Why a sync waits, and what lets it go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Each reason, for people.
    pub reasons: Vec<String>,
    /// What would be deleted, and the uid of each.
    pub deletions: BTreeMap<ResourceKey, String>,
    /// What an approval has to say. It is of these very objects: others need another, though they have the same names.
    pub digest: String,
}

/// What becomes of an approval that a sync acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The one that was acted on.
    digest: String,
    /// The one of what is still to be deleted, if anything is.
    rest: Option<String>,
}

impl Spent {
    /// The annotation without what was acted on; none if it does not have it.
    pub fn leaves(&self, approved: &str) -> Option<String> {
        let left: Vec<&str> = words(approved)
            .filter_map(|word| match word == self.digest {
                true => self.rest.as_deref(),
                false => Some(word),
            })
            .collect();
        let has = words(approved).any(|word| word == self.digest);
        has.then(|| left.join(","))
    }
}

impl Held {
    /// One sentence for the operation's message.
    pub fn message(&self, application: &str) -> String {
        format!(
            "{WAITING}: the sync would delete {}; approve it with `fairway app approve {application}` or the \
             annotation {APPROVE}: {}",
            self.reasons.join(", "),
            self.digest
        )
    }

    /// Whether the annotation of an application approves it.
    pub fn is_approved(&self, approved: &str) -> bool {
        words(approved).any(|word| word == self.digest)
    }

    /// What a sync has used of its approval; none if nothing of it has been deleted.
    pub fn spent(&self, state: &State) -> Option<Spent> {
        let mut rest = self.deletions.clone();
        for result in &state.resources {
            if result.status == Some(ResultCode::Pruned) {
                rest.remove(&result.key);
            }
        }
        (rest.len() < self.deletions.len()).then(|| Spent {
            digest: self.digest.clone(),
            rest: (!rest.is_empty()).then(|| digest(&rest)),
        })
    }
}

/// Whether the loss of an object cannot be made good by syncing again, or takes along what is in it.
pub fn is_precious(key: &ResourceKey) -> bool {
    let is = |group: &str, kind: &str| group == key.group && kind == key.kind;
    PRECIOUS.iter().any(|(group, kind, _)| is(group, kind))
        || CONTAINERS.iter().any(|(group, kind)| is(group, kind))
}

/// What of a plan needs approval. What is being deleted already does not: nothing would bring it back.
pub fn hold(plan: &Plan, guard: &Guard) -> Option<Held> {
    let going = plan
        .tasks
        .iter()
        .filter(|task| task.is_prune() && task.keep.is_none() && !task.is_going && !plan.dry_run);
    let deletions: BTreeMap<ResourceKey, String> = going
        .map(|task| (task.id.key.clone(), task.uid.clone()))
        .collect();
    let mut reasons = Vec::new();
    if let Some(max) = guard.max_deletions.filter(|max| deletions.len() > *max) {
        reasons.push(format!("{} objects (more than {max})", deletions.len()));
    }
    if guard.precious {
        for key in deletions.keys() {
            let precious = PRECIOUS
                .iter()
                .find(|(group, kind, _)| *group == key.group && *kind == key.kind);
            let container = CONTAINERS
                .iter()
                .any(|(group, kind)| *group == key.group && *kind == key.kind);
            if let Some((.., what)) = precious {
                reasons.push(format!("the {what} {}/{}", key.namespace, key.name));
            } else if container {
                reasons.push(format!("the {} {} with everything in it", key.kind, key.name));
            }
        }
    }
    (!reasons.is_empty()).then(|| Held {
        reasons,
        digest: digest(&deletions),
        deletions,
    })
}

fn digest(deletions: &BTreeMap<ResourceKey, String>) -> String {
    let mut hash = Sha256::new();
    for (key, uid) in deletions {
        hash.update(key.to_string());
        hash.update([0]);
        hash.update(uid);
        hash.update([0]);
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The approvals in an Application's annotations.
pub fn approvals(application: &Value) -> &str {
    crate::annotation::get(application, APPROVE)
}

fn words(approved: &str) -> impl Iterator<Item = &str> {
    approved.split(',').map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::Pair;
    use crate::hook::Phase;
    use crate::operation::{Desired, ResourceResult, plan};

    fn extra(group_version: &str, kind: &str, name: &str, options: &str) -> Pair {
        let live = json!({"apiVersion": group_version, "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "annotations": {crate::annotation::SYNC_OPTIONS: options}}});
        Pair {
            key: ResourceKey::of(&live),
            target: None,
            live: Some(live),
        }
    }

    fn held(pairs: &[Pair], guard: &Guard) -> Option<Held> {
        let plan = plan(&Desired {
            pairs,
            prune: true,
            ..Desired::default()
        });
        hold(&plan, guard)
    }

    #[test]
    fn what_cannot_be_made_good_waits() {
        let map = |name: &str| extra("v1", "ConfigMap", name, "");
        let many: Vec<Pair> = (0..11).map(|index| map(&format!("m{index}"))).collect();
        let machine = extra("kubevirt.io/v1", "VirtualMachine", "db", "");
        let kept = extra("kubevirt.io/v1", "VirtualMachine", "db", "Prune=false");
        let open = Guard {
            max_deletions: None,
            precious: false,
        };
        let cases: Vec<(&str, Vec<Pair>, Guard, Option<&str>)> = vec![
            ("nothing", vec![], Guard::default(), None),
            ("one map", vec![map("a")], Guard::default(), None),
            (
                "too many",
                many.clone(),
                Guard::default(),
                Some("11 objects (more than 10)"),
            ),
            (
                "a machine",
                vec![machine.clone()],
                Guard::default(),
                Some("the virtual machine shop/db"),
            ),
            ("a machine that stays", vec![kept], Guard::default(), None),
            (
                "a disk",
                vec![extra("v1", "PersistentVolumeClaim", "d", "")],
                Guard::default(),
                Some("the disk shop/d"),
            ),
            (
                "a namespace",
                vec![extra("v1", "Namespace", "n", "")],
                Guard::default(),
                Some("the Namespace n with everything in it"),
            ),
            (
                "a project that does not mind",
                [many, vec![machine]].concat(),
                open,
                None,
            ),
        ];
        for (reason, pairs, guard, expected) in cases {
            let held = held(&pairs, &guard);
            assert_eq!(
                held.map(|held| held.reasons.join(", ")).as_deref(),
                expected,
                "{reason}"
            );
        }
    }

    fn machine(name: &str, uid: &str) -> Pair {
        let mut pair = extra("kubevirt.io/v1", "VirtualMachine", name, "");
        pair.live.as_mut().unwrap()["metadata"]["uid"] = uid.into();
        pair
    }

    fn going(mut pair: Pair) -> Pair {
        pair.live.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
        pair
    }

    #[test]
    fn an_approval_is_of_these_very_objects() {
        let approved_for = [machine("a", "1"), machine("b", "2")];
        let waiting = held(&approved_for, &Guard::default()).unwrap();
        assert!(waiting.message("shop").contains(&waiting.digest));
        let approved = format!("something-else, {}", waiting.digest);
        let cases = [
            ("the same", vec![machine("a", "1"), machine("b", "2")], Some(true)),
            (
                "in another order",
                vec![machine("b", "2"), machine("a", "1")],
                Some(true),
            ),
            ("less", vec![machine("a", "1")], Some(false)),
            (
                "more",
                vec![machine("a", "1"), machine("b", "2"), machine("c", "3")],
                Some(false),
            ),
            (
                "one that was made again",
                vec![machine("a", "1"), machine("b", "4")],
                Some(false),
            ),
            (
                "uids that have changed places",
                vec![machine("a", "2"), machine("b", "1")],
                Some(false),
            ),
            (
                "another that goes already",
                vec![machine("a", "1"), machine("b", "2"), going(machine("c", "3"))],
                Some(true),
            ),
            (
                "nothing that does not go already",
                vec![going(machine("a", "1"))],
                None,
            ),
        ];
        for (reason, pairs, expected) in cases {
            let held = held(&pairs, &Guard::default());
            assert_eq!(held.map(|held| held.is_approved(&approved)), expected, "{reason}");
        }
    }

    #[test]
    fn an_approval_is_used_up_as_far_as_it_was_acted_on() {
        let pairs = [machine("a", "1"), machine("b", "2")];
        let digest_of = |pairs: &[Pair]| held(pairs, &Guard::default()).unwrap().digest;
        let (both, second) = (digest_of(&pairs), digest_of(&pairs[1..]));
        let waiting = held(&pairs, &Guard::default()).unwrap();
        let with_others = format!("x, {both},y");
        let (pruned, failed) = (Some(ResultCode::Pruned), Some(ResultCode::SyncFailed));
        let cases = [
            ("nothing was done", vec![], both.as_str(), None),
            ("it was about to be done", vec![("a", None)], &both, None),
            ("it failed", vec![("a", failed), ("b", failed)], &both, None),
            ("something else was done", vec![("c", pruned)], &both, None),
            (
                "all",
                vec![("a", pruned), ("b", pruned)],
                &both,
                Some(String::new()),
            ),
            (
                "an earlier wave",
                vec![("a", pruned)],
                &both,
                Some(second.clone()),
            ),
            (
                "one failed",
                vec![("a", pruned), ("b", failed)],
                &both,
                Some(second),
            ),
            (
                "among others",
                vec![("a", pruned), ("b", pruned)],
                &with_others,
                Some("x,y".to_owned()),
            ),
            (
                "somebody took it back",
                vec![("a", pruned), ("b", pruned)],
                "x",
                None,
            ),
        ];
        for (reason, results, approved, expected) in cases {
            let result = |(name, status): (&str, Option<ResultCode>)| ResourceResult {
                key: ResourceKey::new("kubevirt.io", "VirtualMachine", "shop", name),
                version: "v1".to_owned(),
                status,
                message: String::new(),
                hook_type: None,
                hook_phase: None,
                sync_phase: Phase::Sync,
            };
            let state = State {
                resources: results.into_iter().map(result).collect(),
                ..State::default()
            };
            let left = waiting.spent(&state).and_then(|spent| spent.leaves(approved));
            assert_eq!(left, expected, "{reason}");
        }
    }
}
