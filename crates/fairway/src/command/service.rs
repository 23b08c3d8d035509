//! What every command that goes on until it is stopped begins with: a log on standard error, a runtime.

use std::io::IsTerminal;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

/// Begins the log, by its filter, and makes the runtime, whose threads get the name.
pub(super) fn prepare(name: &str, log: &str) -> anyhow::Result<Runtime> {
    let filter =
        EnvFilter::try_new(log).with_context(|| format!("the log filter {log:?} cannot be understood"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    Builder::new_multi_thread()
        .enable_all()
        .thread_name(name)
        .build()
        .context("the asynchronous runtime could not be started")
}
