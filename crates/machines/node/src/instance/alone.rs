//! Processors that a machine has for itself: claimed before it starts, written down in its record, and let go when it has ended.

use fairway_machines_plan::plan::Capabilities;
use fairway_machines_plan::processors::{Allotment, TooFew, Wanted};
use fairway_machines_plan::unsupported::{self, Effect, Unsupported};
use fairway_machines_plan::view::Condition;

use super::confining;
use super::home::Built;
use super::runner::{Life, Runner};
use crate::host::Facts;

impl Runner {
    /// What machines can ask for here.
    pub(super) fn capabilities(&self, facts: &Facts) -> Capabilities {
        Capabilities {
            dedicated_cpus: self.context.processors.count() > 0,
            ..facts.capabilities()
        }
    }

    /// Claims what a machine that is about to start asks for.
    pub(super) fn claim_processors(&self, built: &Built) -> Result<(), TooFew> {
        if let Some(wanted) = Wanted::of(&built.plan.cpu, built.sockets) {
            let name = confining::name(self.home.path());
            self.context.processors.claim(&name, wanted)?;
        }
        Ok(())
    }

    /// What the machine has for itself, for its record.
    pub(super) fn own_processors(&self) -> Allotment {
        self.context.processors.of(&confining::name(self.home.path()))
    }

    /// The machine has ended, or will not run any more: what it had is everybody's.
    pub(super) fn release_processors(&mut self) {
        if !matches!(self.life, Life::Running(_) | Life::Starting | Life::Silent(_)) {
            self.context
                .processors
                .release(&confining::name(self.home.path()));
            self.home.record.processors = self.own_processors();
        }
    }

    /// What is to be said of a machine that runs elsewhere than it should.
    pub(super) fn processors_condition(&self) -> Option<Condition> {
        let why = self
            .context
            .processors
            .astray(&confining::name(self.home.path()))?;
        if !self.plan.cpu.dedicated {
            return None;
        }
        let mut all = self.plan.unsupported.clone();
        all.push(Unsupported {
            field: "domain.cpu.dedicatedCpuPlacement".to_owned(),
            reason: format!("the machine's threads are not where they should be: {why}"),
            effect: Effect::Ignored,
        });
        all.sort();
        Some(unsupported::condition(&all))
    }
}
