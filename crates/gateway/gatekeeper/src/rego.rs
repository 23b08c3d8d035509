//! Rego policies (OPA), evaluated in this process within a time.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value as Rego};
use serde_json::Value;

use crate::lock;

/// How long one evaluation may take.
const TIME: Duration = Duration::from_millis(25);
/// The longest result that is handed on.
const MAX_RESULT: usize = 64 * 1024;
/// The rules of a module stand below this.
const PACKAGE: &str = "authorino.authz";

/// A compiled module. Engines are cheap to copy, because they share the module, and each evaluation gets its own.
pub(crate) struct Module {
    engine: Mutex<Engine>,
    all_values: bool,
}

impl Module {
    pub(crate) fn compile(module: &str, all_values: bool, is_v1: bool) -> Result<Module, String> {
        let mut engine = Engine::new();
        engine.set_rego_v0(!is_v1);
        engine.set_execution_timer_config(ExecutionTimerConfig {
            limit: TIME,
            check_interval: NonZeroU32::new(64).unwrap_or(NonZeroU32::MIN),
        });
        let default = if is_v1 {
            "default allow := false"
        } else {
            "default allow = false"
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
        })
    }

    /// What the rules came to, if the request is allowed.
    pub(crate) fn allow(&self, document: &Value) -> Result<Value, String> {
        let mut engine = lock(&self.engine).clone();
        engine.set_input(Rego::from(document.clone()));
        let allowed = engine
            .eval_rule(format!("data.{PACKAGE}.allow"))
            .map_err(|error| format!("the Rego policy failed: {error}"))?;
        if !matches!(allowed, Rego::Bool(true)) {
            return Err("Unauthorized".to_owned());
        }
        let all = match self.all_values {
            false => return Ok(serde_json::json!({"allow": true})),
            true => engine
                .eval_rule(format!("data.{PACKAGE}"))
                .map_err(|error| format!("the Rego policy failed: {error}"))?,
        };
        let text = all
            .to_json_str()
            .map_err(|error| format!("the Rego policy gave no JSON: {error}"))?;
        if text.len() > MAX_RESULT {
            return Err(format!("the Rego policy gave more than {MAX_RESULT} bytes"));
        }
        serde_json::from_str(&text).map_err(|error| format!("the Rego policy gave no JSON: {error}"))
    }
}

/// Modules must not name a package; upstream drops the line if one does.
fn without_package(module: &str) -> String {
    let lines = module
        .lines()
        .filter(|line| !line.trim_start().starts_with("package "));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
