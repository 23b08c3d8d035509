//! Plans for people: as text, as the differences that `argocd app diff` prints, and as what is said of a pull request.
//!
//! A plan is the engine's answer to `applications/plan`. What is said in a repository names objects, fields and impacts, and
//! no values: more people read a repository than the objects in a cluster.

use fairway_gitops_sync::impact::Impact;
use fairway_gitops_sync::key::ResourceKey;
use serde_json::Value;

use crate::field::{list, present, qualified_name, text};
use crate::lines::differences;
use crate::table::Table;

/// How many changes of an Application are named in a comment.
const NAMED: usize = 50;
/// How many fields of an object are named.
const FIELDS: usize = 3;
/// How long the description of a status may be.
const DESCRIPTION: usize = 140;

/// Begins a comment, so that it is found again and replaced.
pub const MARK: &str = "<!-- fairway: plan -->";

fn is_change(change: &Value) -> bool {
    matches!(text(change, "/action"), "create" | "change" | "prune")
}

/// Whether a sync would change anything, or it is not known.
pub fn is_different(plan: &Value) -> bool {
    present(plan, "/failure").is_some() || list(plan, "/changes").iter().any(is_change)
}

fn key(change: &Value) -> ResourceKey {
    ResourceKey::new(
        text(change, "/group"),
        text(change, "/kind"),
        text(change, "/namespace"),
        text(change, "/name"),
    )
}

fn name_of(change: &Value) -> String {
    match key(change).namespace.as_str() {
        "" => text(change, "/name").to_owned(),
        namespace => format!("{namespace}/{}", text(change, "/name")),
    }
}

/// What is worth knowing of a change: fields, or what was said.
fn detail(change: &Value) -> String {
    let fields: Vec<&str> = list(change, "/fields").iter().filter_map(Value::as_str).collect();
    let fields = match fields.len() {
        0 => String::new(),
        few if few <= FIELDS => fields.join(", "),
        many => format!("{} and {} more", fields[..FIELDS].join(", "), many - FIELDS),
    };
    let adopted = match change.get("adopted") {
        Some(Value::Bool(true)) => "not this application's until now",
        _ => "",
    };
    let parts = [fields.as_str(), adopted, text(change, "/message")];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    one_line(&parts.join("; "))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(200) {
        Some((at, _)) => format!("{} ...", &line[..at]),
        None => line,
    }
}

