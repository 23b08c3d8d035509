//! Scopes: to which objects a quota applies.

use fairway_kernel_kinds::read::{text, texts};
use serde_json::Value;

/// How a scope with values compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Validation refuses others; one that came in nevertheless matches nothing.
    Unknown,
}

/// One condition of a quota.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) name: String,
    operator: Operator,
    values: Vec<String>,
}

impl Scope {
    /// A plain entry of `spec.scopes`.
    pub(crate) fn exists(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            operator: Operator::Exists,
            values: Vec::new(),
        }
    }

    /// An entry of `spec.scopeSelector`.
    pub(crate) fn from_requirement(requirement: &Value) -> Self {
        Self {
            name: text(requirement, "scopeName").to_owned(),
            operator: match text(requirement, "operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => Operator::Unknown,
            },
            values: texts(requirement, "values").map(str::to_owned).collect(),
        }
    }

    /// Whether the names that an object has for this scope satisfy it; any one of them may. As with label selectors,
    /// an object without a name satisfies `NotIn`.
    pub(crate) fn matches_any(&self, names: &[&str]) -> bool {
        if names.is_empty() {
            return matches!(self.operator, Operator::NotIn | Operator::DoesNotExist);
        }
        names.iter().any(|name| {
            let listed = self.values.iter().any(|value| value == name);
            match self.operator {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => true,
                Operator::DoesNotExist | Operator::Unknown => false,
            }
        })
    }
}
