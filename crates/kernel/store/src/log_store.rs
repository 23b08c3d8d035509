//! A store made of an index in memory and an engine that keeps records: what all backends of this crate share.
//!
//! Threads and tasks:
//!
//! * One **writer thread** owns the engine and the leases ([`writer`]). Transactions reach it through a channel and are
//!   answered through one-shot channels; whatever has queued up while it was busy becomes one batch and one commit.
//! * **Reads** look into the index on the caller's task and fetch values on a blocking thread, through one of a few
//!   readers.
//! * **Watches** are polled by whoever holds the stream ([`watch`]); they read the hub's ring, or the engine if what
//!   they want is older.
//!
//! The order of a write is: evaluate, make durable, show in the index, show in the hub, answer. So whoever has an
//! answer finds the write everywhere, and nobody ever sees one that a crash could take back.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::api::{
    KeyValue, LeaseId, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use crate::clock::{Clock, MonotonicClock};
use crate::engine::{Engine, EngineReader, RecordId};
use crate::evaluate::check_revision;
use crate::hub::Hub;
use crate::index::{Index, Loading, Selection};
use crate::lease::Leases;
use crate::limits;

mod watch;
mod writer;

use writer::{Command, Writer};

/// Readers beside the writer. Reads are rare (current objects are served from the caller's memory) and short.
const READERS: usize = 2;

/// Transactions that wait may hold this many KiB of keys and values together; further ones wait outside.
const QUEUE_KIB: usize = 64 * 1024;

/// A read that keeps losing the race against compaction is given up; each loss takes a whole compaction.
const READ_ATTEMPTS: usize = 8;

/// How a store behaves; the defaults are right for a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of recent changes that are kept in memory for watchers. A watcher that is further behind is slow.
    pub ring_bytes: usize,
    /// How often a watch that has nothing to deliver says how far it has got.
    pub progress_interval: Duration,
    /// The clock by which leases expire.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_bytes: 8 * 1024 * 1024,
            progress_interval: Duration::from_secs(5),
            clock: Arc::new(MonotonicClock::default()),
        }
    }
}

/// What callers, watches and the writer share.
pub(crate) struct Shared {
    index: RwLock<Index>,
    hub: Arc<Hub>,
    readers: Mutex<Vec<Box<dyn EngineReader>>>,
    reader_permits: Arc<Semaphore>,
    reads_block: bool,
    progress_interval: Duration,
}

impl Shared {
    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work that needs a reader where it may block.
    async fn with_reader<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared, &mut dyn EngineReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = || StoreError::Closed("no reader is left".to_owned());
        let permit = Arc::clone(&self.reader_permits)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let taken = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = taken.ok_or_else(closed)?;
        let mut borrowed = BorrowedReader {
            shared: Arc::clone(self),
            reader: Some(reader),
            _permit: permit,
        };
        let run = move || match &mut borrowed {
            BorrowedReader {
                shared,
                reader: Some(reader),
                ..
            } => work(shared, reader.as_mut()),
            BorrowedReader { reader: None, .. } => Err(closed()),
        };
        if !self.reads_block {
            return run();
        }
        tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| StoreError::Io {
                attempted: "run a read",
                cause: error.to_string(),
            })?
    }

    /// What the index says to a read, and the revision at which it says it.
    fn select(&self, range: &Range) -> Result<(Selection, Revision), StoreError> {
        let index = self.index();
        let current = index.revision();
        let at = range.revision.unwrap_or(current);
        check_revision(&index, current, at)?;
        let limit = if range.count_only { 1 } else { range.limit };
        Ok((index.select(&range.keys, at, limit), current))
    }

    /// Fetches the values of a selection; `None` if a compaction has taken one away in the meantime.
    fn fetch(
        reader: &mut dyn EngineReader,
        selection: &Selection,
    ) -> Result<Option<Vec<KeyValue>>, StoreError> {
        let ids: Vec<RecordId> = selection.found.iter().map(|(_, version)| version.id).collect();
        let Some(values) = reader.values(&ids)? else {
            return Ok(None);
        };
        let found = selection.found.iter().zip(values);
        Ok(Some(
            found
                .map(|((key, version), value)| version.with(key.clone(), value))
                .collect(),
        ))
    }

    fn range(&self, reader: &mut dyn EngineReader, range: &Range) -> Result<RangeResponse, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            let (selection, revision) = self.select(range)?;
            if let Some(kvs) = Self::fetch(reader, &selection)? {
                let more = selection.count > kvs.len();
                return Ok(RangeResponse {
                    kvs,
                    count: selection.count,
                    more,
                    revision,
                });
            }
        }
        Err(StoreError::Unusable(
            "a record that the index names is not in the database".to_owned(),
        ))
    }
}

/// A reader that returns to its place whatever happens: the caller may go away while it reads, and work may panic. The
/// permit is given back after it.
struct BorrowedReader {
    shared: Arc<Shared>,
    reader: Option<Box<dyn EngineReader>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for BorrowedReader {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.shared
                .readers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(reader);
        }
    }
}

/// Ends all watches when the writer ends, even if it panics: nothing would come any more.
struct CloseOnExit(Arc<Hub>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.close("its writer has ended");
    }
}

