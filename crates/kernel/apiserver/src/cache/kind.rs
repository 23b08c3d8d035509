//! One kind: its objects, its recent changes, its watchers.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;

use super::sheet::{LastSheet, Sheet};
use crate::object::Object;

/// The most changes that a kind remembers.
const WINDOW_CHANGES: usize = 2_048;
/// The most bytes of objects that the remembered changes may hold on to.
const WINDOW_BYTES: usize = 4 << 20;
/// Changes that wait for a watcher before it counts as too slow.
const WATCHER_QUEUE: usize = 1_024;

/// A change of one object.
#[derive(Debug)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// `<cluster>/<namespace>/<name>`.
    pub suffix: Box<str>,
    /// The object after the change; for a deletion its last state, at the revision of the deletion.
    pub object: Arc<Object>,
    /// The object before.
    pub prev: Option<Arc<Object>>,
    frame: OnceLock<Bytes>,
    metadata_frame: OnceLock<Bytes>,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was deleted.
    Deleted,
}

impl ChangeKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Change {
    /// A change that nobody has seen yet.
    pub fn new(kind: ChangeKind, suffix: Box<str>, object: Arc<Object>, prev: Option<Arc<Object>>) -> Self {
        Self {
            kind,
            suffix,
            object,
            prev,
            frame: OnceLock::new(),
            metadata_frame: OnceLock::new(),
        }
    }

    /// The line that plain watchers of the stored version are sent, made once for all of them.
    pub fn frame(&self) -> &Bytes {
        self.frame
            .get_or_init(|| watch_frame(self.kind.word(), self.object.bytes()))
    }

    /// The same for watchers that read only metadata.
    pub fn metadata_frame(&self) -> &Bytes {
        self.metadata_frame
            .get_or_init(|| watch_frame(self.kind.word(), &self.object.partial_metadata()))
    }

    /// What it holds on to: the object, the line that is made of it, and the object before.
    fn weight(&self) -> usize {
        2 * self.object.bytes().len() + self.prev.as_ref().map_or(0, |p| p.bytes().len())
    }
}

/// `{"type":"ADDED","object":...}` and a newline.
pub fn watch_frame(word: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + word.len() + 24);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(word.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

/// What a watcher is sent.
#[derive(Clone, Debug)]
pub enum Signal {
    /// Something changed.
    Change(Arc<Change>),
    /// Nothing below this revision is missing.
    Progress(u64),
}

/// Which objects of a kind: all of a workspace, of a namespace, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All whose suffix begins so.
    Within(Box<str>),
    /// One.
    One(Box<str>),
}

impl Scope {
    /// Whether an object is in it.
    pub fn contains(&self, suffix: &str) -> bool {
        match self {
            Self::Within(prefix) => suffix.starts_with(&**prefix),
            Self::One(one) => suffix == &**one,
        }
    }
}

/// Objects at one revision.
#[derive(Debug)]
pub struct Listing {
    /// The objects, in order of their keys.
    pub objects: Vec<(Box<str>, Arc<Object>)>,
    /// Their revision.
    pub revision: u64,
}

/// A watcher's side of a kind.
#[derive(Debug)]
pub struct Subscription {
    /// Changes that happened before the subscription but after the revision that it begins with.
    pub replay: Vec<Arc<Change>>,
    /// What happens from now on. It ends when the watcher is too slow or the kind goes.
    pub live: mpsc::Receiver<Signal>,
}

struct Watcher {
    scope: Scope,
    queue: mpsc::Sender<Signal>,
}

/// Something inside the server that must know of a change before the write is acknowledged (roles, definitions).
pub type Observer = Box<dyn Fn(&Change) + Send + Sync>;

struct State {
    observers: Vec<Observer>,
    objects: BTreeMap<Box<str>, Arc<Object>>,
    last_sheet: LastSheet,
    window: VecDeque<Arc<Change>>,
    window_bytes: usize,
    /// All changes after this revision are in the window.
    window_from: u64,
    watchers: Vec<Watcher>,
    /// Revision of the last change of this kind.
    changed_at: u64,
}

/// All objects of a kind, in all workspaces.
pub struct KindCache {
    prefix: Box<str>,
    state: RwLock<State>,
}

