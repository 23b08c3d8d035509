//! Variables while a template is read: where each has its place, and from when on it has a value.

use super::last;
use crate::ast::Declared;

/// The variables in sight, and how many places they need at most.
pub(super) struct Scope<'t> {
    /// Names, and whether they have a value yet: not within the pipeline that gives it to them.
    pub(super) names: Vec<(&'t str, bool)>,
    pub(super) slots: usize,
    pub(super) ranges: usize,
}

impl<'t> Scope<'t> {
    pub(super) fn new() -> Self {
        Self {
            names: vec![("$", true)],
            slots: 1,
            ranges: 0,
        }
    }

    pub(super) fn declare(&mut self, name: &'t str) -> u32 {
        self.names.push((name, false));
        self.slots = self.slots.max(self.names.len());
        last(&self.names)
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let found = self
            .names
            .iter()
            .rposition(|(known, ready)| *ready && *known == name);
        found.and_then(|at| u32::try_from(at).ok())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| *known == name)
    }

    /// From here on, the variables of a pipeline have their values.
    pub(super) fn settle(&mut self, variables: &[Declared]) {
        for variable in variables {
            if let Some((_, ready)) = variable.slot.and_then(|slot| self.names.get_mut(slot as usize)) {
                *ready = true;
            }
        }
    }
}
