//! The Git host: repositories over smart HTTP, as plain `git` speaks it.
//!
//! Which repositories exist is said by `Repository` objects (`fairway.dev/v1alpha1`), of which [`catalog`] knows the fields;
//! who may do what with them by RBAC in the workspace that they are in ([`access`]: `get` reads, `update` pushes). [`place`]
//! keeps a bare repository on disk for each, by the workspace's id; [`reconcile`] makes and removes them.
//!
//! A fetch is a `git upload-pack` between two streams ([`fetch`]). A push is taken apart here ([`push`]): commands are read,
//! objects come into a place of their own, rules and [`seams::PushCheck`]s judge them, references move, and
//! [`seams::PushWatcher`]s tell the pusher what follows. The pure parts are [`pkt`], [`route`], [`owner`] and
//! [`push::commands`], [`push::rules`].
//!
//! Everything a stranger sends is bounded: heads, commands, objects, the time between two pieces of a body. The crate sees
//! `kube::Client`s and must not know the kernel, the engine or who else is on the listener.

// A repository has sixty fields in Gitea's JSON, and `json!` takes them one by one.
#![recursion_limit = "256"]

pub mod access;
pub mod catalog;
pub mod fetch;
mod gitea;
mod hooks;
pub mod host;
pub mod mirror;
pub mod owner;
pub mod pkt;
pub mod place;
pub mod push;
pub mod reconcile;
pub mod route;
mod scopes;
pub mod seams;
pub mod transport;
mod webhook;

pub use gitea::OpenPull;
pub use gitea::proposals;
pub use hooks::deliver::start as start_deliveries;
pub use host::{Host, Options};
pub use transport::{Body, BoxError};

/// Who the host is, in every workspace.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-git-host";
