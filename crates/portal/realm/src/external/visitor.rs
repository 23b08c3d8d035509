//! Somebody who comes from another provider: whether its token is good, and what it says of him. Nothing of it is believed before
//! its signature was found right.

use std::collections::BTreeSet;

use fairway_jose::{ClaimError, Expected};
use serde_json::Value;

use super::IdentityProvider;
use crate::{client, secret};

/// How far a provider's clock may be ahead, as elsewhere with tokens of others.
const LEEWAY: i64 = 300;
/// The longest subject, by the standard.
const MAX_SUBJECT: usize = 255;
/// Groups of somebody that are looked at, and how long the name of one may be.
const MAX_GROUPS: usize = 1024;
const MAX_GROUP: usize = 256;
/// As the schema of User has them.
const MAX_DISPLAY_NAME: usize = 256;
const MAX_EMAIL: usize = 320;

/// Somebody, as a provider knows him.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// What the provider calls him, for ever.
    pub subject: String,
    /// The name that he would have here; empty if there is none that he could have.
    pub username: String,
    /// The name as the provider says it.
    pub said: String,
    /// For people.
    pub display_name: String,
    /// The mail address.
    pub email: String,
    /// His groups at the provider.
    pub groups: BTreeSet<String>,
    /// When he proved who he is.
    pub authenticated_at: i64,
}

/// Why a token, though signed, says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// By its issuer, its audience or its time.
    #[error(transparent)]
    Claims(#[from] ClaimError),
    /// Another program asked for it.
    #[error("the token was asked for by another client")]
    Party,
    /// It answers another question.
    #[error("the token answers another sign-in: its nonce is not the one that was sent")]
    Nonce,
    /// Of nobody.
    #[error("the token has no subject, or one of more than {MAX_SUBJECT} letters")]
    Subject,
    /// What else was told is of somebody else.
    #[error("the provider's userinfo is about another subject")]
    Userinfo,
}

/// Judges the claims of an ID token (OpenID Connect Core, section 3.1.3.7).
pub fn judge(claims: &Value, provider: &IdentityProvider, nonce: &str, now: i64) -> Result<(), Refusal> {
    let expected = Expected {
        issuer: Some(&provider.issuer),
        audience: Some(&provider.client_id),
        leeway: LEEWAY,
    };
    fairway_jose::judge(claims, expected, now)?;
    let has_others = claims["aud"].as_array().is_some_and(|all| all.len() > 1);
    let is_ours = match &claims["azp"] {
        Value::Null => !has_others,
        party => *party == provider.client_id.as_str(),
    };
    if !is_ours {
        return Err(Refusal::Party);
    }
    let said = claims["nonce"].as_str().unwrap_or_default();
    if nonce.is_empty() || !secret::is_equal(said.as_bytes(), nonce.as_bytes()) {
        return Err(Refusal::Nonce);
    }
    let subject = claims["sub"].as_str().unwrap_or_default();
    let is_subject =
        (1..=MAX_SUBJECT).contains(&subject.len()) && subject.bytes().all(|b| b.is_ascii_graphic());
    is_subject.then_some(()).ok_or(Refusal::Subject)
}

/// Whether the provider has to be asked for more: it may leave claims to its userinfo.
pub fn lacks(claims: &Value, provider: &IdentityProvider) -> bool {
    let named = &provider.claims;
    [&named.username, &named.display_name, &named.email, &named.groups]
        .iter()
        .any(|name| !name.is_empty() && claims.get(name.as_str()).is_none())
}

/// What claims that were judged say, and the provider's userinfo besides.
pub fn read(claims: &Value, more: &Value, provider: &IdentityProvider, now: i64) -> Result<Visitor, Refusal> {
    if !more.is_null() && more["sub"] != claims["sub"] {
        return Err(Refusal::Userinfo);
    }
    let named = &provider.claims;
    let find = |name: &str| match name {
        "" => &Value::Null,
        name => claims.get(name).unwrap_or(&more[name]),
    };
    let line = |name: &str, most: usize| {
        let text = find(name).as_str().unwrap_or_default().trim();
        let plain: String = text.chars().filter(|it| !it.is_control()).collect();
        match plain.chars().count() <= most {
            true => plain,
            false => String::new(),
        }
    };
    let said = line(&named.username, MAX_DISPLAY_NAME);
    let username = said.to_lowercase();
    let groups = match find(&named.groups) {
        Value::String(one) => vec![one.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_group = |it: &&str| (1..=MAX_GROUP).contains(&it.len());
    Ok(Visitor {
        subject: claims["sub"].as_str().unwrap_or_default().to_owned(),
        username: match client::is_name(&username) {
            true => username,
            false => String::new(),
        },
        said,
        display_name: line(&named.display_name, MAX_DISPLAY_NAME),
        email: line(&named.email, MAX_EMAIL),
        groups: groups
            .into_iter()
            .filter(is_group)
            .take(MAX_GROUPS)
            .map(str::to_owned)
            .collect(),
        authenticated_at: claims["auth_time"].as_i64().map_or(now, |at| at.clamp(0, now)),
    })
}
