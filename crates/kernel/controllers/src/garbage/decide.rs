//! What becomes of an object, given what its owners turned out to be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, PropagationPolicy};

use super::graph::{Dependent, FOREGROUND, ORPHAN, Uid};

/// What an owner turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It exists and stays.
    Solid,
    /// It does not exist.
    Dangling,
    /// It is being deleted, and waits for its dependents.
    Waiting,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing.
    Keep,
    /// It has other owners: take these references away.
    Release(Vec<Uid>),
    /// Delete it. `unblock`: first let its owners not wait for it, since it is part of a circle.
    Delete {
        policy: PropagationPolicy,
        unblock: bool,
    },
}

/// Decides on an object that is not being deleted itself.
pub(super) fn decide(
    latest: &ObjectMeta,
    owners: &[(OwnerReference, Owner)],
    dependents: &[Dependent],
) -> Verdict {
    if owners.is_empty() {
        return Verdict::Keep;
    }
    let of = |state: Owner| owners.iter().filter(move |(_, s)| *s == state);
    if of(Owner::Solid).next().is_some() {
        let lost: Vec<Uid> = owners
            .iter()
            .filter(|(_, s)| *s != Owner::Solid)
            .map(|(r, _)| r.uid.clone())
            .collect();
        return if lost.is_empty() {
            Verdict::Keep
        } else {
            Verdict::Release(lost)
        };
    }
    if of(Owner::Waiting).next().is_some() && !dependents.is_empty() {
        return Verdict::Delete {
            policy: PropagationPolicy::Foreground,
            unblock: dependents.iter().any(|d| d.deleting_dependents),
        };
    }
    let has = |finalizer: &str| latest.finalizers.iter().flatten().any(|f| f == finalizer);
    let policy = if has(ORPHAN) {
        PropagationPolicy::Orphan
    } else if has(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    };
    Verdict::Delete {
        policy,
        unblock: false,
    }
}

/// What to do with an owner that waits for its dependents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// None is left: let it go.
    Release,
    /// Look after these.
    Press(Vec<Uid>),
}

/// Decides on an owner that is deleted after its dependents.
pub(super) fn decide_waiting(dependents: &[Dependent]) -> Waiting {
    let mut blocking = dependents.iter().filter(|d| d.blocking).peekable();
    if blocking.peek().is_none() {
        return Waiting::Release;
    }
    Waiting::Press(
        blocking
            .filter(|d| !d.deleting_dependents)
            .map(|d| d.identity.uid.clone())
            .collect(),
    )
}

/// The references without those to the given owners; `None` if there are none of them.
pub(super) fn without(references: &[OwnerReference], owners: &[Uid]) -> Option<Vec<OwnerReference>> {
    let kept: Vec<OwnerReference> = references
        .iter()
        .filter(|r| !owners.contains(&r.uid))
        .cloned()
        .collect();
    (kept.len() != references.len()).then_some(kept)
}

/// The references, none of them blocking; `None` if none is.
pub(super) fn unblocked(references: &[OwnerReference]) -> Option<Vec<OwnerReference>> {
    references
        .iter()
        .any(|r| r.block_owner_deletion == Some(true))
        .then(|| {
            let free = |r: &OwnerReference| OwnerReference {
                block_owner_deletion: Some(false),
                ..r.clone()
            };
            references.iter().map(free).collect()
        })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use kube::api::{ObjectMeta, PropagationPolicy};

    use super::{Owner, Verdict, Waiting, decide, decide_waiting, unblocked, without};
    use crate::garbage::graph::{Dependent, Identity};

    fn reference(uid: &str) -> OwnerReference {
        OwnerReference {
            uid: uid.to_owned(),
            name: uid.to_owned(),
            kind: "K".to_owned(),
            api_version: "v1".to_owned(),
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        }
    }

    fn dependent(uid: &str, blocking: bool, deleting_dependents: bool) -> Dependent {
        Dependent {
            identity: Identity::claimed(&fairway_controller::WorkspaceId::root(), &reference(uid), "n"),
            deleting_dependents,
            blocking,
        }
    }

    #[test]
    fn verdicts() {
        use Owner::{Dangling, Solid, Waiting};
        let delete = |policy: PropagationPolicy, unblock: bool| Verdict::Delete { policy, unblock };
        let background = delete(PropagationPolicy::Background, false);
        let free = vec![dependent("d", false, false)];
        let circle = vec![dependent("d", true, true)];
        for (name, owners, finalizers, dependents, want) in [
            ("no owner", vec![], vec![], vec![], Verdict::Keep),
            ("an owner that stays", vec![Solid], vec![], vec![], Verdict::Keep),
            (
                "one of two is gone",
                vec![Solid, Dangling],
                vec![],
                vec![],
                Verdict::Release(vec!["1".to_owned()]),
            ),
            (
                "one of two waits",
                vec![Waiting, Solid],
                vec![],
                vec![],
                Verdict::Release(vec!["0".to_owned()]),
            ),
            (
                "the only one is gone",
                vec![Dangling],
                vec![],
                vec![],
                background.clone(),
            ),
            (
                "all are gone",
                vec![Dangling, Dangling],
                vec![],
                free.clone(),
                background.clone(),
            ),
            (
                "an owner waits for a leaf",
                vec![Waiting],
                vec![],
                vec![],
                background,
            ),
            (
                "an owner waits for one with dependents",
                vec![Waiting],
                vec![],
                free,
                delete(PropagationPolicy::Foreground, false),
            ),
            (
                "a circle",
                vec![Waiting],
                vec![],
                circle,
                delete(PropagationPolicy::Foreground, true),
            ),
            (
                "it asked to orphan",
                vec![Dangling],
                vec!["orphan"],
                vec![],
                delete(PropagationPolicy::Orphan, false),
            ),
            (
                "it asked for foreground",
                vec![Dangling],
                vec!["foregroundDeletion"],
                vec![],
                delete(PropagationPolicy::Foreground, false),
            ),
        ] {
            let latest = ObjectMeta {
                finalizers: Some(finalizers.into_iter().map(str::to_owned).collect()),
                ..ObjectMeta::default()
            };
            let owners: Vec<_> = owners
                .into_iter()
                .enumerate()
                .map(|(i, s)| (reference(&i.to_string()), s))
                .collect();
            assert_eq!(decide(&latest, &owners, &dependents), want, "{name}");
        }
    }

    #[test]
    fn an_owner_waits_for_those_who_block_it() {
        for (name, dependents, want) in [
            ("none", vec![], Waiting::Release),
            (
                "only those who do not block",
                vec![dependent("a", false, false)],
                Waiting::Release,
            ),
            (
                "one blocks, one blocks and is under way",
                vec![
                    dependent("a", true, false),
                    dependent("b", true, true),
                    dependent("c", false, false),
                ],
                Waiting::Press(vec!["a".to_owned()]),
            ),
        ] {
            assert_eq!(decide_waiting(&dependents), want, "{name}");
        }
    }

    #[test]
    fn references_are_edited_only_where_needed() {
        let both = [reference("a"), reference("b")];
        assert_eq!(without(&both, &["c".to_owned()]), None);
        assert_eq!(without(&both, &["a".to_owned()]), Some(vec![reference("b")]));
        let free = unblocked(&both).unwrap();
        assert!(free.iter().all(|r| r.block_owner_deletion == Some(false)));
        assert_eq!(unblocked(&free), None);
    }
}
