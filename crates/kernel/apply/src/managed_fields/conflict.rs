//! Conflicts as users see them.

use std::collections::BTreeMap;
use std::fmt;

use super::record::{Identity, UPDATE};
use crate::updater;

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns it.
    pub manager: String,
    /// How it came to own it: `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
    /// The version in which it wrote, for updaters.
    pub api_version: String,
    /// The field, such as `.spec.replicas`.
    pub path: String,
}

impl Conflict {
    fn owner(&self) -> String {
        let mut owner = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            owner += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == UPDATE {
            owner += &format!(" using {}", self.api_version);
        }
        owner
    }
}

/// All conflicts of an apply, sorted by owner. Displays as the message that clients print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    pub(super) fn new(conflicts: &[updater::Conflict], identities: &BTreeMap<String, Identity>) -> Self {
        let described = conflicts.iter().map(|conflict| {
            let identity = identities.get(&conflict.manager);
            let text = |field: fn(&Identity) -> &String| identity.map(field).cloned().unwrap_or_default();
            Conflict {
                manager: text(|i| &i.manager),
                operation: text(|i| &i.operation),
                subresource: text(|i| &i.subresource),
                api_version: text(|i| &i.api_version),
                path: conflict.path.to_string(),
            }
        });
        Self(described.collect())
    }

    /// Message and field of each, for the causes of a status; their reason is `FieldManagerConflict`.
    pub fn causes(&self) -> impl Iterator<Item = (String, &str)> {
        self.0.iter().map(|conflict| {
            (
                format!("conflict with {}", conflict.owner()),
                conflict.path.as_str(),
            )
        })
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {}",
                conflict.owner(),
                conflict.path
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut previous: Option<String> = None;
        for conflict in &self.0 {
            let owner = conflict.owner();
            if previous.as_ref() != Some(&owner) {
                let line_break = if previous.is_some() { "\n" } else { "" };
                write!(f, "{line_break}conflicts with {owner}:")?;
                previous = Some(owner);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}
