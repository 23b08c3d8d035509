//! The writer thread: it alone owns the engine, and turns whatever has queued up into one batch and one commit.
//!
//! Only transactions share a batch. Leases and compaction are rare, and each is a step of its own between batches.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::api::{LeaseId, Revision, StoreError, Txn, TxnResponse};
use crate::clock::Clock;
use crate::engine::{Batch, Engine, LeaseChange, RecordHeader, RecordId};
use crate::evaluate::{Draft, Evaluator, Values};
use crate::hub::Hub;
use crate::lease::Leases;

use super::Shared;

/// The most transactions in a batch, and the size of keys and values from which no more are added.
const BATCH_TXNS: usize = 512;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Changes that compaction looks at between two batches.
const TRIM_BUDGET: usize = 512;

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked to do.
pub(super) enum Command {
    Txn {
        txn: Txn,
        bytes: usize,
        permit: OwnedSemaphorePermit,
        answer: Answer<TxnResponse>,
    },
    Compact {
        before: Revision,
        answer: Answer<()>,
    },
    Grant {
        ttl_seconds: u64,
        answer: Answer<LeaseId>,
    },
    KeepAlive {
        lease: LeaseId,
        answer: Answer<()>,
    },
    Revoke {
        lease: LeaseId,
        answer: Answer<()>,
    },
    Settle {
        answer: Answer<()>,
    },
    /// The clock was set.
    Tick,
    Close {
        answer: Answer<()>,
    },
}

struct QueuedTxn {
    txn: Txn,
    answer: Answer<TxnResponse>,
    _permit: OwnedSemaphorePermit,
}

pub(super) struct Writer {
    engine: Box<dyn Engine>,
    leases: Leases,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    commands: Receiver<Command>,
    /// A command that ended a batch and comes next.
    next: Option<Command>,
    /// Whether there is history left that nobody can read any more.
    trimming: bool,
    /// Records that could not be erased the last time, because the disk was full.
    unerased: Vec<RecordId>,
    /// Why nothing can be written any more.
    failure: Option<String>,
}

/// Values for evaluation: from the ring if they are recent, as most of what is overwritten is.
struct WriterValues<'a> {
    hub: &'a Hub,
    engine: &'a mut dyn Engine,
}

impl Values for WriterValues<'_> {
    fn value(&mut self, id: RecordId) -> Result<Bytes, StoreError> {
        if let Some(value) = self.hub.value(id) {
            return Ok(value);
        }
        self.engine.value(id)?.ok_or_else(|| {
            StoreError::Unusable("a record that the index names is not in the database".to_owned())
        })
    }
}

impl Writer {
    pub(super) fn new(
        engine: Box<dyn Engine>,
        leases: Leases,
        shared: Arc<Shared>,
        clock: Arc<dyn Clock>,
        commands: Receiver<Command>,
    ) -> Self {
        // What a crash left of an interrupted compaction is trimmed first.
        let (next, trimming, unerased, failure) = (None, true, Vec::new(), None);
        Self {
            engine,
            leases,
            shared,
            clock,
            commands,
            next,
            trimming,
            unerased,
            failure,
        }
    }

    /// Works until it is told to close or nobody can ask any more.
    pub(super) fn run(mut self) {
        let mut closing = None;
        while let Some(command) = self.receive() {
            match command {
                Command::Txn {
                    txn,
                    bytes,
                    permit,
                    answer,
                } => {
                    self.batch(
                        QueuedTxn {
                            txn,
                            answer,
                            _permit: permit,
                        },
                        bytes,
                    );
                }
                Command::Compact { before, answer } => reply(answer, self.compact(before)),
                Command::Grant { ttl_seconds, answer } => reply(answer, self.grant(ttl_seconds)),
                Command::KeepAlive { lease, answer } => {
                    let now = self.clock.now();
                    reply(answer, self.leases.renew(lease, now));
                }
                Command::Revoke { lease, answer } => reply(answer, self.revoke(lease)),
                Command::Settle { answer } => reply(answer, self.engine.settle()),
                Command::Tick => self.expire(),
                Command::Close { answer } => {
                    closing = Some(answer);
                    break;
                }
            }
            self.trim();
            self.tidy();
        }
        let closed = self.engine.close();
        self.shared.hub.close("it was asked to close");
        self.shared.reader_permits.close();
        self.shared
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        // Its lock must be free before anybody is told.
        drop(self);
        if let Some(answer) = closing {
            reply(answer, closed);
        }
    }

    fn tidy(&mut self) {
        if let Err(error) = self.engine.tidy() {
            tracing::warn!(%error, "housekeeping of the store failed; it will be tried again");
        }
    }