impl KindCache {
    pub(super) fn new(prefix: &str, loaded_at: u64) -> Self {
        Self {
            prefix: prefix.into(),
            state: RwLock::new(State {
                observers: Vec::new(),
                objects: BTreeMap::new(),
                last_sheet: LastSheet::default(),
                window: VecDeque::new(),
                window_bytes: 0,
                window_from: loaded_at,
                watchers: Vec::new(),
                changed_at: 0,
            }),
        }
    }

    /// `/<group>/<resource>/<identity>/`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object.
    pub fn get(&self, suffix: &str) -> Option<Arc<Object>> {
        self.read().objects.get(suffix).cloned()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.read().objects.is_empty()
    }

    /// Number of open watches.
    pub fn watchers(&self) -> usize {
        let state = self.read();
        state.watchers.iter().filter(|w| !w.queue.is_closed()).count()
    }

    /// Revision of the last change of this kind since start; 0: there was none.
    pub fn changed_at(&self) -> u64 {
        self.read().changed_at
    }

    /// Whether nothing has changed between this revision and the start of what this cache has seen.
    pub(super) fn window_covers(&self, revision: u64) -> bool {
        self.read().window_from <= revision
    }

    /// Objects of a scope after `after`, at most `limit` (0: all), and whether there are more.
    ///
    /// `applied` is the cache's applied revision, read before the call.
    pub fn list(&self, scope: &Scope, after: Option<&str>, limit: usize, applied: u64) -> (Listing, bool) {
        let state = self.read();
        let revision = applied.max(state.changed_at);
        let mut objects = Vec::new();
        let mut more = false;
        match scope {
            Scope::One(one) => {
                if let Some((suffix, object)) = state.objects.get_key_value(one) {
                    objects.push((suffix.clone(), Arc::clone(object)));
                }
            }
            Scope::Within(prefix) => {
                for (suffix, object) in state.within(prefix, after) {
                    if limit > 0 && objects.len() == limit {
                        more = true;
                        break;
                    }
                    objects.push((suffix.clone(), Arc::clone(object)));
                }
            }
        }
        (Listing { objects, revision }, more)
    }

    /// References to all objects of a scope, without their keys: the quick form for whole lists.
    pub fn snapshot(&self, scope: &Scope, applied: u64) -> (Arc<Sheet>, u64) {
        let state = self.read();
        let revision = applied.max(state.changed_at);
        let objects = match scope {
            Scope::One(one) => Arc::new(state.objects.get(one).cloned().into_iter().collect()),
            Scope::Within(prefix) => state.last_sheet.get_or(prefix, || {
                state.within(prefix, None).map(|(_, o)| Arc::clone(o)).collect()
            }),
        };
        (objects, revision)
    }

    /// Follows changes after `from`; `None` if they are not in the window any more.
    pub fn subscribe(&self, scope: Scope, from: u64) -> Option<Subscription> {
        let mut state = self.write();
        if from < state.window_from {
            return None;
        }
        let first = state.window.partition_point(|c| c.object.revision() <= from);
        let replay = state
            .window
            .range(first..)
            .filter(|c| scope.contains(&c.suffix))
            .cloned()
            .collect();
        Some(Subscription {
            replay,
            live: state.add_watcher(scope),
        })
    }

    /// What there is, and everything that follows, without a gap.
    pub fn list_and_subscribe(&self, scope: Scope, applied: u64) -> (Listing, mpsc::Receiver<Signal>) {
        let mut state = self.write();
        let revision = applied.max(state.changed_at);
        let objects = match &scope {
            Scope::One(one) => state
                .objects
                .get_key_value(one)
                .map(|(s, o)| (s.clone(), Arc::clone(o)))
                .into_iter()
                .collect(),
            Scope::Within(prefix) => state
                .within(prefix, None)
                .map(|(s, o)| (s.clone(), Arc::clone(o)))
                .collect(),
        };
        (Listing { objects, revision }, state.add_watcher(scope))
    }

