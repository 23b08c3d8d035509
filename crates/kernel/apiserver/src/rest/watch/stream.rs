//! The events of one watch, from the cache's signals to lines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_store::StoreError;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::cache::{Change, ChangeKind, Listing, Signal, watch_frame};
use crate::filter::Filter;
use crate::http::body::BoxError;
use crate::http::negotiate::{Accept, Form, Format};
use crate::http::respond;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::object::Object;
use crate::query::ListOptions;
use crate::registry::ResourceDef;
use crate::rest::call::Call;
use crate::rest::present::{self, Table};
use crate::status::ApiError;
use crate::workspaces::EVERY_CLUSTER;

/// Watches end after this time, plus up to as much again, so that clients do not all come back at once.
const SHORTEST: Duration = Duration::from_secs(30 * 60);
/// The longest that a client may ask for: a year. Beyond it the clock could not hold the sum.
const LONGEST: u64 = 366 * 86_400;
/// How old a watch must be for bookmarks from time to time.
const SETTLED: Duration = Duration::from_secs(5);
/// Lines that are handed to the connection at once.
const BATCH: usize = 64;

/// Where changes come from.
pub(super) enum Source {
    /// The cache.
    Live(mpsc::Receiver<Signal>),
    /// The store's history, and then its present.
    History(BoxStream<'static, Result<Signal, StoreError>>),
    /// Nowhere: what is queued is all.
    Ended,
}

/// One watch.
pub(super) struct Events {
    def: Arc<ResourceDef>,
    accept: Accept,
    table: Option<Table>,
    filter: Filter,
    bookmarks: bool,
    /// A watch that has just begun knows where it is.
    no_bookmark_before: Instant,
    after: u64,
    queue: VecDeque<Bytes>,
    initial: VecDeque<Arc<Object>>,
    end_of_initial: Option<u64>,
    deadline: Instant,
    shutdown: watch::Receiver<bool>,
    /// The one workspace that it is about and that may go offline.
    workspace: Option<Arc<Presence>>,
}

/// A workspace, and what was known of it when the watch began.
struct Presence {
    kernel: Arc<Kernel>,
    cluster: Box<str>,
    since: watch::Receiver<u64>,
}

impl Presence {
    fn of(call: &Call<'_>) -> Option<Arc<Self>> {
        let may_go = !matches!(call.cluster, ROOT_CLUSTER | EVERY_CLUSTER);
        may_go.then(|| {
            Arc::new(Self {
                kernel: Arc::clone(call.kernel),
                cluster: call.cluster.into(),
                since: call.kernel.workspaces.follow_offline(),
            })
        })
    }

