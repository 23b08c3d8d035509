//! The policies of one rule as one guard: first who it is and whether they may, then whether there is room.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Guard, HIDDEN, Judgement, Passage, Refusal, Step, Verdict};
use fairway_gateway_policy::auth::AuthPlan;
use fairway_gateway_policy::limit::{Limit, LimitPlan, Rate};
use fairway_gateway_policy::object::{Failure, PolicyKey};
use fairway_gateway_policy::status::Problem;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::limits::{Few, Hit, Limiter, Reading};
use crate::pipeline::{Auth, Mode, Run, broken};
use crate::settings::{FailureMode, RateLimitHeaders};
use crate::{RulePlan, Shared, is_recent, lock};

/// On a probe ([`Asked::probe`]) this header says which kind of policy is meant: `AuthPolicy`, or `RateLimitPolicy`, which is then
/// judged as if its limits were used up. Without it, both are judged as they are. On other requests it means nothing.
pub const PROBE: &str = "x-fairway-probe";

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// The longest value that is counted apart as it is; of longer ones the beginning and the length count.
const MAX_VALUE: usize = 256;

/// Guards one rule.
pub struct RuleGuard {
    shared: Arc<Shared>,
    auth: Option<Auth>,
    limits: Option<Limits>,
    /// Why everything is refused.
    broken: Option<(Cow<'static, str>, String)>,
    print: u64,
}

struct Limits {
    plan: Arc<LimitPlan>,
    /// Of each limit, its rates.
    rates: Vec<Vec<Counted>>,
    by: Cow<'static, str>,
    /// Of each limit, when it last could not be counted: seconds since 1970.
    failed: Vec<AtomicU64>,
    /// Of each limit, why the latest probe could not be counted.
    rehearsed: Vec<Mutex<Option<String>>>,
}

/// A rate of a limit, with what is the same for every request.
struct Counted {
    rate: Rate,
    /// The beginning of its counters' keys, and the whole of those that count nothing apart.
    key: String,
    /// Of such a key.
    hash: u64,
    /// As clients are told of it among others.
    told: String,
    /// As clients are told of it if there is no other.
    alone: Option<HeaderValue>,
}

impl RuleGuard {
    pub(crate) fn new(shared: Arc<Shared>, plan: RulePlan) -> (Self, Vec<Problem>) {
        let (auth, problems) = match plan.auth {
            Some(plan) => {
                let (auth, problems) = Auth::new(&shared, plan);
                (Some(auth), problems)
            }
            None => (None, Vec::new()),
        };
        let limits = plan.limits.map(|plan| Limits {
            rates: plan
                .limits
                .iter()
                .map(|limit| rates(limit, &shared.limiter))
                .collect(),
            by: Cow::Owned(plan.policy.to_string()),
            failed: plan.limits.iter().map(|_| AtomicU64::new(0)).collect(),
            rehearsed: plan.limits.iter().map(|_| Mutex::default()).collect(),
            plan,
        });
        let of_auth = auth.iter().flat_map(|auth| &auth.plan.problems);
        let of_limits = limits.iter().flat_map(|limits| &limits.plan.problems);
        let broken = problems
            .iter()
            .chain(of_auth)
            .chain(of_limits)
            .next()
            .map(|problem| (Cow::Owned(problem.policy.to_string()), problem.to_string()));
        let guard = Self {
            print: print(auth.as_ref().map(|auth| &*auth.plan), broken.as_ref()),
            shared,
            auth,
            limits,
            broken,
        };
        (guard, problems)
    }

    /// Whom the policies need and do not reach, for their conditions. `now` is seconds since 1970.
    pub fn troubles(&self, now: u64) -> Vec<String> {
        self.auth
            .as_ref()
            .map_or_else(Vec::new, |auth| auth.troubles(now))
    }

