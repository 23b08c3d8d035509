//! Taking back what a run has made, as somebody who may.

use fairway_api::fairway::VOYAGE_ANNOTATION;
use fairway_controller::{Failure, Requests, WorkspaceId};
use fairway_portal_template::change;
use fairway_portal_template::run::{Made, Setback};
use http::Method;
use serde_json::Value;

use crate::World;
use crate::ports::{ForgeError, Person};
use crate::who::{may_pass, may_pass_as};

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
) -> Result<Undone, Setback> {
    let path = made.reference["path"].as_str().unwrap_or("");
    match made.kind.as_str() {
        "object" => {
            let requests = Requests::new(world.options.actors.client(workspace, person));
            let known = requests.get(path).await.map_err(|failure| api(&failure))?;
            let Some(known) = known else {
                return Ok(Undone::Gone);
            };
            // Somebody may have taken the name in between.
            if known["metadata"]["annotations"][VOYAGE_ANNOTATION] != uid {
                return Ok(Undone::Left("it does not belong to this run".to_owned()));
            }
            if known["metadata"]["deletionTimestamp"].is_null() {
                let deleted = requests.delete_read(path, &known).await;
                deleted.map_err(|failure| api(&failure))?;
            }
            let after = requests.get(path).await.map_err(|failure| api(&failure))?;
            let is_same = |after: &Value| after["metadata"]["uid"] == known["metadata"]["uid"];
            Ok(match after.as_ref().is_some_and(is_same) {
                true => Undone::Going,
                false => Undone::Gone,
            })
        }
        "change" => {
            if let Some(why) = made.reference["forGood"].as_str() {
                return Ok(Undone::Left(why.to_owned()));
            }
            let requests = Requests::new(world.options.actors.client(workspace, person));
            let Some(now) = requests.get(path).await.map_err(|failure| api(&failure))? else {
                return Ok(Undone::Gone);
            };
            let back = change::restore(&made.reference["was"], &made.reference["is"], &now);
            let Some(mut back) = back else {
                return Ok(Undone::Left("somebody has changed it since".to_owned()));
            };
            // What was looked at is what is changed.
            back["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
            requests
                .merge(path, &back)
                .await
                .map_err(|failure| api(&failure))?;
            Ok(Undone::Gone)
        }
        "call" => {
            let forge = &world.options.forge;
            let asked = forge
                .call(workspace, person, Method::GET, path, Value::Null)
                .await;
            let known = match asked {
                Ok(known) => known,
                Err(error) if error.code == 404 => return Ok(Undone::Gone),
                Err(error) => return Err(host(error)),
            };
            if !is_of(&known, uid) {
                return Ok(Undone::Left(
                    "it does not belong to this run, or somebody has committed to it since".to_owned(),
                ));
            }
            let method = made.reference["method"].as_str().unwrap_or("DELETE");
            let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::DELETE);
            match forge.call(workspace, person, method, path, Value::Null).await {
                Ok(_) => Ok(Undone::Gone),
                Err(error) if error.code == 404 => Ok(Undone::Gone),
                Err(error) => Err(host(error)),
            }
        }
        other => Ok(Undone::Left(format!("nobody knows how to take back {other:?}"))),
    }
}

/// Whether the last commit of a branch is one of this run.
fn is_of(branch: &Value, uid: &str) -> bool {
    let mark = format!("Voyage: {uid}/");
    let said = branch["commit"]["message"].as_str().unwrap_or("");
    !uid.is_empty() && said.lines().any(|line| line.starts_with(&mark))
}

fn api(failure: &Failure) -> Setback {
    Setback {
        may_pass: may_pass(failure),
        why: failure.sentence(),
    }
}

fn host(error: ForgeError) -> Setback {
    Setback {
        may_pass: may_pass_as(error.code),
        why: error.message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_this_run_committed_last_is_its_own() {
        for (message, uid, expected) in [
            ("Propose\n\nVoyage: u1/propose\n", "u1", true),
            ("Propose\n\nVoyage: u2/propose\n", "u1", false),
            ("A change on top\n", "u1", false),
            ("Says Voyage: u1/x in a sentence", "u1", false),
            ("Voyage: /x", "", false),
        ] {
            let branch = json!({"commit": {"message": message}});
            assert_eq!(is_of(&branch, uid), expected, "{message:?}");
        }
        assert!(!is_of(&json!({}), "u1"));
    }
}
