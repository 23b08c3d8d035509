//! What a push is told of an Application that it touches: what the commit changes, the sync as it runs, and how it ends.
//!
//! A [`Teller`] is handed what the engine notices of one Application and the time since the push, and says the lines. It is
//! done when the Application is as the commit wants it, or when it is known why it will not be without somebody's help.
//! What the engine notices of other commits is not told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_gitops_sync::automated::Automated;
use fairway_gitops_sync::guard;
use fairway_gitops_sync::hook::Phase;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::operation::{OperationPhase, ResourceResult, ResultCode};
use serde_json::Value;

use crate::field::{flag, list, present, text};

/// How many objects of a commit are named.
const NAMED: usize = 20;
/// How many results of a sync are told.
const RESULTS: usize = 100;
/// How long something may be degraded before that is the answer: what was broken before the push takes a moment to recover.
const GRACE: Duration = Duration::from_secs(5);
/// What a sync says that is at work: the results say it better.
const AT_WORK: &str = "one or more tasks are running";

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It goes.
    Prune,
}

impl Action {
    fn sign(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Prune => '-',
        }
    }
}

/// A result of a sync, and the wave that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    /// The result.
    pub result: ResourceResult,
    /// The wave.
    pub wave: i64,
}

/// What the engine notices of an Application.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// It was compared with what these commits declare.
    Compared {
        /// Of each source.
        revisions: Vec<String>,
        /// What a sync would do.
        changes: Vec<(ResourceKey, Action)>,
    },
    /// It would sync, and may not now: why.
    Held(String),
    /// A sync has gone on.
    Syncing {
        /// Of each source.
        revisions: Vec<String>,
        /// What it does or waits for.
        message: String,
        /// What became of objects.
        results: Vec<TaskResult>,
    },
    /// The Application as it was written.
    Written(Value),
    /// The Application is gone.
    Gone,
}

/// Tells of one Application.
#[derive(Debug)]
pub struct Teller {
    name: String,
    /// The commits that it was at before the push.
    before: Vec<String>,
    /// The commits that the push wants it at; empty: any.
    wanted: Vec<String>,
    /// Whether the end alone is told.
    is_brief: bool,
    has_told_changes: bool,
    /// What the commit changes, in any comparison with it; nothing before the first.
    changed: Option<BTreeSet<ResourceKey>>,
    results: BTreeMap<(ResourceKey, Phase), String>,
    told_results: usize,
    health: BTreeMap<ResourceKey, String>,
    message: String,
    degraded_since: Option<Duration>,
    held: Option<String>,
    is_over: bool,
}

impl Teller {
    /// Begins. `before` and `wanted` are the commits of each source.
    pub fn new(name: &str, before: Vec<String>, wanted: Vec<String>, is_brief: bool) -> Self {
        Self {
            name: name.to_owned(),
            before,
            wanted,
            is_brief,
            has_told_changes: false,
            changed: None,
            results: BTreeMap::new(),
            told_results: 0,
            health: BTreeMap::new(),
            message: String::new(),
            degraded_since: None,
            held: None,
            is_over: false,
        }
    }

    /// The Application.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether everything is told.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What there is to tell after something was noticed.
    pub fn hear(&mut self, notice: &Notice, since_push: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_over {
            return lines;
        }
        match notice {
            Notice::Compared { revisions, changes } if self.is_wanted(revisions) => {
                let keys = changes.iter().map(|(key, _)| key.clone());
                self.changed.get_or_insert_default().extend(keys);
                self.tell_changes(revisions, changes, &mut lines);
            }
            Notice::Syncing {
                revisions,
                message,
                results,
            } if self.is_wanted(revisions) => {
                self.tell_results(results, &mut lines);
                self.tell_message(message, &mut lines);
            }
            Notice::Held(why) => self.held = Some(why.clone()),
            Notice::Written(application) => self.look(application, since_push, &mut lines),
            Notice::Gone => self.end("is gone", &mut lines),
            Notice::Compared { .. } | Notice::Syncing { .. } => {}
        }
        lines
    }

