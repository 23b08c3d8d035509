//! A key to an API: the request that stands for it with the API's owner, what he said, and the Secret that holds it.
//!
//! An APIKey has one condition, which says how far it is or what is wrong; whose fault that is is in its reason.

use serde_json::Value;

use crate::Facts;
use crate::gateway::is_stale;
use crate::link::{Evidence, Link, State};
use crate::object::{field, items, name, title, told};

/// How far a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Pending,
    Denied,
    Expired,
    Approved,
    Failed,
}

/// What a key says of itself, and the condition that says it.
fn stage(facts: &Facts) -> (Stage, Option<&Value>) {
    let stages = [
        ("Failed", Stage::Failed),
        ("Denied", Stage::Denied),
        ("Expired", Stage::Expired),
        ("Approved", Stage::Approved),
        ("Pending", Stage::Pending),
    ];
    let Some(key) = &facts.object else {
        return (Stage::New, None);
    };
    let said = |kind: &str| {
        let mut all = items(key, "/status/conditions").iter();
        all.find(|it| it["type"] == kind && it["status"] == "True" && !is_stale(key, it))
    };
    let found = stages
        .iter()
        .find_map(|(kind, stage)| said(kind).map(|it| (*stage, it)));
    found.map_or((Stage::New, None), |(stage, it)| (stage, Some(it)))
}

/// A failure that is the fault of this link: the key's condition, if its reason is one of those.
pub(crate) fn failure<'f>(facts: &'f Facts, reasons: &[&str]) -> Option<&'f Value> {
    match stage(facts) {
        (Stage::Failed, Some(said)) => Some(said).filter(|it| reasons.contains(&field(it, "/reason"))),
        _ => None,
    }
}

pub(crate) fn broken(facts: &Facts, link: &'static str, said: &Value, advice: &str) -> Link {
    let owner = facts.object.as_ref().map(title).unwrap_or_default();
    Link::new(link, State::Broken, field(said, "/message"))
        .shown_by([told(said, &owner)])
        .advised(advice)
}

/// The request in the namespace of the API.
pub(crate) fn request(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("request", state, finding);
    if let Some(found) = facts.key_requests.first() {
        let made = field(found, "/metadata/creationTimestamp");
        return link(State::Good, title(found)).since(made);
    }
    match stage(facts) {
        (Stage::New, _) if facts.object.is_none() => {
            link(State::Waiting, format!("there is no {} yet", facts.asked))
        }
        (Stage::New, _) => link(State::Waiting, "nobody has looked at the key yet".to_owned()),
        (Stage::Failed, _) => link(
            State::Waiting,
            "it is made when what is wrong is put right".to_owned(),
        ),
        (_, Some(said)) => link(State::Good, "it lies with the owner of the API".to_owned())
            .since(field(said, "/lastTransitionTime")),
        (_, None) => link(State::Unknown, "whether there is one is not known".to_owned()),
    }
}

/// What the owner of the API said.
pub(crate) fn approval(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("approval", state, finding);
    let (stage, said) = stage(facts);
    let owner = facts.object.as_ref().map(title).unwrap_or_default();
    let message = said.map_or("", |it| field(it, "/message")).to_owned();
    let shown: Option<Evidence> = said.map(|it| told(it, &owner));
    match stage {
        Stage::Approved => link(State::Good, message).shown_by(shown),
        Stage::Denied => link(State::Broken, message)
            .shown_by(shown)
            .advised("talk to whoever denied it; a changed spec.useCase or spec.planTier asks anew"),
        Stage::Expired => link(State::Broken, message).shown_by(shown).advised(
            "ask for another key by `fairway api-key request`, or for a later time in spec.expiresAt",
        ),
        Stage::Pending => {
            let key = facts.object.as_ref();
            let at = key.map_or((String::new(), String::new()), |it| {
                (name(it).to_owned(), field(it, "/metadata/namespace").to_owned())
            });
            link(State::Waiting, "nobody has approved or denied it yet".to_owned())
                .shown_by(shown)
                .advised(format!(
                    "the owner of the API approves it in the portal or by `fairway api-key approve {} -n {}`",
                    at.0, at.1
                ))
        }
        Stage::New | Stage::Failed => {
            let given = facts
                .key_approvals
                .iter()
                .find(|it| it["spec"]["approved"] == true);
            match given {
                Some(given) => link(
                    State::Good,
                    format!("{} by {}", title(given), field(given, "/spec/reviewedBy")),
                )
                .since(field(given, "/metadata/creationTimestamp")),
                None => link(State::Waiting, "there is nothing to approve yet".to_owned()),
            }
        }
    }
}

/// The Secret that holds the key.
pub(crate) fn secret(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("secret", state, finding);
    let faults = [
        "SecretNotFound",
        "SecretAPIKeyNotFound",
        "SecretAPIKeyEmpty",
        "SecretExists",
    ];
    if let Some(said) = failure(facts, &faults) {
        let advice = match field(said, "/reason") {
            "SecretExists" => "delete that Secret, or name it in spec.secretRef if it is the key",
            _ => {
                "make the Secret with the key under api_key, or leave spec.secretRef away: a key is made then"
            }
        };
        return broken(facts, "secret", said, advice);
    }
    let key = facts.object.as_ref();
    let named = |pointer: &str| key.map_or("", |it| field(it, pointer)).to_owned();
    let space = named("/metadata/namespace");
    let (own, made) = (named("/spec/secretRef/name"), named("/status/secretRef/name"));
    match (stage(facts).0, own.as_str(), made.as_str()) {
        (Stage::Approved, "", "") => link(State::Waiting, "the key is being made".to_owned()),
        (Stage::Approved, "", made) => link(State::Good, format!("Secret {space}/{made} holds the key"))
            .since(stage(facts).1.map_or("", |it| field(it, "/lastTransitionTime"))),
        (_, "", _) => link(
            State::Waiting,
            "a key is made when the request is approved".to_owned(),
        ),
        (Stage::New, _, _) => link(State::Waiting, "nobody has looked at it yet".to_owned()),
        (_, own, _) => link(State::Good, format!("Secret {space}/{own}, which the key names")),
    }
}