    /// Calls `observer` for every object there is and then for every change, before the change is visible to waiters.
    /// It runs under this kind's lock, so it must be quick and must not read this kind.
    pub fn observe(&self, observer: Observer) {
        let mut state = self.write();
        for (suffix, object) in &state.objects {
            observer(&Change::new(
                ChangeKind::Added,
                suffix.clone(),
                Arc::clone(object),
                None,
            ));
        }
        state.observers.push(observer);
    }

    /// Takes in all objects when the store is read for the first time. Their order makes the map at once, and a dense one.
    pub(super) fn load(&self, objects: Vec<(Box<str>, Arc<Object>)>) {
        let mut state = self.write();
        state.objects = objects.into_iter().collect();
        state.last_sheet.forget();
    }

    /// Takes in a new state of an object; returns the size of the one before.
    pub(super) fn put(&self, suffix: &str, object: Arc<Object>) -> Option<usize> {
        let mut state = self.write();
        let prev = state.objects.insert(suffix.into(), Arc::clone(&object));
        let before = prev.as_ref().map(|prev| prev.bytes().len());
        let kind = if prev.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        let change = Arc::new(Change::new(kind, suffix.into(), object, prev));
        state.record(&change);
        before
    }

    /// Takes in a deletion; returns the size of what went.
    pub(super) fn delete(&self, suffix: &str, revision: u64) -> Option<usize> {
        let mut state = self.write();
        let prev = state.objects.remove(suffix)?;
        let before = prev.bytes().len();
        let last = Arc::new(prev.deleted_at(revision));
        let change = Arc::new(Change::new(ChangeKind::Deleted, suffix.into(), last, Some(prev)));
        state.record(&change);
        Some(before)
    }

    /// Tells every watcher how far it is.
    pub(super) fn progress(&self, revision: u64) {
        let mut state = self.write();
        state
            .watchers
            .retain(|w| match w.queue.try_send(Signal::Progress(revision)) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            });
    }

    pub(super) fn close_watchers(&self) {
        self.write().watchers.clear();
    }
}

