//! Authorino's pipeline for one request.
//!
//! The steps are written once, as a future. Asked for an answer at once ([`Mode::Now`]) it stops where somebody outside would
//! have to be asked, without having asked; then it is run again, from the start, by whoever may wait. Nothing is counted before
//! the last step, so starting again changes nothing.

mod authentication;
mod authorization;
mod metadata;
mod response;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use fairway_gateway_guard::{Asked, Passage, Refusal, Step};
use fairway_gateway_policy::auth::{
    AuthPlan, AuthenticationMethod, AuthorizationMethod, Common, Credentials,
};
use fairway_gateway_policy::expression::{EvalError, Facts};
use fairway_gateway_policy::status::{Fault, Problem};
use http::HeaderName;
use serde_json::Value;

use crate::Shared;
use crate::issuer::KeyServer;
use crate::keys::KeyRing;
use crate::rego::Module;
use crate::{is_recent, lock};

/// The longest reason that a condition is told, in characters.
const MAX_WHY: usize = 300;

/// Whether there is time to ask somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Now,
    Later,
}

/// An AuthPolicy's plan with what it needs at hand.
pub(crate) struct Auth {
    pub(crate) plan: Arc<AuthPlan>,
    /// In the order of the plan's rules.
    ways: Vec<Way>,
    modules: Vec<Option<Arc<Module>>>,
    ids: Ids,
    /// Headers that the policy may write.
    headers: Arc<[HeaderName]>,
    /// What refusals, logs and steps call it.
    pub(crate) by: Cow<'static, str>,
    /// Rules whose server did not answer: when that was last, in seconds since 1970, and why.
    unanswered: Mutex<BTreeMap<String, (u64, String)>>,
}

/// Numbers of rules, by which their answers are remembered. A rule that was changed is another rule.
struct Ids {
    authentication: Vec<u64>,
    metadata: Vec<u64>,
    authorization: Vec<u64>,
}

enum Way {
    Keys(Arc<KeyRing>),
    Server(Arc<KeyServer>),
    Other,
}

/// Why a step did not succeed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What the client may know.
    told: Cow<'static, str>,
    /// What the log is told, if it is more.
    why: Option<String>,
}

impl Failure {
    fn told(told: impl Into<Cow<'static, str>>) -> Self {
        Self {
            told: told.into(),
            why: None,
        }
    }

    fn hidden(told: &'static str, why: String) -> Self {
        Self {
            told: Cow::Borrowed(told),
            why: Some(why),
        }
    }

    fn why(&self) -> &str {
        self.why.as_deref().unwrap_or(&self.told)
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        Failure::hidden("an expression of the policy failed", error.to_string())
    }
}

impl Auth {
    /// Compiles what the plan left; problems make it refuse everything.
    pub(crate) fn new(shared: &Shared, plan: Arc<AuthPlan>) -> (Auth, Vec<Problem>) {
        let mut problems = Vec::new();
        let ways = plan
            .authentication
            .iter()
            .map(|rule| match &rule.method {
                AuthenticationMethod::ApiKey(method) => Way::Keys(shared.ring(method)),
                AuthenticationMethod::Jwt(method) => Way::Server(shared.server(method)),
                _ => Way::Other,
            })
            .collect();
        let modules = plan
            .authorization
            .iter()
            .map(|rule| {
                let AuthorizationMethod::Rego {
                    module,
                    all_values,
                    is_v1,
                } = &rule.method
                else {
                    return None;
                };
                match Module::compile(module, *all_values, *is_v1, shared.settings.rego_time) {
                    Ok(module) => Some(Arc::new(module)),
                    Err(why) => {
                        problems.push(Problem {
                            policy: rule.common.source.clone(),
                            rule: format!("authorization#{}", rule.common.name),
                            what: Fault::Invalid(why),
                        });
                        None
                    }
                }
            })
            .collect();
        let headers = plan
            .headers
            .iter()
            .filter_map(|rule| HeaderName::try_from(rule.key.as_str()).ok())
            .collect();
        let by = Cow::Owned(plan.policy.to_string());
        let ids = Ids {
            authentication: ids(&plan.authentication),
            metadata: ids(&plan.metadata),
            authorization: ids(&plan.authorization),
        };
        (
            Auth {
                plan,
                ways,
                modules,
                ids,
                headers,
                by,
                unanswered: Mutex::default(),
            },
            problems,
        )
    }

    /// Notes that whom a rule asks has not answered, for the policy's condition.
    fn unanswered(&self, run: &Run<'_>, section: &str, common: &Common, why: &str) {
        let seconds = u64::try_from(run.now_seconds()).unwrap_or_default();
        // What is shown stays short, whatever a server says.
        let why: String = why.chars().take(MAX_WHY).collect();
        let rule = format!("{section} {:?}", common.name);
        lock(&self.unanswered).insert(rule, (seconds, why));
    }

    /// Whom the plan needs and does not reach: key servers, which are asked every so often, until they are reached, and others,
    /// which only requests lead to, for a while. `now` is seconds since 1970.
    pub(crate) fn troubles(&self, now: u64) -> Vec<String> {
        let servers = self.ways.iter().filter_map(|way| match way {
            Way::Server(server) => server.trouble(),
            _ => None,
        });
        let unanswered = lock(&self.unanswered);
        let lately = unanswered.iter().filter(|(_, (at, _))| is_recent(*at, now));
        let others = lately.map(|(rule, (_, why))| format!("{rule} has no answer for some requests: {why}"));
        servers.chain(others).collect()
    }
}

