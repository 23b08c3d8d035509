//! `fairway app`: what `argocd app` does in its core mode, on the API of a workspace.
//!
//! Operations are written into the Application and followed in its status. What is printed is decided in
//! `fairway-gitops-view`.

mod approve;
mod delete;
mod diff;
mod follow;
mod plan;
mod show;
mod sync;
mod tree;

use std::process::ExitCode;

use super::gitops::run as run_command;
use crate::cli::app::{App, AppCommand};

/// Does what was asked for.
pub(crate) fn run(options: &App) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            AppCommand::List(list) => show::list(list).await,
            AppCommand::Get(get) => show::get(get).await,
            AppCommand::History(history) => show::history(history).await,
            AppCommand::Resources(resources) => show::resources(resources).await,
            AppCommand::Diff(options) => diff::run(options).await,
            AppCommand::Plan(options) => plan::run(options).await,
            AppCommand::Sync(options) => sync::sync(options).await,
            AppCommand::Rollback(rollback) => sync::rollback(rollback).await,
            AppCommand::TerminateOp(named) => sync::terminate(named).await,
            AppCommand::Wait(wait) => follow::wait(wait).await,
            AppCommand::Approve(approve) => approve::run(approve).await,
            AppCommand::Delete(delete) => delete::run(delete).await,
        }
    })
}
