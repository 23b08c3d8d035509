//! `fairway status`.

use std::process::ExitCode;

use serde_json::json;

use super::running::Running;
use crate::cli::Status;
use crate::data_dir::DataDir;

/// Says whether a server runs on the directory; the exit code says it too.
pub(crate) fn run(options: &Status) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    let dir = data.path().display().to_string();
    match Running::find(&data)? {
        Some(running) => {
            let kubeconfig = data.kubeconfig().display().to_string();
            let server = format!("https://{}", running.listen);
            let (git, portal) = (running.git(), running.portal());
            let value = json!({
                "running": true, "pid": running.pid, "since": running.since, "server": server, "git": git,
                "portal": portal, "data": dir, "kubeconfig": kubeconfig,
            });
            let text = format!(
                "Fairway is running (process {}, since {}).\n  Portal          {}\n  Kubernetes API  {server}\n  Git             \
                 {}\n  kubeconfig      {kubeconfig}\n  data            {dir}",
                running.pid,
                running.since,
                portal.as_deref().unwrap_or("not here"),
                git.as_deref().unwrap_or("not here"),
            );
            options.output.print(&value, &text);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let value = json!({"running": false, "data": dir});
            options.output.print(
                &value,
                &format!("Fairway is not running on {dir}. Start it with: fairway up"),
            );
            Ok(ExitCode::from(3))
        }
    }
}
