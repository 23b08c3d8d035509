//! What a DataSource says about what it stands for, in CDI's words.

use super::status::{Condition, condition};

/// What a DataSource stands for, as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It names nothing.
    Nothing,
    /// A claim that does not exist.
    NoClaim,
    /// A claim whose DataVolume is in this phase.
    Importing(String),
    /// A snapshot that does not exist.
    NoSnapshot,
    /// A snapshot that is not finished.
    Snapshotting,
    /// Something that disks can be made from.
    Ready,
}

/// The condition `Ready`.
pub(crate) fn ready(found: &Found) -> Condition {
    match found {
        Found::Nothing => condition("Ready", "False", "NoSource", "No source PVC set"),
        Found::NoClaim => condition("Ready", "False", "NotFound", "PVC not found"),
        Found::Importing(phase) => condition(
            "Ready",
            "False",
            if phase.is_empty() { "Unset" } else { phase },
            &format!("Import DataVolume phase {phase}"),
        ),
        Found::NoSnapshot => condition("Ready", "False", "NotFound", "Snapshot not found"),
        Found::Snapshotting => condition(
            "Ready",
            "False",
            "SnapshotNotReady",
            "Snapshot phase is not ready",
        ),
        Found::Ready => condition("Ready", "True", "Ready", "DataSource is ready to be consumed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word() {
        for (found, status, reason) in [
            (Found::Nothing, "False", "NoSource"),
            (Found::NoClaim, "False", "NotFound"),
            (
                Found::Importing("ImportInProgress".to_owned()),
                "False",
                "ImportInProgress",
            ),
            (Found::Importing(String::new()), "False", "Unset"),
            (Found::Ready, "True", "Ready"),
        ] {
            let it = ready(&found);
            assert_eq!((it.status, it.reason.as_str()), (status, reason));
        }
    }
}