fn counts(plan: &Value) -> String {
    let count = |action: &str, word: &str| {
        let all = list(plan, "/changes").iter();
        let count = all.filter(|it| text(it, "/action") == action).count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let counts: Vec<String> = [
        count("create", "to create"),
        count("change", "to change"),
        count("prune", "to prune"),
    ]
    .into_iter()
    .flatten()
    .collect();
    match counts.is_empty() {
        true => "no object changes".to_owned(),
        false => counts.join(", "),
    }
}

fn revisions(plan: &Value) -> String {
    // Of a proposal, people know the head, and not what a merge of it would be.
    let head = present(plan, "/head").map(std::slice::from_ref);
    let all = head
        .unwrap_or_else(|| list(plan, "/revisions"))
        .iter()
        .filter_map(Value::as_str);
    let short: Vec<&str> = all
        .map(|it| it.get(..7).unwrap_or(it))
        .filter(|it| !it.is_empty())
        .collect();
    match short.is_empty() {
        true => String::new(),
        false => format!(" at {}", short.join(", ")),
    }
}

/// What a plan says, for a terminal.
pub fn describe(plan: &Value) -> String {
    let mut out = format!("{}{}: {}", qualified_name(plan), revisions(plan), counts(plan));
    if list(plan, "/changes").iter().any(is_change) {
        out.push_str(&format!(", impact: {}", text(plan, "/impact")));
    }
    out.push('\n');
    if let Some(why) = present(plan, "/failure").and_then(Value::as_str) {
        out.push_str(&format!("  {}\n", one_line(why)));
    }
    if list(plan, "/changes").is_empty() {
        return out;
    }
    let mut table = Table::new(["  ACTION", "KIND", "NAME", "IMPACT", "DETAIL"]);
    for change in list(plan, "/changes") {
        table.line([
            format!("  {}", text(change, "/action")),
            text(change, "/kind").to_owned(),
            name_of(change),
            text(change, "/impact").to_owned(),
            detail(change),
        ]);
    }
    out.push_str(&table.render());
    if let Some(approval) = present(plan, "/approval") {
        out.push_str(&format!(
            "  waits for approval: it would delete {}\n",
            reasons(approval)
        ));
    }
    out
}

fn reasons(approval: &Value) -> String {
    let reasons: Vec<&str> = list(approval, "/reasons")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    reasons.join(", ")
}

/// The differences of every object that would change, in the form of `argocd app diff`.
pub fn diff(plan: &Value, difference: &mut dyn FnMut(&Value, &Value) -> String) -> String {
    let mut out = String::new();
    for change in list(plan, "/changes").iter().filter(|it| is_change(it)) {
        let ResourceKey {
            group,
            kind,
            namespace,
            name,
        } = key(change);
        out.push_str(&format!("\n===== {group}/{kind} {namespace}/{name} ======\n"));
        let there = |field: &str| change.get(field).cloned().unwrap_or(Value::Null);
        match change.get("adopted") == Some(&Value::Bool(true)) {
            true => out.push_str("it is there, and not this application's until now: it is not shown\n"),
            false => out.push_str(&difference(&there("live"), &there("target"))),
        }
    }
    if let Some(why) = present(plan, "/failure").and_then(Value::as_str) {
        out.push_str(&format!("\n{why}\n"));
    }
    out
}

/// How two objects differ, line by line in YAML, as `diff` shows it. `yaml` writes one; null is nothing.
pub fn difference(live: &Value, target: &Value, yaml: &dyn Fn(&Value) -> String) -> String {
    let write = |value: &Value| match value.is_null() {
        true => String::new(),
        false => yaml(value),
    };
    differences(&write(live), &write(target))
}

/// The gravest impact of several plans.
pub fn worst(plans: &[Value]) -> Impact {
    let of = |plan: &Value| Impact::parse(text(plan, "/impact")).unwrap_or(Impact::Unknown);
    plans.iter().map(of).max().unwrap_or(Impact::None)
}

/// The state and the description of a commit status.
pub fn status(plans: &[Value]) -> (&'static str, String) {
    let failed: Vec<&Value> = plans
        .iter()
        .filter(|plan| present(plan, "/failure").is_some())
        .collect();
    let held = plans
        .iter()
        .filter(|plan| present(plan, "/approval").is_some())
        .count();
    let changes: usize = plans
        .iter()
        .map(|plan| list(plan, "/changes").iter().filter(|it| is_change(it)).count())
        .sum();
    let applications = match plans.len() {
        1 => "1 application".to_owned(),
        many => format!("{many} applications"),
    };
    let (state, said) = match failed.first() {
        Some(plan) => (
            "failure",
            format!("{}: {}", qualified_name(plan), one_line(text(plan, "/failure"))),
        ),
        None if plans.is_empty() => ("success", "no application is touched".to_owned()),
        None => {
            let impact = worst(plans);
            let held = if held > 0 { ", waits for approval" } else { "" };
            let state = if impact == Impact::DataLoss {
                "warning"
            } else {
                "success"
            };
            let objects = if changes == 1 { "object" } else { "objects" };
            (
                state,
                format!(
                    "{changes} {objects} in {applications}, impact: {}{held}",
                    impact.as_str()
                ),
            )
        }
    };
    (state, said.chars().take(DESCRIPTION).collect())
}

/// A comment on a pull request.
pub fn comment(plans: &[Value], head: &str) -> String {
    let mut out = format!("{MARK}\n### Plan for {}\n\n", head.get(..7).unwrap_or(head));
    if plans.is_empty() {
        out.push_str("No application is touched.\n");
        return out;
    }
    for plan in plans {
        out.push_str(&format!("**{}**: {}", qualified_name(plan), counts(plan)));
        if list(plan, "/changes").iter().any(is_change) {
            out.push_str(&format!(", impact: **{}**", text(plan, "/impact")));
        }
        out.push_str("\n\n");
        if let Some(why) = present(plan, "/failure").and_then(Value::as_str) {
            out.push_str(&format!("It cannot be synced: {}\n\n", cell(why)));
        }
        let changes = list(plan, "/changes");
        if !changes.is_empty() {
            out.push_str("| action | kind | name | impact | detail |\n|---|---|---|---|---|\n");
        }
        for change in changes.iter().take(NAMED) {
            let row = [
                text(change, "/action"),
                text(change, "/kind"),
                &name_of(change),
                text(change, "/impact"),
                &detail(change),
            ];
            out.push_str(&format!("| {} |\n", row.map(cell).join(" | ")));
        }
        if changes.len() > NAMED {
            out.push_str(&format!("\n... and {} more.\n", changes.len() - NAMED));
        }
        if let Some(approval) = present(plan, "/approval") {
            out.push_str(&format!(
                "\nThe sync will wait for approval: it would delete {}.\n",
                cell(&reasons(approval))
            ));
        }
        out.push('\n');
    }
    out
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests;