/// A store over an engine. [`crate::EmbeddedStore`] and [`crate::MemoryStore`] are this with an engine chosen.
pub struct LogStore {
    shared: Arc<Shared>,
    commands: Sender<Command>,
    queue: Arc<Semaphore>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl LogStore {
    /// Reads what the engine keeps and starts the writer.
    pub fn start(mut engine: Box<dyn Engine>, options: &Options) -> Result<Self, StoreError> {
        let mut loading = Loading::default();
        let loaded = engine.load(&mut |compacted, record| loading.take(compacted, &record))?;
        let index = loading.finish(loaded.compacted);
        let now = options.clock.now();
        let mut leases = Leases::load(loaded.leases, loaded.last_lease, now);
        for (key, lease) in index.leased() {
            leases.attach(lease, &key);
        }
        let readers = (0..READERS)
            .map(|_| engine.reader())
            .collect::<Result<Vec<_>, StoreError>>()?;
        let shared = Arc::new(Shared {
            hub: Arc::new(Hub::new(index.revision(), options.ring_bytes)),
            index: RwLock::new(index),
            readers: Mutex::new(readers),
            reader_permits: Arc::new(Semaphore::new(READERS)),
            reads_block: engine.reads_block(),
            progress_interval: options.progress_interval,
        });
        let (commands, received) = mpsc::channel();
        let wake = commands.clone();
        // The writer may be gone by the time that a clock is set.
        options
            .clock
            .on_set(Box::new(move || drop(wake.send(Command::Tick))));
        let writer = Writer::new(
            engine,
            leases,
            Arc::clone(&shared),
            Arc::clone(&options.clock),
            received,
        );
        let close_on_exit = CloseOnExit(Arc::clone(&shared.hub));
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let _close_on_exit = close_on_exit;
                writer.run();
            })
            .map_err(|error| StoreError::Io {
                attempted: "start its writer",
                cause: error.to_string(),
            })?;
        Ok(Self {
            shared,
            commands,
            queue: Arc::new(Semaphore::new(QUEUE_KIB)),
            writer: Mutex::new(Some(thread)),
        })
    }

    /// See [`crate::engine::Engine::settle`].
    pub(crate) async fn settle(&self) -> Result<(), StoreError> {
        self.ask(|answer| Command::Settle { answer }).await
    }

    /// Sends a command to the writer and waits for its answer.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        if self.commands.send(command(answer)).is_err() {
            return Err(self.closed());
        }
        answered.await.unwrap_or_else(|_| Err(self.closed()))
    }

    fn closed(&self) -> StoreError {
        match self.shared.hub.check_open() {
            Err(closed) => closed,
            Ok(()) => StoreError::Closed("its writer has ended".to_owned()),
        }
    }
}

impl fmt::Debug for LogStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStore")
            .field("revision", &self.shared.index().revision())
            .finish_non_exhaustive()
    }
}

impl Drop for LogStore {
    /// Waits for the writer, so that whoever opens the same directory next does not find it locked.
    fn drop(&mut self) {
        let (answer, _) = oneshot::channel();
        let _ = self.commands.send(Command::Close { answer });
        let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Store for LogStore {
    fn txn(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, StoreError>> {
        Box::pin(async move {
            let bytes = limits::check(&txn)?;
            let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
            let permit = Arc::clone(&self.queue)
                .acquire_many_owned(kib)
                .await
                .map_err(|_| self.closed())?;
            self.ask(|answer| Command::Txn {
                txn,
                bytes,
                permit,
                answer,
            })
            .await
        })
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        Box::pin(async move {
            self.shared.hub.check_open()?;
            if range.count_only || range.keys_only {
                let (selection, revision) = self.shared.select(&range)?;
                let (count, keys) = (selection.count, selection.found.len());
                let found = if range.count_only {
                    Vec::new()
                } else {
                    selection.found
                };
                let kvs = found
                    .into_iter()
                    .map(|(key, version)| version.with(key, Bytes::new()))
                    .collect();
                return Ok(RangeResponse {
                    kvs,
                    count,
                    more: !range.count_only && count > keys,
                    revision,
                });
            }
            self.shared
                .with_reader(move |shared, reader| shared.range(reader, &range))
                .await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StoreError>> {
        Box::pin(async move {
            self.shared.hub.check_open()?;
            Ok(watch::stream(&self.shared, request))
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move {
            self.shared.hub.check_open()?;
            Ok(self.shared.index().revision())
        })
    }

    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(move |answer| Command::Compact { before, answer }))
    }

    fn lease_grant(&self, ttl_seconds: u64) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        Box::pin(async move {
            let ttl_seconds = Leases::check_ttl(ttl_seconds)?;
            self.ask(|answer| Command::Grant { ttl_seconds, answer }).await
        })
    }

    fn lease_keep_alive(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(move |answer| Command::KeepAlive { lease, answer }))
    }

    fn lease_revoke(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(move |answer| Command::Revoke { lease, answer }))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(|answer| Command::Close { answer }))
    }
}

/// Budget of one reading of history, so that a long replay neither blocks a reader nor fills memory.
struct ReplayBudget {
    records: usize,
    bytes: usize,
}

impl ReplayBudget {
    fn new() -> Self {
        Self {
            records: 512,
            bytes: 1024 * 1024,
        }
    }

    fn spend(&mut self, bytes: usize) {
        self.records = self.records.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    fn flow_at_boundary(&self) -> ControlFlow<()> {
        if self.records == 0 || self.bytes == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