    /// What the limits of a policy cannot do, or could not lately, for its condition. `now` is seconds since 1970.
    pub fn limit_troubles(&self, policy: &PolicyKey, now: u64) -> Vec<String> {
        let Some(limits) = &self.limits else {
            return Vec::new();
        };
        let notes = limits.plan.notes.iter().filter(|(source, _)| source == policy);
        let mut troubles: Vec<String> = notes.map(|(_, note)| note.clone()).collect();
        let all = limits
            .plan
            .limits
            .iter()
            .zip(&limits.failed)
            .zip(&limits.rehearsed);
        for ((limit, failed), rehearsed) in all.filter(|((limit, _), _)| limit.source == *policy) {
            let name = &limit.name;
            let what = match self.failure(limit) {
                FailureMode::Allow => "pass",
                FailureMode::Deny => "are refused",
            };
            // Where the policy says what is to become of them, this keeps it from being enforced.
            let why = lock(rehearsed).clone().filter(|_| limit.failure.is_none());
            match why {
                Some(why) => troubles.push(format!(
                    "an expression of limit {name:?} fails for requests with nothing particular, which {what} uncounted: {why}"
                )),
                None if is_recent(failed.load(Ordering::Relaxed), now) => troubles.push(format!(
                    "an expression of limit {name:?} fails for some requests, which {what} uncounted"
                )),
                None => {}
            }
        }
        if self.shared.limiter.has_dropped(now) {
            troubles
                .push("there were too many counters at a time, and the least used were dropped".to_owned());
        }
        troubles
    }

    /// What a policy that says what becomes of requests that cannot be counted cannot count, by its last probe.
    pub fn uncounted(&self, policy: &PolicyKey) -> Vec<String> {
        let Some(limits) = &self.limits else {
            return Vec::new();
        };
        let all = limits.plan.limits.iter().zip(&limits.rehearsed);
        let own = all.filter(|(limit, _)| limit.source == *policy && limit.failure.is_some());
        let failing = own.filter_map(|(limit, rehearsed)| {
            let why = lock(rehearsed).clone()?;
            let name = &limit.name;
            Some(format!(
                "an expression of limit {name:?} fails for requests with nothing particular: {why}"
            ))
        });
        failing.collect()
    }

    fn failure(&self, limit: &Limit) -> FailureMode {
        match limit.failure {
            Some(Failure::Allow) => FailureMode::Allow,
            Some(Failure::Deny) => FailureMode::Deny,
            None => self.shared.settings.rate_limit_failure,
        }
    }

    async fn run(&self, mut run: Run<'_>) -> (Verdict, Vec<Step>) {
        let verdict = match self.judged(&mut run).await {
            Ok(passage) => Verdict::Allow(passage),
            Err(refusal) => Verdict::Deny(refusal),
        };
        (verdict, run.steps.unwrap_or_default())
    }

    async fn judged(&self, run: &mut Run<'_>) -> Result<Passage, Refusal> {
        if let Some((by, why)) = &self.broken {
            run.note(Some(false), || (by.to_string(), why.clone()));
            return Err(broken(by.clone(), why.clone()));
        }
        let asked = run.facts.asked();
        let only = match asked.probe {
            true => asked.headers.get(PROBE).and_then(|value| value.to_str().ok()),
            false => None,
        };
        let mut passage = Passage::default();
        if let Some(auth) = self.auth.as_ref().filter(|_| only != Some("RateLimitPolicy")) {
            run.auth(auth, &mut passage).await?;
        }
        if let Some(limits) = self.limits.as_ref().filter(|_| only != Some("AuthPolicy")) {
            match only {
                Some(_) => {
                    limits.rehearse(run);
                    limits.used_up()?;
                }
                None => self.limit(limits, run, &mut passage)?,
            }
        }
        Ok(passage)
    }

    /// Notes why a limit applies and what it counts by; whether some of that is kept secret.
    fn note_counters(&self, limit: &Limit, what: &impl Fn() -> String, run: &mut Run<'_>) -> bool {
        let mut seen: Vec<String> = Vec::new();
        if !limit.when.is_always() {
            seen.push(format!("applies: {}", limit.when.describe(&run.facts)));
        }
        let counters = limit.counters.iter();
        seen.extend(counters.map(|counter| format!("counts by {}", counter.describe(&run.facts))));
        if !seen.is_empty() {
            run.note(None, || (what(), seen.join("\n")));
        }
        limit
            .counters
            .iter()
            .any(|counter| counter.reads_secrets(&run.facts))
    }

