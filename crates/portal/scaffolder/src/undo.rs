//! Taking back what a run has made, as somebody who may.

use fairway_api::fairway::VOYAGE_ANNOTATION;
use fairway_controller::{Requests, WorkspaceId};
use fairway_portal_template::run::Made;
use http::Method;
use serde_json::Value;

use crate::World;
use crate::ports::Person;

/// What became of something.
pub(crate) enum Undone {
    /// It is not there.
    Gone,
    /// It goes, but something else has to happen first.
    Going,
    /// It is there, and is not ours to take.
    Left(String),
}

/// Takes one thing back.
pub(crate) async fn undo(
    world: &World,
    workspace: &WorkspaceId,
    person: &Person,
    uid: &str,
    made: &Made,
) -> Result<Undone, String> {
    let path = made.reference["path"].as_str().unwrap_or("");
    match made.kind.as_str() {
        "object" => {
            let requests = Requests::new(world.options.actors.client(workspace, person));
            let known = requests.get(path).await.map_err(|failure| failure.sentence())?;
            let Some(known) = known else {
                return Ok(Undone::Gone);
            };
            // Somebody may have taken the name in between.
            if known["metadata"]["annotations"][VOYAGE_ANNOTATION] != uid {
                return Ok(Undone::Left("it does not belong to this run".to_owned()));
            }
            if known["metadata"]["deletionTimestamp"].is_null() {
                let deleted = requests.delete_read(path, &known).await;
                deleted.map_err(|failure| failure.sentence())?;
            }
            let after = requests.get(path).await.map_err(|failure| failure.sentence())?;
            let is_same = |after: &Value| after["metadata"]["uid"] == known["metadata"]["uid"];
            Ok(match after.as_ref().is_some_and(is_same) {
                true => Undone::Going,
                false => Undone::Gone,
            })
        }
        "call" => {
            let method = made.reference["method"].as_str().unwrap_or("DELETE");
            let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
            let called = world
                .options
                .forge
                .call(workspace, person, method, path, Value::Null)
                .await;
            match called {
                Ok(_) => Ok(Undone::Gone),
                Err(error) if error.code == 404 => Ok(Undone::Gone),
                Err(error) => Err(error.message),
            }
        }
        other => Ok(Undone::Left(format!("nobody knows how to take back {other:?}"))),
    }
}
