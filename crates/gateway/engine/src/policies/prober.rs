//! Finds out whether policies do what they promise, and has them told.
//!
//! A probe may lead to a server that a tenant names, so this is a task of its own: tables are built and served while it waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::Shutdown;
use fairway_gateway_gatekeeper::{RuleGuard, RulePlan};
use fairway_gateway_policy::object::PolicyKey;
use fairway_gateway_policy::status::Condition;
use fairway_gateway_routes::table::RuleKey;
use tokio::sync::watch;
use tokio::time::Instant;

use super::decide::{Decision, Way};
use super::held::{Held, Seen};
use super::queue::Answers;
use super::told;
use crate::plane::DataPlane;
use crate::statuses::PoliciesTold;

/// When is asked again what was not answered in time.
const AGAIN: Duration = Duration::from_secs(3);

/// What the data plane serves now, and what is known of policies without asking it.
pub(crate) struct Round {
    pub(crate) decision: Decision,
    pub(crate) ways: BTreeMap<RuleKey, Way>,
    pub(crate) guards: BTreeMap<RuleKey, (RulePlan, Arc<RuleGuard>)>,
    /// Of policies that guard nothing.
    pub(crate) conditions: BTreeMap<PolicyKey, Vec<Condition>>,
    /// The policies that this was found from: conditions of another generation are not theirs.
    pub(crate) generations: BTreeMap<PolicyKey, i64>,
}

/// The latest round; none before the first.
pub(crate) type Latest = Option<Arc<Round>>;

/// The generations of all policies.
pub(crate) fn generations(seen: &Seen) -> BTreeMap<PolicyKey, i64> {
    let all = seen.policies.iter();
    all.map(|(key, one)| (key.clone(), one.policy.generation))
        .collect()
}

/// Probes until the end. A round is finished before the next one is taken up, so that frequent changes do not keep policies
/// from being told.
pub(crate) async fn probe(
    plane: Arc<dyn DataPlane>,
    held: Arc<Held>,
    mut rounds: watch::Receiver<Latest>,
    outlet: watch::Sender<PoliciesTold>,
    mut shutdown: Shutdown,
) {
    let (mut again, mut answers) = (None, Answers::default());
    loop {
        let later = async {
            match again {
                None => std::future::pending().await,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            changed = rounds.changed() => if changed.is_err() { return },
            () = later => {}
        }
        let Some(round) = rounds.borrow_and_update().clone() else {
            continue;
        };
        let (mut conditions, is_whole) = tokio::select! {
            () = shutdown.wait() => return,
            found = told::conditions_of(&*plane, &round, &mut answers) => found,
        };
        {
            let seen = held.seen();
            let of_plans = told::of_plans(&seen, &round.decision.problems, &conditions);
            conditions.extend(of_plans);
            conditions.extend(round.conditions.clone());
            let now = generations(&seen);
            conditions.retain(|key, _| now.get(key) == round.generations.get(key));
        }
        // Nobody listens any more at the end only.
        let _ = outlet.send(Arc::new(conditions));
        again = (!is_whole).then(|| Instant::now() + AGAIN);
    }
}