    fn limit(&self, limits: &Limits, run: &mut Run<'_>, passage: &mut Passage) -> Result<(), Refusal> {
        let mut hits: Few<Hit<'_>> = Few::new();
        // With whether a value that is counted by is kept secret.
        let mut counted: Few<(&Counted, &str, bool)> = Few::new();
        for ((limit, rates), failed) in limits.plan.limits.iter().zip(&limits.rates).zip(&limits.failed) {
            let what = || format!("{} limit {:?}", limits.by, limit.name);
            let values = match values(limit, run) {
                Ok(Some(values)) => values,
                Ok(None) => {
                    if run.steps.is_some() {
                        let seen = limit.when.describe(&run.facts);
                        run.note(None, || (format!("{} does not apply", what()), seen));
                    }
                    continue;
                }
                Err(why) => {
                    run.note(None, || (what(), why.clone()));
                    let asked = run.facts.asked();
                    if !asked.probe {
                        let seconds = u64::try_from(asked.now / 1_000_000_000).unwrap_or(u64::MAX);
                        failed.store(seconds, Ordering::Relaxed);
                    }
                    match self.failure(limit) {
                        FailureMode::Allow => continue,
                        FailureMode::Deny => return Err(broken(limits.by.clone(), why)),
                    }
                }
            };
            let is_kept = run.steps.is_some() && self.note_counters(limit, &what, run);
            for one in rates {
                counted.push((one, &limit.name, is_kept));
                let rate = one.rate;
                hits.push(if values.is_empty() {
                    Hit {
                        key: Cow::Borrowed(&one.key),
                        hash: one.hash,
                        rate,
                    }
                } else {
                    let key = [&*one.key, &values].concat();
                    Hit {
                        hash: self.shared.limiter.hash(&key),
                        key: Cow::Owned(key),
                        rate,
                    }
                });
            }
        }
        if hits.is_empty() {
            return Ok(());
        }
        let asked = run.facts.asked();
        let counts = !asked.probe && run.steps.is_none();
        let readings = self.shared.limiter.check(&hits, asked.now, counts);
        for ((reading, hit), (one, name, is_kept)) in readings.iter().zip(&hits).zip(&counted) {
            let key = match is_kept {
                true => Cow::Owned(format!("{}|{HIDDEN}", one.key)),
                false => Cow::Borrowed(&*hit.key),
            };
            let seen = || {
                format!(
                    "{} of {} in {} s left, for {} s; counter {key}",
                    reading.remaining,
                    reading.rate.limit,
                    reading.rate.window.as_secs(),
                    reading.reset
                )
            };
            run.note(Some(!reading.is_over), || {
                (format!("{} limit {name:?}", limits.by), seen())
            });
        }
        let is_told = self.shared.settings.rate_limit_headers == RateLimitHeaders::DraftVersion03;
        let over = readings.iter().zip(&counted).find(|(reading, _)| reading.is_over);
        if let Some((_, (_, name, _))) = over {
            let mut refusal = limits.refuse(format!("limit {name:?} is used up"));
            if is_told {
                tell(&readings, &counted, &mut refusal.headers);
            }
            return Err(refusal);
        }
        if is_told {
            tell(&readings, &counted, &mut passage.response_headers);
        }
        Ok(())
    }
}

impl Limits {
    fn refuse(&self, why: String) -> Refusal {
        Refusal {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: Vec::new(),
            body: Bytes::from_static(b"Too Many Requests\n"),
            by: self.by.clone(),
            why,
        }
    }

    /// Evaluates on a probe what requests will be counted by. Who is asked about comes from authentication, which a probe has
    /// not gone through, so limits that ask for that are left out.
    fn rehearse(&self, run: &Run<'_>) {
        for (limit, rehearsed) in self.plan.limits.iter().zip(&self.rehearsed) {
            if limit.asks_of_auth().is_empty() {
                *lock(rehearsed) = values(limit, run).err();
            }
        }
    }

