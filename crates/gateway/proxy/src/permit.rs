//! What a guard let through and goes on for long: tunnels and streams end when what let them through does.
//!
//! A request is judged once, when it begins. A WebSocket, server-sent events or a stream of gRPC messages may go on for hours
//! after that, so once a second is asked, from memory, whether its token or key still counts, and whether the rule still asks
//! the same of whoever comes. Whoever loses one may come again, and is judged then.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairway_gateway_guard::Standing;
use http_body::Body as _;

use crate::body::Body;
use crate::guards;
use crate::metrics;
use crate::plan::RulePlan;
use crate::proxy::Shared;
use crate::watch::Watch;

/// How soon is seen that something has ended.
const EVERY: Duration = Duration::from_secs(1);
/// Bodies up to here end soon by themselves.
const SHORT: u64 = 1024 * 1024;

pub(crate) struct Permit {
    shared: Arc<Shared>,
    rule: Arc<RulePlan>,
    /// Of the guard that let it through.
    print: u64,
    /// Of the plan by which that was last looked at.
    generation: u64,
    standing: Option<Standing>,
    watch: Watch,
}

impl Permit {
    pub(crate) fn new(shared: &Arc<Shared>, rule: &Arc<RulePlan>, standing: Option<Standing>) -> Self {
        Self {
            shared: Arc::clone(shared),
            rule: Arc::clone(rule),
            print: guards::print(rule.protection.as_ref()),
            // Whatever is served by now may be newer than the rule.
            generation: 0,
            standing,
            watch: Watch::new(EVERY),
        }
    }

    /// Holds a body to the permit, if it may last.
    pub(crate) fn hold(body: &mut Body, permit: impl FnOnce() -> Self) {
        let is_short = body.is_end_stream() || body.size_hint().exact().is_some_and(|left| left <= SHORT);
        if !is_short {
            let held = std::mem::replace(body, Body::Empty);
            *body = Body::Held(Box::new((held, permit())));
        }
    }

    /// Whether it is time to look again: who always has something to send never waits.
    pub(crate) fn is_due(&self) -> bool {
        self.watch.is_due()
    }

    /// Why it is lost, when it is.
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<&'static str> {
        loop {
            ready!(self.watch.poll_expired(cx));
            self.watch.set(EVERY);
            if let Some(why) = self.lapsed() {
                metrics::add(&self.shared.metrics.totals.permits_lost);
                tracing::debug!(route = %self.rule.rule.key.name, why, "ended what had been let through");
                return Poll::Ready(why);
            }
        }
    }

    fn lapsed(&mut self) -> Option<&'static str> {
        let plan = self.shared.plan.load();
        if plan.generation != self.generation {
            self.generation = plan.generation;
            if plan.guards.print(&self.rule.rule.key) != self.print {
                return Some("its policies are others now");
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(u128::MAX, |since| since.as_nanos());
        self.standing.as_ref().and_then(|standing| standing.0.lapsed(now))
    }
}
