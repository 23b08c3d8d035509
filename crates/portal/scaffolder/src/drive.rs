//! One Voyage, as far as it goes now: what comes next is decided by `run::next`, and done here.
//!
//! Every change is written down before the next thing is done. A write that meets a conflict ends the pass: somebody has wished
//! something, and the next pass begins with that.

mod job;
mod step;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, Outcome, Requests, Shutdown};
use fairway_portal_template::answers;
use fairway_portal_template::files::Files;
use fairway_portal_template::run::{Next, Phase, Run, next};
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::Value;
use tracing::info;

use crate::voyage::Voyage;
use crate::{World, actions, now, templates, undo, who};

pub(crate) use job::{Job, Mode, StepError};
pub(crate) use step::{output, perform};

/// How soon something is looked at again that takes its time to go.
const SOON: Duration = Duration::from_millis(500);

/// A pass over one Voyage.
pub(crate) struct Pass {
    pub(crate) world: Arc<World>,
    pub(crate) own: Requests,
    pub(crate) voyage: Voyage,
    pub(crate) shutdown: Shutdown,
    template: Option<Template>,
    /// The working tree, once it is known.
    files: Option<Files>,
    secrets: Option<Secrets>,
}

impl Pass {
    pub(crate) fn new(world: Arc<World>, voyage: Voyage, shutdown: Shutdown) -> Self {
        let own = Requests::new(world.own.of(&voyage.workspace));
        Self {
            template: voyage.template(),
            world,
            own,
            voyage,
            shutdown,
            files: None,
            secrets: None,
        }
    }

    /// Goes on until there is nothing to do, something has to be waited for, or the process ends.
    pub(crate) async fn run(mut self) -> Result<Outcome, Failure> {
        loop {
            if self.shutdown.is_shut_down() {
                return Ok(Outcome::Again(SOON));
            }
            match next(&self.voyage.run, self.voyage.wish) {
                Next::Nothing => return Ok(Outcome::Done),
                Next::Start => self.start().await?,
                Next::Begin(at) => {
                    self.voyage.run.begin(at, &now());
                    self.write().await?;
                    self.step(at).await?;
                }
                Next::Resume(at) => {
                    self.voyage
                        .run
                        .log(at, &now(), "taken up again after an interruption");
                    self.step(at).await?;
                }
                Next::Cancel => {
                    let keep = self.voyage.wish.keep;
                    self.voyage.run.cancel(keep, &now());
                    self.write().await?;
                }
                Next::Succeed => self.succeed().await?,
                Next::Retry => {
                    let attempt = self.voyage.wish.attempt;
                    self.voyage.run.retry(attempt);
                    self.voyage.reservations.clear();
                    // A template that could not be used is looked at again.
                    if self.voyage.frozen.is_none() {
                        self.voyage.run.phase = Phase::Pending;
                    }
                    self.write().await?;
                }
                Next::Decommission => {
                    self.voyage.run.decommission();
                    self.write().await?;
                }
                Next::Undo(step, made) => {
                    if !self.undo(step, made).await? {
                        return Ok(Outcome::Again(SOON));
                    }
                }
                Next::EndUndo => {
                    self.voyage.run.end_undo(&now());
                    self.voyage.reservations.clear();
                    self.write().await?;
                }
            }
        }
    }

    async fn write(&mut self) -> Result<(), Failure> {
        self.voyage.write(&self.own).await
    }

    /// Judges everything that can be judged before anything is done.
    async fn start(&mut self) -> Result<(), Failure> {
        let judged = self.judge().await;
        match judged {
            Ok((frozen, template)) => {
                let attempt = self.voyage.run.attempt;
                self.voyage.run = Run::of(&template, &now());
                self.voyage.run.attempt = attempt;
                self.voyage.frozen = Some(frozen);
                self.template = Some(template);
                info!(
                    voyage = self.voyage.name,
                    template = self.voyage.template,
                    "a voyage begins"
                );
            }
            Err(why) => {
                self.voyage.run = Run {
                    phase: Phase::Failed,
                    message: why,
                    started_at: now(),
                    ended_at: now(),
                    attempt: self.voyage.wish.attempt,
                    ..Run::default()
                };
            }
        }
        self.write().await
    }

