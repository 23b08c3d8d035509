//! Variables while a template is read: where each has its place, and from when on it has a value.

use std::sync::Arc;

use crate::ast::Pipe;

/// The variables in sight, and how many places they need at most.
pub(super) struct Scope {
    /// Names, and whether they have a value yet: not within the pipeline that gives it to them.
    pub(super) names: Vec<(Arc<str>, bool)>,
    pub(super) slots: usize,
    pub(super) ranges: usize,
}

impl Scope {
    pub(super) fn new() -> Self {
        Self {
            names: vec![("$".into(), true)],
            slots: 1,
            ranges: 0,
        }
    }

    pub(super) fn declare(&mut self, name: &str) -> usize {
        self.names.push((name.into(), false));
        self.slots = self.slots.max(self.names.len());
        self.names.len() - 1
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names
            .iter()
            .rposition(|(known, ready)| *ready && &**known == name)
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| &**known == name)
    }

    /// From here on, the variables of a pipeline have their values.
    pub(super) fn settle(&mut self, pipe: &Pipe) {
        for variable in &pipe.variables {
            if let Some((_, ready)) = variable.slot.and_then(|slot| self.names.get_mut(slot)) {
                *ready = true;
            }
        }
    }
}