    /// The next command; while there is none, work that nobody waits for.
    fn receive(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = self.next.take() {
                return Some(command);
            }
            match self.commands.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            if self.trimming {
                self.trim();
                self.tidy();
                continue;
            }
            let command = match self.leases.next_deadline() {
                None => self.commands.recv().ok(),
                Some(deadline) => {
                    // A manual clock stands still while this waits, and says when it has been set.
                    let left = deadline
                        .saturating_sub(self.clock.now())
                        .max(Duration::from_millis(1));
                    match self.commands.recv_timeout(left) {
                        Ok(command) => Some(command),
                        Err(RecvTimeoutError::Timeout) => Some(Command::Tick),
                        Err(RecvTimeoutError::Disconnected) => None,
                    }
                }
            };
            return command;
        }
    }

    /// Evaluates a transaction and all that have queued up behind it, makes them durable together, and answers them.
    fn batch(&mut self, first: QueuedTxn, mut bytes: usize) {
        let mut queued = vec![first];
        while queued.len() < BATCH_TXNS && bytes < BATCH_BYTES {
            match self.commands.try_recv() {
                Ok(Command::Txn {
                    txn,
                    bytes: more,
                    permit,
                    answer,
                }) => {
                    bytes += more;
                    queued.push(QueuedTxn {
                        txn,
                        answer,
                        _permit: permit,
                    });
                }
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let shared = Arc::clone(&self.shared);
        let index = shared.index();
        let mut draft = Draft::on(&index);
        // Every answer with whether it rests on the draft: if that cannot be made durable, those are void.
        let mut answers = Vec::with_capacity(queued.len());
        for QueuedTxn { txn, answer, _permit } in queued {
            let mut values = WriterValues {
                hub: &shared.hub,
                engine: self.engine.as_mut(),
            };
            let outcome = Evaluator {
                index: &index,
                leases: &self.leases,
                values: &mut values,
                draft: &mut draft,
            }
            .txn(txn);
            answers.push((answer, outcome, !draft.commits.is_empty()));
        }
        drop(index);
        let committed = self.commit(draft, Vec::new());
        for (answer, outcome, drafted) in answers {
            match &committed {
                Err(error) if drafted => reply(answer, outcome.and_then(|_| Err(error.clone()))),
                _ => reply(answer, outcome),
            }
        }
    }

    /// Makes a draft durable, then visible.
    fn commit(&mut self, draft: Draft, leases: Vec<LeaseChange>) -> Result<(), StoreError> {
        if draft.commits.is_empty() && leases.is_empty() {
            return Ok(());
        }
        let batch = Batch {
            commits: draft.commits,
            leases,
            ..Batch::default()
        };
        self.write(&batch)?;
        let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
        for commit in &batch.commits {
            for (sequence, event) in commit.events.iter().enumerate() {
                self.leases.follow(event);
                index.apply(&RecordHeader {
                    id: RecordId::new(commit.revision, sequence),
                    key: &event.kv.key,
                    create_revision: event.kv.create_revision,
                    version: event.kv.version,
                    lease: event.kv.lease,
                });
            }
        }
        drop(index);
        self.shared.hub.publish(&batch.commits);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(StoreError::Closed(failure.clone()));
        }
        let written = self.engine.commit(batch);
        if let Err(error) = &written
            && !matches!(error, StoreError::DiskFull(_))
        {
            // What reached the disk is unknown. Going on could acknowledge writes on top of a hole.
            tracing::error!(%error, "the store cannot write any more; restart to recover");
            self.failure = Some(format!("a write failed ({error}); restart to recover"));
        }
        written
    }

    fn compact(&mut self, before: Revision) -> Result<(), StoreError> {
        let (current, compacted) = {
            let index = self.shared.index();
            (index.revision(), index.compacted())
        };
        if before > current {
            return Err(StoreError::Future {
                requested: before,
                current,
            });
        }
        if before <= compacted {
            return Ok(());
        }
        self.write(&Batch {
            compacted: Some(before),
            ..Batch::default()
        })?;
        self.shared
            .index
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .forget_before(before);
        self.trimming = true;
        Ok(())
    }

    /// Erases some of what no read can reach any more.
    fn trim(&mut self) {
        if !self.trimming {
            return;
        }
        let (dropped, done) = self
            .shared
            .index
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .trim(TRIM_BUDGET);
        self.trimming = !done;
        self.unerased.extend(dropped);
        if self.unerased.is_empty() {
            return;
        }
        let erased = std::mem::take(&mut self.unerased);
        let batch = Batch {
            erased,
            ..Batch::default()
        };
        if let Err(error) = self.write(&batch) {
            // They take space, no more: the next compaction or the next start tries again.
            tracing::warn!(%error, "compacted records could not be erased yet");
            self.unerased = batch.erased;
            self.trimming = false;
        }
    }

    fn grant(&mut self, ttl_seconds: u64) -> Result<LeaseId, StoreError> {
        let lease = self.leases.next();
        let granted = LeaseChange::Granted { lease, ttl_seconds };
        self.write(&Batch {
            leases: vec![granted],
            ..Batch::default()
        })?;
        self.leases.insert(lease, ttl_seconds, self.clock.now());
        Ok(lease)
    }

    /// Deletes the keys of a lease and the lease itself, together.
    fn revoke(&mut self, lease: LeaseId) -> Result<(), StoreError> {
        let keys = self.leases.keys(lease)?;
        let shared = Arc::clone(&self.shared);
        let index = shared.index();
        let mut draft = Draft::on(&index);
        let mut values = WriterValues {
            hub: &shared.hub,
            engine: self.engine.as_mut(),
        };
        Evaluator {
            index: &index,
            leases: &self.leases,
            values: &mut values,
            draft: &mut draft,
        }
        .delete(&keys)?;
        drop(index);
        self.commit(draft, vec![LeaseChange::Ended(lease)])?;
        self.leases.remove(lease);
        Ok(())
    }

    fn expire(&mut self) {
        while let Some(lease) = self.leases.expired(self.clock.now()) {
            if let Err(error) = self.revoke(lease) {
                tracing::warn!(%error, lease = lease.0, "an expired lease could not be removed yet");
                // Not at once again: give the disk a moment.
                self.leases.postpone(lease, self.clock.now());
            }
        }
    }
}

/// The asker may have gone away; then nobody wants the answer.
fn reply<T>(answer: Answer<T>, outcome: Result<T, StoreError>) {
    let _ = answer.send(outcome);
}
