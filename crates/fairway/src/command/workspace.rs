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

use fairway_kernel_tenancy::WorkspacePath;
use kube::Client;

use crate::cli::workspace::{Where, Workspace, WorkspaceCommand};

/// Does what was asked for.
pub(crate) fn run(options: &Workspace) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
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

/// A client of a workspace, or of the current one, and which that is.
pub(crate) async fn reach(
    place: &Where,
    path: Option<&WorkspacePath>,
) -> anyhow::Result<(WorkspacePath, Client)> {
    let server = server::Server::find(place).await?;
    let path = path.unwrap_or(&server.here.path).clone();
    let client = server.client(&path)?;
    Ok((path, client))
}
