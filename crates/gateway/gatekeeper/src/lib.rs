//! Judges requests by Kuadrant's policies, as plans of `fairway-gateway-policy` say.
//!
//! ```text
//! Gatekeeper ─ rings of API keys ─ key servers with their verified tokens ─ counters ─ answers that are remembered
//!     └ guard(RulePlan) ─ RuleGuard: one rule's AuthPolicy and RateLimitPolicy as a `Guard`
//! ```
//!
//! A guard first tries to answer at once, without waiting for anybody: an API key, a token that was verified before, a counter.
//! Where somebody outside has to be asked, the same steps are gone through again by a future that may wait. Authentication fails
//! closed; what happens when a rate limit cannot be counted is a setting. The crate must not know objects of the API, clients or
//! the data plane.

mod cache;
mod calls;
mod guard;
mod issuer;
mod keys;
mod limits;
mod outside;
mod pipeline;
mod rego;
mod settings;
#[cfg(test)]
mod testing;
mod tokens;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fairway_gateway_policy::auth::{ApiKeyMethod, AuthPlan, JwtMethod};
use fairway_gateway_policy::limit::LimitPlan;
use fairway_gateway_policy::status::Problem;
use serde_json::Value;

pub use cache::Answers;
pub use guard::{PROBE, RuleGuard};
pub use issuer::KeyServer;
pub use keys::KeyRing;
pub use limits::{CounterView, Limiter};
pub use outside::{Cluster, NoRealms, Outside, Realms, Review, Web};
pub use settings::{FailureMode, RateLimitHeaders, Settings};

/// The policies of one rule.
#[derive(Debug, Clone, Default)]
pub struct RulePlan {
    pub auth: Option<Arc<AuthPlan>>,
    pub limits: Option<Arc<LimitPlan>>,
}

/// What guards share.
pub struct Gatekeeper {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) outside: Outside,
    pub(crate) settings: Settings,
    pub(crate) limiter: Limiter,
    pub(crate) answers: Answers,
    rings: Mutex<HashMap<ApiKeyMethod, Weak<KeyRing>>>,
    /// Secrets that may hold API keys, by workspace.
    secrets: Mutex<HashMap<String, Arc<Vec<Value>>>>,
    servers: Mutex<HashMap<JwtMethod, Weak<KeyServer>>>,
}

impl Gatekeeper {
    pub fn new(outside: Outside, settings: Settings) -> Self {
        let shared = Shared {
            limiter: Limiter::new(settings.max_counters),
            answers: Answers::new(settings.max_answers),
            outside,
            settings,
            rings: Mutex::default(),
            secrets: Mutex::default(),
            servers: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A guard for one rule, and what is wrong with it beyond what its plans know: then it refuses everything. It is cheap: what
    /// plans share (keys, issuers, counters) is shared, and outlives a change of policies.
    pub fn guard(&self, plan: RulePlan) -> (Arc<RuleGuard>, Vec<Problem>) {
        let (guard, problems) = RuleGuard::new(self.shared.clone(), plan);
        (Arc::new(guard), problems)
    }

    /// All Secrets of a workspace that say they are for Authorino. Guards see them at once.
    pub fn set_secrets(&self, workspace: &str, secrets: Vec<Value>) {
        let secrets = Arc::new(secrets);
        lock(&self.shared.secrets).insert(workspace.to_owned(), secrets.clone());
        let mut rings = lock(&self.shared.rings);
        rings.retain(|_, ring| ring.strong_count() > 0);
        for (method, ring) in rings.iter() {
            if method.workspace == workspace
                && let Some(ring) = ring.upgrade()
            {
                ring.fill(method, &secrets);
            }
        }
    }

    /// The counters that are running, for `fairway gateway limits`.
    pub fn counters(&self, now: u128) -> Vec<CounterView> {
        self.shared.limiter.view(now)
    }

    /// Forgets counters and answers whose time has passed. To be called now and then.
    pub fn sweep(&self, now: u128) {
        self.shared.limiter.sweep(now);
        self.shared.answers.sweep(now);
        for server in lock(&self.shared.servers).values().filter_map(Weak::upgrade) {
            server.sweep(now);
        }
    }
}

impl Shared {
    pub(crate) fn ring(&self, method: &ApiKeyMethod) -> Arc<KeyRing> {
        let secrets = lock(&self.secrets).get(&method.workspace).cloned();
        let mut rings = lock(&self.rings);
        if let Some(ring) = rings.get(method).and_then(Weak::upgrade) {
            return ring;
        }
        let ring = Arc::new(KeyRing::default());
        ring.fill(method, secrets.as_deref().map_or(&[], Vec::as_slice));
        rings.insert(method.clone(), Arc::downgrade(&ring));
        ring
    }

    pub(crate) fn server(&self, method: &JwtMethod) -> Arc<KeyServer> {
        let mut servers = lock(&self.servers);
        if let Some(server) = servers.get(method).and_then(Weak::upgrade) {
            return server;
        }
        servers.retain(|_, server| server.strong_count() > 0);
        let server = KeyServer::start(method.clone(), &self.outside, self.settings.max_tokens);
        servers.insert(method.clone(), Arc::downgrade(&server));
        server
    }
}

/// How long what went wrong with a request is told of, in seconds.
const TOLD: u64 = 120;

/// Whether something was so lately that it is told of; both are seconds since 1970, and zero is never.
pub(crate) fn is_recent(at: u64, now: u64) -> bool {
    at > 0 && at.saturating_add(TOLD) > now
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
