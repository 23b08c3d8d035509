//! `notification:send`: what is to be told is written down, and told by the outbox, so that nobody waits for a mail server.

use fairway_portal_template::names::EntityRef;
use fairway_portal_template::secrets::{Part, Secrets};
use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError};
use crate::entities;

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
    match job.text("recipients") {
        None | Some("entity") => {}
        Some("broadcast") => {
            return Err(StepError::failed(
                "input.recipients is \"broadcast\": there is no list of everybody to write to; name people or groups in input.entityRefs, and \"entity\" here",
            ));
        }
        Some(other) => {
            return Err(StepError::Failed(format!(
                "input.recipients is {other:?}; it can be \"entity\", for those of input.entityRefs"
            )));
        }
    }
    let mut to = job.texts("email");
    for reference in job.texts("entityRefs") {
        match reference.contains('@') {
            true => to.push(reference),
            false => to.extend(known_as(job, &reference).await),
        }
    }
    to.retain(|address| !address.trim().is_empty());
    let mut seen = std::collections::BTreeSet::new();
    to.retain(|address| seen.insert(address.clone()));
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
    let severity = job.text("severity").unwrap_or("normal").to_owned();
    let step = job.voyage.run.steps[job.at].id.clone();
    let told = [("mail", to), ("webhook", webhook.into_iter().collect::<Vec<_>>())];
    let mut count = 0;
    for (kind, to) in told.into_iter().filter(|(_, to)| !to.is_empty()) {
        // One of each kind for each repetition and attempt: a step that is done again after an interruption says nothing twice.
        let id = format!("{}/{step}/{kind}/{}", job.voyage.run.attempt, job.turn);
        count += 1;
        if job
            .voyage
            .notices
            .iter()
            .any(|notice| notice["id"] == id.as_str())
        {
            continue;
        }
        let mut notice = json!({
            "id": id, "step": step, "kind": kind, "title": title, "body": body, "severity": severity, "state": "waiting", "attempts": 0,
        });
        address(&mut notice, job.secrets, &to)?;
        job.voyage.notices.push(notice);
    }
    match count {
        0 => job.log("nobody is to be told"),
        _ => job.log(&format!("{count} message(s) are on their way")),
    }
    Ok(json!({}))
}

/// The addresses of somebody in the catalog, and of everybody in a group. Who has none is named in the log.
async fn known_as(job: &mut Job<'_>, reference: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut asked = vec![reference.to_owned()];
    let mut is_first = true;
    while let Some(reference) = asked.pop() {
        // Owners are groups if nobody says more, as in the catalog.
        let mut known = Ok(None);
        for kind in ["user", "group"] {
            known = match EntityRef::parse(&reference, Some(kind), None) {
                Ok(entity) => entities::find(job.world, &job.voyage.workspace, job.person, &entity).await,
                Err(why) => Err(why),
            };
            if !matches!(known, Ok(None)) || reference.contains(':') {
                break;
            }
        }
        let entity = match known {
            Ok(Some(entity)) => entity,
            Ok(None) => {
                job.log(&format!(
                    "{reference} is not in the catalog and is not written to"
                ));
                continue;
            }
            Err(why) => {
                job.log(&format!("{reference} is not written to: {why}"));
                continue;
            }
        };
        let members = entities::members(&entity);
        match (entities::address(&entity), members.is_empty() || !is_first) {
            (Some(address), _) => found.push(address.to_owned()),
            (None, true) => job.log(&format!("{reference} has no address and is not written to")),
            // A group without an address of its own is its members.
            (None, false) => asked.extend(members),
        }
        is_first = false;
    }
    found
}

/// Writes down where a message goes: for all to read without secrets, and if there are any, beside it in parts.
fn address(notice: &mut Value, secrets: &Secrets, to: &[String]) -> Result<(), StepError> {
    let shown: Vec<String> = to.iter().map(|one| secrets.hide(one)).collect();
    if shown != to {
        let sealed: Option<Vec<Vec<Part>>> = to.iter().map(|one| secrets.seal(one)).collect();
        let sealed = sealed.ok_or_else(|| {
            StepError::failed(
                "an address contains a part of a secret, and cannot be kept until the message is sent",
            )
        })?;
        notice["sealed"] = json!(sealed);
    }
    notice["to"] = match notice["kind"] == "webhook" {
        true => json!(shown.first()),
        false => json!(shown),
    };
    Ok(())
}

/// Where a message goes, for who sends it.
pub(crate) fn addresses(notice: &Value, secrets: &Secrets) -> Option<Vec<String>> {
    if let Some(sealed) = notice.get("sealed") {
        let sealed: Vec<Vec<Part>> = serde_json::from_value(sealed.clone()).ok()?;
        return sealed.iter().map(|parts| secrets.unseal(parts)).collect();
    }
    match &notice["to"] {
        Value::String(one) => Some(vec![one.clone()]),
        to => serde_json::from_value(to.clone()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_secret_is_kept_without_it() {
        let secrets = Secrets::new([("hook".to_owned(), "T000/B000/xxxx".to_owned())].into());
        for (kind, to) in [
            ("webhook", "https://hooks.example/services/T000/B000/xxxx"),
            ("mail", "ann+T000/B000/xxxx@example.com"),
            ("webhook", "https://hooks.example/plain"),
        ] {
            let mut notice = json!({"kind": kind});
            address(&mut notice, &secrets, &[to.to_owned()]).unwrap();
            assert!(!notice.to_string().contains("T000"), "{notice}");
            assert_eq!(addresses(&notice, &secrets), Some(vec![to.to_owned()]));
            assert_eq!(notice.get("sealed").is_some(), to.contains("T000"), "{notice}");
        }
        let mut lost = json!({"kind": "webhook"});
        address(&mut lost, &secrets, &["https://x/T000/B000/xxxx".to_owned()]).unwrap();
        assert_eq!(addresses(&lost, &Secrets::default()), None);
    }
}