    fn is_wanted(&self, revisions: &[String]) -> bool {
        self.wanted.is_empty() || self.wanted == revisions
    }

    fn say(&self, what: &str, lines: &mut Vec<String>) {
        lines.push(format!("{}: {}", self.name, one_line(what)));
    }

    fn end(&mut self, how: &str, lines: &mut Vec<String>) {
        self.say(how, lines);
        self.is_over = true;
    }

    fn tell_changes(
        &mut self,
        revisions: &[String],
        changes: &[(ResourceKey, Action)],
        lines: &mut Vec<String>,
    ) {
        if std::mem::replace(&mut self.has_told_changes, true) || self.is_brief {
            return;
        }
        let at: Vec<&str> = revisions.iter().map(|revision| short(revision)).collect();
        let count = |wanted: Action, word: &str| {
            let count = changes.iter().filter(|(_, action)| *action == wanted).count();
            (count > 0).then(|| format!("{count} {word}"))
        };
        let counts: Vec<String> = [
            count(Action::Create, "to create"),
            count(Action::Change, "to change"),
            count(Action::Prune, "to prune"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let counts = match counts.is_empty() {
            true => "no object changes".to_owned(),
            false => counts.join(", "),
        };
        lines.push(format!("{} at {}: {counts}", self.name, at.join(", ")));
        for (key, action) in changes.iter().take(NAMED) {
            lines.push(format!("  {} {}", action.sign(), shown(key)));
        }
        if let Some(more) = changes.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(format!("    and {more} more"));
        }
    }

    fn tell_results(&mut self, results: &[TaskResult], lines: &mut Vec<String>) {
        for TaskResult { result, wave } in results {
            let Some(word) = word(result) else {
                continue;
            };
            if self.is_as_before(result, &word) {
                continue;
            }
            let at = (result.key.clone(), result.sync_phase);
            if self.results.get(&at) == Some(&word) {
                continue;
            }
            if !self.is_brief && self.told_results < RESULTS {
                let stage = stage(result.sync_phase, *wave);
                self.say(&format!("{stage}: {} {word}", shown(&result.key)), lines);
            } else if !self.is_brief && self.told_results == RESULTS {
                self.say("further results are not shown here", lines);
            }
            self.told_results += 1;
            self.results.insert(at, word);
        }
    }

    /// Whether an object was applied that the commit does not change. What has not been compared may have changed.
    fn is_as_before(&self, result: &ResourceResult, word: &str) -> bool {
        let was_applied = result.hook_type.is_none() && result.status == Some(ResultCode::Synced);
        // The server's answer to an apply does not tell whether it changed anything.
        let may_be = was_applied && matches!(word, "serverside-applied" | "unchanged" | "synced");
        let changed = self.changed.as_ref();
        may_be && changed.is_some_and(|changed| !changed.contains(&result.key))
    }

    fn tell_message(&mut self, message: &str, lines: &mut Vec<String>) {
        let is_news = message.starts_with("waiting for ") || message.contains("Retrying attempt #");
        if message == AT_WORK || !is_news || message == self.message {
            return;
        }
        message.clone_into(&mut self.message);
        if !self.is_brief && !is_waiting_for_approval(message) {
            self.say(message, lines);
        }
    }

    /// Looks at the Application.
    fn look(&mut self, application: &Value, since_push: Duration, lines: &mut Vec<String>) {
        let revisions = revisions(application);
        if !self.is_wanted(&revisions) {
            if revisions != self.before && !revisions.is_empty() {
                let newer: Vec<&str> = revisions.iter().map(|revision| short(revision)).collect();
                self.end(
                    &format!("a newer commit, {}, took its place", newer.join(", ")),
                    lines,
                );
            }
            return;
        }
        if let Some(why) = condition(application, &["ComparisonError", "InvalidSpecError"]) {
            return self.end(&format!("cannot be compared: {why}"), lines);
        }
        let state = &application["status"]["operationState"];
        let message = text(state, "/message");
        let (sync, health) = (
            text(application, "/status/sync/status"),
            text(application, "/status/health/status"),
        );
        let running = matches!(text(state, "/phase"), "Running" | "Terminating");
        if running || present(application, "/operation").is_some() {
            self.tell_health(application, lines);
            if is_waiting_for_approval(message)
                || message.starts_with("Sync operation blocked by sync window")
            {
                self.end(message, lines);
            } else {
                self.tell_message(message, lines);
            }
            return;
        }
        let name = self.name.clone();
        if sync == "OutOfSync" {
            return match Automated::read(&application["spec"]["syncPolicy"]) {
                None => self.end(
                    &format!("OutOfSync, and it does not sync by itself: fairway app sync {name}"),
                    lines,
                ),
                Some(policy) => self.out_of_sync(application, policy, lines),
            };
        }
        self.tell_health(application, lines);
        let after = seconds(since_push);
        match (sync, health) {
            ("Synced", "Healthy") => self.end(&format!("Synced and Healthy {after} s after the push"), lines),
            ("Synced", "Suspended") => self.end("Synced, and Suspended", lines),
            ("Synced", "Degraded") => {
                let since = *self.degraded_since.get_or_insert(since_push);
                if since_push.saturating_sub(since) >= GRACE {
                    let why = degraded(application);
                    self.end(
                        &format!("Synced, but Degraded{why}: fairway app get {name}"),
                        lines,
                    );
                }
                return;
            }
            // It is on its way, or not known yet.
            _ => {}
        }
        self.degraded_since = None;
    }

    /// Why an Application that syncs by itself is not in sync, if it will stay so.
    fn out_of_sync(&mut self, application: &Value, policy: Automated, lines: &mut Vec<String>) {
        let name = self.name.clone();
        if let Some(why) = condition(application, &["SyncError"]) {
            return self.end(&format!("OutOfSync: {why}"), lines);
        }
        if let Some(why) = self.held.take() {
            return self.end(&format!("OutOfSync: {why}"), lines);
        }
        let state = &application["status"]["operationState"];
        match text(state, "/phase") {
            "Failed" | "Error" if self.is_wanted(&result_revisions(state)) => {
                let why = text(state, "/message").to_owned();
                return self.end(&format!("the sync failed: {why}"), lines);
            }
            _ => {}
        }
        let off: Vec<&Value> = list(application, "/status/resources")
            .iter()
            .filter(|it| text(it, "/status") == "OutOfSync")
            .collect();
        if !policy.prune && off.iter().all(|it| flag(it, "/requiresPruning")) {
            let count = off.len();
            self.end(
                &format!(
                    "OutOfSync: {count} objects are left that the commit does not have, and it does not prune by itself: \
                     fairway app sync {name} --prune"
                ),
                lines,
            );
        }
    }

    fn tell_health(&mut self, application: &Value, lines: &mut Vec<String>) {
        for resource in list(application, "/status/resources") {
            let now = text(resource, "/health/status");
            if now.is_empty() || now == "Missing" {
                continue;
            }
            let key = ResourceKey::new(
                text(resource, "/group"),
                text(resource, "/kind"),
                text(resource, "/namespace"),
                text(resource, "/name"),
            );
            let before = self.health.insert(key.clone(), now.to_owned());
            let is_news = match before.as_deref() {
                Some(before) => before != now,
                None => now != "Healthy",
            };
            if is_news && !self.is_brief && self.told_results < RESULTS {
                self.told_results += 1;
                let why = match text(resource, "/health/message") {
                    "" => String::new(),
                    message => format!(": {message}"),
                };
                self.say(&format!("{} is {now}{why}", shown(&key)), lines);
            }
        }
    }
}

/// What is told when the time is up and these are not over.
pub fn out_of_time(names: &[&str], limit: Duration) -> String {
    format!(
        "after {} s this goes on in the background; follow it with: fairway app wait {}",
        limit.as_secs(),
        names.join(" ")
    )
}

/// What is told when the time is up before anybody has looked.
pub fn not_looked_at(limit: Duration) -> String {
    format!(
        "after {} s the engine has not looked at this push yet; it will: fairway app list",
        limit.as_secs()
    )
}

/// What is told of Applications that there is no room for.
pub fn and_more(count: usize) -> String {
    format!("{count} more Applications are touched, and synced in the background: fairway app list")
}

fn shown(key: &ResourceKey) -> String {
    match key.namespace.as_str() {
        "" => format!("{} {}", key.kind, key.name),
        namespace => format!("{} {namespace}/{}", key.kind, key.name),
    }
}

fn short(revision: &str) -> &str {
    revision.get(..7).unwrap_or(revision)
}

/// One line of a length that people read.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 500;
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(at);
        line.push_str(" ...");
    }
    line
}

