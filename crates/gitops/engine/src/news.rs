//! What a push touches. Applications that do not depend on what was pushed are not looked at.

use std::collections::HashMap;
use std::sync::Arc;

use fairway_controller::{ObjectKey, Queue, Shutdown};
use fairway_gitops_sync::project::normalize_url;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::Engine;
use crate::sources::{News, Repository, SharedSources};

/// Hears of pushes until the end.
pub(crate) async fn follow(
    sources: SharedSources,
    engine: Arc<Engine>,
    queue: Queue<ObjectKey>,
    mut shutdown: Shutdown,
) {
    let mut news = sources.news();
    loop {
        let heard = tokio::select! {
            () = shutdown.wait() => return,
            heard = news.recv() => heard,
        };
        match heard {
            Ok(News { url }) => {
                for key in touched(&*sources, &engine, &normalize_url(&url)).await {
                    queue.add(key);
                }
            }
            // Too much at once: all are looked at.
            Err(RecvError::Lagged(_)) => engine.results.keys().into_iter().for_each(|key| queue.add(key)),
            Err(RecvError::Closed) => {
                shutdown.wait().await;
                return;
            }
        }
    }
}

/// The applications that have to be looked at after a push. The others are noted to be right for the new commit.
async fn touched(sources: &dyn crate::sources::Sources, engine: &Engine, url: &str) -> Vec<ObjectKey> {
    let mut heads: HashMap<(Repository, String), Option<String>> = HashMap::new();
    let mut changes: HashMap<(Repository, String, String), Option<Vec<String>>> = HashMap::new();
    let mut found = Vec::new();
    for (key, rendered) in engine.results.all() {
        let mut revisions = rendered.revisions.clone();
        let (mut moved, mut is_touched) = (false, rendered.is_unresolved());
        for (place, (repository, revision)) in rendered.asked.iter().enumerate() {
            if normalize_url(&repository.url) != url {
                continue;
            }
            if rendered.is_unresolved() {
                is_touched = true;
                break;
            }
            let at = (repository.clone(), revision.clone());
            let head = match heads.get(&at) {
                Some(head) => head.clone(),
                None => {
                    let head = sources.resolve(repository, revision).await.ok();
                    heads.insert(at, head.clone());
                    head
                }
            };
            let Some(head) = head else {
                is_touched = true;
                break;
            };
            if revisions.get(place) == Some(&head) {
                continue;
            }
            let before = revisions.get(place).cloned().unwrap_or_default();
            let step = (repository.clone(), before, head.clone());
            if !changes.contains_key(&step) {
                let paths = sources.changed(repository, &step.1, &step.2).await.ok();
                changes.insert(step.clone(), paths);
            }
            let paths = changes.get(&step).and_then(Option::as_ref);
            if paths.is_none_or(|paths| rendered.depends_on(place, paths)) {
                is_touched = true;
                break;
            }
            moved = true;
            if let Some(revision) = revisions.get_mut(place) {
                *revision = head;
            }
        }
        let concerns = rendered
            .asked
            .iter()
            .any(|(repository, _)| normalize_url(&repository.url) == url);
        match (is_touched && concerns, moved) {
            (true, _) => found.push(key),
            (false, true) => engine.results.put(&key, Arc::new(rendered.moved_to(revisions))),
            (false, false) => {}
        }
    }
    found
}
