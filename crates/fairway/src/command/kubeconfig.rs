//! `fairway kubeconfig`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use fairway_kernel_tenancy::WorkspacePath;
use fairway_text_yaml::Limits;
use serde_json::Value;

use crate::cli::Kubeconfig;
use crate::data_dir::{DataDir, read_if_there, write_private};
use crate::kubeconfig;

/// Prints the administrator's kubeconfig, or merges it into a file.
pub(crate) fn run(options: &Kubeconfig) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    let path = data.kubeconfig();
    let Some(ours) = read_if_there(&path)? else {
        bail!(
            "there is no kubeconfig at {} yet; `fairway up` writes it",
            path.display()
        );
    };
    let mut ours = fairway_text_yaml::from_slice(&ours, Limits::default())
        .with_context(|| format!("{} is damaged; `fairway up` writes it anew", path.display()))?;
    let mut name = kubeconfig::NAME.to_owned();
    if let Some(workspace) = &options.workspace {
        let workspace = WorkspacePath::parse(workspace.trim_start_matches(':'))
            .with_context(|| format!("{workspace:?} is not the path of a workspace"))?;
        ours = kubeconfig::for_workspace(&ours, &workspace)
            .with_context(|| format!("{} is damaged; `fairway up` writes it anew", path.display()))?;
        name = workspace.to_string();
    }
    let Some(target) = &options.merge else {
        print!("{}", fairway_text_yaml::to_string(&ours));
        return Ok(ExitCode::SUCCESS);
    };
    let mut theirs = match read_if_there(target)? {
        None => Value::Null,
        Some(content) => fairway_text_yaml::from_slice(&content, Limits::default()).with_context(|| {
            format!(
                "{} is not a kubeconfig that can be read, so it was left alone",
                target.display()
            )
        })?,
    };
    if !theirs.is_null() && !theirs.is_object() {
        bail!("{} is not a kubeconfig, so it was left alone", target.display());
    }
    kubeconfig::merge(&mut theirs, &ours);
    if let Some(before) = read_if_there(target)? {
        let backup = target.with_extension("before-fairway");
        write_private(&backup, &before)?;
        println!("The file as it was is kept as {}.", backup.display());
    }
    write_private(target, fairway_text_yaml::to_string(&theirs).as_bytes())?;
    println!(
        "{} has a context {name:?} now: kubectl --context {name}",
        target.display(),
    );
    Ok(ExitCode::SUCCESS)
}
