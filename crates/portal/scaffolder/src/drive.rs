//! One Voyage, as far as it goes now: what comes next is decided by `run::next`, and done here.
//!
//! Every change is written down before the next thing is done. What people wish meanwhile is heard with every write. What takes its
//! time, such as a pause or something that goes slowly, gives the worker back and is looked at again.

#[cfg(test)]
mod crash;
mod job;
mod step;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, Outcome, Requests, Shutdown};
use fairway_portal_template::answers;
use fairway_portal_template::files::Files;
use fairway_portal_template::run::{Next, Phase, Run, WAIT, fits, next};
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::Value;
use tracing::{info, warn};

use crate::voyage::Voyage;
use crate::{World, actions, now, templates, undo, who};

pub(crate) use job::{Job, Mode, StepError, required, text};
pub(crate) use step::{output, perform, variables_after};

/// How soon a process that begins anew looks again.
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
            let is_undoing = matches!(self.voyage.run.phase, Phase::Undoing | Phase::Decommissioning);
            if is_undoing && self.voyage.is_news() {
                self.voyage.run.hurry();
            }
            match next(&self.voyage.run, self.voyage.wish) {
                Next::Nothing => return self.rest().await,
                Next::Start => self.start().await?,
                Next::Begin(at) => {
                    self.voyage.run.begin(at, &now());
                    self.write().await?;
                    if let Some(outcome) = self.step(at).await? {
                        return Ok(outcome);
                    }
                }
                Next::Resume(at) => {
                    let record = &self.voyage.run.steps[at];
                    let waits = record.pinned.iter().filter(|(key, _)| key.starts_with(WAIT));
                    let last = waits.filter_map(|(_, until)| until.as_str()).max();
                    if let Some(rest) = last.and_then(time_until) {
                        return Ok(Outcome::Again(rest));
                    }
                    // A pause that is over is none of an interruption, unless another process began it, perhaps in the second in
                    // which this one did.
                    if last.is_none() || record.started_at <= self.world.begun {
                        self.voyage
                            .run
                            .log(at, &now(), "taken up again after an interruption");
                    }
                    if let Some(outcome) = self.step(at).await? {
                        return Ok(outcome);
                    }
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
                    let thing = &self.voyage.run.steps[step].made[made];
                    if let Some(rest) = time_until(&thing.retry_at) {
                        return Ok(Outcome::Again(rest));
                    }
                    if let Some(outcome) = self.undo(step, made).await? {
                        return Ok(outcome);
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

    /// There is nothing to do: what was wished is written down as heard, and one that was deleted may go.
    async fn rest(&mut self) -> Result<Outcome, Failure> {
        if self.voyage.is_going {
            if self.voyage.run.message.contains("still there") {
                warn!(
                    voyage = self.voyage.name,
                    message = self.voyage.run.message,
                    "a voyage was deleted, and leaves something behind"
                );
            }
            self.voyage.let_go(&self.own).await?;
        } else if self.voyage.is_news() {
            self.write().await?;
        }
        Ok(Outcome::Done)
    }

    /// Judges everything that can be judged before anything is done.
    async fn start(&mut self) -> Result<(), Failure> {
        let judged = self.judge().await;
        match judged {
            Ok((frozen, template)) => {
                self.voyage.run = Run::of(&template, &now()).after(&self.voyage.run);
                self.voyage.frozen = Some(frozen);
                self.template = Some(template);
                info!(
                    voyage = self.voyage.name,
                    template = self.voyage.template,
                    "a voyage begins"
                );
            }
            Err(why) => {
                let attempt = self.voyage.wish.attempt;
                self.voyage.run = Run::refused(&self.voyage.run, why, attempt, &now());
            }
        }
        self.write().await
    }

    async fn judge(&mut self) -> Result<(Value, Template), String> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let person = who::now(&world, &workspace, &self.voyage.person).await;
        let person = person.map_err(|setback| setback.why)?;
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
        let secrets = self.voyage.secrets(&requests).await?;
        // Answers that are secret count as answers, and are not among the values afterwards.
        for (name, secret) in secrets.iter() {
            given.entry(name).or_insert_with(|| secret.into());
        }
        answers::judge(&template, &given).map_err(|complaints| {
            let said: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            format!("the answers are not good: {}", secrets.hide(&said.join("; ")))
        })?;
        // Also of a page that is not asked: it would be there for all to read.
        let secret = answers::secret_questions(&template);
        if let Some(open) = secret.iter().find(|name| self.voyage.values.contains_key(*name)) {
            return Err(format!(
                "the answer to {open:?} is secret and must come in a Secret (spec.secretRef), not among the values"
            ));
        }
        self.secrets = Some(secrets);
        Ok((frozen, template))
    }

    /// Does a step, and writes down what became of it. If it has to wait, the pass ends with that.
    async fn step(&mut self, at: usize) -> Result<Option<Outcome>, Failure> {
        let performed = match self.performed(at).await {
            Ok(Some(output)) => fits(&output).map(|()| Some(output)).map_err(StepError::Failed),
            other => other,
        };
        match performed {
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
            Err(StepError::Later(rest)) => {
                self.write().await?;
                return Ok(Some(Outcome::Again(rest)));
            }
            Err(StepError::Shutdown) => return Ok(None),
        }
        // What comes next is written with it, if that is another step.
        match next(&self.voyage.run, self.voyage.wish) {
            Next::Begin(_) => {}
            _ => self.write().await?,
        }
        Ok(None)
    }

    async fn performed(&mut self, at: usize) -> Result<Option<Value>, StepError> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let person = who::now(&world, &workspace, &self.voyage.person).await;
        let person = person.map_err(|setback| StepError::Failed(setback.why))?;
        let template = self.template.clone();
        let template =
            template.ok_or_else(|| StepError::failed("the template of this run cannot be read any more"))?;
        if self.secrets.is_none() {
            let requests = Requests::new(world.options.actors.client(&workspace, &person));
            self.secrets = Some(self.voyage.secrets(&requests).await.map_err(StepError::Failed)?);
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
            turn: 0,
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
                turn: 0,
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
        if self.voyage.user.is_none() && template.as_ref().is_some_and(step::asks_for_user) {
            self.voyage.user = step::user(&self.world, &self.voyage, &self.voyage.person).await;
        }
        let shown = template.map(|template| output(&self.world, &self.voyage, &template));
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

    /// Takes one thing back. If it takes time, the pass ends with that.
    async fn undo(&mut self, step: usize, made: usize) -> Result<Option<Outcome>, Failure> {
        let (world, workspace) = (Arc::clone(&self.world), self.voyage.workspace.clone());
        let thing = self.voyage.run.steps[step].made[made].clone();
        let undoer = self.voyage.undoer().clone();
        let done = match who::now(&world, &workspace, &undoer).await {
            Ok(person) => undo::undo(&world, &workspace, &person, &self.voyage.uid, &thing).await,
            Err(setback) => Err(setback),
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
                if self.voyage.run.undo_waits(step, made, &now()) {
                    self.write().await?;
                }
                return Ok(Some(Outcome::Poll));
            }
            Err(setback) => {
                let generation = self.voyage.wish.generation;
                let run = &mut self.voyage.run;
                if let Some(pause) = run.undo_failed(step, made, &setback, generation, &now()) {
                    run.retry_at(step, made, &moment_after(pause));
                }
            }
        }
        self.write().await?;
        Ok(None)
    }
}

/// A moment from now, to parts of a second.
pub(crate) fn moment_after(pause: Duration) -> String {
    let now = jiff::Timestamp::now();
    now.checked_add(pause)
        .unwrap_or(now)
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

/// How long it is until a moment that was written down, if it is not past.
pub(crate) fn time_until(moment: &str) -> Option<Duration> {
    let then: jiff::Timestamp = moment.parse().ok()?;
    let rest = Duration::try_from(then.duration_since(jiff::Timestamp::now())).ok()?;
    (!rest.is_zero()).then_some(rest)
}
