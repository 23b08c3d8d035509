//! What an action is given: its input, the working tree, who it acts for, and ways to say and to write down what it does.

use fairway_controller::{Failure, Requests, Shutdown, WorkspaceId};
use fairway_portal_template::files::Files;
use fairway_portal_template::run::Made;
use fairway_portal_template::secrets::Secrets;
use fairway_portal_template::template::Template;
use serde_json::Value;

use crate::dry_run::Foreseen;
use crate::ports::Person;
use crate::voyage::Voyage;
use crate::{World, now};
use std::time::Duration;

/// Why a step ends.
#[derive(Debug)]
pub(crate) enum StepError {
    /// It cannot be done.
    Failed(String),
    /// It was not the step: the run is taken up again.
    Interrupted(Failure),
    /// It goes on after this time, and nobody has to stand by.
    Later(Duration),
    /// The process ends.
    Shutdown,
}

impl StepError {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

impl From<String> for StepError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.sentence())
    }
}

/// How an action is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For the first time, or after an interruption.
    Real,
    /// Only to have the working tree again.
    Again,
    /// Nothing is written; what would be is noted.
    Dry,
}

/// One call of an action.
pub(crate) struct Job<'j> {
    pub(crate) world: &'j World,
    pub(crate) own: &'j Requests,
    pub(crate) voyage: &'j mut Voyage,
    pub(crate) shutdown: &'j mut Shutdown,
    pub(crate) template: &'j Template,
    pub(crate) at: usize,
    /// Which of the step's repetitions this is.
    pub(crate) turn: usize,
    pub(crate) input: Value,
    pub(crate) files: &'j mut Files,
    pub(crate) secrets: &'j Secrets,
    pub(crate) person: &'j Person,
    pub(crate) mode: Mode,
    pub(crate) dry: Option<&'j mut Foreseen>,
}

impl Job<'_> {
    /// The workspace of the run.
    pub(crate) fn workspace(&self) -> WorkspaceId {
        self.voyage.workspace.clone()
    }

    /// The API as the user sees it.
    pub(crate) fn requests(&self) -> Requests {
        Requests::new(
            self.world
                .options
                .actors
                .client(&self.voyage.workspace, self.person),
        )
    }

    /// A line for people, without secrets.
    pub(crate) fn log(&mut self, text: &str) {
        if self.mode != Mode::Again {
            let text = self.secrets.hide(text);
            self.voyage.run.log(self.at, &now(), &text);
        }
    }

    /// The same, unless the step has said so already: in another of its repetitions, or before an interruption.
    pub(crate) fn log_once(&mut self, text: &str) {
        let hidden = self.secrets.hide(text);
        let said = &self.voyage.run.steps[self.at].log;
        if !said.iter().any(|line| line.text == hidden) {
            self.log(text);
        }
    }

    /// Writes down what is about to be made, so that it can be taken back whatever happens.
    pub(crate) async fn will_make(&mut self, made: Made) -> Result<(), StepError> {
        if self.mode != Mode::Real {
            return Ok(());
        }
        let known = &mut self.voyage.run.steps[self.at].made;
        match known.iter_mut().find(|other| other.reference == made.reference) {
            Some(other) => other.undone = false,
            None => known.push(made),
        }
        self.voyage.write(self.own).await.map_err(StepError::Interrupted)
    }

    /// What was fetched from somewhere, as it was at the first time.
    pub(crate) fn pin(&self, url: &str) -> Option<String> {
        let pinned = &self.voyage.run.steps[self.at].pinned;
        let pin = pinned.get(&self.pin_of(url));
        pin.and_then(Value::as_str).map(str::to_owned)
    }

    pub(crate) fn set_pin(&mut self, url: &str, pin: &str) {
        if self.mode == Mode::Real {
            let key = self.pin_of(url);
            let pinned = &mut self.voyage.run.steps[self.at].pinned;
            pinned.insert(key, pin.into());
        }
    }

    /// What an address is pinned under. The record is for all to read: one with a secret in it is told from others by its turn.
    fn pin_of(&self, url: &str) -> String {
        let hidden = self.secrets.hide(url);
        match hidden == url {
            true => hidden,
            false => format!("{hidden} ({})", self.turn),
        }
    }

    /// A text of the input.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        text(&self.input, key)
    }

    /// One that there must be.
    pub(crate) fn required(&self, key: &str) -> Result<String, StepError> {
        required(&self.input, key).map_err(StepError::Failed)
    }

    /// What a dry run adds to its question about an object: a namespace that an earlier step of the same run makes is presumed.
    pub(crate) fn presumed(&self, object: &Value) -> &'static str {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
        let is_made = (self.dry.as_deref()).is_some_and(|foreseen| foreseen.makes_namespace(namespace));
        if is_made { "&presumeNamespace=true" } else { "" }
    }

    /// Tells the dry run what the server says of an object.
    pub(crate) fn foresee<T>(&mut self, object: &Value, judged: &Result<T, Failure>) {
        if let Some(foreseen) = self.dry.as_deref_mut() {
            foreseen.object(object, &judged.as_ref().map(|_| ()).map_err(Failure::sentence));
        }
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        match self.input.get(key) {
            Some(Value::Bool(is)) => *is,
            Some(Value::String(text)) => text == "true",
            _ => false,
        }
    }

    /// Texts of the input: one, or a list.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        match self.input.get(key) {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The commit message's last line, by which a commit of this run is known again.
    pub(crate) fn trailer(&self) -> String {
        let step = &self.voyage.run.steps[self.at].id;
        format!("Voyage: {}/{step}", self.voyage.uid)
    }
}

/// A text of an input, if it says something.
pub(crate) fn text<'i>(input: &'i Value, key: &str) -> Option<&'i str> {
    let found = input.get(key).and_then(Value::as_str);
    found.filter(|text| !text.is_empty())
}

/// One that there must be.
pub(crate) fn required(input: &Value, key: &str) -> Result<String, String> {
    match input.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => Err(format!("input.{key} is missing")),
    }
}
