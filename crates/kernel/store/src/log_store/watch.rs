//! A watch: first the past, from the engine, then the present, from the hub, without gap or repetition.
//!
//! The switch is made by the hub: it accepts a subscription only from a revision that its ring reaches back to, so a
//! watch reads chunks of history until the ring reaches its cursor.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::api::{Event, EventKind, Revision, StoreError, WatchBatch, WatchRequest, WatchStream};
use crate::engine::{Commit, EngineReader, RecordId};
use crate::hub::{Subscription, Unread};

use super::{ReplayBudget, Shared};

enum Phase {
    /// The next revision to read from the engine.
    Past(Revision),
    Present(Subscription),
    Failed(StoreError),
    Ended,
}

struct Watch {
    shared: Arc<Shared>,
    request: WatchRequest,
    phase: Phase,
    ready: VecDeque<WatchBatch>,
    /// The highest revision that the reader of the stream knows to be complete.
    told: Revision,
}

/// A watch that misses nothing from the moment of this call.
pub(super) fn stream(shared: &Arc<Shared>, request: WatchRequest) -> WatchStream {
    let oldest = shared.index().compacted();
    let phase = match request.from {
        // Even if the ring still has it: what is gone is gone for everybody.
        Some(requested) if requested < oldest => Phase::Failed(StoreError::Compacted { requested, oldest }),
        from => match shared.hub.subscribe(&request.keys, from) {
            Some(subscription) => Phase::Present(subscription),
            None => Phase::Past(from.unwrap_or_default()),
        },
    };
    let told = match request.from {
        Some(from) => Revision(from.0.saturating_sub(1)),
        None => shared.hub.head(),
    };
    let watch = Watch {
        shared: Arc::clone(shared),
        request,
        phase,
        ready: VecDeque::new(),
        told,
    };
    Box::pin(futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await?;
        Some((item, watch))
    }))
}

impl Watch {
    async fn next(&mut self) -> Option<Result<WatchBatch, StoreError>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.told = batch.revision;
                return Some(Ok(batch));
            }
            let step = match &self.phase {
                Phase::Ended => return None,
                Phase::Failed(error) => Err(error.clone()),
                Phase::Past(cursor) => self.replay(*cursor).await,
                Phase::Present(subscription) => match subscription.read() {
                    Unread::Commits { commits } => {
                        self.ready
                            .extend(commits.iter().map(|commit| filter(commit, &self.request)));
                        Ok(None)
                    }
                    Unread::Nothing { head } => {
                        let wait = tokio::time::timeout(self.shared.progress_interval, subscription.wait());
                        if wait.await.is_err() && head > self.told {
                            self.ready.push_back(WatchBatch {
                                revision: head,
                                events: Vec::new(),
                            });
                        }
                        Ok(None)
                    }
                    Unread::Lost => Err(StoreError::SlowWatcher),
                    Unread::Closed(why) => Err(StoreError::Closed(why)),
                },
            };
            match step {
                Ok(Some(phase)) => self.phase = phase,
                Ok(None) => {}
                Err(error) => {
                    self.phase = Phase::Ended;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Reads a piece of history, or finds that the hub can take over.
    async fn replay(&mut self, cursor: Revision) -> Result<Option<Phase>, StoreError> {
        self.shared.hub.check_open()?;
        if let Some(subscription) = self.shared.hub.subscribe(&self.request.keys, Some(cursor)) {
            return Ok(Some(Phase::Present(subscription)));
        }
        let request = self.request.clone();
        let (batches, next) = self
            .shared
            .with_reader(move |shared, reader| read_past(shared, reader, &request, cursor))
            .await?;
        self.ready.extend(batches);
        Ok(Some(Phase::Past(next)))
    }
}

/// The events of a commit that a watch wants.
fn filter(commit: &Commit, request: &WatchRequest) -> WatchBatch {
    let wanted = commit
        .events
        .iter()
        .filter(|event| request.keys.contains(&event.kv.key));
    let events = wanted
        .map(|event| Event {
            kind: event.kind,
            kv: event.kv.clone(),
            prev: if request.prev { event.prev.clone() } else { None },
        })
        .collect();
    WatchBatch {
        revision: commit.revision,
        events,
    }
}

/// The changes from a revision on, as many as fit the budget, and the revision to go on from.
fn read_past(
    shared: &Shared,
    reader: &mut dyn EngineReader,
    request: &WatchRequest,
    cursor: Revision,
) -> Result<(Vec<WatchBatch>, Revision), StoreError> {
    let head = shared.hub.head();
    let after_head = Revision(head.0 + 1);
    let mut next = after_head;
    let mut budget = ReplayBudget::new();
    let mut last = cursor;
    let mut found: Vec<(RecordId, Event)> = Vec::new();
    reader.scan(
        RecordId::first_of(cursor),
        RecordId::first_of(after_head),
        &mut |record| {
            let revision = record.id.revision();
            // Only between revisions may a chunk end: the changes of one belong together.
            if revision != last && budget.flow_at_boundary().is_break() {
                next = revision;
                return ControlFlow::Break(());
            }
            last = revision;
            budget.spend(record.kv.key.len() + record.kv.value.len());
            if request.keys.contains(&record.kv.key) {
                let kind = if record.kv.version == 0 {
                    EventKind::Delete
                } else {
                    EventKind::Put
                };
                found.push((
                    record.id,
                    Event {
                        kind,
                        kv: record.kv,
                        prev: None,
                    },
                ));
            }
            ControlFlow::Continue(())
        },
    )?;
    if request.prev {
        for (id, event) in &mut found {
            let before = shared.index().before(&event.kv.key, *id);
            if let Some(version) = before
                && let Some(value) = reader.value(version.id)?
            {
                event.prev = Some(version.with(event.kv.key.clone(), value));
            }
        }
    }
    // A compaction says so before it erases: if it has not reached the cursor by now, nothing was missing.
    let oldest = shared.index().compacted();
    if cursor < oldest {
        return Err(StoreError::Compacted {
            requested: cursor,
            oldest,
        });
    }
    let mut batches: Vec<WatchBatch> = Vec::new();
    for (id, event) in found {
        let revision = id.revision();
        match batches.last_mut().filter(|batch| batch.revision == revision) {
            Some(batch) => batch.events.push(event),
            None => batches.push(WatchBatch {
                revision,
                events: vec![event],
            }),
        }
    }
    Ok((batches, next))
}