fn seconds(time: Duration) -> String {
    format!("{}.{}", time.as_secs(), time.subsec_millis() / 100)
}

fn stage(phase: Phase, wave: i64) -> String {
    match (phase, wave) {
        (Phase::Sync, wave) => format!("wave {wave}"),
        (phase, 0) => phase.as_str().to_owned(),
        (phase, wave) => format!("{} wave {wave}", phase.as_str()),
    }
}

/// What became of an object; nothing if it was only about to be done.
fn word(result: &ResourceResult) -> Option<String> {
    if result.hook_type.is_some() {
        return Some(match (result.hook_phase, result.message.as_str()) {
            (Some(OperationPhase::Failed | OperationPhase::Error), why) => format!("failed: {why}"),
            (Some(OperationPhase::Succeeded), _) => "succeeded".to_owned(),
            _ => "is running".to_owned(),
        });
    }
    Some(match result.status? {
        // Such as `configmap/web configured`.
        ResultCode::Synced => match result.message.split_once(' ') {
            Some((what, word)) if what.contains('/') => word.to_owned(),
            _ => "synced".to_owned(),
        },
        ResultCode::SyncFailed => format!("failed: {}", result.message),
        ResultCode::Pruned => "pruned".to_owned(),
        ResultCode::PruneSkipped => format!("stays: {}", result.message),
    })
}

