//! What a push may bring: the size of the repository, of each file, and the paths that change.

use std::collections::HashMap;
use std::path::Path;

use fairway_gitops_git::{IncomingObject, ObjectId};

use super::rules::forbidden_path;
use crate::seams::Push;

/// Refuses a push that is too large or touches what it must not.
pub(super) async fn check(push: &Push, incoming: &Path) -> Result<(), String> {
    let limits = &push.wanted.limits;
    if push.updates.iter().all(|update| update.new.is_none()) {
        return Ok(());
    }
    let size = push.repository.disk_size().await.map_err(|error| error.full())?;
    if size > limits.max_size {
        return Err(format!(
            "the repository would have {size} bytes, more than its limit of {}; raise spec.limits.maxSize of the \
             Repository, or push less",
            limits.max_size
        ));
    }
    let objects = push.repository.incoming_objects(incoming).await;
    let objects = objects.map_err(|error| error.full())?;
    if let Some(large) = too_large(&objects, limits.max_file) {
        let path = path_of(push, &large.id).await;
        return Err(format!(
            "{path} has {} bytes, more than the limit of {} for a file; raise spec.limits.maxFileSize of the Repository, or \
             take the file out of the commits (git filter-repo, git commit --amend)",
            large.size, limits.max_file
        ));
    }
    if limits.paths.is_empty() {
        return Ok(());
    }
    for update in push
        .updates
        .iter()
        .filter(|update| update.name.as_branch().is_some())
    {
        let Some(new) = &update.new else { continue };
        let changed = push.repository.changed_paths(update.old.as_ref(), new).await;
        let changed = changed.map_err(|error| error.full())?;
        if let Some(path) = forbidden_path(&limits.paths, &changed) {
            return Err(format!(
                "{path} may not be changed: it matches none of spec.limits.paths of the Repository ({})",
                limits.paths.join(", ")
            ));
        }
    }
    Ok(())
}

fn too_large(objects: &[IncomingObject], limit: u64) -> Option<&IncomingObject> {
    objects
        .iter()
        .filter(|object| object.kind == "blob" && object.size > limit)
        .max_by_key(|object| object.size)
}

/// A path at which a commit of the push has an object; its hash if none is found.
async fn path_of(push: &Push, id: &ObjectId) -> String {
    let mut questions = String::new();
    for new in push.updates.iter().filter_map(|update| update.new.as_ref()) {
        questions.push_str(new.as_str());
        questions.push('\n');
    }
    let listed = push
        .repository
        .command("rev-list")
        .args(["--objects", "--stdin", "--not", "--all"])
        .input(questions)
        .output()
        .await
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&listed);
    let paths: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    match paths.get(id.as_str()) {
        Some(path) if !path.is_empty() => (*path).to_owned(),
        _ => format!("the file {id}"),
    }
}
