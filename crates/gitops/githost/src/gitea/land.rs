//! Moving a branch or tag through the API: under the same rules as a push, with the same checks and the same news.

use fairway_gitops_git::{GitError, ObjectId, RefName};
use http::StatusCode;

use super::call::{Call, Problem};
use crate::host::Opened;
use crate::push::rules::{self, Means, Observed};
use crate::route::Slug;
use crate::seams::{Push, Update};

/// Moves a reference, if it may be moved and is where the caller believes it to be.
pub(super) async fn land(
    call: &Call,
    slug: &Slug,
    opened: &Opened,
    name: RefName,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    means: Means,
) -> Result<(), Problem> {
    let repository = &opened.repository;
    let is_forced = match (&old, &new) {
        (Some(old), Some(new)) if name.as_branch().is_some() => !repository.is_ancestor(old, new).await?,
        _ => false,
    };
    let observed = Observed {
        name: &name,
        is_deletion: new.is_none(),
        is_forced,
        user: opened.caller.name(),
        groups: opened.caller.groups(),
        means,
    };
    if let Some(why) = rules::refusal(&opened.wanted, &observed) {
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    let push = Push {
        wanted: opened.wanted.clone(),
        owner: slug.owner.clone(),
        repository: repository.clone(),
        updates: vec![Update {
            name: name.clone(),
            old: old.clone(),
            new: new.clone(),
        }],
        pusher: opened.caller.clone(),
        options: Vec::new(),
    };
    let limits = &opened.wanted.limits;
    if let (Some(new), false) = (&new, limits.paths.is_empty()) {
        let changed = repository.changed_paths(old.as_ref(), new).await?;
        if let Some(path) = rules::forbidden_path(&limits.paths, &changed) {
            let why =
                format!("{path} may not be changed: it matches none of spec.limits.paths of the Repository");
            return Err(Problem::new(StatusCode::FORBIDDEN, why));
        }
    }
    for check in call.host.checks() {
        let judged = check.check(&push).await;
        judged.map_err(|why| Problem::new(StatusCode::FORBIDDEN, why))?;
    }
    repository
        .update_reference(&name, new.as_ref(), old.as_ref())
        .await
        .map_err(|error| match error {
            GitError::Moved { .. } => Problem::new(
                StatusCode::CONFLICT,
                format!("{name} has moved in the meantime; look again"),
            ),
            other => other.into(),
        })?;
    // Nobody listens to what follows, but everybody is told.
    crate::hooks::payload::pushed(&call.host, &push).await;
    drop(call.host.tell(&push));
    Ok(())
}
