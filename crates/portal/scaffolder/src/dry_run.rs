//! What a run would do, without doing it: the same steps with the same rights, in which nothing is written.

use std::sync::Arc;

use fairway_controller::{Requests, Shutdown, WorkspaceId};
use fairway_portal_template::files::Files;
use fairway_portal_template::run::{Run, StepState, fits};
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError, output, perform};
use crate::ports::Person;
use crate::submit::Submission;
use crate::voyage::Voyage;
use crate::{World, actions, now, quota, templates};

/// What would come to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreseen {
    repositories: Vec<Value>,
    objects: Vec<Value>,
    manifests: Vec<Value>,
    beside: Option<Files>,
}

impl Foreseen {
    /// The files beside the template, if they came with the question.
    pub(crate) fn beside(&self) -> Option<&Files> {
        self.beside.as_ref()
    }

    /// A repository with these files, and the objects that they declare.
    pub(crate) fn repository(&mut self, address: &str, files: &Files) {
        let shown = files.iter().map(|(path, file)| {
            json!({"path": path, "size": file.content.len(), "executable": file.is_executable, "content": file.text()})
        });
        self.repositories
            .push(json!({"url": address, "files": shown.collect::<Vec<_>>()}));
        self.manifests.extend(quota::objects(files));
    }

    /// An object, and what the server says of it.
    pub(crate) fn object(&mut self, object: &Value, verdict: &Result<(), String>) {
        self.objects.push(shown(object, verdict));
    }

    /// An object of which the server cannot say anything yet.
    pub(crate) fn unjudged(&mut self, object: &Value, why: &str) {
        self.objects.push(unjudged(object, why));
    }
}

fn shown(object: &Value, verdict: &Result<(), String>) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "namespace": object["metadata"]["namespace"], "allowed": verdict.is_ok(),
        "message": verdict.as_ref().err(),
    })
}

fn unjudged(object: &Value, why: &str) -> Value {
    let mut unknown = shown(object, &Ok(()));
    unknown["allowed"] = Value::Null;
    unknown["message"] = why.into();
    unknown
}

/// Goes through a run as somebody. What is said of it has Backstage's shape, and beside it `foreseen`.
pub(crate) async fn dry_run(
    world: &Arc<World>,
    workspace: &WorkspaceId,
    person: &Person,
    template: Option<(Value, Option<Files>)>,
    submission: &Submission,
    shutdown: Shutdown,
) -> Result<Value, String> {
    let requests = Requests::new(world.options.actors.client(workspace, person));
    let (entity, beside) = match template {
        Some(given) => given,
        None => {
            let found = templates::find(&requests, &world.options.builtins, &submission.template).await?;
            (found, None)
        }
    };
    let read = Template::read(&entity).map_err(|problems| problems.join("; "))?;
    let unknown = read.unknown_actions(&actions::names());
    if !unknown.is_empty() {
        return Err(unknown.join("; "));
    }
    let answers =
        crate::submit::judge(&read, &submission.values, &submission.secrets).map_err(|complaints| {
            let said: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            format!("the answers are not good: {}", said.join("; "))
        })?;
    let secrets = Secrets::new(answers.secrets);
    let object = json!({
        "metadata": {"name": "dry-run", "namespace": submission.namespace, "uid": "dry-run"},
        "spec": {"template": submission.template, "values": answers.values, "requestedBy": person},
    });
    let mut voyage = Voyage::read(workspace, object);
    voyage.run = Run::of(&read, &now());
    let own = Requests::new(world.own.of(workspace));
    let mut files = Files::default();
    let mut foreseen = Foreseen {
        beside,
        ..Foreseen::default()
    };
    let mut problem = None;
    let mut shutdown = shutdown;
    for at in 0..read.steps.len() {
        voyage.run.begin(at, &now());
        let mut job = Job {
            world,
            own: &own,
            voyage: &mut voyage,
            shutdown: &mut shutdown,
            template: &read,
            at,
            turn: 0,
            input: Value::Null,
            files: &mut files,
            secrets: &secrets,
            person,
            mode: Mode::Dry,
            dry: Some(&mut foreseen),
        };
        let performed = match perform(&mut job).await {
            Ok(Some(output)) => fits(&output).map(|()| Some(output)).map_err(StepError::Failed),
            other => other,
        };
        match performed {
            Ok(Some(output)) => voyage.run.complete(at, output, &now()),
            Ok(None) => voyage.run.skip(at, &now()),
            Err(error) => {
                let why = match error {
                    StepError::Failed(why) => secrets.hide(&why),
                    StepError::Interrupted(failure) => failure.sentence(),
                    StepError::Later(_) => "it would wait".to_owned(),
                    StepError::Shutdown => "the server is ending".to_owned(),
                };
                voyage.run.log(at, &now(), &why);
                voyage.run.fail(at, &why, true, &now());
                problem = Some(why);
                break;
            }
        }
    }
    let urls = urls(&foreseen.manifests);
    let verdicts = verdicts(&requests, &foreseen.manifests).await;
    let shown = output(&voyage, &read).unwrap_or_default();
    let log: Vec<Value> = voyage
        .run
        .steps
        .iter()
        .flat_map(|step| {
            step.log
                .iter()
                .map(|line| json!({"body": {"stepId": step.id, "message": line.text}}))
        })
        .collect();
    let contents = files.iter().map(|(path, file)| {
        use base64::Engine as _;
        let content = base64::engine::general_purpose::STANDARD.encode(&file.content);
        json!({"path": path, "executable": file.is_executable, "base64Content": content})
    });
    let steps: Vec<Value> = voyage
        .run
        .steps
        .iter()
        .map(|step| json!({"id": step.id, "name": step.name, "action": step.action, "state": step.state}))
        .collect();
    let done = voyage
        .run
        .steps
        .iter()
        .all(|step| matches!(step.state, StepState::Completed | StepState::Skipped));
    Ok(json!({
        "log": log, "directoryContents": contents.collect::<Vec<_>>(), "steps": steps, "output": shown,
        "foreseen": {
            "succeeds": done && verdicts.iter().all(|verdict| verdict["allowed"] != false), "problem": problem,
            "repositories": foreseen.repositories, "objects": foreseen.objects, "manifests": verdicts, "urls": urls,
        },
    }))
}

