//! Rego policies (OPA), evaluated in this process within a time.
//!
//! Most take some microseconds, and the thread that serves the request does that itself. A module that has turned out to be slow
//! is evaluated apart from then on: those threads serve everybody, and one tenant's policy must not keep the others waiting.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value as Rego};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::lock;

/// An evaluation that takes longer is slow.
const SLOW: Duration = Duration::from_micros(500);
/// So many of them are forgiven: the processor may have been busy with something else.
const FORGIVEN: u32 = 8;
/// Evaluations of one module at a time, apart.
const AT_ONCE: usize = 2;
/// How many times longer they may take there, where nobody else waits for them.
const APART: u32 = 4;

/// How many times longer its trial may take when it is compiled: no request waits for that, and a busy moment must not cost a policy.
const TRIAL: u32 = 5;
/// The longest result that is handed on.
const MAX_RESULT: usize = 64 * 1024;
/// The rules of a module stand below this.
const PACKAGE: &str = "authorino.authz";

/// A compiled module. Engines are cheap to copy, because they share the module, and each evaluation gets its own.
pub(crate) struct Module {
    engine: Mutex<Engine>,
    all_values: bool,
    limit: Duration,
    /// Evaluations that were.
    slow: AtomicU32,
    apart: Arc<Semaphore>,
}

impl Module {
    /// `limit` is how long it may take to judge one request.
    pub(crate) fn compile(
        module: &str,
        all_values: bool,
        is_v1: bool,
        limit: Duration,
    ) -> Result<Module, String> {
        if has_default_allow(module) {
            let why = "the Rego module has a default for allow, which is false and cannot be changed";
            return Err(why.to_owned());
        }
        let mut engine = Engine::new();
        engine.set_rego_v0(!is_v1);
        engine.set_execution_timer_config(timer(limit * TRIAL));
        let default = match is_v1 {
            true => "default allow := false",
            false => "default allow = false",
        };
        let text = format!("package {PACKAGE}\n{default}\n{}", without_package(module));
        engine
            .add_policy("policy.rego".to_owned(), text)
            .map_err(|error| format!("the Rego module does not compile: {error:#}"))?;
        // Finds what only shows when rules are put together.
        engine.set_input(Rego::new_object());
        let mut trial = engine.clone();
        trial
            .eval_rule(format!("data.{PACKAGE}.allow"))
            .map_err(|error| format!("the Rego module cannot be evaluated: {error:#}"))?;
        Ok(Module {
            engine: Mutex::new(engine),
            all_values,
            limit,
            slow: AtomicU32::new(0),
            apart: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// It is not to be evaluated by a thread that others wait for.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) > FORGIVEN
    }

    /// What the rules came to, if the request is allowed.
    pub(crate) fn allow(&self, document: &Value) -> Result<Value, String> {
        let start = Instant::now();
        let outcome = self.judge(document, self.limit);
        if start.elapsed() > SLOW {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// The same on a thread of its own. Within a runtime.
    pub(crate) async fn allow_apart(self: Arc<Self>, document: Value) -> Result<Value, String> {
        let stopped = || "the Rego policy was not evaluated to its end".to_owned();
        let place = Arc::clone(&self.apart).acquire_owned().await;
        let place = place.map_err(|_| stopped())?;
        let judging = tokio::task::spawn_blocking(move || {
            let _place = place;
            self.judge(&document, self.limit * APART)
        });
        judging.await.unwrap_or_else(|_| Err(stopped()))
    }

    fn judge(&self, document: &Value, limit: Duration) -> Result<Value, String> {
        let start = Instant::now();
        let mut engine = lock(&self.engine).clone();
        engine.set_execution_timer_config(timer(limit));
        engine.set_input(Rego::from(document.clone()));
        let allowed = engine
            .eval_rule(format!("data.{PACKAGE}.allow"))
            .map_err(|error| format!("the Rego policy failed: {error}"))?;
        if !matches!(allowed, Rego::Bool(true)) {
            return Err("Unauthorized".to_owned());
        }
        match self.all_values {
            true => {
                // What is left: the time is that of the request, not of each query.
                engine.set_execution_timer_config(timer(limit.saturating_sub(start.elapsed())));
                all_values(&mut engine)
            }
            false => Ok(json!({"allow": true})),
        }
    }
}

fn timer(limit: Duration) -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit,
        check_interval: NonZeroU32::new(64).unwrap_or(NonZeroU32::MIN),
    }
}

/// Every rule with its value.
fn all_values(engine: &mut Engine) -> Result<Value, String> {
    let results = engine
        .eval_query(format!("data.{PACKAGE}"), false)
        .map_err(|error| format!("the Rego policy failed: {error}"))?;
    let value = results
        .result
        .first()
        .and_then(|result| result.expressions.first())
        .map_or(Rego::Undefined, |expression| expression.value.clone());
    let no_json = |error: String| format!("the Rego policy gave no JSON: {error}");
    let text = value.to_json_str().map_err(|error| no_json(error.to_string()))?;
    if text.len() > MAX_RESULT {
        return Err(format!("the Rego policy gave more than {MAX_RESULT} bytes"));
    }
    serde_json::from_str(&text).map_err(|error| no_json(error.to_string()))
}

/// Modules must not name a package; upstream drops the line if one does.
fn without_package(module: &str) -> String {
    let lines = module
        .lines()
        .filter(|line| !line.trim_start().starts_with("package "));
    lines.collect::<Vec<_>>().join("\n")
}

/// OPA refuses a second default; here it would be taken for the first.
fn has_default_allow(module: &str) -> bool {
    let words: Vec<&str> = module
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| pair == ["default", "allow"])
}

#[cfg(test)]
mod tests;
