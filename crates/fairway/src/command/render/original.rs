//! The original tool beside ours, for whoever doubts.

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use fairway_gitops_render::{Params, Rendered, envsubst};

use crate::cli::render::{Original, Render};

/// Runs the original and shows what differs; success if nothing does.
pub(super) fn compare(
    tool: Original,
    options: &Render,
    params: &Params,
    ours: &Rendered,
) -> anyhow::Result<ExitCode> {
    let mut theirs = run(tool, options)?;
    // The originals know nothing of variables; a plugin substitutes them afterwards, and so does this.
    if let Some(env) = &params.env {
        theirs = envsubst(&theirs, env, params.dialect).map_err(anyhow::Error::msg)?;
    }
    if theirs == ours.text {
        println!(
            "no difference: {} bytes, {} objects",
            theirs.len(),
            ours.objects.len()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir().context("making a directory for the two results")?;
    let name = match tool {
        Original::Kustomize => "kustomize",
        Original::Helm => "helm",
    };
    let (left, right) = (folder.path().join(name), folder.path().join("fairway"));
    std::fs::write(&left, &theirs).context("writing the original's result")?;
    std::fs::write(&right, &ours.text).context("writing our result")?;
    let shown = Command::new("diff")
        .args(["-u", "--label", name, "--label", "fairway"])
        .args([&left, &right])
        .output()
        .context("running diff; is it installed?")?;
    std::io::stdout().write_all(&shown.stdout)?;
    Ok(ExitCode::FAILURE)
}

fn run(tool: Original, options: &Render) -> anyhow::Result<String> {
    let mut command = match tool {
        Original::Kustomize => {
            let mut command = Command::new("kustomize");
            command.args(["build", "--enable-helm"]).arg(&options.path);
            command
        }
        Original::Helm => {
            let mut command = Command::new("helm");
            command
                .args(["template", &options.release])
                .arg(&options.path)
                .args(["--namespace", &options.namespace]);
            if options.include_crds {
                command.arg("--include-crds");
            }
            for file in &options.values {
                command.arg("--values").arg(file);
            }
            for (flag, lines) in [
                ("--set", &options.set),
                ("--set-string", &options.set_string),
                ("--set-json", &options.set_json),
            ] {
                for line in lines {
                    command.args([flag, line.as_str()]);
                }
            }
            command
        }
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {program}; is it installed?"))?;
    if !output.status.success() {
        bail!("{program} failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed something that is not UTF-8"))
}
