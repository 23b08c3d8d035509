//! `fairway workspace delete`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::api::DeleteParams;

use super::server::{Server, checked_name, complaint, is_code, text, told};
use crate::cli::workspace::Delete;

/// How often it is asked whether the workspace is gone.
const INTERVAL: Duration = Duration::from_millis(200);

/// Deletes it, and waits.
pub(super) async fn run(options: &Delete) -> anyhow::Result<ExitCode> {
    let server = Server::find(&options.place).await?;
    checked_name(&options.name, &server.here.path)?;
    let api = server.workspaces(&server.here.path)?;
    let uid = match api.delete(&options.name, &DeleteParams::default()).await {
        Ok(answer) => answer.left().and_then(|workspace| workspace.metadata.uid),
        Err(error) if options.ignore_not_found && is_code(&error, 404) => {
            println!("Workspace {:?} is not there.", options.name);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => {
            let attempt = format!(
                "workspace {:?} could not be deleted in {}",
                options.name, server.here.path
            );
            return Err(told(error)).context(attempt);
        }
    };
    if options.no_wait {
        println!("Workspace {:?} is being deleted.", options.name);
        return Ok(ExitCode::SUCCESS);
    }
    let begun = Instant::now();
    loop {
        let left = api
            .get_opt(&options.name)
            .await
            .map_err(told)
            .with_context(|| format!("workspace {:?} could not be waited for", options.name))?;
        // One that somebody made meanwhile has the name, but is another.
        let Some(left) = left.filter(|left| uid.is_none() || left.metadata.uid == uid) else {
            println!("Workspace {:?} deleted.", options.name);
            return Ok(ExitCode::SUCCESS);
        };
        if begun.elapsed().as_secs() >= options.timeout {
            let why = complaint(&left, "WorkspaceContentDeleted")
                .unwrap_or_else(|| format!("its phase is {:?}", text(&left, "/status/phase")));
            bail!(
                "workspace {:?} is being deleted, but not gone after {} seconds: {why}",
                options.name,
                options.timeout
            );
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
