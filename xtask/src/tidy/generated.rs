//! Generated files are what their generator writes, unedited. Where the generator's inputs are at hand (the Kubernetes
//! Go modules in the module cache) it runs and compares; everywhere else the files are compared with the hashes that
//! it recorded in `xtask/generated.lock`, one `sha256  path` a line. `cargo xtask codegen` writes both.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::Problem;
use super::source::SourceFile;

const LOCK: &str = "xtask/generated.lock";

pub(super) struct Outcome {
    pub(super) summary: String,
    pub(super) problems: Vec<Problem>,
}

pub(super) fn check(root: &Path, sources: &[SourceFile]) -> Result<Outcome> {
    let lock = root.join(LOCK);
    let text = if lock.exists() {
        std::fs::read_to_string(&lock).with_context(|| format!("cannot read {LOCK}"))?
    } else {
        String::new()
    };
    let mut problems = check_hashes(&text, |path| std::fs::read(root.join(path)).ok());
    let recorded = parse(&text);
    for file in sources.iter().filter(|file| file.is_generated) {
        if !recorded.contains_key(file.path.to_string_lossy().as_ref()) {
            let message = format!("generated, but not recorded in {LOCK}: run `cargo xtask codegen`");
            problems.push(Problem::new(&file.path, 0, message));
        }
    }

    let mut how = "hashes compared";
    if let Some((_, _, codegen)) = crate::command("codegen")
        && inputs_at_hand()
    {
        how = "generated again and compared";
        if let Err(error) = codegen(&["--check".to_owned()]) {
            problems.push(Problem::new(
                LOCK,
                0,
                format!("generated files are out of date: {error:#}"),
            ));
        }
    }
    Ok(Outcome {
        summary: format!("{} generated files ({how})", recorded.len()),
        problems,
    })
}

/// Problems of files whose content is not what was recorded.
pub(super) fn check_hashes(lock: &str, read: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, recorded) in parse(lock) {
        let message = match read(path) {
            None => format!("recorded in {LOCK}, but missing: run `cargo xtask codegen`"),
            Some(content) if hash(&content) != recorded => {
                format!(
                    "differs from what {LOCK} records: generated files are not edited, run `cargo xtask codegen`"
                )
            }
            Some(_) => continue,
        };
        problems.push(Problem::new(path, 0, message));
    }
    problems
}

fn parse(lock: &str) -> BTreeMap<&str, &str> {
    lock.lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(hash, path)| (path, hash))
        .collect()
}

pub(super) fn hash(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether the Go module that schemas are generated from is in the module cache; tidy downloads nothing.
fn inputs_at_hand() -> bool {
    let Ok(output) = Command::new("go").args(["env", "GOMODCACHE"]).output() else {
        return false;
    };
    let cache = String::from_utf8_lossy(&output.stdout);
    Path::new(cache.trim()).join("k8s.io/kubernetes@v1.36.3").is_dir()
}
