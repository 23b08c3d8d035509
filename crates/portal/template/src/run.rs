//! A run as a state machine whose state is data.
//!
//! ```text
//!   Pending ──► Running ──► Succeeded ──► Decommissioning ──► Decommissioned
//!                 │  ▲
//!      step fails │  │ retry
//!                 ▼  │
//!              Undoing ──► Failed (or Cancelled)
//! ```
//!
//! A step is `Running` in the record before it acts, and what it makes is in the record before it is made, so that whoever takes the run
//! up knows what may be there. [`next`] says what to do; [`Run`]'s other functions write down what was done. Time comes from outside.
//!
//! What is told of a run is numbered as it happens: who has heard up to a number hears the rest later, whatever became of the run since.

mod undoing;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template::Template;
pub use undoing::{MAX_UNDO, Setback, pause};

/// Lines that a step keeps, and how long one may be.
pub const MAX_LINES: usize = 200;
/// See [`MAX_LINES`].
pub const MAX_LINE: usize = 2000;
/// The largest output of a step, as JSON.
pub const MAX_OUTPUT: usize = 64 << 10;
/// How [`StepRecord::pinned`] names until when a step waits, with the number of the pause after it.
pub const WAIT: &str = "wait ";
/// The message of a run that somebody stopped.
const STOPPED: &str = "somebody stopped it";

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nobody has looked at it yet.
    #[default]
    Pending,
    /// Steps are done.
    Running,
    /// What was made is taken back, because a step failed or somebody stopped it.
    Undoing,
    /// Everything was done.
    Succeeded,
    /// A step failed.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// What was made is taken back, because it is not needed any more.
    Decommissioning,
    /// That is done.
    Decommissioned,
}

impl Phase {
    /// Whether nothing happens any more unless somebody wishes something.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Decommissioned
        )
    }
}

/// Where a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Not yet begun.
    #[default]
    Pending,
    /// Begun.
    Running,
    /// Done.
    Completed,
    /// Its condition did not hold.
    Skipped,
    /// It failed.
    Failed,
    /// What it had made is gone again.
    Undone,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: String,
    /// What.
    pub text: String,
    /// Its number among all that is told of the run.
    #[serde(default)]
    pub event: u64,
}

/// Something that a step makes or has made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Made {
    /// What takes it back: `object`, `change` of one that was there before, `call` of the Git host.
    pub kind: String,
    /// What it is, for who takes it back.
    pub reference: Value,
    /// What it is, for people.
    pub title: String,
    /// Whether it was taken back.
    pub undone: bool,
    /// How often that was tried in vain.
    pub attempts: u32,
    /// Why it is still there, if taking it back has begun.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// When it is tried again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retry_at: String,
    /// The generation of people's wishes at which no more was tried; 0 if it still is. Whoever wishes again is heard.
    #[serde(skip_serializing_if = "is_zero")]
    pub given_up: u64,
}

/// A step and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepRecord {
    /// By which others refer to it.
    pub id: String,
    /// For people.
    pub name: String,
    /// What is done.
    pub action: String,
    /// Where it is.
    pub state: StepState,
    /// When it began.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended_at: String,
    /// What others may use of it.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// What it said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Line>,
    /// What it makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Made>,
    /// What it must find as it was when it is done again: commits by address, and until when it waits.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub pinned: serde_json::Map<String, Value>,
    /// The numbers of its beginning and its end among all that is told.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun_event: u64,
    /// See [`StepRecord::begun_event`].
    #[serde(skip_serializing_if = "is_zero")]
    pub ended_event: u64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Run {
    /// Where it is.
    pub phase: Phase,
    /// Its steps.
    pub steps: Vec<StepRecord>,
    /// Which attempt this is; the first is 0.
    pub attempt: u32,
    /// Why it is where it is.
    pub message: String,
    /// What is shown in the end.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// When it began.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended_at: String,
    /// How much was told of it so far: the last number.
    pub events: u64,
    /// The number of what says how it ended; the one before says that somebody stopped it.
    #[serde(skip_serializing_if = "is_zero")]
    pub end_event: u64,
}

/// What people want of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// It is to stop.
    pub cancel: bool,
    /// What it made is to stay if it fails.
    pub keep: bool,
    /// What it made is to go.
    pub decommission: bool,
    /// The attempt that is wanted; more than there were: try again.
    pub attempt: u32,
    /// Which wish this is: it grows whenever somebody wishes something else.
    pub generation: u64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Write down that it begins.
    Start,
    /// Begin this step.
    Begin(usize),
    /// This step was begun by somebody who is gone: do it again, and find what is there already.
    Resume(usize),
    /// Stop, and take back what was made.
    Cancel,
    /// All steps are done.
    Succeed,
    /// Take this back: step and thing.
    Undo(usize, usize),
    /// Everything is taken back.
    EndUndo,
    /// Try again from what is not done.
    Retry,
    /// Take back what a run that succeeded has made.
    Decommission,
    /// Nothing, until somebody wishes something.
    Nothing,
}

