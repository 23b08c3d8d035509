//! The end of a set that has a finalizer. Without one the garbage collector deletes its Applications, as their owner is gone.

use std::time::Duration;

use fairway_api::argoproj::{API_VERSION, RESOURCES_FINALIZER};
use fairway_controller::{Failure, Outcome};
use fairway_gitops_appset::rollout::{self, Progress};
use fairway_gitops_appset::status::{self, Reason, member};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::hands::{Hands, set_path};
use super::view::View;
use crate::application::path_of;

/// How soon to look again whether Applications are gone. Mostly their end is seen.
const WAIT: Duration = Duration::from_secs(10);
/// How long one may take before somebody should know.
const LONG: SignedDuration = SignedDuration::from_mins(2);

/// Does what has to be done before a set may go.
pub(crate) async fn finalize(hands: &Hands<'_>) -> Result<Outcome, Failure> {
    let finalizers = hands.set["metadata"]["finalizers"].as_array();
    let finalizers = finalizers.map_or(&[][..], Vec::as_slice);
    if !finalizers.iter().any(|it| it == RESOURCES_FINALIZER) {
        return Ok(Outcome::Done);
    }
    // All of them: what was made just now may not have been seen yet.
    let path = format!(
        "/apis/{API_VERSION}/namespaces/{}/applications",
        hands.key.namespace
    );
    let uid = hands.set["metadata"]["uid"].as_str().unwrap_or_default();
    let mut own = hands.requests.list(&path).await?;
    own.retain(|it| View::read(it).is_of(&hands.key.name, uid));
    if !hands.policy.deletes {
        for application in &own {
            release(hands, application, uid).await?;
        }
    } else if rollout::deletes_in_reverse(&hands.set["spec"])
        && let Some(outcome) = delete_next(hands, &own).await?
    {
        return Ok(outcome);
    }
    let left: Vec<&Value> = finalizers
        .iter()
        .filter(|it| **it != RESOURCES_FINALIZER)
        .collect();
    let version = &hands.set["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"finalizers": left, "resourceVersion": version}});
    hands.requests.merge(&set_path(hands.key), &patch).await?;
    Ok(Outcome::Done)
}

/// Lets an Application stay when its set goes.
async fn release(hands: &Hands<'_>, application: &Value, uid: &str) -> Result<(), Failure> {
    let owners = application["metadata"]["ownerReferences"].as_array();
    let left: Vec<&Value> = owners
        .into_iter()
        .flatten()
        .filter(|it| it["uid"] != uid)
        .collect();
    let patch = json!({"metadata": {
        "ownerReferences": left, "resourceVersion": application["metadata"]["resourceVersion"],
    }});
    let mut key = hands.key.clone();
    name_of(application).clone_into(&mut key.name);
    hands.requests.merge(&path_of(&key), &patch).await.map(drop)
}

fn name_of(application: &Value) -> &str {
    application["metadata"]["name"].as_str().unwrap_or_default()
}

/// Deletes the Applications of the last step that has any; nothing if none is left.
async fn delete_next(hands: &Hands<'_>, own: &[Value]) -> Result<Option<Outcome>, Failure> {
    let members: Vec<_> = own.iter().map(|it| member(it, Progress::Done)).collect();
    // Steps that nobody understands have no order.
    let next = rollout::next_deletions(&hands.set["spec"], &members).unwrap_or_default();
    if next.is_empty() {
        return Ok(None);
    }
    let mut stuck = None;
    for application in own
        .iter()
        .filter(|it| next.iter().any(|name| name == name_of(it)))
    {
        let name = name_of(application);
        match application["metadata"]["deletionTimestamp"].as_str() {
            None => {
                hands.delete_read(name, application).await?;
                hands
                    .happened("Deleted", format!("Deleted Application {name:?}"))
                    .await;
            }
            Some(since) => {
                let since = since.parse::<Timestamp>();
                if since.is_ok_and(|since| Timestamp::now().duration_since(since) > LONG) {
                    stuck = Some(name);
                }
            }
        }
    }
    if let Some(name) = stuck {
        let outcome = status::Outcome {
            error: Some((
                Reason::Delete,
                format!("application {name} has not been deleted in over 2 minutes"),
            )),
            generated: true,
        };
        let status = status::failed(hands.set, &outcome, Timestamp::now());
        hands.write_status(&status).await?;
    }
    Ok(Some(Outcome::Again(WAIT)))
}
