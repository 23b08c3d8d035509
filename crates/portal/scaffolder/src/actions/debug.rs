//! `debug:*`: for who writes templates.

use std::time::Duration;

use fairway_portal_template::run::WAIT;
use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError, moment_after, time_until};

/// The longest wait.
const MOST: Duration = Duration::from_secs(600);

pub(super) fn log(job: &mut Job<'_>) -> Result<Value, StepError> {
    if let Some(message) = job.input.get("message").cloned() {
        let text = message
            .as_str()
            .map_or_else(|| message.to_string(), str::to_owned);
        job.log(&text);
    }
    if let Some(extra) = job.input.get("extra").cloned() {
        job.log(&extra.to_string());
    }
    if job.input.get("listWorkspace").is_some_and(|list| list != false) {
        let paths: Vec<String> = job.files.iter().map(|(path, _)| format!("  - {path}")).collect();
        job.log(&format!("Workspace:\n{}", paths.join("\n")));
    }
    Ok(json!({}))
}

/// Nobody stands by while a run waits: until when is written down, and the run is taken up again then.
pub(super) fn wait(job: &mut Job<'_>) -> Result<Value, StepError> {
    let number = |key: &str| job.input.get(key).and_then(Value::as_f64).unwrap_or(0.0);
    let seconds = number("seconds") + number("minutes") * 60.0 + number("milliseconds") / 1000.0;
    if !(0.0..=MOST.as_secs_f64()).contains(&seconds) {
        return Err(StepError::Failed(format!(
            "a run waits {} s at most",
            MOST.as_secs()
        )));
    }
    if job.mode == Mode::Dry {
        return Ok(json!({}));
    }
    let key = format!("{WAIT}{}", job.turn);
    let pinned = &mut job.voyage.run.steps[job.at].pinned;
    let rest = match pinned.get(&key).and_then(Value::as_str) {
        Some(until) => time_until(until),
        None => {
            let pause = Duration::from_secs_f64(seconds);
            pinned.insert(key, moment_after(pause).into());
            job.log(&format!("waiting for {seconds} s"));
            Some(pause).filter(|pause| !pause.is_zero())
        }
    };
    match rest {
        Some(rest) => Err(StepError::Later(rest)),
        None => Ok(json!({})),
    }
}