    /// Returns when the workspace is offline; without one, never.
    async fn ended(this: Option<Arc<Self>>) {
        let Some(it) = this else {
            return std::future::pending().await;
        };
        let workspaces = &it.kernel.workspaces;
        workspaces.gone_offline(&it.cluster, it.since.clone()).await;
    }
}

impl Events {
    pub(super) fn new(call: &Call<'_>, filter: Filter, options: &ListOptions) -> Self {
        let lasts = match options.timeout_seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds.min(LONGEST)),
            _ => SHORTEST + call.kernel.random.spread(SHORTEST),
        };
        let table = if call.accept.form == Form::Table {
            Table::new(call).ok()
        } else {
            None
        };
        Self {
            def: Arc::clone(&call.def),
            accept: call.accept,
            table,
            filter,
            bookmarks: options.allow_bookmarks,
            no_bookmark_before: Instant::now() + SETTLED,
            after: 0,
            queue: VecDeque::new(),
            initial: VecDeque::new(),
            end_of_initial: None,
            deadline: Instant::now() + lasts,
            shutdown: call.kernel.shutdown.subscribe(),
            workspace: Presence::of(call),
        }
    }

    /// Sends what there is first; `announce` adds the bookmark that says that this was all.
    pub(super) fn begin_with(&mut self, listing: Listing, announce: bool) {
        self.after = listing.revision;
        self.initial = listing.objects.into_iter().map(|(_, object)| object).collect();
        self.end_of_initial = (announce && self.bookmarks).then_some(listing.revision);
    }

    /// Sends only changes after this revision.
    pub(super) fn after(&mut self, revision: u64) {
        self.after = revision;
    }

    pub(super) fn replay(&mut self, changes: Vec<Arc<Change>>) {
        for change in changes {
            self.take(&change);
        }
    }

    /// Ends the stream with an error, as watchers expect it: an ERROR event.
    pub(super) fn fail(&mut self, error: &ApiError) {
        let (_, status) = respond::encode(Format::Json, &error.to_status());
        self.queue.push_back(watch_frame("ERROR", &status));
    }

    fn take(&mut self, change: &Change) {
        if change.object.revision() <= self.after {
            return;
        }
        let now = change.kind != ChangeKind::Deleted
            && self.filter.matches_key(&self.def, &change.suffix, &change.object);
        let before = change
            .prev
            .as_ref()
            .is_some_and(|p| self.filter.matches_key(&self.def, &change.suffix, p));
        match (before, now) {
            (false, false) => {}
            (false, true) => self.push_change(change, ChangeKind::Added, &change.object),
            (true, true) => self.push_change(change, ChangeKind::Modified, &change.object),
            (true, false) if change.kind == ChangeKind::Deleted => {
                self.push_change(change, ChangeKind::Deleted, &change.object);
            }
            (true, false) => {
                // It ceased to match: the watcher sees it go, as it last knew it, at the revision of the change.
                if let Some(prev) = &change.prev {
                    let last = Arc::new(prev.deleted_at(change.object.revision()));
                    self.push(ChangeKind::Deleted.word(), &last);
                }
            }
        }
    }

    fn push_change(&mut self, change: &Change, seen_as: ChangeKind, object: &Arc<Object>) {
        if seen_as != change.kind || self.accept.format != Format::Json {
            return self.push(seen_as.word(), object);
        }
        match self.accept.form {
            Form::Object if present::is_ready(&self.def, object) => {
                self.queue.push_back(change.frame().clone());
            }
            Form::Metadata => self.queue.push_back(change.metadata_frame().clone()),
            _ => self.push(seen_as.word(), object),
        }
    }

    fn push(&mut self, word: &str, object: &Arc<Object>) {
        if self.accept.form == Form::Object && self.accept.format != Format::Yaml {
            if let Ok(bytes) = present::bytes(&self.def, object) {
                self.queue.push_back(watch_frame(word, &bytes));
            }
            return;
        }
        if self.accept.form == Form::Metadata && self.accept.format != Format::Yaml {
            self.queue
                .push_back(watch_frame(word, &object.partial_metadata()));
            return;
        }
        let Ok(value) = present::value(&self.def, object) else {
            return;
        };
        self.push_value(word, &value);
    }

    fn push_value(&mut self, word: &str, value: &Value) {
        let shown = match (&mut self.table, self.accept.form) {
            (Some(table), _) => table.event(value),
            (None, Form::Metadata) => present::metadata(value),
            _ => value.clone(),
        };
        let line = match self.accept.format {
            Format::Yaml => {
                let event = json!({"type": word, "object": shown});
                format!("---\n{}", fairway_text_yaml::to_string(&event)).into()
            }
            Format::Json | Format::PrettyJson => watch_frame(word, &respond::encode(Format::Json, &shown).1),
        };
        self.queue.push_back(line);
    }

    fn bookmark(&mut self, revision: u64, end_of_initial: bool) {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object =
            json!({"kind": self.def.kind, "apiVersion": self.def.api_version(), "metadata": metadata});
        self.push_value("BOOKMARK", &object);
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::Change(change) => self.take(&change),
            Signal::Progress(revision)
                if self.bookmarks && revision >= self.after && Instant::now() >= self.no_bookmark_before =>
            {
                self.bookmark(revision, false);
            }
            Signal::Progress(_) => {}
        }
    }

    /// Moves some of the initial objects into the queue; `false` when there are none left.
    fn fill_from_initial(&mut self) -> bool {
        for _ in 0..BATCH {
            let Some(object) = self.initial.pop_front() else {
                break;
            };
            if self.filter.matches(&self.def, &object) {
                self.push(ChangeKind::Added.word(), &object);
            }
        }
        if self.initial.is_empty()
            && let Some(revision) = self.end_of_initial.take()
        {
            self.bookmark(revision, true);
        }
        !self.queue.is_empty() || !self.initial.is_empty()
    }

    fn drain(&mut self) -> Bytes {
        if self.queue.len() == 1 {
            return self.queue.pop_front().unwrap_or_default();
        }
        let lines: Vec<Bytes> = self.queue.drain(..).collect();
        lines.concat().into()
    }

    /// The body's frames.
    pub(super) fn frames(
        self,
        source: Source,
    ) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static {
        futures::stream::unfold((self, source), |(mut events, mut source)| async move {
            loop {
                if !events.queue.is_empty() {
                    let chunk = events.drain();
                    return Some((Ok(Frame::data(chunk)), (events, source)));
                }
                if events.fill_from_initial() {
                    continue;
                }
                if !events.next_signals(&mut source).await {
                    return None;
                }
            }
        })
    }

    /// Waits for signals; `false` when the watch is over.
    async fn next_signals(&mut self, source: &mut Source) -> bool {
        let deadline = self.deadline;
        let mut shutdown = self.shutdown.clone();
        let offline = Presence::ended(self.workspace.clone());
        tokio::select! {
            // The end comes first: a busy watch would otherwise never look at the clock.
            biased;
            () = tokio::time::sleep_until(deadline) => false,
            _ = shutdown.wait_for(|down| *down) => false,
            () = offline => false,
            went_on = self.receive(source) => went_on,
        }
    }

    async fn receive(&mut self, source: &mut Source) -> bool {
        match source {
            Source::Ended => false,
            Source::Live(live) => {
                let Some(signal) = live.recv().await else {
                    return false;
                };
                self.signal(signal);
                // Whatever else is there already goes out in the same frame.
                while self.queue.len() < BATCH {
                    let Ok(signal) = live.try_recv() else { break };
                    self.signal(signal);
                }
                true
            }
            Source::History(history) => match history.next().await {
                Some(Ok(signal)) => {
                    self.signal(signal);
                    true
                }
                // It resumes where it was, like a watcher that the cache has closed.
                Some(Err(StoreError::SlowWatcher)) => false,
                Some(Err(error)) => {
                    self.fail(&watch_error(&error));
                    *source = Source::Ended;
                    true
                }
                None => false,
            },
        }
    }
}

pub(super) fn watch_error(error: &StoreError) -> ApiError {
    match error {
        StoreError::Compacted { requested, oldest } => ApiError::expired(format!(
            "too old resource version: {} ({})",
            requested.0, oldest.0
        )),
        other => other.clone().into(),
    }
}
