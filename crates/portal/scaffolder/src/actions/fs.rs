//! `fs:*`: the working tree.

use std::collections::BTreeSet;

use fairway_portal_template::files::{Pattern, clean};
use serde_json::{Value, json};

use crate::drive::{Job, StepError};

pub(super) fn delete(job: &mut Job<'_>) -> Result<Value, StepError> {
    for path in job.texts("files") {
        // Whoever writes a pattern need not know what it matches; whoever writes a path may be wrong about it, and that is no harm.
        clean(&path).map_err(|error| error.to_string())?;
        let found = match path.contains(['*', '?', '{']) {
            true => job.files.matching(&Pattern::new(&path)?),
            false => vec![path],
        };
        for path in found {
            job.files.remove(&path).map_err(|error| error.to_string())?;
        }
    }
    Ok(json!({}))
}

pub(super) fn rename(job: &mut Job<'_>, keep: bool) -> Result<Value, StepError> {
    let pairs = job.input["files"].as_array().cloned().unwrap_or_default();
    for pair in pairs {
        let (Some(from), Some(to)) = (pair["from"].as_str(), pair["to"].as_str()) else {
            return Err(StepError::failed("each of input.files needs from and to"));
        };
        let overwrite = pair["overwrite"] == true;
        job.files
            .rename(from, to, overwrite, keep)
            .map_err(|error| error.to_string())?;
    }
    Ok(json!({}))
}

pub(super) fn readdir(job: &mut Job<'_>) -> Result<Value, StepError> {
    let (mut files, mut folders) = (Vec::new(), BTreeSet::new());
    for path in job.texts("paths") {
        let directory = clean(&path).map_err(|error| error.to_string())?;
        let full = |inner: &str| match directory.is_empty() {
            true => inner.to_owned(),
            false => format!("{directory}/{inner}"),
        };
        for (inner, _) in job.files.below(&directory) {
            let parents = inner.match_indices('/').map(|(at, _)| &inner[..at]);
            let is_deep = inner.contains('/');
            for (level, parent) in parents.enumerate() {
                if level == 0 || job.flag("recursive") {
                    folders.insert(full(parent));
                }
            }
            if !is_deep || job.flag("recursive") {
                files.push(full(inner));
            }
        }
    }
    let entry = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        json!({"name": name, "path": path, "fullPath": path})
    };
    Ok(json!({
        "files": files.iter().map(entry).collect::<Vec<_>>(),
        "folders": folders.iter().map(entry).collect::<Vec<_>>(),
    }))
}
