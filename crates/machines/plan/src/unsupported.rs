//! What a machine asks for and does not get.
//!
//! Nothing is left out in silence: each entry becomes part of a condition that names the field, why it cannot be had, and
//! what happened instead.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::view::Condition;

/// The condition that lists fields which are not honoured.
pub const CONDITION: &str = "SpecHonoured";

/// What becomes of a machine that asks for something it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It runs, without it.
    Ignored,
    /// It runs, with something near to it.
    Replaced,
    /// It does not start: the guest would not be what was asked for.
    Blocks,
}

/// A wish that is not granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unsupported {
    /// The field, from `spec` of the instance.
    pub field: String,
    /// Why, and what happens instead.
    pub reason: String,
    /// What becomes of the machine.
    pub effect: Effect,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.reason)
    }
}

/// Wishes that are not granted, as they are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes(Vec<Unsupported>);

impl Wishes {
    /// One that the machine can do without.
    pub(crate) fn ignored(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.push(field, reason, Effect::Ignored);
    }

    /// One that something near to it stands in for.
    pub(crate) fn replaced(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.push(field, reason, Effect::Replaced);
    }

    /// One that the machine cannot do without.
    pub(crate) fn blocks(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.push(field, reason, Effect::Blocks);
    }

    fn push(&mut self, field: impl Into<String>, reason: impl Into<String>, effect: Effect) {
        self.0.push(Unsupported {
            field: field.into(),
            reason: reason.into(),
            effect,
        });
    }

    /// All, sorted, each once.
    pub(crate) fn sorted(mut self) -> Vec<Unsupported> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

/// Whether the machine must not start.
pub fn blocks(all: &[Unsupported]) -> bool {
    all.iter().any(|it| it.effect == Effect::Blocks)
}

/// The condition for a status.
pub fn condition(all: &[Unsupported]) -> Condition {
    if all.is_empty() {
        return Condition::holds(CONDITION, "Honoured", "");
    }
    let reason = if blocks(all) {
        "CannotStart"
    } else {
        "FieldsNotHonoured"
    };
    let told: Vec<String> = all.iter().map(ToString::to_string).collect();
    Condition::fails(CONDITION, reason, told.join("; "))
}
