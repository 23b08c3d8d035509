//! `cargo xtask conformance`: cases from the originals' own test-suites.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::{
    conformance_apply, conformance_diff, conformance_health, conformance_helm, conformance_kustomize,
    openapi_conformance,
};

/// Runs one suite; the last line says how many cases passed, or that the suite was SKIPPED.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["apply"] => apply(from_environment("apply").as_deref()),
        ["apply", "--dir", folder] => apply(Some(Path::new(folder))),
        ["helm"] => helm(from_environment("helm").as_deref()),
        ["helm", "--dir", folder] => helm(Some(Path::new(folder))),
        ["diff"] => conformance_diff::run(),
        ["health"] => conformance_health::run(),
        ["openapi"] => openapi_conformance::run(),
        ["kustomize"] => kustomize(from_environment("kustomize").as_deref()),
        ["kustomize", "--dir", folder] => kustomize(Some(Path::new(folder))),
        _ => {
            bail!("usage: cargo xtask conformance apply|helm|kustomize [--dir DIR] | diff | health | openapi")
        }
    }
}

fn from_environment(suite: &str) -> Option<PathBuf> {
    std::env::var_os("FAIRWAY_CONFORMANCE").map(|base| PathBuf::from(base).join(suite))
}

fn apply(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("SKIPPED: no folder of apply cases; name one with --dir or $FAIRWAY_CONFORMANCE");
        return Ok(());
    };
    let report = conformance_apply::run(folder)
        .with_context(|| format!("reading the cases in {}", folder.display()))?;
    for (name, reason) in &report.failed {
        println!("FAIL {name}: {reason}");
    }
    println!("{} passed, {} failed", report.passed, report.failed.len());
    if !report.failed.is_empty() {
        bail!("{} apply cases failed", report.failed.len());
    }
    Ok(())
}

fn kustomize(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("SKIPPED: no folder of kustomize cases; name one with --dir or $FAIRWAY_CONFORMANCE");
        return Ok(());
    };
    conformance_kustomize::run(folder).with_context(|| format!("running the cases in {}", folder.display()))
}

fn helm(folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("SKIPPED: no folder of helm cases; name one with --dir or $FAIRWAY_CONFORMANCE");
        return Ok(());
    };
    let report = conformance_helm::run(folder)
        .with_context(|| format!("reading the cases in {}", folder.display()))?;
    let mut unexpected = 0;
    for (name, reason) in &report.failed {
        match conformance_helm::known_reason(name) {
            Some(known) => println!("KNOWN {name}: {known} ({reason})"),
            None => {
                unexpected += 1;
                println!("FAIL {name}: {reason}");
            }
        }
    }
    println!("{} passed, {} failed", report.passed, report.failed.len());
    if unexpected > 0 {
        bail!("{unexpected} helm cases failed that are not listed");
    }
    Ok(())
}
