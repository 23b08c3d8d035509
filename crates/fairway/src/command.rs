//! One module per command.

pub(crate) mod api_key;
pub(crate) mod app;
pub(crate) mod appset;
pub(crate) mod backup;
pub(crate) mod catalog;
pub(crate) mod certs;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod down;
pub(crate) mod gateway;
mod gitops;
pub(crate) mod golden_path;
pub(crate) mod identity;
pub(crate) mod image;
pub(crate) mod keys;
pub(crate) mod kubeconfig;
pub(crate) mod login;
pub(crate) mod node;
pub(crate) mod proj;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod running;
mod service;
pub(crate) mod status;
pub(crate) mod syncagent;
pub(crate) mod trust;
pub(crate) mod undelete;
pub(crate) mod up;
pub(crate) mod version;
pub(crate) mod vm;
pub(crate) mod workspace;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// What a command waits in: one thread is enough for whoever asks a few questions.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime could not be started")
}
