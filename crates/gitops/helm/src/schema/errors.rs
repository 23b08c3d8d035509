//! Where in a document something is wrong, and what was found.

use std::fmt::{Display, Formatter};

/// A place in a document: a chain up to the root.
pub(super) struct Place<'a> {
    name: String,
    above: Option<&'a Place<'a>>,
}

impl<'a> Place<'a> {
    pub(super) fn root() -> Self {
        Self {
            name: String::new(),
            above: None,
        }
    }

    pub(super) fn field(&'a self, name: &str) -> Place<'a> {
        Place {
            name: name.to_owned(),
            above: Some(self),
        }
    }

    pub(super) fn item(&'a self, at: usize) -> Place<'a> {
        self.field(&at.to_string())
    }
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.above {
            None => f.write_str("(root)"),
            Some(above) => {
                if above.above.is_some() {
                    write!(f, "{above}.")?;
                }
                f.write_str(&self.name)
            }
        }
    }
}

/// What a schema made of a value. The score is how much of it fitted: of several schemas that do not fit, the errors
/// of the best one are shown.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<String>,
    pub(super) score: i64,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn add(&mut self, place: &Place<'_>, message: impl Display) {
        self.errors.push(format!("{place}: {message}"));
        self.score -= 1;
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        self.errors.append(&mut other.errors);
        self.score += other.score;
    }

    pub(super) fn better(best: Option<Self>, other: Self) -> Option<Self> {
        match best {
            Some(best) if best.score >= other.score => Some(best),
            _ => Some(other),
        }
    }
}
