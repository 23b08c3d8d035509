//! `fairway workspace create`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::go;
use super::server::{Server, checked_name, complaint, is_code, text, told, type_of};
use crate::cli::workspace::Create;
use crate::kubeconfig::{contexts, files::Files};

/// How often a new workspace is asked whether it is ready.
const INTERVAL: Duration = Duration::from_millis(100);

/// Makes it, and waits.
pub(super) async fn run(options: &Create) -> anyhow::Result<ExitCode> {
    let server = Server::find(&options.place).await?;
    checked_name(&options.name, &server.here.path)?;
    let wanted = options.kind.as_deref().map(type_reference);
    if options.ignore_existing && wanted.as_ref().is_some_and(|kind| kind["path"].is_null()) {
        bail!("with --ignore-existing, write the type with its path, such as root:universal");
    }
    let api = server.workspaces(&server.here.path)?;
    let mut object = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": options.name}, "spec": {},
    });
    if let Some(kind) = &wanted {
        object["spec"]["type"] = kind.clone();
    }
    let object: DynamicObject = serde_json::from_value(object)?;
    let (mut workspace, is_new) = match api.create(&PostParams::default(), &object).await {
        Ok(made) => (made, true),
        Err(error) if options.ignore_existing && is_code(&error, 409) => {
            (api.get(&options.name).await.map_err(told)?, false)
        }
        Err(error) => {
            let attempt = format!(
                "workspace {:?} could not be created in {}",
                options.name, server.here.path
            );
            return Err(told(error)).context(attempt);
        }
    };
    let named = format!("Workspace {:?} (type {})", options.name, type_of(&workspace));
    if let (false, Some(kind)) = (is_new, &wanted)
        && workspace.data["spec"]["type"] != *kind
    {
        bail!(
            "workspace {:?} exists with the type {}, not {}",
            options.name,
            type_of(&workspace),
            options.kind.as_deref().unwrap_or_default()
        );
    }
    let done = if is_new { "created" } else { "already exists" };
    let is_ready = |workspace: &DynamicObject| text(workspace, "/status/phase") == "Ready";
    if is_ready(&workspace) {
        println!("{named} {done}.");
    } else {
        println!("{named} {done}. Waiting for it to be ready...");
    }
    let begun = Instant::now();
    while !is_ready(&workspace) {
        if begun.elapsed().as_secs() >= options.timeout {
            let why = complaint(&workspace, "WorkspaceInitialized")
                .or_else(|| complaint(&workspace, "WorkspaceScheduled"))
                .unwrap_or_else(|| format!("its phase is {:?}", text(&workspace, "/status/phase")));
            bail!(
                "workspace {:?} is not ready after {} seconds and was left as it is: {why}",
                options.name,
                options.timeout
            );
        }
        tokio::time::sleep(INTERVAL).await;
        workspace = api
            .get(&options.name)
            .await
            .map_err(told)
            .with_context(|| format!("workspace {:?} could not be waited for", options.name))?;
    }
    println!("{named} is ready to use.");
    let path = server.here.path.join(&options.name)?;
    if let Some(name) = &options.create_context {
        let url = server.here.of(&path).to_string();
        Files::change(&server.paths, |config| {
            contexts::add(config, name, &url, options.ignore_existing)
        })?;
        println!("Created context {name:?}.");
    }
    if options.enter {
        go::enter(&server, &path, false).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A type as it is typed: `name`, or `path:name`.
fn type_reference(typed: &str) -> Value {
    match typed.trim_start_matches(':').rsplit_once(':') {
        Some((path, name)) => json!({"name": name.to_lowercase(), "path": path}),
        None => json!({"name": typed.to_lowercase()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        for (typed, want) in [
            ("Universal", json!({"name": "universal"})),
            ("root:universal", json!({"name": "universal", "path": "root"})),
            (":root:acme:Fast", json!({"name": "fast", "path": "root:acme"})),
        ] {
            assert_eq!(type_reference(typed), want, "{typed}");
        }
    }
}
