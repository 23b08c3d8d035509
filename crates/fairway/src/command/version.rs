//! `fairway version`.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::Version;

/// Prints the versions of the program and of the API it serves.
pub(crate) fn run(options: &Version) -> anyhow::Result<ExitCode> {
    let fairway = env!("CARGO_PKG_VERSION");
    let api = fairway_kernel_apiserver::GIT_VERSION;
    let value = json!({"fairway": fairway, "kubernetes": api});
    options
        .output
        .print(&value, &format!("fairway {fairway}\nKubernetes API {api}"));
    Ok(ExitCode::SUCCESS)
}
