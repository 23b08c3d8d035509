//! The form and its run: what a Voyage says of its answers and its steps.

use serde_json::Value;

use crate::Facts;
use crate::link::{Evidence, Link, State};
use crate::object::{field, items, name, title};

/// Why there is no Voyage to judge, if there is none.
fn nobody(facts: &Facts, link: &'static str) -> Link {
    match facts.unreadable.get("voyages") {
        Some(why) => Link::new(link, State::Unknown, "Voyages cannot be read").shown_by([Evidence::new(
            "answer to reading Voyages",
            "",
            why,
        )]),
        None => Link::new(link, State::Unused, "no software template made it"),
    }
}

/// The answers, and the template that they answer.
pub(crate) fn form(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("form", state, finding);
    let Some(voyage) = &facts.voyage else {
        return nobody(facts, "form");
    };
    let template = field(voyage, "/spec/template");
    let asked = field(voyage, "/metadata/creationTimestamp");
    // A run whose template or answers are no good ends before it has steps.
    if field(voyage, "/status/phase") == "Failed" && items(voyage, "/status/steps").is_empty() {
        let why = field(voyage, "/status/message");
        return link(State::Broken, format!("{template} was not begun: {why}"))
            .since(asked)
            .shown_by([Evidence::new(
                format!("status.message of {}", title(voyage)),
                field(voyage, "/status/endedAt"),
                why,
            )])
            .advised(format!(
                "`fairway template show {template}` shows what is asked; correct the answers and start another run with `fairway new`"
            ));
    }
    let who = field(voyage, "/spec/requestedBy/username");
    link(State::Good, format!("{template}, answered by {who}")).since(asked)
}

/// The steps.
pub(crate) fn run(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("run", state, finding);
    let Some(voyage) = &facts.voyage else {
        return nobody(facts, "run");
    };
    let (phase, message) = (field(voyage, "/status/phase"), field(voyage, "/status/message"));
    let (named, space) = (name(voyage), field(voyage, "/metadata/namespace"));
    let steps = items(voyage, "/status/steps");
    let ended = match field(voyage, "/status/endedAt") {
        "" => field(voyage, "/status/startedAt"),
        ended => ended,
    };
    match phase {
        "Succeeded" => link(State::Good, format!("{named} Succeeded, {} steps", steps.len())).since(ended),
        "Failed" if steps.is_empty() => link(State::Waiting, "it waits for good answers".to_owned()),
        "Failed" | "Undoing" => {
            let failed = steps.iter().find(|it| it["state"] == "failed");
            let failed = failed.or_else(|| {
                steps
                    .iter()
                    .find(|it| message.contains(&format!("{:?}", field(it, "/id"))))
            });
            link(State::Broken, format!("{named} {phase}: {message}"))
                .since(failed.map_or(ended, |it| field(it, "/endedAt")))
                .shown_by([Evidence::new(format!("status.message of {}", title(voyage)), ended, message)])
                .shown_by(failed.into_iter().flat_map(said))
                .advised(format!(
                    "put right what the step says; `fairway voyage retry {named} -n {space}` goes on from it, `fairway voyage logs {named} -n \
                     {space}` shows all"
                ))
        }
        "Cancelled" => link(State::Off, format!("{named} was stopped: {message}")).since(ended),
        "Decommissioning" | "Decommissioned" => {
            link(State::Off, format!("what {named} made was taken back ({phase})")).since(ended)
        }
        _ => {
            let at = steps.iter().find(|it| it["state"] == "running");
            let at = at.map_or("its first step", |it| field(it, "/name"));
            link(State::Waiting, format!("{named} is at: {at}")).since(field(voyage, "/status/startedAt"))
        }
    }
}

/// The last lines of a step.
fn said(step: &Value) -> Vec<Evidence> {
    let log = items(step, "/log");
    let place = format!("log of step {} ({})", field(step, "/id"), field(step, "/action"));
    let line = |it: &Value| Evidence::new(place.clone(), field(it, "/at"), field(it, "/text"));
    log[log.len().saturating_sub(3)..].iter().map(line).collect()
}
