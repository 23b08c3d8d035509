//! What argocd-notifications' configuration means: who is told what, when, and in which words.
//!
//! [`config`] reads the ConfigMap and the Secret, [`subscription`] finds who wants to hear of what, [`expr`] judges conditions,
//! [`record`] knows what was told already, [`message`] puts it into words, and [`decide()`] brings them together: from an Application
//! and its project to what is to be sent now. Nothing is sent and nothing is read here: objects, clock and commits are the caller's
//! ([`facts::Facts`]). What is not served is refused by its name. Everything that a tenant can write is bounded.

#![warn(missing_docs)]

pub mod config;
pub mod decide;
pub mod expr;
pub mod facts;
mod functions;
mod git_url;
pub mod message;
pub mod record;
pub mod subscription;

pub use config::Config;
pub use decide::{Decision, Notice, Subject, decide};
pub use facts::Facts;
