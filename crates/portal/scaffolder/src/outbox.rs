//! Messages of runs on their way: each is tried until it was accepted, is refused for good, or has been tried often enough.
//!
//! A mail server that is down delays mail and nothing else: the run has gone on long before. A message that was accepted is written
//! down at once, so that a process that ends in between repeats one at most.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_outbound::Message;
use fairway_portal_template::secrets::Secrets;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::{Value, json};
use tracing::{debug, info};

use crate::World;
use crate::actions::notify;
use crate::ports::Mail;
use crate::voyage::Voyage;
use crate::who::{self, collection};

/// How often a message is tried; with the delays below that is about a day.
const MOST: u64 = 24;
/// How often what was sent is written down, if others write at the same time.
const TURNS: usize = 20;
/// How long the answer to a webhook may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends what is waiting.
pub(crate) struct Outbox {
    pub(crate) world: Arc<World>,
}

/// How long to wait after so many attempts: from two seconds to an hour.
fn delay(attempts: u64) -> Duration {
    Duration::from_secs(
        2_u64
            .saturating_pow(u32::try_from(attempts).unwrap_or(12).min(12))
            .min(3600),
    )
}

impl Outbox {
    /// Where a message goes. If that is secret, it is read as who started the run, and is kept nowhere.
    async fn addresses(&self, voyage: &Voyage, notice: &Value) -> Result<Vec<String>, (String, bool)> {
        let secrets = match notice.get("sealed") {
            None => Secrets::default(),
            Some(_) => {
                let person = who::now(&self.world, &voyage.workspace, &voyage.person).await;
                let person = person.map_err(|setback| (setback.why, setback.may_pass))?;
                let client = self.world.options.actors.client(&voyage.workspace, &person);
                let found = voyage.secrets(&Requests::new(client)).await;
                found.map_err(|why| (why, true))?
            }
        };
        notify::addresses(notice, &secrets)
            .ok_or_else(|| ("a secret of its address is not there any more".to_owned(), false))
    }

    async fn send(&self, voyage: &Voyage, notice: &Value) -> Result<(), (String, bool)> {
        let to = self.addresses(voyage, notice).await?;
        let text = |key: &str| notice[key].as_str().unwrap_or("").to_owned();
        if notice["kind"] == "webhook" {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let body = json!({
                "title": text("title"), "info": text("body"), "severity": text("severity"),
                "voyage": {"name": voyage.name, "namespace": voyage.namespace, "template": voyage.template, "phase": voyage.run.phase},
            });
            let message = Message {
                method: Method::POST,
                url: to.into_iter().next().unwrap_or_default(),
                headers,
                body: body.to_string().into(),
                timeout: PATIENCE,
                max_reply: 4096,
            };
            return match self.world.options.outbound.send(message).await {
                Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
                Ok(reply) => Err((
                    format!("it answers {}", reply.status),
                    reply.status >= 500 || reply.status == 429,
                )),
                // What it says may name the address, which may be secret.
                Err(error) if notice.get("sealed").is_some() => {
                    Err(("it cannot be reached".to_owned(), !error.is_final()))
                }
                Err(error) => Err((error.to_string(), !error.is_final())),
            };
        }
        let mail = Mail {
            to,
            subject: text("title"),
            body: text("body"),
        };
        self.world.options.mailer.send(&voyage.workspace, &mail).await
    }
}

impl Reconcile<ObjectKey> for Outbox {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let own = Requests::new(self.world.own.of(&key.workspace));
        let path = format!(
            "{}/{}",
            collection(fairway_api::fairway::VOYAGE, &key.namespace),
            key.name
        );
        let Some(object) = own.get(&path).await? else {
            return Ok(Outcome::Done);
        };
        let voyage = Voyage::read(&key.workspace, object);
        let waiting = voyage
            .notices
            .iter()
            .position(|notice| notice["state"] == "waiting");
        let Some(at) = waiting else {
            return Ok(Outcome::Done);
        };
        let notice = voyage.notices[at].clone();
        let attempts = notice["attempts"].as_u64().unwrap_or(0);
        let sent = self.send(&voyage, &notice).await;
        let attempts = attempts + 1;
        let (state, message, outcome) = match sent {
            Ok(()) => {
                info!(%key, kind = %notice["kind"], "a message of a voyage was sent");
                ("sent", None, Outcome::Again(Duration::ZERO))
            }
            Err((why, may_help)) => {
                debug!(%key, why, "a message of a voyage was not sent");
                let is_over = !may_help || attempts >= MOST;
                let state = if is_over { "failed" } else { "waiting" };
                (state, Some(why), Outcome::Again(delay(attempts)))
            }
        };
        // Who drives the run writes the same object; what is said here is put on top of what it says then.
        for turn in 0..TURNS {
            let Some(object) = own.get(&path).await? else {
                return Ok(Outcome::Done);
            };
            let mut voyage = Voyage::read(&key.workspace, object);
            let same = |other: &&mut Value| other["id"] == notice["id"] && other["state"] == "waiting";
            let Some(now) = voyage.notices.iter_mut().find(same) else {
                break;
            };
            now["attempts"] = json!(attempts);
            now["state"] = json!(state);
            if let Some(message) = &message {
                now["message"] = json!(message);
            }
            match voyage.write_notices(&own).await {
                Err(failure) if failure.is_conflict() && turn + 1 < TURNS => {}
                written => {
                    written?;
                    break;
                }
            }
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_end() {
        assert_eq!(delay(1), Duration::from_secs(2));
        assert_eq!(delay(3), Duration::from_secs(8));
        assert_eq!(delay(40), Duration::from_secs(3600));
        let all: Duration = (1..MOST).map(delay).sum();
        assert!(all > Duration::from_secs(8 * 3600) && all < Duration::from_secs(24 * 3600));
    }
}