/// One request on its way through the pipeline.
pub(crate) struct Run<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) facts: Facts<'a>,
    pub(crate) mode: Mode,
    /// What was looked at, if somebody wants to know.
    pub(crate) steps: Option<Vec<Step>>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(shared: &'a Shared, asked: &'a Asked<'a>, mode: Mode, is_explained: bool) -> Self {
        Self {
            shared,
            facts: Facts::new(asked),
            mode,
            steps: is_explained.then(Vec::new),
        }
    }

    pub(crate) fn note(&mut self, passes: Option<bool>, step: impl FnOnce() -> (String, String)) {
        if let Some(steps) = &mut self.steps {
            let (what, seen) = step();
            steps.push(Step { what, seen, passes });
        }
    }

    /// Notes that a rule does not apply, and why.
    pub(crate) fn note_unmet(&mut self, common: &Common, what: impl FnOnce() -> String) {
        if self.steps.is_some() {
            let seen = format!("does not apply: {}", common.when.describe(&self.facts));
            self.note(None, || (what(), seen));
        }
    }

    /// Asks somebody, if there is time.
    async fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        match self.mode {
            Mode::Now => std::future::pending().await,
            Mode::Later => answer.await,
        }
    }

    fn now_seconds(&self) -> i64 {
        i64::try_from(self.facts.asked().now / 1_000_000_000).unwrap_or(i64::MAX)
    }

    /// Goes through an AuthPolicy.
    pub(crate) async fn auth(&mut self, auth: &Auth, passage: &mut Passage) -> Result<(), Refusal> {
        let plan = &auth.plan;
        if self.steps.is_some() {
            // What brings a credential is one, whatever its name.
            for rule in &plan.authentication {
                match &rule.credentials {
                    Credentials::CustomHeader(name) => self.facts.hide(name.as_str()),
                    Credentials::QueryString(name) | Credentials::Cookie(name) => self.facts.hide(name),
                    Credentials::AuthorizationHeader(_) => {}
                }
            }
        }
        // Whatever comes of the rules, also where the policy does not apply: backends believe these headers.
        passage.withheld = Arc::clone(&auth.headers);
        match plan.when.test(&self.facts) {
            Ok(true) => {}
            Ok(false) => {
                if self.steps.is_some() {
                    let seen = plan.when.describe(&self.facts);
                    self.note(Some(true), || (format!("{} does not apply", auth.by), seen));
                }
                return Ok(());
            }
            Err(error) => return Err(broken(auth.by.clone(), error.to_string())),
        }
        if self.steps.is_some() && !plan.when.is_always() {
            let seen = plan.when.describe(&self.facts);
            self.note(None, || (format!("{} applies", auth.by), seen));
        }
        if let Err(failure) = self.authenticate(auth, passage).await {
            self.callbacks(plan);
            return Err(self.unauthenticated(auth, &failure));
        }
        self.metadata(auth).await;
        if let Err(failure) = self.authorize(auth).await {
            self.callbacks(plan);
            return Err(self.unauthorized(auth, &failure));
        }
        self.respond(auth, passage);
        self.callbacks(plan);
        Ok(())
    }

    /// Whether a rule applies; an error is for the caller to judge.
    fn applies(&self, common: &Common) -> Result<bool, EvalError> {
        match common.when.is_always() {
            true => Ok(true),
            false => common.when.test(&self.facts),
        }
    }

    /// What a rule came to before, or the key to remember it by.
    fn remembered(&self, rule: u64, common: &Common) -> Remembered {
        let Some(cache) = &common.cache else {
            return Remembered::Never;
        };
        let Ok(key) = cache.key.text(&self.facts) else {
            return Remembered::Never;
        };
        let now = self.facts.asked().now;
        match self.shared.answers.find(rule, &key, now) {
            Some(value) => Remembered::Known(value),
            None => Remembered::Under {
                rule,
                key,
                expires: now.saturating_add(cache.ttl.as_nanos()),
            },
        }
    }

    fn remember(&self, place: Remembered, value: &Arc<Value>) {
        if let Remembered::Under { rule, key, expires } = place
            && !self.facts.asked().probe
        {
            let now = self.facts.asked().now;
            self.shared.answers.keep(rule, key, value.clone(), now, expires);
        }
    }
}

fn ids(rules: &[impl std::fmt::Debug]) -> Vec<u64> {
    let id = |rule| {
        let mut hasher = DefaultHasher::new();
        format!("{rule:?}").hash(&mut hasher);
        hasher.finish()
    };
    rules.iter().map(id).collect()
}

enum Remembered {
    Never,
    Known(Arc<Value>),
    Under { rule: u64, key: String, expires: u128 },
}

/// The answer where a policy cannot be enforced.
pub(crate) fn broken(by: Cow<'static, str>, why: String) -> Refusal {
    Refusal {
        status: http::StatusCode::INTERNAL_SERVER_ERROR,
        headers: Vec::new(),
        body: bytes::Bytes::from_static(b"Internal Server Error.\n"),
        by,
        why,
    }
}
