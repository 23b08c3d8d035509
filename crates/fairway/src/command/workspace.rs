//! `fairway workspace`: make, list, enter and delete workspaces, as kcp's `kubectl ws` and `kubectl create workspace` do.
//!
//! The server is that of the current context of the user's kubeconfig, and so is the workspace.

mod create;
mod delete;
mod go;
mod list;
pub(crate) mod server;
mod tree;

use std::process::ExitCode;

use anyhow::Context;

use crate::cli::workspace::{Workspace, WorkspaceCommand};

/// Does what was asked for.
pub(crate) fn run(options: &Workspace) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime could not be started")?;
    runtime.block_on(async {
        match &options.command {
            None => go::run(&options.go).await,
            Some(WorkspaceCommand::Use(go)) => go::run(go).await,
            Some(WorkspaceCommand::Create(create)) => create::run(create).await,
            Some(WorkspaceCommand::List(list)) => list::run(list).await,
            Some(WorkspaceCommand::Tree(tree)) => tree::run(tree).await,
            Some(WorkspaceCommand::Delete(delete)) => delete::run(delete).await,
        }
    })
}
