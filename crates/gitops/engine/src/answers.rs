//! Who listens to what becomes of a push, and what he is told.
//!
//! Whoever has moved references asks with [`Answers::expect`] for a number, and sends it along with the news. Where the news
//! is heard, it is found out which Applications are touched; from then on passes over these tell what they notice. One
//! task for each push that somebody listens to: it makes lines of what is noticed, and looks at the Applications
//! itself now and then, so that nothing depends on a notice that was lost. It ends when all is told, when the time is up,
//! or when nobody listens any more. No pass waits for a listener.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use fairway_controller::{Clients, ObjectKey, Requests, WorkspaceId};
use fairway_gitops_view::answer::{self, Notice, Teller};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::application::path_of;

/// How many Applications are told of.
const MOST: usize = 32;
/// Notices that wait for a slow listener; more are lost.
const NOTICES: usize = 256;
/// Lines that wait for a slow pusher.
const LINES: usize = 64;
/// How often a listener looks for himself.
const LOOK: Duration = Duration::from_secs(1);

/// An Application that a push touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) key: ObjectKey,
    /// The commits that it was at.
    pub(crate) before: Vec<String>,
    /// The commits that it will be at; empty if they are not known.
    pub(crate) wanted: Vec<String>,
}

/// What is heard of the Applications that a push touches.
struct Following {
    touched: Vec<Touched>,
    notices: mpsc::Receiver<(ObjectKey, Notice)>,
}

type Listener = mpsc::Sender<(ObjectKey, Notice)>;

/// Everybody who listens.
#[derive(Clone, Default)]
pub struct Answers(Arc<Inner>);

#[derive(Default)]
struct Inner {
    last: AtomicU64,
    expected: Mutex<HashMap<u64, oneshot::Sender<Following>>>,
    listeners: Mutex<HashMap<ObjectKey, Vec<Listener>>>,
    /// How Applications are read; there when the engine runs.
    clients: OnceLock<Clients>,
}

/// That the Applications which a push touches will be told.
pub struct Expected {
    answers: Answers,
    /// Goes with the news of the push.
    pub number: u64,
    following: oneshot::Receiver<Following>,
}

/// What a pusher wants to hear.
pub struct Wishes {
    /// The workspace whose Applications he is told of: that of the repository. What others make of it is theirs to tell.
    pub workspace: WorkspaceId,
    /// For how long.
    pub limit: Duration,
    /// Whether he wants to hear the ends alone.
    pub is_brief: bool,
}

