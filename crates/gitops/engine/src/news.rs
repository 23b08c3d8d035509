//! What a push touches. Applications that do not depend on what was pushed are not looked at.

use std::collections::HashMap;
use std::sync::Arc;

use fairway_controller::{ObjectKey, Queue, Shutdown};
use fairway_gitops_sync::project::normalize_url;
use tokio::sync::broadcast::error::RecvError;

use crate::answers::Touched;
use crate::desired::Rendered;
use crate::engine::Engine;
use crate::sources::{Moved, News, Repository, SharedSources, Sources};

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
            Ok(news) => {
                let found = touched(&*sources, &engine, &news).await;
                // First who listens, so that he misses nothing.
                engine.answers.found(news.asked_by, found.clone());
                found.into_iter().for_each(|touched| queue.add(touched.key));
            }
            // Too much at once: all are looked at.
            Err(RecvError::Lagged(_)) => {
                engine.answers.let_go();
                engine.results.keys().into_iter().for_each(|key| queue.add(key));
            }
            Err(RecvError::Closed) => {
                shutdown.wait().await;
                return;
            }
        }
    }
}

/// The Applications that have to be looked at after a push. The others are noted to be right for the new commit.
async fn touched(sources: &dyn Sources, engine: &Engine, news: &News) -> Vec<Touched> {
    let all = engine.results.all();
    let mut looking = Looking {
        sources,
        url: normalize_url(&news.url),
        moved: &news.moved,
        heads: HashMap::new(),
        changes: HashMap::new(),
    };
    let mut found = Vec::new();
    for (key, rendered) in &all {
        match looking.at(rendered).await {
            Effect::None => {}
            Effect::Moves(revisions) => engine.results.put(key, Arc::new(rendered.moved_to(revisions))),
            Effect::Touches { before, wanted } => found.push(Touched {
                key: key.clone(),
                before,
                wanted,
            }),
        }
    }
    found.sort_by(|one, other| one.key.cmp(&other.key));
    found
}

/// What a push is to one result.
enum Effect {
    /// Nothing.
    None,
    /// It is as good for these commits.
    Moves(Vec<String>),
    /// It may be another.
    Touches {
        before: Vec<String>,
        wanted: Vec<String>,
    },
}

/// The files that differ between two commits, if that is known.
type Paths = Option<Arc<[String]>>;

/// A look at all results, which asks the same only once: thousands of Applications may be of one repository.
struct Looking<'a> {
    sources: &'a dyn Sources,
    url: String,
    moved: &'a [Moved],
    heads: HashMap<(&'a Repository, &'a str), Option<String>>,
    changes: HashMap<(&'a Repository, String, String), Paths>,
}

impl<'a> Looking<'a> {
    async fn at(&mut self, rendered: &'a Rendered) -> Effect {
        let before = rendered.revisions.clone();
        let (mut wanted, mut known, mut is_touched, mut concerns) =
            (before.clone(), before.clone(), false, false);
        for (place, (repository, revision)) in rendered.asked.iter().enumerate() {
            if normalize_url(&repository.url) != self.url {
                continue;
            }
            concerns = true;
            let Some(head) = self.head(repository, revision).await else {
                // Whoever looks finds out what is wrong.
                return Effect::Touches {
                    before,
                    wanted: Vec::new(),
                };
            };
            if rendered.is_unresolved() {
                is_touched = true;
                wanted.clear();
                continue;
            }
            let Some(at) = before.get(place).cloned() else {
                continue;
            };
            let from = match at == head {
                false => Some(at),
                // Somebody has looked already, since the reference has moved.
                true => self
                    .moved
                    .iter()
                    .find(|moved| moved.new == head)
                    .map(|moved| moved.old.clone()),
            };
            let Some(from) = from else { continue };
            let paths = self.changed(repository, &from, &head).await;
            if paths.is_none_or(|paths| rendered.depends_on(place, &paths)) {
                is_touched = true;
                if let Some(known) = known.get_mut(place) {
                    *known = from;
                }
            }
            if let Some(wanted) = wanted.get_mut(place) {
                *wanted = head;
            }
        }
        match () {
            () if !concerns => Effect::None,
            () if is_touched => Effect::Touches {
                before: known,
                wanted,
            },
            () if wanted != before => Effect::Moves(wanted),
            () => Effect::None,
        }
    }

    async fn head(&mut self, repository: &'a Repository, revision: &'a str) -> Option<String> {
        let at = (repository, revision);
        if let Some(head) = self.heads.get(&at) {
            return head.clone();
        }
        let head = self.sources.resolve(repository, revision).await.ok();
        self.heads.insert(at, head.clone());
        head
    }

    async fn changed(&mut self, repository: &'a Repository, old: &str, new: &str) -> Paths {
        let step = (repository, old.to_owned(), new.to_owned());
        if let Some(paths) = self.changes.get(&step) {
            return paths.clone();
        }
        let paths = self.sources.changed(repository, old, new).await.ok();
        let paths: Paths = paths.map(Into::into);
        self.changes.insert(step, paths.clone());
        paths
    }
}
