//! What a sync should not delete without being asked: too much at once, machines, and disks.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::key::ResourceKey;
use crate::operation::Plan;

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
    /// What would be deleted.
    pub deletions: Vec<ResourceKey>,
    /// What an approval has to say. It is of these deletions: others need another.
    pub digest: String,
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
}

/// Whether the loss of an object cannot be made good by syncing again, or takes along what is in it.
pub fn is_precious(key: &ResourceKey) -> bool {
    let is = |group: &str, kind: &str| group == key.group && kind == key.kind;
    PRECIOUS.iter().any(|(group, kind, _)| is(group, kind))
        || CONTAINERS.iter().any(|(group, kind)| is(group, kind))
}

/// Whether a plan has to wait for approval. `approved` is the annotation of the application.
pub fn hold(plan: &Plan, guard: &Guard, approved: &str) -> Option<Held> {
    let going = plan
        .tasks
        .iter()
        .filter(|task| task.is_prune() && task.keep.is_none() && !plan.dry_run);
    let deletions: BTreeSet<ResourceKey> = going.map(|task| task.id.key.clone()).collect();
    let mut reasons = Vec::new();
    if let Some(max) = guard.max_deletions.filter(|max| deletions.len() > *max) {
        reasons.push(format!("{} objects (more than {max})", deletions.len()));
    }
    if guard.precious {
        for key in &deletions {
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
    let digest = digest(&deletions);
    let is_approved = approved.split(',').any(|word| word.trim() == digest);
    (!reasons.is_empty() && !is_approved).then(|| Held {
        reasons,
        deletions: deletions.into_iter().collect(),
        digest,
    })
}

fn digest(deletions: &BTreeSet<ResourceKey>) -> String {
    let mut hash = Sha256::new();
    for key in deletions {
        hash.update(key.to_string());
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::Pair;
    use crate::operation::{Desired, plan};

    fn extra(group_version: &str, kind: &str, name: &str, options: &str) -> Pair {
        let live = json!({"apiVersion": group_version, "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "annotations": {crate::annotation::SYNC_OPTIONS: options}}});
        Pair {
            key: ResourceKey::of(&live),
            target: None,
            live: Some(live),
        }
    }

    fn held(pairs: &[Pair], guard: &Guard, approved: &str) -> Option<Held> {
        let plan = plan(&Desired {
            pairs,
            prune: true,
            ..Desired::default()
        });
        hold(&plan, guard, approved)
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
            let held = held(&pairs, &guard, "");
            assert_eq!(
                held.map(|held| held.reasons.join(", ")).as_deref(),
                expected,
                "{reason}"
            );
        }
    }

    #[test]
    fn an_approval_is_of_these_deletions() {
        let machine = |name: &str| extra("kubevirt.io/v1", "VirtualMachine", name, "");
        let one = [machine("a")];
        let waiting = held(&one, &Guard::default(), "").unwrap();
        assert!(waiting.message("shop").contains(&waiting.digest));
        let approved = format!("something-else, {}", waiting.digest);
        assert_eq!(held(&one, &Guard::default(), &approved), None);
        assert!(held(&[machine("a"), machine("b")], &Guard::default(), &approved).is_some());
    }
}
