//! `fairway app diff`: how what is deployed differs from a source, in the form and with the exit codes of `argocd app diff`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fairway_gitops_view::plan::{diff, difference, is_different};
use serde_json::{Value, json};

use super::super::gitops::Session;
use super::plan::ask;
use super::show::{find, refreshed};
use crate::cli::app::Diff;

/// What it ends with when the difference could not be found out.
const TROUBLE: u8 = 2;
/// What may be sent to the server.
const MAX_FILES: usize = 2_000;
const MAX_BYTES: usize = 2 << 20;
/// Another program than ours for differences, as with kubectl and argocd.
const EXTERNAL: &str = "KUBECTL_EXTERNAL_DIFF";

pub(super) async fn run(options: &Diff) -> anyhow::Result<ExitCode> {
    match compare(options).await {
        Ok(false) => Ok(ExitCode::SUCCESS),
        Ok(true) if options.exit_code => Ok(ExitCode::from(options.diff_exit_code)),
        Ok(true) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("fairway: {error:#}");
            Ok(ExitCode::from(TROUBLE))
        }
    }
}

/// Prints the differences; whether there are any.
async fn compare(options: &Diff) -> anyhow::Result<bool> {
    let session = Session::open(&options.app.place).await?;
    let mut application = find(&session, &options.app).await?;
    if options.refresh || options.hard_refresh {
        let kind = if options.hard_refresh { "hard" } else { "normal" };
        application = refreshed(&session, application, kind, 0).await?;
    }
    let request = match (&options.local, &options.revision) {
        (Some(local), _) => {
            let root = options.local_repo_root.as_ref().unwrap_or(local);
            let (files, path) = files(root, local)?;
            json!({"files": files, "path": path})
        }
        (None, Some(revision)) => json!({"revision": revision}),
        (None, None) => json!({"revisions": options.revisions}),
    };
    let plan = ask(&session, &application, &request).await?;
    if let Some(why) = plan["failure"].as_str() {
        bail!("{why}");
    }
    let external = std::env::var(EXTERNAL)
        .ok()
        .filter(|command| !command.trim().is_empty());
    let yaml = |value: &Value| fairway_text_yaml::to_string(value);
    let mut shown = |live: &Value, target: &Value| match &external {
        Some(command) => by_program(command, live, target).unwrap_or_else(|error| format!("{error:#}\n")),
        None => difference(live, target, &yaml),
    };
    print!("{}", diff(&plan, &mut shown));
    Ok(is_different(&plan))
}

/// The files below a directory, and where another is among them.
fn files(root: &Path, local: &Path) -> anyhow::Result<(BTreeMap<String, String>, String)> {
    let seen = |path: &Path| {
        path.canonicalize()
            .with_context(|| format!("{} cannot be read", path.display()))
    };
    let (root, local) = (seen(root)?, seen(local)?);
    let Ok(inner) = local.strip_prefix(&root) else {
        bail!("{} is not below {}", local.display(), root.display());
    };
    let mut found = BTreeMap::new();
    let (mut open, mut bytes): (Vec<PathBuf>, usize) = (vec![root.clone()], 0);
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("{} cannot be read", directory.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("{} cannot be read", directory.display()))?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && entry.file_name() != ".git" {
                open.push(path);
            } else if kind.is_file() {
                let content =
                    std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
                bytes += content.len();
                let name = path
                    .strip_prefix(&root)
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, BASE64.encode(content));
            }
            if found.len() > MAX_FILES || bytes > MAX_BYTES {
                bail!(
                    "{} has more than {MAX_FILES} files or {MAX_BYTES} bytes; name a smaller directory with \
                     --local-repo-root",
                    root.display()
                );
            }
        }
    }
    let inner = inner.to_string_lossy().into_owned();
    Ok((found, if inner.is_empty() { ".".to_owned() } else { inner }))
}

/// What another program says to two objects.
fn by_program(command: &str, live: &Value, target: &Value) -> anyhow::Result<String> {
    let place = tempfile::tempdir().context("no place for the objects")?;
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or("diff");
    let mut paths = Vec::new();
    for (name, value) in [("live.yaml", live), ("target.yaml", target)] {
        let path = place.path().join(name);
        let text = match value.is_null() {
            true => String::new(),
            false => fairway_text_yaml::to_string(value),
        };
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        paths.push(path);
    }
    let output = Command::new(program).args(words).args(&paths).output();
    let output = output.with_context(|| format!("{EXTERNAL}: {program} cannot be run"))?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
