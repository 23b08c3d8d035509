//! The Kubernetes API: authenticate, authorise, admit, apply, store, watch.
//!
//! A request enters through [`http::listener`] or the in-process [`client`], takes its way through [`service`], is given to
//! a verb of [`rest`], and ends in one transaction of the [`storage`] or a look into the [`cache`]. The kernel knows
//! nothing of virtual machines, Git or gateways; whoever does is a client of it.
//!
//! Tasks: one that fills the cache from the store's stream (`cache::ingest`), one per connection, one thread that writes the
//! audit log. Everything else happens in the task of the request.

pub mod access;
pub mod admission;
pub mod api_services;
pub mod apis;
pub mod audit;
pub mod authn;
pub mod authorize;
mod behaviour;
pub mod bootstrap;
pub mod cache;
pub mod chance;
pub mod client;
mod compaction;
mod convert;
pub mod custom;
mod discovery;
mod dispatch;
mod filter;
mod generations;
mod health;
mod home;
pub mod http;
mod inflight;
pub mod kernel;
pub mod key;
mod lifecycle_workspace;
mod metrics;
pub mod object;
mod openapi;
pub mod pki;
mod query;
pub mod registry;
mod request;
mod rest;
mod review_check;
mod reviews;
mod selector;
pub mod service;
pub mod status;
pub mod storage;
mod strict;
mod subresource;
mod version;
mod virtual_workspace;
pub mod workspaces;

pub use kernel::{Kernel, KernelOptions, StartError};
pub use version::GIT_VERSION;
