//! Random operations on every backend, against the simplest model that could be right.
//!
//! Transactions (alone and many at once), reads of the present, past and future, compaction, watches from anywhere, and
//! restarts. The ring is as small as it gets, so that watches have to read history from the engine.
//!
//! `PROPTEST_CASES` sets the number of cases.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "model/naive.rs"]
mod naive;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_store::engine::crash::SimulatedDisk;
use fairway_kernel_store::{
    Compare, CompareTarget, CrashTestStore, EmbeddedStore, KeyRange, MemoryStore, Op, Options, Range,
    Revision, Store, StoreError, Txn, WatchRequest, WatchStream,
};
use futures::{FutureExt, StreamExt};
use proptest::prelude::*;

use naive::{Naive, within};

#[derive(Clone, Debug)]
enum Action {
    /// Transactions sent at once, so that they share a batch.
    Txns(Vec<Txn>),
    Range(Range),
    /// At this part of 256 of history.
    Compact(u8),
    Watch {
        keys: KeyRange,
        from: Option<u8>,
        prev: bool,
    },
    Restart,
}

fn key() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["a", "a/1", "a/2", "b", "b/1", "c"]).prop_map(Bytes::from)
}

fn keys() -> impl Strategy<Value = KeyRange> {
    prop_oneof![
        3 => key().prop_map(|key| KeyRange::single(&key)),
        2 => key().prop_map(|key| KeyRange::prefix(&key)),
        1 => (key(), key()).prop_map(|(start, end)| KeyRange { start, end }),
        1 => Just(KeyRange::prefix(b"")),
    ]
}

fn value() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => (0..4_u8).prop_map(|n| Bytes::from(vec![b'0' + n])), 1 => Just(Bytes::from(vec![b'x'; 5000]))]
}

/// Revisions are kept small, so that they often hit; the runner scales none of these.
fn range() -> impl Strategy<Value = Range> {
    (
        keys(),
        prop::option::of(0..40_u64),
        0..4_usize,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(keys, revision, limit, keys_only, count_only)| {
            let revision = revision.map(Revision);
            Range {
                keys,
                revision,
                limit,
                keys_only,
                count_only,
            }
        })
}

fn compare() -> impl Strategy<Value = Compare> {
    let target = prop_oneof![
        (0..30_u64).prop_map(|n| CompareTarget::ModRevision(Revision(n))),
        (0..10_u64).prop_map(|n| CompareTarget::CreateRevision(Revision(n))),
        (0..3_u64).prop_map(CompareTarget::Version),
        value().prop_map(CompareTarget::Value),
    ];
    (key(), target).prop_map(|(key, target)| Compare { key, target })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (key(), value()).prop_map(|(key, value)| Op::Put { key, value, lease: None }),
        2 => keys().prop_map(Op::Delete),
        2 => range().prop_map(Op::Get),
    ]
}

fn txn() -> impl Strategy<Value = Txn> {
    let ops = || prop::collection::vec(op(), 0..4);
    (prop::collection::vec(compare(), 0..2), ops(), ops()).prop_map(|(compare, success, failure)| Txn {
        compare,
        success,
        failure,
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => prop::collection::vec(txn(), 1..6).prop_map(Action::Txns),
        4 => range().prop_map(Action::Range),
        1 => any::<u8>().prop_map(Action::Compact),
        3 => (keys(), prop::option::of(any::<u8>()), any::<bool>())
            .prop_map(|(keys, from, prev)| Action::Watch { keys, from, prev }),
        1 => Just(Action::Restart),
    ]
}

/// A backend that can be restarted, if it keeps anything.
trait Backend {
    fn open(&self) -> Arc<dyn Store>;
    fn survives(&self) -> bool;
}

fn options() -> Options {
    // No signs of life: the test counts what it gets.
    Options {
        ring_bytes: 0,
        progress_interval: Duration::from_secs(3600),
        ..Options::default()
    }
}

struct Memory;
struct Embedded(tempfile::TempDir);
struct CrashTest(SimulatedDisk);

impl Backend for Memory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::with_options(&options()).unwrap())
    }

    fn survives(&self) -> bool {
        false
    }
}

impl Backend for Embedded {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(EmbeddedStore::open(self.0.path(), &options()).unwrap())
    }

    fn survives(&self) -> bool {
        true
    }
}

impl Backend for CrashTest {
    fn open(&self) -> Arc<dyn Store> {
        self.0.restart();
        Arc::new(CrashTestStore::open(&self.0, &options()).unwrap())
    }

    fn survives(&self) -> bool {
        true
    }
}

struct OpenWatch {
    stream: WatchStream,
    keys: KeyRange,
    prev: bool,
    /// The next revision that it has to deliver, if it has something in it.
    next: usize,
    /// Where it began, until it has delivered something: so long it may still be reading history.
    began: Option<usize>,
}

