//! What an evaluation has spent: CEL's cost units, and elementary steps that CEL does not price.

use std::cell::Cell;

use crate::error::Error;
use crate::limits::MAX_WORK;

#[derive(Debug)]
pub(crate) struct Meter {
    budget: Cell<u64>,
    work: Cell<u64>,
}

impl Meter {
    pub(crate) fn new(budget: u64) -> Meter {
        Meter {
            budget: Cell::new(budget),
            work: Cell::new(MAX_WORK),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.budget.get()
    }

    /// Spends cost units.
    pub(crate) fn charge(&self, cost: u64) -> Result<(), Error> {
        spend(&self.budget, cost)
    }

    /// Gives back what is about to be charged once too often.
    pub(crate) fn credit(&self, cost: u64) {
        self.budget.set(self.budget.get().saturating_add(cost));
    }

    /// Spends elementary steps: elements compared or copied.
    pub(crate) fn work(&self, steps: usize) -> Result<(), Error> {
        spend(&self.work, steps as u64)
    }
}

fn spend(account: &Cell<u64>, amount: u64) -> Result<(), Error> {
    match account.get().checked_sub(amount) {
        Some(left) => {
            account.set(left);
            Ok(())
        }
        None => {
            account.set(0);
            Err(Error::CostExceeded)
        }
    }
}
