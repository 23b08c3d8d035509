//! Generated files are what their generator writes, unedited. Where the generator's inputs are at hand (Go
//! modules in the module cache) it runs and compares; everywhere else the files are compared with their recorded
//! hashes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Problem;
use super::lock::{LOCK, Lock, hash};
use super::source::SourceFile;
use crate::upstream::{ARGO_CD, ARGO_CD_MODULE, CDI, GATEWAY_API, KUBEVIRT, MULTUS, OPENSHIFT_API};

pub(super) struct Outcome {
    pub(super) summary: String,
    pub(super) problems: Vec<Problem>,
}

pub(super) fn check(root: &Path, sources: &[SourceFile]) -> Result<Outcome> {
    let lock = Lock::load(root)?;
    let mut problems = check_hashes(&lock, |path| std::fs::read(root.join(path)).ok());
    problems.extend(unrecorded(&lock, sources));

    let mut how = "hashes compared";
    if let Some((_, _, codegen)) = crate::command("codegen") {
        let cache = module_cache();
        let argo_cd = format!("{ARGO_CD_MODULE}@{ARGO_CD}");
        let inputs: [(&str, &[&str]); 4] = [
            ("schema", &["k8s.io/kubernetes@v1.36.3"]),
            ("argoproj", &[&argo_cd]),
            ("machines", &[KUBEVIRT, CDI, MULTUS]),
            ("gateway", &[GATEWAY_API, OPENSHIFT_API]),
        ];
        for (what, modules) in inputs {
            // Tidy downloads nothing.
            let at_hand = |module: &&str| cache.as_ref().is_some_and(|cache| cache.join(module).is_dir());
            if !modules.iter().all(at_hand) {
                continue;
            }
            how = "generated again and compared";
            if let Err(error) = codegen(&[what.to_owned(), "--check".to_owned()]) {
                let message = format!("generated files are out of date: {error:#}");
                problems.push(Problem::new(LOCK, 0, message));
            }
        }
    }
    Ok(Outcome {
        summary: format!("{} generated files ({how})", lock.hashes.len()),
        problems,
    })
}

/// Problems of sources that say they are generated and are not in the lock.
pub(super) fn unrecorded(lock: &Lock, sources: &[SourceFile]) -> Vec<Problem> {
    sources
        .iter()
        .filter(|file| file.is_generated && !lock.hashes.contains_key(file.path.to_string_lossy().as_ref()))
        .map(|file| {
            let message = format!("generated, but not in {LOCK}: run `cargo xtask tidy --lock PATH`");
            Problem::new(&file.path, 0, message)
        })
        .collect()
}

/// Problems of files whose content is not what was recorded.
pub(super) fn check_hashes(lock: &Lock, read: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, recorded) in &lock.hashes {
        let message = match read(path) {
            None => format!("in {LOCK}, but missing: run `make codegen`"),
            Some(content) if hash(&content) != *recorded => {
                format!(
                    "differs from what {LOCK} records: generated files are not edited, run `make codegen`"
                )
            }
            Some(_) => continue,
        };
        problems.push(Problem::new(path, 0, message));
    }
    problems
}

/// Where Go keeps the modules that facts are generated from.
fn module_cache() -> Option<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().into())
}
