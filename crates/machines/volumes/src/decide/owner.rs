//! Whose a claim is that has the name of a DataVolume.

use crate::names;
use crate::view::{Claim, DataVolume};

/// What a DataVolume is to a claim of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It made the claim.
    Own,
    /// The claim has its content already, and may become its own.
    Adopts,
    /// The claim is going away.
    Leaving,
    /// The claim is somebody else's.
    Foreign,
}

/// Whose a claim is.
pub(crate) fn of(volume: &DataVolume, claim: &Claim) -> Ownership {
    if claim.metadata.is_deleting() {
        return Ownership::Leaving;
    }
    let is_own = |uid: &str| uid == volume.metadata.uid;
    match claim.metadata.controller() {
        Some(owner) if is_own(&owner.uid) => Ownership::Own,
        Some(_) => Ownership::Foreign,
        None => {
            let is_populated = claim.metadata.annotation(names::POPULATED_FOR) == Some(&volume.metadata.name);
            let may_adopt = volume.metadata.annotation(names::ALLOW_ADOPTION) == Some("true");
            match is_populated || may_adopt && claim.status.phase == "Bound" {
                true => Ownership::Adopts,
                false => Ownership::Foreign,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn whose_a_claim_is() {
        let owner = |uid: &str| json!([{"kind": "DataVolume", "name": "d", "uid": uid, "controller": true}]);
        let bound = json!({"phase": "Bound"});
        for (metadata, status, adopts, expected) in [
            (
                json!({"ownerReferences": owner("u1")}),
                json!({}),
                false,
                Ownership::Own,
            ),
            (
                json!({"ownerReferences": owner("u2")}),
                bound.clone(),
                true,
                Ownership::Foreign,
            ),
            (json!({}), json!({}), false, Ownership::Foreign),
            (json!({}), bound, true, Ownership::Adopts),
            (json!({}), json!({"phase": "Pending"}), true, Ownership::Foreign),
            (
                json!({"annotations": {names::POPULATED_FOR: "d"}}),
                json!({}),
                false,
                Ownership::Adopts,
            ),
            (
                json!({"annotations": {names::POPULATED_FOR: "e"}}),
                json!({}),
                false,
                Ownership::Foreign,
            ),
            (
                json!({"ownerReferences": owner("u1"), "deletionTimestamp": "2026-01-01T00:00:00Z"}),
                json!({}),
                false,
                Ownership::Leaving,
            ),
        ] {
            let claim = Claim::deserialize(json!({"metadata": metadata, "status": status})).unwrap();
            let annotations: Value = match adopts {
                true => json!({names::ALLOW_ADOPTION: "true"}),
                false => json!({}),
            };
            let volume = json!({"metadata": {"name": "d", "uid": "u1", "annotations": annotations}});
            let volume = DataVolume::deserialize(volume).unwrap();
            assert_eq!(of(&volume, &claim), expected, "{metadata} {status}");
        }
    }
}