impl State {
    /// Objects whose keys begin with a prefix, after one of those keys if it is given. Where they end is known
    /// beforehand: comparing every key on the way would fetch each from memory.
    fn within(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = (&Box<str>, &Arc<Object>)> {
        let start = match after {
            None => Some(Bound::Included(prefix)),
            Some(after) => after.starts_with(prefix).then_some(Bound::Excluded(after)),
        };
        let end = beyond(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        start
            .map(|start| self.objects.range::<str, _>((start, end)))
            .into_iter()
            .flatten()
    }

    fn add_watcher(&mut self, scope: Scope) -> mpsc::Receiver<Signal> {
        let (queue, live) = mpsc::channel(WATCHER_QUEUE);
        self.watchers.push(Watcher { scope, queue });
        live
    }

    fn record(&mut self, change: &Arc<Change>) {
        self.changed_at = change.object.revision();
        self.last_sheet.forget();
        self.observers.iter().for_each(|observe| observe(change));
        self.window_bytes += change.weight();
        self.window.push_back(Arc::clone(change));
        while self.window.len() > WINDOW_CHANGES
            || (self.window_bytes > WINDOW_BYTES && self.window.len() > 1)
        {
            if let Some(oldest) = self.window.pop_front() {
                self.window_bytes -= oldest.weight();
                self.window_from = oldest.object.revision();
            }
        }
        // A watcher whose queue is full is dropped: its stream ends and it resumes from the last revision it saw.
        self.watchers.retain(|w| {
            !w.scope.contains(&change.suffix) && !w.queue.is_closed()
                || w.queue.try_send(Signal::Change(Arc::clone(change))).is_ok()
        });
    }
}

/// The smallest string above all that begin with a prefix; `None`: there is none.
fn beyond(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The order of strings is that of their characters; `..` skips what is no character.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::encode;

    fn object(name: &str, revision: u64) -> Arc<Object> {
        let stored = encode(&json!({"metadata": {"name": name}})).unwrap();
        Arc::new(Object::decode(&stored, revision).unwrap())
    }

    fn everything() -> Scope {
        Scope::Within("root/".into())
    }

    #[test]
    fn a_watch_sees_what_happened_since_its_revision_and_what_follows() {
        let kind = KindCache::new("/core/x/builtin/", 10);
        kind.put("root/a/x", object("x", 11));
        kind.put("root/b/y", object("y", 12));
        let mut watch = kind.subscribe(Scope::Within("root/b/".into()), 10).unwrap();
        assert_eq!(watch.replay.len(), 1);
        kind.delete("root/b/y", 13);
        kind.put("root/a/x", object("x", 14));
        let Ok(Signal::Change(change)) = watch.live.try_recv() else {
            panic!("a change")
        };
        assert_eq!((change.kind, change.object.revision()), (ChangeKind::Deleted, 13));
        assert!(watch.live.try_recv().is_err(), "other namespaces are not sent");
    }

    #[test]
    fn the_window_is_bounded_and_says_what_it_lacks() {
        let kind = KindCache::new("/core/x/builtin/", 0);
        for revision in 1..=(WINDOW_CHANGES as u64 + 5) {
            kind.put("root//x", object("x", revision));
        }
        assert!(kind.subscribe(everything(), 4).is_none(), "revision 5 is gone");
        assert_eq!(
            kind.subscribe(everything(), 5).unwrap().replay.len(),
            WINDOW_CHANGES
        );
    }

    #[test]
    fn a_slow_watcher_is_dropped_not_buffered() {
        let kind = KindCache::new("/core/x/builtin/", 0);
        let mut watch = kind.subscribe(everything(), 0).unwrap();
        for revision in 1..=(WATCHER_QUEUE as u64 + 1) {
            kind.put("root//x", object("x", revision));
        }
        let mut seen = 0;
        while watch.live.try_recv().is_ok() {
            seen += 1;
        }
        assert_eq!(seen, WATCHER_QUEUE);
        assert!(watch.live.is_closed());
    }

    #[test]
    fn pages_are_cut_where_asked() {
        let kind = KindCache::new("/core/x/builtin/", 0);
        for (i, name) in ["a", "b", "c"].iter().enumerate() {
            kind.put(&format!("root/n/{name}"), object(name, i as u64 + 1));
        }
        let (page, more) = kind.list(&everything(), None, 2, 0);
        assert_eq!((page.objects.len(), more, page.revision), (2, true, 3));
        let (rest, more) = kind.list(&everything(), Some("root/n/b"), 2, 0);
        assert_eq!((rest.objects.len(), more), (1, false));
        for outside in ["a", "roos/x", "root", "roou", "z"] {
            let (none, more) = kind.list(&everything(), Some(outside), 2, 0);
            assert_eq!((none.objects.len(), more), (0, false), "{outside}");
        }
    }

    #[test]
    fn whole_lists_are_shared_until_something_changes() {
        let kind = KindCache::new("/core/x/builtin/", 0);
        let names = |prefix: &str| {
            let (sheet, _) = kind.snapshot(&Scope::Within(prefix.into()), 0);
            sheet.iter().map(|o| o.revision()).collect::<Vec<_>>()
        };
        for i in 0..200_u64 {
            let namespace = if i % 2 == 0 { "even" } else { "odd" };
            kind.put(&format!("root/{namespace}/{i:03}"), object("x", i + 1));
        }
        let (first, _) = kind.snapshot(&everything(), 0);
        let (again, revision) = kind.snapshot(&everything(), 0);
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!((again.len(), revision), (200, 200));
        assert_eq!(
            again.bytes(),
            again.iter().map(|o| o.bytes().len()).sum::<usize>()
        );
        assert_eq!(names("root/odd/").len(), 100, "another list is another list");
        assert_eq!(names("root/").len(), 200);
        kind.put("root/odd/001", object("x", 201));
        assert!(names("root/odd/").contains(&201), "a change is seen");
        kind.delete("root/odd/001", 202);
        assert_eq!(names("root/odd/").len(), 99, "and a deletion");
        assert_eq!(first.len(), 200, "who has a list keeps it");
    }

    #[test]
    fn what_is_beyond_a_prefix() {
        for (prefix, end) in [
            ("root/n/", Some("root/n0")),
            ("", None),
            ("\u{10ffff}", None),
            ("a\u{10ffff}", Some("b")),
            ("a\u{d7ff}", Some("a\u{e000}")),
        ] {
            assert_eq!(beyond(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
