//! Runs the cases of kustomize's own tests against Fairway's: files in, YAML or an error out.
//!
//! Cases that are known to fail are listed with the reason in a file next to the crate. A case that fails without being
//! listed there is an error, and so is a list that grew beyond two in a hundred.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use fairway_gitops_helm::Offline;
use fairway_gitops_kustomize::{LoadRestrictions, Options, Ports, Reorder, build};
use fairway_gitops_render::Charts;
use fairway_gitops_tree::{Tree, TreeError};
use serde_json::Value;

use crate::upstream;

const KNOWN: &str = "crates/gitops/kustomize/known-failures.txt";
/// Where the files of a case are put.
const ROOT: &str = "file-system";

/// Runs every case in a folder and prints how many passed.
pub(crate) fn run(folder: &Path) -> Result<()> {
    let known = known_failures()?;
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let (mut passed, mut failed, mut surprises) = (0usize, 0usize, 0usize);
    for file in &files {
        let path = file.path();
        let Some(name) = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|_| path.extension().is_some_and(|extension| extension == "json"))
        else {
            continue;
        };
        let case = upstream::json(&path)?;
        let Err(reason) = run_case(&case) else {
            passed += 1;
            continue;
        };
        failed += 1;
        match known.get(name) {
            Some(why) => println!("FAIL {name} (known: {why})"),
            None => {
                surprises += 1;
                println!("FAIL {name}: {reason}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if surprises > 0 {
        bail!("{surprises} kustomize cases failed that are not listed in {KNOWN}");
    }
    if failed * 50 > passed + failed {
        bail!("more than two in a hundred kustomize cases failed");
    }
    Ok(())
}

/// Names and reasons of the cases that are known to fail, `NAME: REASON` a line.
fn known_failures() -> Result<BTreeMap<String, String>> {
    let text =
        std::fs::read_to_string(upstream::root().join(KNOWN)).with_context(|| format!("reading {KNOWN}"))?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let (name, reason) = line
                .split_once(": ")
                .with_context(|| format!("{KNOWN}: not `NAME: REASON`: {line}"))?;
            Ok((name.to_owned(), reason.to_owned()))
        })
        .collect()
}

fn run_case(case: &Value) -> Result<(), String> {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let files = case["files"].as_object().ok_or("no files")?;
    let tree = tree(files).map_err(|error| error.to_string())?;
    let option = |key: &str| case["options"][key].as_str().unwrap_or_default();
    let options = Options {
        reorder: match option("reorder") {
            "none" => Reorder::None,
            _ => Reorder::Legacy,
        },
        load_restrictions: match option("loadRestrictions") {
            "LoadRestrictionsNone" => LoadRestrictions::None,
            _ => LoadRestrictions::RootOnly,
        },
        ..Options::default()
    };
    let path = format!("{ROOT}/{}", text("path"));
    let offline = Offline::default();
    let charts = Charts::new(&offline);
    let ports = Ports {
        charts: Some(&charts),
        fetcher: None,
    };
    let built = build(&tree.reader(), &path, &options, ports).and_then(|built| built.to_yaml());
    match (text("expect"), built) {
        ("error", Err(_)) => Ok(()),
        ("error", Ok(output)) => Err(format!(
            "built, but the original fails with {:?}; got:\n{output}",
            text("error")
        )),
        (_, Err(error)) => Err(format!("failed: {error}")),
        (_, Ok(output)) if output == text("output") => Ok(()),
        (_, Ok(output)) => Err(difference(text("output"), &output)),
    }
}

/// The files of a case. In the originals' tests they lie at the root of a file system, which is its own parent; here they
/// lie in a folder, and the one above it leads back into it.
fn tree(files: &serde_json::Map<String, Value>) -> Result<Tree, TreeError> {
    let mut builder = Tree::builder();
    let mut tops: BTreeSet<&str> = BTreeSet::new();
    for (path, content) in files {
        let path = path.trim_start_matches('/');
        tops.extend(path.split('/').next());
        let content = content.as_str().unwrap_or_default().as_bytes();
        builder.file(&format!("{ROOT}/{path}"), content)?;
    }
    for top in tops {
        builder.link(top, &format!("{ROOT}/{top}"))?;
    }
    Ok(builder.build())
}

/// The first lines that differ.
fn difference(expected: &str, got: &str) -> String {
    let (mut left, mut right) = (expected.lines(), got.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (left.next(), right.next()) {
            (None, None) => return "the outputs differ in their last line break".to_owned(),
            (expected, got) if expected == got => {}
            (expected, got) => {
                let shown =
                    |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
                return format!("line {line}: expected {}, got {}", shown(expected), shown(got));
            }
        }
    }
}
