//! `fairway app approve`: lets a sync go on that waits because of what it would delete.

use std::process::ExitCode;

use anyhow::bail;
use fairway_api::argoproj::APPLICATION;
use fairway_gitops_sync::guard::{APPROVE, approvals};
use fairway_gitops_view::field::{qualified_name, text};
use fairway_gitops_view::operation::awaited_approval;
use serde_json::json;

use super::super::gitops::{Session, path_of, told};
use super::show::find;
use crate::cli::app::Approve;

pub(super) async fn run(options: &Approve) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.app.place).await?;
    let application = find(&session, &options.app).await?;
    let name = qualified_name(&application);
    let digest = match (&options.digest, awaited_approval(&application)) {
        (Some(digest), _) => digest.clone(),
        (None, Some(digest)) => digest.to_owned(),
        (None, None) => bail!("application {name} does not wait for an approval"),
    };
    if options.digest.is_none() {
        println!("{}", text(&application, "/status/operationState/message"));
    }
    let mut all: Vec<&str> = approvals(&application)
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    if !all.contains(&digest.as_str()) {
        all.push(&digest);
    }
    let patch = json!({"metadata": {"annotations": {APPROVE: all.join(",")}}});
    let path = path_of(APPLICATION, &application);
    let written = session.requests.merge(&path, &patch).await.map_err(told)?;
    if written.is_none() {
        bail!("application {name} is gone");
    }
    println!("Application '{name}': {digest} approved");
    Ok(ExitCode::SUCCESS)
}