fn is_waiting_for_approval(message: &str) -> bool {
    message.starts_with(guard::WAITING)
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let items = list(value, pointer).iter();
    items.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn one_or_several(value: &Value) -> Vec<String> {
    match texts(value, "/revisions") {
        several if !several.is_empty() => several,
        _ => match text(value, "/revision") {
            "" => Vec::new(),
            one => vec![one.to_owned()],
        },
    }
}

fn revisions(application: &Value) -> Vec<String> {
    one_or_several(&application["status"]["sync"])
}

fn result_revisions(state: &Value) -> Vec<String> {
    one_or_several(&state["syncResult"])
}

fn condition<'v>(application: &'v Value, kinds: &[&str]) -> Option<&'v str> {
    let all = list(application, "/status/conditions").iter();
    all.filter(|it| kinds.contains(&text(it, "/type")))
        .map(|it| text(it, "/message"))
        .next()
}

/// Which object is degraded, and what it says.
fn degraded(application: &Value) -> String {
    let all = list(application, "/status/resources").iter();
    let first = all.clone().find(|it| text(it, "/health/status") == "Degraded");
    first.map_or_else(String::new, |it| {
        let name = match text(it, "/namespace") {
            "" => text(it, "/name").to_owned(),
            namespace => format!("{namespace}/{}", text(it, "/name")),
        };
        match text(it, "/health/message") {
            "" => format!(" ({} {name})", text(it, "/kind")),
            why => format!(" ({} {name}: {why})", text(it, "/kind")),
        }
    })
}

#[cfg(test)]
mod tests;
