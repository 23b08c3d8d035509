//! Workspaces and shared APIs: kcp's kinds, and the decisions on them.
//!
//! A **Workspace** is an isolated Kubernetes API; its **LogicalCluster** is the same thing seen from inside. A
//! **WorkspaceType** says what a new one begins with. An **APIExport** offers kinds, described by **APIResourceSchemas**, and
//! an **APIBinding** takes them into a workspace; what the provider may see there beyond its own kinds, the consumer grants
//! by accepting **permission claims**.
//!
//! Everything here is a function of objects. The server and its controllers fetch what these functions ask for and carry
//! out what they answer:
//!
//! | module | question |
//! |---|---|
//! | [`cluster`] | what workspace does this text name? |
//! | [`navigation`] | where does a step from one workspace lead? |
//! | [`crds`] | what do kcp's kinds look like? |
//! | [`types`] | what follows from a workspace's type, and may it be created here? |
//! | [`workspace`], [`logical_cluster`] | what is to be done about a Workspace, a LogicalCluster? |
//! | [`lifecycle`] | where may an initializer or a terminator work, and what may it change? |
//! | [`schema`], [`export`], [`binding`], [`locks`] | what does an export offer, and what does a binding bring? |
//! | [`claims`] | which objects may a provider see and touch? |
//! | [`published`], [`naming`], [`mutation`], [`related`] | what does a sync agent publish, how are its copies named and changed, and what belongs to them? |
//! | [`offering`], [`mirror`] | what must its export say, and what is to be done about an object and its copy? |
//! | [`identity`] | who is this user in this workspace? |
//! | [`bootstrap`] | what does a new installation begin with? |
//! | [`convert`] | how does `apis.kcp.io/v1alpha1` read as `v1alpha2`, and back? |
//!
//! Words, names and messages are kcp's. Times are arguments (RFC 3339), as is randomness.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod binding;
pub mod bootstrap;
pub mod claims;
pub mod cluster;
pub mod conditions;
pub mod convert;
pub mod crds;
mod dotted;
mod encode;
pub mod export;
pub mod glance;
pub mod identity;
pub mod lifecycle;
pub mod locks;
pub mod logical_cluster;
pub mod meta;
pub mod mirror;
pub mod mutation;
pub mod names;
pub mod naming;
pub mod navigation;
pub mod offering;
pub mod published;
pub mod related;
pub mod schema;
mod template;
pub mod types;
pub mod unserved;
pub mod workspace;

pub use cluster::{ClusterId, NameError, Target, WorkspacePath};
pub use conditions::{Conditions, Severity};
pub use identity::User;
pub use meta::Meta;
