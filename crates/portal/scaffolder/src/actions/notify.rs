//! `notification:send`: what is to be told is written down, and told by the outbox, so that nobody waits for a mail server.

use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError};

/// The most addresses.
const MOST: usize = 20;
/// The longest text.
const LONGEST: usize = 16 << 10;

pub(super) async fn send(job: &mut Job<'_>) -> Result<Value, StepError> {
    let title = job.required("title")?;
    let mut body = job
        .text("info")
        .or_else(|| job.text("message"))
        .unwrap_or("")
        .to_owned();
    if let Some(link) = job.text("link") {
        body = format!("{body}\n\n{link}\n");
    }
    if title.len() > 500 || title.contains(['\n', '\r']) || body.len() > LONGEST {
        return Err(StepError::failed(
            "a title is one line of 500 characters at most, and a text 16 KiB at most",
        ));
    }
    let mut to = job.texts("email");
    // People of the catalog are known by name here; only those whose reference is an address can be written to.
    for reference in job.texts("entityRefs") {
        match reference.contains('@') {
            true => to.push(reference),
            false => job.log(&format!(
                "{reference} has no address here and is not written to; give input.email"
            )),
        }
    }
    to.retain(|address| !address.trim().is_empty());
    let webhook = job.text("webhook").map(str::to_owned);
    if to.len() > MOST {
        return Err(StepError::Failed(format!(
            "at most {MOST} addresses are written to"
        )));
    }
    let is_address = |address: &String| {
        !address.contains(|c: char| c.is_control() || c == ',' || c == ';')
            && address.contains('@')
            && address.len() <= 254
    };
    if let Some(wrong) = to.iter().find(|address| !is_address(address)) {
        return Err(StepError::Failed(format!("{wrong:?} is not an address")));
    }
    if job.mode == Mode::Dry {
        return Ok(json!({}));
    }
    // Kept in the object until it was sent, and therefore without secrets.
    let (title, body) = (job.secrets.hide(&title), job.secrets.hide(&body));
    let step = job.voyage.run.steps[job.at].id.clone();
    job.voyage
        .notices
        .retain(|notice| notice["step"] != step.as_str() || notice["state"] == "sent");
    let severity = job.text("severity").unwrap_or("normal").to_owned();
    let notice = |kind: &str, to: Value| json!({"step": step, "kind": kind, "to": to, "title": title, "body": body, "severity": severity, "state": "waiting", "attempts": 0});
    let mut count = 0;
    if !to.is_empty() {
        job.voyage.notices.push(notice("mail", json!(to)));
        count += 1;
    }
    if let Some(url) = webhook {
        job.voyage.notices.push(notice("webhook", json!(url)));
        count += 1;
    }
    match count {
        0 => job.log("nobody is to be told"),
        _ => job.log(&format!("{count} message(s) are on their way")),
    }
    Ok(json!({}))
}