impl OpenWatch {
    /// Reads what the model says must come, and sees that no more does. `false`: it has ended, because the history that it was
    /// still to read was compacted meanwhile.
    async fn drain(&mut self, model: &Naive) -> bool {
        for revision in self.next..=model.revision() {
            let mut expected: Vec<_> = model.changes[revision]
                .iter()
                .filter(|event| within(&self.keys, &event.kv.key))
                .cloned()
                .collect();
            if expected.is_empty() {
                continue;
            }
            let next = tokio::time::timeout(Duration::from_secs(20), self.stream.next()).await;
            let next = next.expect("in time").expect("it goes on");
            if let (Err(StoreError::Compacted { requested, .. }), Some(began)) = (&next, self.began) {
                assert!(
                    began < model.compacted && requested.0 as usize == began,
                    "{next:?}"
                );
                return false;
            }
            self.began = None;
            let mut batch = next.expect("no error");
            assert_eq!(batch.revision.0 as usize, revision);
            for (event, expected) in batch.events.iter_mut().zip(&mut expected) {
                if !self.prev {
                    expected.prev = None;
                } else if revision <= model.compacted && event.prev.is_none() {
                    // Of the compacted revision itself, what was before may be gone.
                    expected.prev = None;
                }
            }
            assert_eq!(batch.events, expected);
        }
        self.next = self.next.max(model.revision() + 1);
        match (self.stream.next().now_or_never(), self.began) {
            (None, _) => true,
            (Some(Some(Err(StoreError::Compacted { .. }))), Some(began)) if began < model.compacted => false,
            (more, _) => panic!("more than there is: {more:?}"),
        }
    }
}

async fn run(backend: &dyn Backend, actions: Vec<Action>) {
    let mut store = backend.open();
    let mut model = Naive::new();
    let mut watches: Vec<OpenWatch> = Vec::new();
    for action in actions {
        match action {
            Action::Txns(txns) => {
                // They are sent in this order, for each is sent when it is first polled.
                let answers = futures::future::join_all(txns.iter().map(|txn| store.txn(txn.clone()))).await;
                for (txn, answer) in txns.iter().zip(answers) {
                    match (model.txn(txn), answer) {
                        (None, answer) => {
                            assert!(matches!(answer, Err(StoreError::DuplicateKey(_))), "{answer:?}");
                        }
                        (Some(expected), answer) => assert_eq!(answer, expected),
                    }
                }
            }
            Action::Range(range) => assert_eq!(store.range(range.clone()).await, model.range(&range)),
            Action::Compact(part) => {
                let before = (model.revision() + 2) * usize::from(part) / 256;
                assert_eq!(
                    store.compact(Revision(before as u64)).await,
                    model.compact(before)
                );
            }
            Action::Watch { keys, from, prev } => {
                let from = from.map(|part| (model.revision() + 4) * usize::from(part) / 256);
                let request = WatchRequest {
                    keys: keys.clone(),
                    from: from.map(|from| Revision(from as u64)),
                    prev,
                };
                let mut stream = store.watch(request).await.unwrap();
                if from.is_some_and(|from| from < model.compacted) {
                    let (requested, oldest) =
                        (Revision(from.unwrap() as u64), Revision(model.compacted as u64));
                    assert_eq!(
                        stream.next().await,
                        Some(Err(StoreError::Compacted { requested, oldest }))
                    );
                    assert_eq!(stream.next().await, None);
                } else {
                    let next = from.unwrap_or(model.revision() + 1);
                    watches.push(OpenWatch {
                        stream,
                        keys,
                        prev,
                        next,
                        began: from,
                    });
                }
            }
            Action::Restart => {
                if backend.survives() {
                    watches.clear();
                    drop(store);
                    store = backend.open();
                }
            }
        }
        assert_eq!(store.revision().await, Ok(Revision(model.revision() as u64)));
        let mut open = Vec::new();
        for mut watch in watches {
            if watch.drain(&model).await {
                open.push(watch);
            }
        }
        watches = open;
    }
    for revision in model.compacted..=model.revision() {
        let keys = KeyRange::prefix(b"");
        let revision = Some(Revision(revision as u64));
        let range = Range {
            keys,
            revision,
            limit: 0,
            keys_only: false,
            count_only: false,
        };
        assert_eq!(store.range(range.clone()).await, model.range(&range));
    }
}

fn check(backend: &dyn Backend, actions: Vec<Action>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(backend, actions));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory(actions in prop::collection::vec(action(), 1..60)) {
        check(&Memory, actions);
    }

    #[test]
    fn crash_test(actions in prop::collection::vec(action(), 1..60), seed in any::<u64>()) {
        check(&CrashTest(SimulatedDisk::new(seed)), actions);
    }

    #[test]
    fn embedded(actions in prop::collection::vec(action(), 1..60)) {
        check(&Embedded(tempfile::tempdir().unwrap()), actions);
    }
}
