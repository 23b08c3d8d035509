//! The chain for people and for programs.

use serde_json::{Value, json};

use crate::link::{Evidence, Link};
use crate::{Report, State};

/// The chain for people: a line for each link, the verdict, what shows it and what to do.
pub fn text(report: &Report) -> String {
    let width = report.links.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for link in &report.links {
        let line = format!(
            "{:20}  {:width$}  {:7}  {}",
            link.at.as_deref().map_or("", second),
            link.name,
            link.state.word(),
            link.finding
        );
        text += &format!("{}\n", line.trim_end());
    }
    text += &format!("\n{}: {}\n", report.asked, report.verdict());
    let first = |state: State| report.links.iter().find(|it| it.state == state);
    let shown = report
        .broken()
        .or_else(|| first(State::Off))
        .or_else(|| first(State::Waiting))
        .or_else(|| first(State::Unknown));
    if let Some(link) = shown {
        text += &reasons(link);
    }
    text
}

fn reasons(link: &Link) -> String {
    let mut text = String::new();
    for Evidence { seen_in, at, message } in &link.evidence {
        let at = at
            .as_deref()
            .map_or(String::new(), |it| format!(", {}", second(it)));
        let mut lines = message.lines();
        let first = lines.next().unwrap_or_default();
        let more = if lines.next().is_some() { " …" } else { "" };
        let colon = if first.is_empty() { "" } else { ": " };
        text += &format!("  | {seen_in}{at}{colon}{first}{more}\n");
    }
    if let Some(advice) = &link.advice {
        text += &format!("  > {advice}\n");
    }
    text
}

/// A time without parts of a second.
fn second(time: &str) -> &str {
    match time.split_once('.') {
        Some((whole, _)) => whole,
        None => time,
    }
}

/// The same for programs.
pub fn described(report: &Report) -> Value {
    let evidence = |it: &Evidence| json!({"seenIn": it.seen_in, "at": it.at, "message": it.message});
    let link = |it: &Link| {
        json!({
            "link": it.name, "state": it.state.key(), "at": it.at, "finding": it.finding,
            "evidence": it.evidence.iter().map(evidence).collect::<Vec<_>>(), "advice": it.advice,
        })
    };
    json!({
        "kind": report.asked.kind, "namespace": report.asked.namespace, "name": report.asked.name,
        "sound": report.broken().is_none(),
        "firstBroken": report.broken().map(|it| it.name),
        "verdict": report.verdict(),
        "links": report.links.iter().map(link).collect::<Vec<_>>(),
    })
}