    async fn judge(&mut self) -> Result<(Value, Template), String> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let person = who::now(&world, &workspace, &self.voyage.person).await?;
        let requests = Requests::new(world.options.actors.client(&workspace, &person));
        let mut frozen = templates::find(&requests, &world.options.builtins, &self.voyage.template).await?;
        if let Some(object) = frozen.as_object_mut() {
            object.retain(|key, _| ["apiVersion", "kind", "metadata", "spec"].contains(&key.as_str()));
        }
        let template = Template::read(&frozen).map_err(|problems| problems.join("; "))?;
        let unknown = template.unknown_actions(&actions::names());
        if !unknown.is_empty() {
            return Err(unknown.join("; "));
        }
        let mut given = self.voyage.values.clone();
        let secrets = self.read_secrets(&requests).await?;
        // Answers that are secret count as answers, and are not among the values afterwards.
        for (name, secret) in secrets.iter() {
            given.entry(name).or_insert_with(|| secret.into());
        }
        let answers = answers::judge(&template, &given).map_err(|complaints| {
            let said: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            format!("the answers are not good: {}", secrets.hide(&said.join("; ")))
        })?;
        let open = answers
            .secrets
            .keys()
            .find(|name| self.voyage.values.contains_key(*name));
        if let Some(open) = open {
            return Err(format!(
                "the answer to {open:?} is secret and must come in a Secret (spec.secretRef), not among the values"
            ));
        }
        self.secrets = Some(secrets);
        Ok((frozen, template))
    }

    /// Secrets, read with the rights of who started the run.
    async fn read_secrets(&self, requests: &Requests) -> Result<Secrets, String> {
        let Some(name) = &self.voyage.secret else {
            return Ok(Secrets::default());
        };
        if !who::is_name(name) {
            return Err(format!("{name:?} is not the name of a Secret"));
        }
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.voyage.namespace);
        let found = requests.get(&path).await.map_err(|failure| failure.sentence())?;
        let found = found.ok_or_else(|| format!("there is no Secret {name} in {}", self.voyage.namespace))?;
        Ok(Secrets::new(crate::submit::decoded(&found)))
    }

    /// Does a step, and writes down what became of it.
    async fn step(&mut self, at: usize) -> Result<(), Failure> {
        match self.performed(at).await {
            Ok(Some(output)) => self.voyage.run.complete(at, output, &now()),
            Ok(None) => self.voyage.run.skip(at, &now()),
            Err(StepError::Failed(why)) => {
                let why = self
                    .secrets
                    .as_ref()
                    .map_or(why.clone(), |secrets| secrets.hide(&why));
                self.voyage.run.log(at, &now(), &why);
                let keep = self.voyage.wish.keep;
                self.voyage.run.fail(at, &why, keep, &now());
            }
            Err(StepError::Interrupted(failure)) => return Err(failure),
            Err(StepError::Shutdown) => return Ok(()),
        }
        // What comes next is written with it, if that is another step.
        match next(&self.voyage.run, self.voyage.wish) {
            Next::Begin(_) => Ok(()),
            _ => self.write().await,
        }
    }

    async fn performed(&mut self, at: usize) -> Result<Option<Value>, StepError> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let person = who::now(&world, &workspace, &self.voyage.person).await;
        let person = person.map_err(StepError::Failed)?;
        let template = self.template.clone();
        let template =
            template.ok_or_else(|| StepError::failed("the template of this run cannot be read any more"))?;
        if self.secrets.is_none() {
            let requests = Requests::new(world.options.actors.client(&workspace, &person));
            self.secrets = Some(self.read_secrets(&requests).await.map_err(StepError::Failed)?);
        }
        let secrets = self.secrets.clone().unwrap_or_default();
        let mut files = match self.files.take() {
            Some(files) => files,
            None => self.again(&template, &person, &secrets, at).await?,
        };
        let mut job = Job {
            world: &world,
            own: &self.own,
            voyage: &mut self.voyage,
            shutdown: &mut self.shutdown,
            template: &template,
            at,
            input: Value::Null,
            files: &mut files,
            secrets: &secrets,
            person: &person,
            mode: Mode::Real,
            dry: None,
        };
        let done = perform(&mut job).await;
        self.files = Some(files);
        done
    }

    /// The working tree as it is before a step: what was done to it is done again.
    async fn again(
        &mut self,
        template: &Template,
        person: &crate::Person,
        secrets: &Secrets,
        before: usize,
    ) -> Result<Files, StepError> {
        let world = Arc::clone(&self.world);
        let mut files = Files::default();
        for at in 0..before {
            let record = &self.voyage.run.steps[at];
            let was_done = record.state == fairway_portal_template::run::StepState::Completed;
            if !was_done || !actions::is_of_files(&record.action) {
                continue;
            }
            let mut job = Job {
                world: &world,
                own: &self.own,
                voyage: &mut self.voyage,
                shutdown: &mut self.shutdown,
                template,
                at,
                input: Value::Null,
                files: &mut files,
                secrets,
                person,
                mode: Mode::Again,
                dry: None,
            };
            perform(&mut job).await?;
        }
        Ok(files)
    }

    async fn succeed(&mut self) -> Result<(), Failure> {
        let template = self.template.clone();
        let shown = template.map(|template| output(&self.voyage, &template));
        match shown {
            Some(Ok(output)) => self.voyage.run.succeed(output, &now()),
            // Everything is there; that a link cannot be shown does not take it away.
            Some(Err(why)) => {
                self.voyage.run.succeed(Value::Null, &now());
                self.voyage.run.message = format!("the outputs cannot be shown: {why}");
            }
            None => self.voyage.run.succeed(Value::Null, &now()),
        }
        self.write().await?;
        info!(voyage = self.voyage.name, "a voyage has arrived");
        Ok(())
    }

    /// Takes one thing back; false if it is going and not yet gone.
    async fn undo(&mut self, step: usize, made: usize) -> Result<bool, Failure> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let thing = self.voyage.run.steps[step].made[made].clone();
        let undoer = self.voyage.undoer().clone();
        let done = match who::now(&world, &workspace, &undoer).await {
            Ok(person) => undo::undo(&world, &workspace, &person, &self.voyage.uid, &thing).await,
            Err(why) => Err(why),
        };
        match done {
            Ok(undo::Undone::Gone) => {
                let line = format!("{} was taken back", thing.title);
                self.voyage.run.log(step, &now(), &line);
                self.voyage.run.undone(step, made);
            }
            Ok(undo::Undone::Left(why)) => {
                let line = format!("{} was left: {why}", thing.title);
                self.voyage.run.log(step, &now(), &line);
                self.voyage.run.undone(step, made);
            }
            Ok(undo::Undone::Going) => {
                let waiting = format!("waiting until {} is gone", thing.title);
                if !self.voyage.run.message.contains(&waiting) {
                    self.voyage.run.log(step, &now(), &waiting);
                }
                return Ok(false);
            }
            Err(why) => {
                self.voyage.run.undo_failed(step, made, &why, &now());
                self.write().await?;
                return Ok(false);
            }
        }
        self.write().await?;
        Ok(true)
    }
}