impl Answers {
    /// Asks for what a push touches, whose news will carry the number.
    pub fn expect(&self) -> Expected {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, following) = oneshot::channel();
        let mut expected = lock(&self.0.expected);
        // Of those who left before they heard anything.
        expected.retain(|_, sender| !sender.is_closed());
        expected.insert(number, sender);
        drop(expected);
        Expected {
            answers: self.clone(),
            number,
            following,
        }
    }

    pub(crate) fn run_with(&self, clients: Clients) {
        // There is one engine.
        let _ = self.0.clients.set(clients);
    }

    /// Lets everybody go who waits for something that will not come.
    pub(crate) fn let_go(&self) {
        lock(&self.0.expected).clear();
    }

    /// Lets everybody go: nobody will notice anything any more.
    pub(crate) fn end(&self) {
        self.let_go();
        lock(&self.0.listeners).clear();
    }

    /// Tells who asked which Applications his push touches, and listens to them for him from now on.
    pub(crate) fn found(&self, number: u64, touched: Vec<Touched>) {
        let Some(waiting) = lock(&self.0.expected).remove(&number) else {
            return;
        };
        let (sender, notices) = mpsc::channel(NOTICES);
        {
            let mut listeners = lock(&self.0.listeners);
            for Touched { key, .. } in &touched {
                listeners.entry(key.clone()).or_default().push(sender.clone());
            }
        }
        let keys: Vec<ObjectKey> = touched.iter().map(|touched| touched.key.clone()).collect();
        if waiting.send(Following { touched, notices }).is_err() {
            self.forget_closed(&keys);
        }
    }

    /// Tells who listens to an Application what was noticed of it.
    pub(crate) fn tell(&self, key: &ObjectKey, notice: impl FnOnce() -> Notice) {
        let listeners = match lock(&self.0.listeners).get(key) {
            Some(listeners) => listeners.clone(),
            None => return,
        };
        let notice = notice();
        for listener in listeners {
            // Who is too slow looks for himself.
            let _ = listener.try_send((key.clone(), notice.clone()));
        }
    }

    fn forget_closed(&self, keys: &[ObjectKey]) {
        let mut listeners = lock(&self.0.listeners);
        for key in keys {
            if let Some(list) = listeners.get_mut(key) {
                list.retain(|listener| !listener.is_closed());
                if list.is_empty() {
                    listeners.remove(key);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Expected {
    /// The lines of the answer, as they come.
    pub fn lines(self, wishes: Wishes) -> BoxStream<'static, String> {
        let (sender, mut lines) = mpsc::channel(LINES);
        tokio::spawn(async move {
            let left = sender.clone();
            tokio::select! {
                () = left.closed() => {}
                () = self.follow(wishes, sender) => {}
            }
        });
        stream::poll_fn(move |context| lines.poll_recv(context)).boxed()
    }

    async fn follow(self, wishes: Wishes, lines: mpsc::Sender<String>) {
        let begun = Instant::now();
        let deadline = begun + wishes.limit;
        // Declared before what it forgets, so that it is dropped after it.
        let mut forget = Forget(self.answers.clone(), Vec::new());
        let following = match tokio::time::timeout_at(deadline, self.following).await {
            Ok(Ok(following)) => following,
            // Without an engine there is nothing to hear, and nothing to wait for.
            Ok(Err(_)) => return,
            Err(_) => {
                let _ = lines.send(answer::not_looked_at(wishes.limit)).await;
                return;
            }
        };
        let Following {
            mut touched,
            mut notices,
        } = following;
        forget.1 = touched.iter().map(|touched| touched.key.clone()).collect();
        touched.retain(|touched| touched.key.workspace == wishes.workspace);
        let more = touched.len().saturating_sub(MOST);
        touched.truncate(MOST);
        let begin = |touched: Touched| {
            let Touched { key, before, wanted } = touched;
            let name = format!("{}/{}", key.namespace, key.name);
            (key, Teller::new(&name, before, wanted, wishes.is_brief))
        };
        let mut tellers: Vec<(ObjectKey, Teller)> = touched.into_iter().map(begin).collect();
        if more > 0 {
            let _ = lines.send(answer::and_more(more)).await;
        }
        let mut look = tokio::time::interval_at(begun + LOOK, LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while tellers.iter().any(|(_, teller)| !teller.is_over()) {
            let heard: Vec<(ObjectKey, Notice)> = tokio::select! {
                heard = notices.recv() => match heard {
                    Some(heard) => vec![heard],
                    None => return,
                },
                _ = look.tick() => self.answers.look(&tellers).await,
                () = tokio::time::sleep_until(deadline) => {
                    let left = tellers.iter().filter(|(_, teller)| !teller.is_over());
                    let names: Vec<&str> = left.map(|(_, teller)| teller.name()).collect();
                    let _ = lines.send(answer::out_of_time(&names, wishes.limit)).await;
                    return;
                }
            };
            for (about, notice) in heard {
                for (_, teller) in tellers.iter_mut().filter(|(key, _)| *key == about) {
                    for line in teller.hear(&notice, begun.elapsed()) {
                        if lines.send(line).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

impl Answers {
    /// The Applications that are not over, as they are now.
    async fn look(&self, tellers: &[(ObjectKey, Teller)]) -> Vec<(ObjectKey, Notice)> {
        let Some(clients) = self.0.clients.get() else {
            return Vec::new();
        };
        let mut seen = Vec::new();
        for (key, _) in tellers.iter().filter(|(_, teller)| !teller.is_over()) {
            let requests = Requests::new(clients.of(&key.workspace));
            match requests.get(&path_of(key)).await {
                Ok(Some(application)) => seen.push((key.clone(), Notice::Written(application))),
                Ok(None) => seen.push((key.clone(), Notice::Gone)),
                Err(_) => {}
            }
        }
        seen
    }
}

/// Forgets a listener who is gone.
struct Forget(Answers, Vec<ObjectKey>);

impl Drop for Forget {
    fn drop(&mut self) {
        self.0.forget_closed(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn touched(name: &str) -> Touched {
        Touched {
            key: ObjectKey::new(WorkspaceId::root_ref(), "argocd", name),
            before: vec!["a".to_owned()],
            wanted: vec!["b".to_owned()],
        }
    }

    fn wishes(limit: u64) -> Wishes {
        Wishes {
            workspace: WorkspaceId::root(),
            limit: Duration::from_secs(limit),
            is_brief: true,
        }
    }

    fn done() -> Notice {
        Notice::Written(
            json!({"status": {"sync": {"status": "Synced", "revision": "b"}, "health": {"status": "Healthy"}}}),
        )
    }

    #[tokio::test]
    async fn a_listener_hears_of_his_workspace_until_it_is_over() {
        let answers = Answers::default();
        let expected = answers.expect();
        let mut other = touched("web");
        other.key.workspace = WorkspaceId::parse("2a8f0a9b1c3d4e5f").unwrap();
        answers.found(expected.number, vec![touched("web"), other.clone()]);
        let lines = expected.lines(wishes(60));
        for key in [other.key, touched("web").key] {
            answers.tell(&key, done);
        }
        let lines: Vec<String> = lines.collect().await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("argocd/web: Synced and Healthy"),
            "{lines:?}"
        );
    }

    #[tokio::test]
    async fn time_and_listeners_end_it() {
        let answers = Answers::default();
        let expected = answers.expect();
        answers.found(expected.number, vec![touched("web")]);
        let lines: Vec<String> = expected.lines(wishes(1)).collect().await;
        assert_eq!(
            lines,
            ["after 1 s this goes on in the background; follow it with: fairway app wait argocd/web"]
        );
        // Nobody looks; then nobody is there at all, and nobody listens.
        let lines: Vec<String> = answers.expect().lines(wishes(1)).collect().await;
        assert!(
            lines[0].starts_with("after 1 s the engine has not looked"),
            "{lines:?}"
        );
        let expected = answers.expect();
        answers.let_go();
        assert!(expected.lines(wishes(60)).collect::<Vec<_>>().await.is_empty());
        let left = answers.expect();
        let number = left.number;
        drop(left.lines(wishes(60)));
        answers.found(number, vec![touched("web")]);
        while !lock(&answers.0.listeners).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            answers.forget_closed(&[touched("web").key]);
        }
    }
}
