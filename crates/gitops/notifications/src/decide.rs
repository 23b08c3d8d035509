//! What an Application's subscribers are to be told now.

#[cfg(test)]
mod tests;

use std::cell::Cell;

use fairway_text_gotemplate::value::{Entries, STRING_MAP, from_json};
use fairway_text_gotemplate::{Map, Value as GoValue};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::config::{Condition, Config};
use crate::expr::{Scope, shown};
use crate::facts::Facts;
use crate::functions;
use crate::message::{Message, message};
use crate::record::{self, NOTIFIED, Record};
use crate::subscription::{Destination, Destinations, annotations};

/// The longest thing that is told once for each value of it.
const MAX_ONCE_PER: usize = 1024;
/// The most that is told at once.
const MAX_NOTICES: usize = 50;
/// What judging all conditions of an Application may cost.
const MAX_STEPS: u64 = 2_000_000;

/// What is spoken of.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The Application, as it is read.
    pub application: &'a Value,
    /// Its project; null if there is none.
    pub project: &'a Value,
    /// What was told and could not be written down, by its key.
    pub unrecorded: &'a [String],
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// What happened.
    pub trigger: String,
    /// Whom to tell.
    pub to: Destination,
    /// As what it is remembered.
    pub key: String,
    /// What is sent; or why it cannot be put into words, which is so until the configuration changes.
    pub message: Result<Message, String>,
}

/// What to do.
#[derive(Debug, Default)]
pub struct Decision {
    /// What to tell.
    pub notices: Vec<Notice>,
    /// What was told before.
    before: Record,
    /// What remains of it if nothing more is told.
    kept: Record,
    /// What is wrong, for whoever subscribed.
    pub problems: Vec<String>,
    /// Conditions without a value. That is usual while an Application is new, so it is for the log.
    pub unjudged: Vec<String>,
    /// Whether something may be due later although nothing changes.
    pub asks_clock: bool,
    /// Whether there is more to tell than was put into words; decide again when this is told.
    pub has_more: bool,
    seconds: i64,
}

impl Decision {
    /// The change of the Application that writes down what was told: these keys. None if there is none.
    pub fn patch(&self, told: &[String]) -> Option<Value> {
        let mut after = self.kept.clone();
        for key in told {
            after.remember(key, self.seconds);
        }
        let annotation = after.annotation();
        match annotation == self.before.annotation() {
            true => None,
            false => Some(json!({"metadata": {"annotations": {NOTIFIED: annotation}}})),
        }
    }
}

/// Whether the status is of a time after the end of the last operation; before, it tells of what was.
fn is_refreshed(application: &Value) -> bool {
    let status = &application["status"];
    let operation = &status["operationState"];
    if !matches!(
        operation["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Error")
    ) {
        return true;
    }
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let Some(finished) = time(&operation["finishedAt"]) else {
        return false;
    };
    let seen = [&status["reconciledAt"], &status["observedAt"]];
    seen.into_iter().filter_map(time).any(|seen| seen >= finished)
}

/// `context` as whoever is told through a service sees it.
pub(crate) fn context(config: &Config, service: &str) -> GoValue {
    let mut entries: Entries = Entries::new();
    entries.insert((*b"notificationType").into(), GoValue::str(service));
    for (name, value) in &config.context {
        entries.insert(name.as_bytes().into(), GoValue::str(value));
    }
    GoValue::Map(Map::typed(&STRING_MAP, entries))
}

/// What conditions and templates know.
fn variables(config: &Config, subject: &Subject<'_>) -> Map {
    let map = Map::new(Entries::new());
    map.set(*b"app", from_json(subject.application));
    let project = match subject.project {
        Value::Null => GoValue::map(Entries::new()),
        project => from_json(project),
    };
    map.set(*b"appProject", project);
    map.set(*b"context", context(config, ""));
    let secrets = config.secrets.0.iter();
    let secrets = secrets.map(|(name, value)| (name.as_bytes().into(), GoValue::str(value)));
    map.set(
        *b"secrets",
        GoValue::Map(Map::typed(&STRING_MAP, secrets.collect())),
    );
    functions::add(&map);
    map
}

/// What to tell, and what to remember. If `facts` were asked for what they do not know, the answer is not to be used: find it out, and
/// ask again.
pub fn decide(config: &Config, subject: &Subject<'_>, facts: &Facts) -> Decision {
    let recorded = annotations(subject.application).find(|(name, _)| *name == NOTIFIED);
    let before = Record::parse(recorded.map_or("", |(_, text)| text));
    let mut decision = Decision {
        kept: before.clone(),
        before,
        seconds: i64::try_from(facts.now.div_euclid(1_000_000_000)).unwrap_or(i64::MAX),
        ..Decision::default()
    };
    if !is_refreshed(subject.application) {
        return decision;
    }
    for key in subject.unrecorded {
        decision.kept.remember(key, decision.seconds);
    }
    let mut destinations = Destinations::of(subject.application, subject.project, config);
    decision.problems.append(&mut destinations.problems);
    if destinations.by_trigger.is_empty() {
        return decision;
    }
    let variables = variables(config, subject);
    let scope = Scope {
        variables: &variables,
        facts,
        steps: &Cell::new(MAX_STEPS),
    };
    for (trigger, destinations) in &destinations.by_trigger {
        let Some(conditions) = config.triggers.get(trigger) else {
            decision
                .problems
                .push(format!("trigger '{trigger}' is not configured"));
            continue;
        };
        for condition in conditions {
            decision.asks_clock |= condition.when.asks_clock();
            let (holds, once_per) = judge(condition, &scope, trigger, &mut decision.unjudged);
            for to in destinations {
                let key = record::key(trigger, &condition.key, to, &once_per);
                match (holds, decision.kept.has(&key)) {
                    (true, false) if decision.notices.len() >= MAX_NOTICES => decision.has_more = true,
                    (true, false) => decision.notices.push(Notice {
                        trigger: trigger.clone(),
                        to: to.clone(),
                        message: message(config, &condition.send, to, &variables, facts),
                        key,
                    }),
                    // What is told once for something stays told: its key has that in it.
                    (false, true) => decision.kept.forget(&key),
                    _ => {}
                }
            }
        }
    }
    decision
}

/// Whether a condition holds, and for what it is told once.
fn judge(
    condition: &Condition,
    scope: &Scope<'_>,
    trigger: &str,
    unjudged: &mut Vec<String>,
) -> (bool, String) {
    let holds = match condition.when.eval(scope) {
        Ok(value) => matches!(value, GoValue::Bool(true)),
        Err(error) => {
            unjudged.push(format!("trigger '{trigger}': {error}"));
            false
        }
    };
    let once_per = match (&condition.once_per, holds) {
        (Some(once_per), true) => once_per.eval(scope),
        _ => return (holds, String::new()),
    };
    match once_per {
        Ok(value) => (holds, shown(&value).chars().take(MAX_ONCE_PER).collect()),
        Err(error) => {
            unjudged.push(format!("trigger '{trigger}': oncePer: {error}"));
            (holds, String::new())
        }
    }
}
