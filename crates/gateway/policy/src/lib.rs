//! Kuadrant's policies, as decisions: what a policy targets ([`object`]), how policies above and below each other merge
//! ([`effective`]), what that comes to for one rule of one route ([`auth`], [`limit`]), and what their statuses say
//! ([`status`]). [`tls`], [`dns`], [`plan`] and [`portal`] are the kinds that lead to objects instead of verdicts.
//!
//! ```text
//! objects ── Policy::read ── effective::decide ── by rule: auth::compile, limit::compile ── plans (run by `gatekeeper`)
//!                                   │                                │
//!                                   └ standing of each policy ───────┴ problems ── status::conditions
//! ```
//!
//! A policy that cannot be understood is not left out: it is compiled to a plan that refuses every request, and its condition
//! says why. The crate must not open sockets, read clocks or know clients, nor judge requests: it only says how.

pub mod auth;
pub mod dns;
pub mod effective;
pub mod expression;
pub mod labels;
pub mod limit;
pub mod object;
pub mod plan;
pub mod portal;
pub mod status;
pub mod tls;
