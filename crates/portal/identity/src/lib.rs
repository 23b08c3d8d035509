//! The OpenID provider: people sign in to the realm of their organisation and programs get tokens, as OpenID Connect has it.
//!
//! Everything that it knows is objects: users, groups, clients, sessions, and credentials that are encrypted at rest. [`Realms`] is
//! what the API server asks with every token; it is fed with those objects before a write of one is acknowledged, and answers from
//! memory. [`Provider`] answers browsers and programs on the web listener and writes through a client of the API. The decisions are
//! `fairway-portal-realm`'s.
//!
//! People may come from other providers, too, if their realm says so (`external`): they are asked by `upstream`, and become users by
//! `entries`.
//!
//! There are two tasks for all realms: [`sweep::run`] removes sessions whose time is up, [`departures::run`] what users leave behind. A realm costs nothing until
//! somebody signs in to it: its keys are made then.

mod account;
mod account_page;
mod authorize;
mod client_auth;
mod cors;
pub mod departures;
mod device;
mod discovery;
mod entries;
mod external;
mod first;
mod hash_memory;
mod logout;
pub mod look;
mod objects;
mod page;
pub mod password;
mod portal;
mod provider;
mod random;
mod realms;
mod respond;
mod sign_in;
mod signer;
pub mod sweep;
#[cfg(test)]
mod tests;
mod token;
mod upstream;
mod userinfo;

pub use first::{ADMINISTRATOR, first_administrator};
pub use portal::{Begun, NotBegun, PortalSession};
pub use provider::{Options, Provider};
pub use realms::{Realms, SignedIn};
pub use respond::{Body, BoxError};

/// The user that serves sign-in.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-identity";
/// The user that lets people in who come from other providers.
pub const ENTRIES_USER: &str = "system:serviceaccount:kube-system:fairway-identity-entries";
/// The user that clears away what users leave behind.
pub const DEPARTURES_USER: &str = "system:serviceaccount:kube-system:fairway-identity-departures";
/// The user that makes the first administrator of a new installation.
pub const FIRST_USER: &str = "system:serviceaccount:kube-system:fairway-identity-bootstrap";
