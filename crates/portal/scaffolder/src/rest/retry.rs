//! `v2/tasks/:id/retry`: once more from the step that failed, with other secrets if some are sent.

use std::collections::BTreeMap;

use http::Response;
use serde_json::{Value, json};

use super::answer::{self, Problem};
use super::{Body, Call, secrets_of};
use crate::submit::SECRET_TYPE;
use crate::who::is_name;

/// What is to be changed before the run is tried again.
#[derive(Debug, PartialEq)]
struct Change {
    /// The Secret of the run.
    secret: String,
    /// What takes the place of what is in it.
    texts: BTreeMap<String, String>,
}

/// Judges whether secrets that came with a retry can be used. They belong to who started the run, and are not changed below one that runs.
fn change(voyage: &Value, person: &str, texts: BTreeMap<String, String>) -> Result<Option<Change>, String> {
    if texts.is_empty() {
        return Ok(None);
    }
    let started = voyage["spec"]["requestedBy"]["username"].as_str().unwrap_or("");
    if started != person {
        return Err(format!(
            "only {started} can try this again, since it acts with the rights of who started it; start another"
        ));
    }
    if !matches!(voyage["status"]["phase"].as_str(), Some("Failed" | "Cancelled")) {
        return Err(
            "secrets can be changed when the run has failed, and it has not; cancel it first".to_owned(),
        );
    }
    let secret = voyage["spec"]["secretRef"]["name"]
        .as_str()
        .filter(|name| is_name(name));
    let secret = secret.ok_or_else(|| {
        "the run was started without secrets and cannot be given some; start another with them".to_owned()
    })?;
    Ok(Some(Change {
        secret: secret.to_owned(),
        texts,
    }))
}

impl Call {
    pub(super) async fn retry(&self, id: &str) -> Result<Response<Body>, Problem> {
        let voyage = self.voyage(id).await?;
        let texts = secrets_of(&self.body)?;
        let change = change(&voyage, &self.person.username, texts).map_err(|why| Problem::input(&why))?;
        if let Some(change) = change {
            let namespace = voyage["metadata"]["namespace"].as_str().unwrap_or("");
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{}", change.secret);
            // One with the right type is the run's own: another may be somebody's who is not asked.
            let known = self
                .requests
                .get(&path)
                .await
                .map_err(|failure| Problem::api(&failure))?;
            if known.is_none_or(|known| known["type"] != SECRET_TYPE) {
                let why = format!(
                    "Secret {} of the run is not there, or is none that was made for a run; start another",
                    change.secret
                );
                return Err(Problem::input(&why));
            }
            let patch = json!({"stringData": change.texts});
            let changed = self.requests.merge(&path, &patch).await;
            changed.map_err(|failure| Problem::api(&failure))?;
        }
        self.wish(id, |voyage| {
            let attempt = voyage["status"]["attempt"].as_u64().unwrap_or(0);
            json!({"attempt": attempt + 1, "cancel": false})
        })
        .await?;
        Ok(answer::json(201, &json!({"id": id})))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_changed_by_who_started_a_run_that_failed() {
        let voyage = |phase: &str, secret: Value| json!({"spec": {"requestedBy": {"username": "acme/ann"}, "secretRef": secret}, "status": {"phase": phase}});
        let named = json!({"name": "run-1"});
        for (phase, secret, person, sent, expected) in [
            ("Failed", &named, "acme/ann", true, Ok(true)),
            ("Cancelled", &named, "acme/ann", true, Ok(true)),
            ("Failed", &named, "acme/ann", false, Ok(false)),
            // Without secrets the API says itself who may.
            ("Running", &Value::Null, "acme/bob", false, Ok(false)),
            (
                "Failed",
                &named,
                "acme/bob",
                true,
                Err("only acme/ann can try this again"),
            ),
            (
                "Running",
                &named,
                "acme/ann",
                true,
                Err("secrets can be changed when the run has failed"),
            ),
            (
                "Succeeded",
                &named,
                "acme/ann",
                true,
                Err("secrets can be changed when the run has failed"),
            ),
            (
                "Failed",
                &Value::Null,
                "acme/ann",
                true,
                Err("the run was started without secrets"),
            ),
            (
                "Failed",
                &json!({"name": "../x"}),
                "acme/ann",
                true,
                Err("the run was started without secrets"),
            ),
        ] {
            let texts: BTreeMap<String, String> = match sent {
                true => [("token".to_owned(), "new".to_owned())].into(),
                false => BTreeMap::new(),
            };
            let found = change(&voyage(phase, secret.clone()), person, texts);
            match expected {
                Ok(changes) => assert_eq!(found.map(|it| it.is_some()), Ok(changes), "{phase} {person}"),
                Err(why) => assert!(found.unwrap_err().starts_with(why), "{phase} {person}"),
            }
        }
    }
}
