//! What a push touches. Applications that do not depend on what was pushed are not looked at.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use fairway_controller::{ObjectKey, Queue, Shutdown};
use fairway_gitops_sync::project::normalize_url;
use tokio::sync::broadcast::error::RecvError;

use crate::desired::Rendered;
use crate::engine::Engine;
use crate::sources::{News, Repository, SharedSources, Sources};

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
async fn touched(sources: &dyn Sources, engine: &Engine, url: &str) -> Vec<ObjectKey> {
    let all = engine.results.all();
    let mut known = Known::default();
    let mut found = Vec::new();
    for (key, rendered) in &all {
        match known.look(sources, rendered, url).await {
            Touch::Unconcerned => {}
            Touch::Touched => found.push(key.clone()),
            Touch::Moved(revisions) => engine.results.put(key, Arc::new(rendered.moved_to(revisions))),
        }
    }
    found
}

/// What a push means for a result.
enum Touch {
    Unconcerned,
    Touched,
    /// It is as good for these commits.
    Moved(Vec<String>),
}

/// What was found out about repositories for one push: thousands of applications may be of one.
#[derive(Default)]
struct Known<'a> {
    heads: HashMap<(&'a Repository, &'a str), Option<String>>,
    /// The paths that differ between a commit and the head of a revision.
    changes: HashMap<(&'a Repository, &'a str, &'a str), Option<Vec<String>>>,
}

impl<'a> Known<'a> {
    async fn look(&mut self, sources: &dyn Sources, rendered: &'a Rendered, url: &str) -> Touch {
        let mut moved: Option<Vec<String>> = None;
        for (place, (repository, revision)) in rendered.asked.iter().enumerate() {
            if normalize_url(&repository.url) != url {
                continue;
            }
            let Some(before) = rendered.revisions.get(place) else {
                return Touch::Touched;
            };
            let head = match self.heads.entry((repository, revision)) {
                Entry::Occupied(head) => head.into_mut(),
                Entry::Vacant(free) => free.insert(sources.resolve(repository, revision).await.ok()),
            };
            let Some(head) = head else {
                return Touch::Touched;
            };
            if before == head {
                continue;
            }
            let paths = match self.changes.entry((repository, revision, before)) {
                Entry::Occupied(paths) => paths.into_mut(),
                Entry::Vacant(free) => free.insert(sources.changed(repository, before, head).await.ok()),
            };
            if paths
                .as_ref()
                .is_none_or(|paths| rendered.depends_on(place, paths))
            {
                return Touch::Touched;
            }
            let revisions = moved.get_or_insert_with(|| rendered.revisions.clone());
            revisions[place].clone_from(head);
        }
        moved.map_or(Touch::Unconcerned, Touch::Moved)
    }
}
