//! In which order probes are sent: several of a workspace at a time, and those first that waited longest, so that no policy
//! waits for good because others ask servers that are silent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_gatekeeper::RuleGuard;
use fairway_gateway_policy::object::PolicyKey;
use fairway_gateway_routes::table::RuleKey;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};

use super::decide::Way;
use super::probe::{Probed, Promise, probed};
use crate::plane::DataPlane;

/// How long a probe may take: what a policy asks on the way is a tenant's server.
const PROBE: Duration = Duration::from_millis(500);
/// How long all probes of a workspace may take.
const WORKSPACE: Duration = Duration::from_secs(1);
/// Probes of a workspace that are sent at the same time.
const AT_ONCE: usize = 8;

/// What is tried: a rule for a policy.
pub(super) type Tried = (PolicyKey, RuleKey);

/// When a probe was last sent, and what it found.
type Before = Option<(u64, Option<Probed>)>;

/// A probe that is to be sent.
#[derive(Clone, Copy)]
pub(super) struct Job<'r> {
    pub(super) policy: &'r PolicyKey,
    pub(super) way: &'r Way,
    pub(super) guard: &'r Arc<RuleGuard>,
    pub(super) promise: Promise,
}

/// What probes have found so far.
#[derive(Default)]
pub(crate) struct Answers {
    turn: u64,
    known: BTreeMap<Tried, Answer>,
}

/// What a probe found, as long as its rule has this way and this guard.
pub(super) struct Answer {
    way: Way,
    guard: Arc<RuleGuard>,
    /// When it was last sent.
    turn: u64,
    /// Nothing: there was no answer in time.
    pub(super) found: Option<Probed>,
}

impl Answer {
    /// Whether it has been answered, now or before by the same guard on the same way. What is known so need not be asked again:
    /// where there are more rules than one turn has time for, the turns would never end.
    pub(super) fn is_known(&self) -> bool {
        self.found.is_some_and(|found| found != Probed::Silent)
    }
}

impl Answers {
    pub(super) fn begin(&mut self) {
        self.turn += 1;
    }

    /// What has to be known for the next turn.
    pub(super) fn keep(&mut self, known: BTreeMap<Tried, Answer>) {
        self.known = known;
    }

    fn of(&self, job: &Job<'_>) -> Option<&Answer> {
        let known = self.known.get(&(job.policy.clone(), job.way.rule.clone()))?;
        (Arc::ptr_eq(&known.guard, job.guard) && known.way == *job.way).then_some(known)
    }

    /// Sends the probes of a workspace, as many as there is time for.
    pub(super) async fn ask(&self, plane: &dyn DataPlane, jobs: &[Job<'_>]) -> BTreeMap<Tried, Answer> {
        // Each that is sent gets its whole time.
        let last_begin = Instant::now() + (WORKSPACE - PROBE);
        let mut order: Vec<(Before, Job<'_>)> = (jobs.iter())
            .map(|job| (self.of(job).map(|before| (before.turn, before.found)), *job))
            .collect();
        order.sort_by_key(|(before, _)| before.map_or(0, |(turn, _)| turn));
        let answers: Vec<_> = (order.into_iter())
            .map(|(before, job)| self.send(plane, job, before, last_begin).boxed())
            .collect();
        futures::stream::iter(answers)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    async fn send(
        &self,
        plane: &dyn DataPlane,
        job: Job<'_>,
        before: Before,
        last_begin: Instant,
    ) -> (Tried, Answer) {
        let (turn, found) = match Instant::now() >= last_begin {
            // Its turn does not come, so this is what was found before.
            true => before.unwrap_or_default(),
            false => {
                let kind = job.policy.kind;
                let asked = timeout(PROBE, probed(plane, job.way, job.guard, kind, job.promise));
                (self.turn, asked.await.ok())
            }
        };
        let answer = Answer {
            way: job.way.clone(),
            guard: Arc::clone(job.guard),
            turn,
            found,
        };
        ((job.policy.clone(), job.way.rule.clone()), answer)
    }
}

#[cfg(test)]
mod tests;