/// Where what the manifests publish will be found: the hosts of Routes and HTTPRoutes.
fn urls(manifests: &[Value]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for object in manifests {
        let hosts: Vec<&str> = match object["kind"].as_str() {
            Some("Route") => object["spec"]["host"].as_str().into_iter().collect(),
            Some("HTTPRoute") => {
                let names = object["spec"]["hostnames"].as_array();
                names.into_iter().flatten().filter_map(Value::as_str).collect()
            }
            _ => continue,
        };
        for host in hosts {
            let url = format!("https://{host}");
            if !found.contains(&url) {
                found.push(url);
            }
        }
    }
    found
}

/// What the server says of the manifests, by its own dry run, also of those in a namespace that the same run makes.
async fn verdicts(requests: &Requests, manifests: &[Value]) -> Vec<Value> {
    let mut discovery = crate::discovery::Discovery::default();
    let made: Vec<&str> = manifests
        .iter()
        .filter(|object| object["kind"] == "Namespace")
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect();
    let mut found = Vec::new();
    for object in manifests {
        let name = object["metadata"]["name"].as_str().unwrap_or("");
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
        let resource = match discovery.of(requests, object).await {
            Ok(resource) => resource,
            // Files for other readers, such as catalog-info.yaml, are no objects of the API.
            Err(_)
                if object["apiVersion"]
                    .as_str()
                    .unwrap_or("")
                    .contains("backstage.io/") =>
            {
                continue;
            }
            Err(why) => {
                found.push(shown(object, &Err(why)));
                continue;
            }
        };
        let path = format!("{}/{name}", resource.collection(namespace));
        let missing = resource.namespaced
            && made.contains(&namespace)
            && matches!(
                requests.get(&format!("/api/v1/namespaces/{namespace}")).await,
                Ok(None)
            );
        // The server judges as if the namespace were there: the same run makes it.
        let manager = match missing {
            true => "fairway-dry-run&dryRun=All&presumeNamespace=true",
            false => "fairway-dry-run&dryRun=All",
        };
        let judged = requests.apply(&path, object, manager, true).await;
        found.push(shown(
            object,
            &judged.map(drop).map_err(|failure| failure.sentence()),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_found_by_its_hosts() {
        let manifests = [
            json!({"kind": "Route", "spec": {"host": "web.example"}}),
            json!({"kind": "HTTPRoute", "spec": {"hostnames": ["web.example", "www.example"]}}),
            json!({"kind": "Service", "spec": {}}),
        ];
        assert_eq!(urls(&manifests), ["https://web.example", "https://www.example"]);
    }
}
