//! `debug:*`: for who writes templates.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::drive::{Job, Mode, StepError};

/// The longest wait.
const MOST: Duration = Duration::from_secs(600);
/// How often somebody is listened to who wants it to stop.
const TURN: Duration = Duration::from_millis(500);

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

pub(super) async fn wait(job: &mut Job<'_>) -> Result<Value, StepError> {
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
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    job.log(&format!("waiting for {seconds} s"));
    while Instant::now() < until {
        let turn = until.min(Instant::now() + TURN);
        tokio::select! {
            () = tokio::time::sleep_until(turn) => {}
            () = job.shutdown.wait() => return Err(StepError::Shutdown),
        }
        // Somebody who wants it to stop has changed the object; writing it meets that.
        if let Ok(Some(now)) = job.own.get(&job.voyage.path()).await
            && now["spec"]["cancel"] == true
        {
            return Err(StepError::failed("somebody stopped it"));
        }
    }
    Ok(json!({}))
}
