//! Who of a realm somebody is who comes from another provider: the user that is linked with issuer and subject, or a new one. A name
//! says nothing: whoever chooses at the provider what he is called must not become somebody who is here already.

use std::collections::BTreeSet;

use super::IdentityProvider;
use super::visitor::Visitor;
use crate::directory::{ADMINISTRATOR, Directory};

/// What becomes of a visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// He is this user.
    Known(String),
    /// He becomes a user of this name.
    New(String),
    /// Neither, before an administrator does something.
    Refused(Refusal),
}

/// Why somebody is not let in, for him and for an administrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name belongs to somebody.
    #[error(
        "The name {0} belongs to somebody here who is not linked with your account there. If that is you, an administrator can link the two."
    )]
    Taken(String),
    /// No name that a user can have.
    #[error(
        "Your name there, {0:?}, cannot be that of a user here. An administrator can make a user with another name for you."
    )]
    NoName(String),
    /// Nobody becomes a user by signing in.
    #[error("You are not a user here. An administrator can make a user for you.")]
    Closed,
    /// More than one user says that he is it.
    #[error(
        "Several users here are linked with your account there. An administrator has to leave one of them."
    )]
    Several,
}

/// A group that somebody joins or leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The name.
    pub group: String,
    /// Whether he joins.
    pub joins: bool,
}

/// Decides.
pub fn decide(all: &Directory, realm: &str, provider: &IdentityProvider, visitor: &Visitor) -> Entry {
    match all.linked(realm, &provider.issuer, &visitor.subject).as_slice() {
        [one] => return Entry::Known(one.clone()),
        [] => {}
        _ => return Entry::Refused(Refusal::Several),
    }
    // The administrator's name has rights, whether there still is one or not.
    let is_taken = |name: &str| name == ADMINISTRATOR || all.is_spoken_for(realm, name);
    match visitor.username.as_str() {
        _ if !provider.create_users => Entry::Refused(Refusal::Closed),
        "" => Entry::Refused(Refusal::NoName(visitor.said.chars().take(64).collect())),
        name if is_taken(name) => Entry::Refused(Refusal::Taken(name.to_owned())),
        name => Entry::New(name.to_owned()),
    }
}

/// Whether a group of a realm that is joined to groups of providers has a member of one of them; none if it is joined to none of
/// that provider.
pub(crate) fn admits(
    external: &BTreeSet<Box<str>>,
    provider: &str,
    groups: &BTreeSet<String>,
) -> Option<bool> {
    let mut of_provider = external
        .iter()
        .filter_map(|it| it.split_once(':'))
        .filter(|(of, _)| *of == provider)
        .map(|(_, group)| group)
        .peekable();
    of_provider.peek()?;
    Some(of_provider.any(|group| groups.contains(group)))
}
