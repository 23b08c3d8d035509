//! What a run would do, without doing it: the same steps with the same rights, in which nothing is written.

mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::{Requests, Shutdown, WorkspaceId};
use fairway_kernel_quota::{Amounts, Quota};
use fairway_kernel_scalar::quantity::Quantity;
use fairway_portal_template::files::Files;
use fairway_portal_template::run::{Run, StepState, fits};
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::{Value, json};

use crate::deployed::{Deployed, Manifest};
use crate::drive::{Job, Mode, StepError, output, perform};
use crate::ports::{Person, Unrendered};
use crate::submit::Submission;
use crate::voyage::Voyage;
use crate::{World, actions, now, quota, templates, urls};
use verdicts::{Verdicts, shown};

/// What would come to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreseen {
    repositories: Vec<Value>,
    objects: Vec<Value>,
    manifests: Vec<Manifest>,
    /// Applications of which it cannot be said what they deploy.
    failed: Vec<(Value, Unrendered)>,
    /// Objects in files that no Application of the run reads.
    unread: Vec<Value>,
    quota: Vec<Share>,
    beside: Option<Files>,
    /// Repositories that the run makes or changes, by owner and name.
    hosted: BTreeMap<String, Published>,
}

/// A repository, as it will be on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Published {
    /// Whether the run makes it.
    pub(crate) is_new: bool,
    /// The branches that the run makes.
    pub(crate) branches: Vec<String>,
    /// How many pull requests the run opens in it.
    pub(crate) pulls: u64,
}

/// What a quota has of something, and what the run takes of it.
#[derive(Clone, Debug)]
struct Share {
    namespace: String,
    quota: String,
    resource: String,
    hard: Quantity,
    used: Quantity,
    takes: Quantity,
}

impl Share {
    fn to_value(&self) -> Value {
        json!({
            "namespace": self.namespace, "name": self.quota, "resource": self.resource,
            "hard": self.hard.canonical(), "used": self.used.canonical(),
            "left": self.hard.minus(self.used).canonical(), "takes": self.takes.canonical(),
        })
    }
}

impl Foreseen {
    /// The files beside the template, if they came with the question.
    pub(crate) fn beside(&self) -> Option<&Files> {
        self.beside.as_ref()
    }

    /// A repository with these files, and the objects that Applications make of them.
    pub(crate) fn repository(&mut self, address: &str, files: &Files, deployed: Deployed) {
        let shown = files.iter().map(|(path, file)| {
            json!({"path": path, "size": file.content.len(), "executable": file.is_executable, "content": file.text()})
        });
        self.repositories
            .push(json!({"url": address, "files": shown.collect::<Vec<_>>()}));
        if !deployed.is_read {
            self.unread
                .extend(quota::objects(files).into_iter().filter(is_of_the_api));
        }
        self.manifests.extend(deployed.manifests);
        self.failed.extend(deployed.failed);
    }

    /// The objects with the namespaces in which they will be.
    fn placed(&self) -> Vec<Value> {
        let placed = self.manifests.iter().map(|manifest| {
            let mut object = manifest.object.clone();
            if object["metadata"]["namespace"].is_null() && object["metadata"].is_object() {
                object["metadata"]["namespace"] = manifest.namespace.as_str().into();
            }
            object
        });
        placed.collect()
    }

    /// What the run does to a repository of the Git host.
    pub(crate) fn hosted(&mut self, slug: &str) -> &mut Published {
        self.hosted.entry(slug.to_owned()).or_default()
    }

    /// Whether a step of the run that came before makes a namespace.
    pub(crate) fn makes_namespace(&self, name: &str) -> bool {
        self.objects
            .iter()
            .any(|it| it["kind"] == "Namespace" && it["name"] == name && it["allowed"] == true)
    }

    /// A quota with what others use and hold, and what a step takes of it.
    pub(crate) fn quota(&mut self, namespace: &str, quota: &Quota, takes: &Amounts) {
        for (resource, hard) in quota.hard.iter() {
            let none = || Quantity::from_int(0);
            let takes = takes.get(resource).unwrap_or_else(none);
            let known = self
                .quota
                .iter_mut()
                .find(|it| it.namespace == namespace && it.quota == quota.name && it.resource == resource);
            match known {
                // What earlier steps took is no use by others.
                Some(share) => share.takes = share.takes.plus(takes),
                None => self.quota.push(Share {
                    namespace: namespace.to_owned(),
                    quota: quota.name.clone(),
                    resource: resource.to_owned(),
                    hard,
                    used: quota.used.get(resource).unwrap_or_else(none),
                    takes,
                }),
            }
        }
    }

    /// An object, and what the server says of it.
    pub(crate) fn object(&mut self, object: &Value, verdict: &Result<(), String>) {
        self.objects.push(shown(object, verdict));
    }
}

/// Files for other readers hold objects, too.
fn is_of_the_api(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or("");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    !group.ends_with("backstage.io") && group != "kustomize.config.k8s.io"
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
    let Verdicts {
        found: verdicts,
        accepted: judged,
    } = verdicts::verdicts(&requests, &foreseen).await;
    let urls = urls::of(&foreseen.placed(), world.options.gateways.as_ref());
    let quota = told(&requests, &foreseen.quota, &judged).await;
    let places = world.options.places.foresee(workspace, &requests, &judged).await;
    let places = places.iter().map(
        |it| json!({"namespace": it.namespace, "name": it.name, "node": it.node, "scheduled": it.scheduled}),
    );
    let shown = output(world, &voyage, &read).unwrap_or_default();
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
            "quota": quota, "node": places.collect::<Vec<_>>(),
        },
    }))
}

/// What quotas have, for who may read them or make something in their namespace, who would be told when there is no room.
async fn told(requests: &Requests, shares: &[Share], accepted: &[Value]) -> Vec<Value> {
    let mut may = BTreeMap::new();
    for accepted in accepted {
        may.insert(accepted["metadata"]["namespace"].as_str().unwrap_or(""), true);
    }
    let mut told = Vec::new();
    for share in shares {
        let namespace = share.namespace.as_str();
        if !may.contains_key(namespace) {
            let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
            may.insert(namespace, requests.list(&path).await.is_ok());
        }
        if may.get(namespace) == Some(&true) {
            told.push(share.to_value());
        }
    }
    told
}

#[cfg(test)]
mod tests;
