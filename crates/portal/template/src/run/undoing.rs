//! Taking back what a run has made: how long is tried, when it is given up, and what is said of what is left.
//!
//! A cause that may pass, such as a server that does not answer, is waited for as long as it takes, with pauses that grow. One that
//! somebody has to remove, such as a missing right, ends the run after a few tries; what is left is named, and whoever wishes it gone
//! later, with the rights, takes it up again.

use std::time::Duration;

use super::{Made, Phase, Run, STOPPED, StepState, cut};

/// How often one thing is tried whose cause does not pass by itself.
pub const MAX_UNDO: u32 = 5;
/// The longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(300);
/// What comes before what is left, in messages.
const STILL: &str = "still there: ";
/// Why something is left that was told to go.
const GOING: &str = "it is going and not yet gone; something has to let go of it first";

/// How long to wait after so many tries in vain.
pub fn pause(attempts: u32) -> Duration {
    let seconds = 1_u64 << attempts.saturating_sub(1).min(20);
    Duration::from_secs(seconds).min(LONGEST)
}

/// Why something could not be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// For people.
    pub why: String,
    /// Whether time alone may help.
    pub may_pass: bool,
}

impl Made {
    /// As if nobody had tried to take it back yet.
    pub(super) fn untried(&mut self) {
        self.attempts = 0;
        self.problem.clear();
        self.retry_at.clear();
        self.given_up = 0;
    }

    /// Whether it is still there, or may be, and to be tried as far as this wish goes.
    fn is_open(&self, generation: u64) -> bool {
        !self.undone && (self.given_up == 0 || self.given_up < generation)
    }
}

impl Run {
    /// What was made last and is to be taken back.
    pub(super) fn last_made(&self, generation: u64) -> Option<(usize, usize)> {
        let steps = self.steps.iter().enumerate().rev();
        steps.into_iter().find_map(|(at, step)| {
            let made = step.made.iter().rposition(|made| made.is_open(generation))?;
            Some((at, made))
        })
    }

    /// Taking back begins.
    pub fn decommission(&mut self) {
        self.phase = Phase::Decommissioning;
        self.ended_at.clear();
        self.hurry();
    }

    /// Somebody wished something: what waits for its next try waits no longer.
    pub fn hurry(&mut self) {
        let left = self.steps.iter_mut().flat_map(|step| &mut step.made);
        left.filter(|made| !made.undone).for_each(Made::untried);
        self.say_what_is_left(|_| false);
    }

    /// Something was taken back.
    pub fn undone(&mut self, step: usize, made: usize) {
        let Some(record) = self.steps.get_mut(step) else {
            return;
        };
        if let Some(made) = record.made.get_mut(made) {
            made.undone = true;
            made.untried();
        }
        // The step that failed stays the one that failed. One of which a part is gone is not done any more.
        if record.state != StepState::Failed && record.state != StepState::Undone {
            record.state = StepState::Undone;
            record.ended_event = self.events + 1;
            self.events += 1;
        }
        self.say_what_is_left(|made| !made.problem.is_empty());
    }

    /// Something could not be taken back. How long to wait, if it is tried again.
    pub fn undo_failed(
        &mut self,
        step: usize,
        made: usize,
        setback: &Setback,
        generation: u64,
        now: &str,
    ) -> Option<Duration> {
        let made = self.steps.get_mut(step)?.made.get_mut(made)?;
        made.attempts += 1;
        let is_over = !setback.may_pass && made.attempts >= MAX_UNDO;
        if is_over {
            made.given_up = generation.max(1);
        }
        let is_news = made.problem != setback.why || is_over;
        made.problem.clone_from(&setback.why);
        let line = match is_over {
            true => format!(
                "{} could not be taken back {} times, and is left: {}",
                made.title, made.attempts, setback.why
            ),
            false => format!("{} could not be taken back: {}", made.title, setback.why),
        };
        let wait = pause(made.attempts);
        if is_news {
            self.log(step, now, &line);
        }
        self.say_what_is_left(|made| !made.problem.is_empty());
        (!is_over).then_some(wait)
    }

    /// When something is tried again.
    pub fn retry_at(&mut self, step: usize, made: usize, at: &str) {
        if let Some(made) = self.steps.get_mut(step).and_then(|step| step.made.get_mut(made)) {
            at.clone_into(&mut made.retry_at);
        }
    }

    /// Something is going and not yet gone; whether that is news.
    pub fn undo_waits(&mut self, step: usize, made: usize, now: &str) -> bool {
        let Some(made) = self.steps.get_mut(step).and_then(|step| step.made.get_mut(made)) else {
            return false;
        };
        if made.problem == GOING {
            return false;
        }
        GOING.clone_into(&mut made.problem);
        let line = format!("waiting until {} is gone", made.title);
        self.log(step, now, &line);
        self.say_what_is_left(|made| !made.problem.is_empty());
        true
    }

    /// Taking back is over: where the run is then.
    pub fn end_undo(&mut self, now: &str) {
        let left = self.leaves_something();
        let was_cancelled = self.base() == STOPPED;
        self.phase = match (self.phase, left) {
            (Phase::Decommissioning, false) => Phase::Decommissioned,
            (Phase::Decommissioning, true) => Phase::Failed,
            _ if was_cancelled => Phase::Cancelled,
            _ => Phase::Failed,
        };
        self.say_what_is_left(|_| true);
        self.end(now);
    }

    /// Whether something is still there that it made, or may be.
    pub(super) fn leaves_something(&self) -> bool {
        self.made().any(|made| !made.undone)
    }

    fn made(&self) -> impl Iterator<Item = &Made> {
        self.steps.iter().flat_map(|step| &step.made)
    }

    /// The message without what is left.
    fn base(&self) -> &str {
        match self.message.find(STILL) {
            Some(at) => self.message[..at].trim_end_matches([';', ' ']),
            None => &self.message,
        }
    }

    /// The message names what is left, with the reason.
    fn say_what_is_left(&mut self, is_told: impl Fn(&Made) -> bool) {
        let left = self.made().filter(|made| !made.undone && is_told(made));
        let left: Vec<String> = left
            .map(|made| match made.problem.is_empty() {
                true => made.title.clone(),
                false => format!("{} ({})", made.title, made.problem),
            })
            .collect();
        let base = self.base().to_owned();
        let still = format!("{STILL}{}", left.join(", "));
        self.message = match (base.is_empty(), left.is_empty()) {
            (_, true) => base,
            (true, false) => cut(&still, super::MAX_LINE),
            (false, false) => cut(&format!("{base}; {still}"), super::MAX_LINE),
        };
    }
}