/// What a run wants next.
pub fn next(run: &Run, wish: Wish) -> Next {
    match run.phase {
        Phase::Pending if wish.cancel => Next::Cancel,
        Phase::Pending => Next::Start,
        Phase::Running if wish.cancel => Next::Cancel,
        Phase::Running => {
            let open = run
                .steps
                .iter()
                .position(|step| !matches!(step.state, StepState::Completed | StepState::Skipped));
            match open {
                None => Next::Succeed,
                Some(at) if run.steps[at].state == StepState::Running => Next::Resume(at),
                Some(at) => Next::Begin(at),
            }
        }
        Phase::Undoing | Phase::Decommissioning => match run.last_made(wish.generation) {
            Some((step, made)) => Next::Undo(step, made),
            None => Next::EndUndo,
        },
        // What was given up is left to the next wish; of what is nowhere any more nothing is left to do, and that is said.
        Phase::Failed | Phase::Cancelled
            if wish.decommission && (run.last_made(wish.generation).is_some() || !run.leaves_something()) =>
        {
            Next::Decommission
        }
        Phase::Failed | Phase::Cancelled if wish.attempt > run.attempt && !wish.decommission => Next::Retry,
        Phase::Succeeded if wish.decommission => Next::Decommission,
        _ => Next::Nothing,
    }
}

impl Run {
    /// The run of a template, not yet begun.
    pub fn of(template: &Template, now: &str) -> Self {
        let steps = template.steps.iter().map(|step| StepRecord {
            id: step.id.clone(),
            name: cut(&step.name, 200),
            action: step.action.clone(),
            ..StepRecord::default()
        });
        Self {
            phase: Phase::Running,
            steps: steps.collect(),
            started_at: now.to_owned(),
            ..Self::default()
        }
    }

    /// The same run after what was there before it, which nobody has to hear twice.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self {
            attempt: before.attempt,
            events: before.events,
            ..self
        }
    }

    /// A run that was refused before anything was done.
    pub fn refused(before: &Self, why: String, attempt: u32, now: &str) -> Self {
        let mut run = Self {
            phase: Phase::Failed,
            message: why,
            started_at: now.to_owned(),
            ..Self::default()
        }
        .after(before);
        run.attempt = attempt;
        run.end(now);
        run
    }

    /// The next number of what is told.
    fn number(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// It is over: that is told, too.
    fn end(&mut self, now: &str) {
        self.ended_at = now.to_owned();
        if self.phase == Phase::Cancelled {
            self.number();
        }
        self.end_event = self.number();
    }

    /// A step begins, or begins again.
    pub fn begin(&mut self, at: usize, now: &str) {
        let number = self.number();
        if let Some(step) = self.steps.get_mut(at) {
            step.state = StepState::Running;
            step.started_at = now.to_owned();
            step.begun_event = number;
            step.ended_at.clear();
            step.ended_event = 0;
            // Waiting is done anew by whoever begins anew.
            step.pinned.retain(|key, _| !key.starts_with(WAIT));
        }
    }

    /// A step is done.
    pub fn complete(&mut self, at: usize, output: Value, now: &str) {
        self.end_step(at, StepState::Completed, now);
        if let Some(step) = self.steps.get_mut(at) {
            step.output = output;
        }
    }

    /// A step is not needed.
    pub fn skip(&mut self, at: usize, now: &str) {
        self.end_step(at, StepState::Skipped, now);
    }

    /// A step failed, and the run with it.
    pub fn fail(&mut self, at: usize, why: &str, keep: bool, now: &str) {
        self.end_step(at, StepState::Failed, now);
        if let Some(step) = self.steps.get(at) {
            self.message = cut(&format!("step {:?} failed: {why}", step.id), MAX_LINE);
        }
        self.stop(Phase::Failed, keep, now);
    }

    /// Somebody stopped it.
    pub fn cancel(&mut self, keep: bool, now: &str) {
        self.message = STOPPED.to_owned();
        for at in 0..self.steps.len() {
            if self.steps[at].state == StepState::Running {
                self.end_step(at, StepState::Failed, now);
            }
        }
        self.stop(Phase::Cancelled, keep, now);
    }

    fn stop(&mut self, end: Phase, keep: bool, now: &str) {
        self.phase = match keep || self.last_made(u64::MAX).is_none() {
            true => end,
            false => Phase::Undoing,
        };
        if self.phase.is_over() {
            self.end(now);
        }
    }

    /// All steps are done.
    pub fn succeed(&mut self, output: Value, now: &str) {
        self.phase = Phase::Succeeded;
        self.message.clear();
        self.output = output;
        self.end(now);
    }

    /// From what is not done.
    pub fn retry(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.phase = Phase::Running;
        self.message.clear();
        self.ended_at.clear();
        for step in &mut self.steps {
            if !matches!(step.state, StepState::Completed | StepState::Skipped) {
                step.state = StepState::Pending;
                step.ended_at.clear();
                step.made.retain(|made| !made.undone);
                step.made.iter_mut().for_each(Made::untried);
            }
        }
    }

    /// A line in the log of a step; the oldest go when there are too many.
    pub fn log(&mut self, at: usize, now: &str, text: &str) {
        let number = self.number();
        let Some(step) = self.steps.get_mut(at) else {
            return;
        };
        if step.log.len() >= MAX_LINES {
            step.log.remove(0);
        }
        step.log.push(Line {
            at: now.to_owned(),
            text: cut(text, MAX_LINE),
            event: number,
        });
    }

    fn end_step(&mut self, at: usize, state: StepState, now: &str) {
        let number = self.number();
        if let Some(step) = self.steps.get_mut(at) {
            step.state = state;
            step.ended_at = now.to_owned();
            step.ended_event = number;
        }
    }
}

/// Whether an output can be kept for the steps that come after; if not, why.
pub fn fits(output: &Value) -> Result<(), String> {
    match output.to_string().len() {
        size if size > MAX_OUTPUT => Err(format!(
            "its output has {size} bytes as JSON; {MAX_OUTPUT} are kept at most, and what comes after must not work with less"
        )),
        _ => Ok(()),
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
