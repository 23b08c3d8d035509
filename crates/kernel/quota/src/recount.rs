//! What a quota holds: which kinds have to be looked at, and the sum over their objects.

use fairway_kernel_kinds::quantity::Quantity;
use serde_json::Value;

use crate::{Amounts, Evaluator, Quota};

/// The sum over the objects of a namespace, for one quota.
#[derive(Clone, Debug)]
pub struct Recount<'a> {
    quota: &'a Quota,
    counted: Amounts,
}

impl<'a> Recount<'a> {
    /// Begins with nothing.
    pub fn new(quota: &'a Quota) -> Self {
        Self {
            quota,
            counted: Amounts::default(),
        }
    }

    /// The evaluator of a kind, if the quota limits something that the kind uses.
    pub fn needs(quota: &Quota, group: &str, resource: &str) -> Option<Evaluator> {
        Evaluator::of(group, resource)
            .filter(|evaluator| quota.wanted.names().any(|name| evaluator.measures(name)))
    }

    /// Says that a kind has been looked at, so that its resources are known even if there is no object.
    pub fn looked_at(&mut self, evaluator: &Evaluator) {
        for name in self.quota.wanted.names().filter(|name| evaluator.measures(name)) {
            self.counted.add(name, Quantity::ZERO);
        }
    }

    /// Adds an object.
    pub fn add(&mut self, evaluator: &Evaluator, object: &Value, now: &str) {
        if evaluator.in_scopes(self.quota, object) {
            let usage = evaluator.usage(object, now);
            self.counted
                .add_all(&usage.filtered(|name, _| self.quota.wanted.has(name)));
        }
    }

    /// Adds a number of objects of a kind of which only numbers matter.
    pub fn add_number(&mut self, evaluator: &Evaluator, number: usize) {
        // Such kinds are in no scope.
        if !self.quota.scopes.is_empty() {
            return;
        }
        let number = Quantity::from_int(i64::try_from(number).unwrap_or(i64::MAX));
        for name in self.quota.wanted.names().filter(|name| evaluator.measures(name)) {
            self.counted.add(name, number);
        }
    }

    /// The new `status.used`: what was counted; what could not be counted stays as it was.
    pub fn used(&self) -> Amounts {
        let mut used = self.quota.used.filtered(|name, _| self.quota.wanted.has(name));
        for (name, amount) in self.counted.iter() {
            used.set(name, amount);
        }
        used
    }
}