    /// What the policy promises to say some day.
    fn used_up(&self) -> Result<(), Refusal> {
        match self.plan.limits.iter().any(|limit| !limit.rates.is_empty()) {
            true => Err(self.refuse("a probe is judged as if limits were used up".to_owned())),
            false => Ok(()),
        }
    }
}

fn rates(limit: &Limit, limiter: &Limiter) -> Vec<Counted> {
    let name = limit.name.replace('"', "'");
    let rates = limit.rates.iter();
    rates
        .map(|rate| {
            let (most, window) = (rate.limit, rate.window.as_secs());
            let told = format!(", {most};w={window};name=\"{name}\"");
            let key = format!("{}|{window}", limit.scope);
            Counted {
                rate: *rate,
                hash: limiter.hash(&key),
                key,
                alone: HeaderValue::try_from(format!("{most}{told}")).ok(),
                told,
            }
        })
        .collect()
}

/// The values that a limit counts apart; none if it does not apply.
fn values(limit: &Limit, run: &Run<'_>) -> Result<Option<String>, String> {
    if !limit.when.is_always() && !limit.when.test(&run.facts).map_err(|error| error.to_string())? {
        return Ok(None);
    }
    let mut values = String::new();
    for counter in &limit.counters {
        let mut value = String::new();
        if !counter
            .append(&run.facts, &mut value)
            .map_err(|error| error.to_string())?
        {
            // As in Limitador: who lacks what is counted by is not counted.
            return Ok(None);
        }
        let length = value.len();
        let mut end = length.min(MAX_VALUE);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        // With its length before it, so that no two lists of values look the same.
        let _ = write!(values, "|{length}:{}", &value[..end]);
    }
    Ok(Some(values))
}

/// Of all counters the scarcest first, as Limitador tells them.
fn tell(
    readings: &[Reading],
    counted: &[(&Counted, &str, bool)],
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) {
    let mut order: Few<(&Reading, &Counted)> = readings
        .iter()
        .zip(counted.iter().map(|(counted, _, _)| *counted))
        .collect();
    order.sort_by_key(|(reading, _)| reading.remaining);
    let Some((scarcest, first)) = order.first() else {
        return;
    };
    let limit = match order.len() {
        1 => first.alone.clone(),
        _ => {
            let mut limit = scarcest.rate.limit.to_string();
            limit.extend(order.iter().map(|(_, counted)| counted.told.as_str()));
            HeaderValue::try_from(limit).ok()
        }
    };
    headers.reserve(3);
    headers.extend(limit.map(|limit| (LIMIT.clone(), limit)));
    headers.push((REMAINING.clone(), HeaderValue::from(scarcest.remaining)));
    headers.push((RESET.clone(), HeaderValue::from(scarcest.reset)));
}

impl Guard for RuleGuard {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        let now = self.run(Run::new(&self.shared, asked, Mode::Now, false));
        let answer = pin!(now).poll(&mut Context::from_waker(Waker::noop()));
        match answer {
            Poll::Ready((verdict, _)) => Judgement::Now(verdict),
            Poll::Pending => {
                let later = self.run(Run::new(&self.shared, asked, Mode::Later, false));
                Judgement::Later(later.map(|(verdict, _)| verdict).boxed())
            }
        }
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        self.run(Run::new(&self.shared, asked, Mode::Later, true)).boxed()
    }

    fn print(&self) -> u64 {
        self.print
    }
}

/// Of who may pass: how often is not asked of what goes on already.
fn print(auth: Option<&AuthPlan>, broken: Option<&(Cow<'static, str>, String)>) -> u64 {
    if auth.is_none() && broken.is_none() {
        return 0;
    }
    // What limits are told, plans among it, lets nobody in.
    let asked = auth.map(|plan| AuthPlan {
        filters: Vec::new(),
        failing_closed: BTreeSet::new(),
        ..plan.clone()
    });
    let mut hasher = DefaultHasher::new();
    format!("{asked:?} {}", broken.is_some()).hash(&mut hasher);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests;
