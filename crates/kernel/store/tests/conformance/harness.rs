//! The backends under test, and short ways to speak to a store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_store::engine::crash::SimulatedDisk;
use fairway_kernel_store::{
    CrashTestStore, EmbeddedStore, KeyRange, KeyValue, LeaseId, ManualClock, MemoryStore, Op, OpResponse,
    Options, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchBatch, WatchRequest,
    WatchStream,
};
use futures::StreamExt;

/// Small, so that a test can push something out of it.
pub(crate) const RING_BYTES: usize = 64 * 1024;

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    _directory: Option<tempfile::TempDir>,
}

fn options() -> (Options, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let progress_interval = Duration::from_millis(50);
    (
        Options {
            ring_bytes: RING_BYTES,
            progress_interval,
            clock: Arc::clone(&clock) as _,
        },
        clock,
    )
}

pub(crate) fn memory() -> Fixture {
    let (options, clock) = options();
    Fixture {
        store: Arc::new(MemoryStore::with_options(&options).unwrap()),
        clock,
        _directory: None,
    }
}

pub(crate) fn embedded() -> Fixture {
    let (options, clock) = options();
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(directory.path(), &options).unwrap());
    Fixture {
        store,
        clock,
        _directory: Some(directory),
    }
}

pub(crate) fn crash_test() -> Fixture {
    let (options, clock) = options();
    let store = Arc::new(CrashTestStore::open(&SimulatedDisk::new(1), &options).unwrap());
    Fixture {
        store,
        clock,
        _directory: None,
    }
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) fn put_op(key: &str, value: &str) -> Op {
    Op::Put {
        key: bytes(key),
        value: bytes(value),
        lease: None,
    }
}

pub(crate) fn all() -> KeyRange {
    KeyRange::prefix(b"")
}

pub(crate) fn read(keys: KeyRange) -> Range {
    Range {
        keys,
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    }
}

/// Key, value, create revision, mod revision, version.
pub(crate) fn facts(kv: &KeyValue) -> (String, String, u64, u64, u64) {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    (
        text(&kv.key),
        text(&kv.value),
        kv.create_revision.0,
        kv.mod_revision.0,
        kv.version,
    )
}

impl Fixture {
    pub(crate) async fn ops(&self, success: Vec<Op>) -> Result<TxnResponse, StoreError> {
        self.store
            .txn(Txn {
                success,
                ..Txn::default()
            })
            .await
    }

    pub(crate) async fn put(&self, key: &str, value: &str) -> Revision {
        self.ops(vec![put_op(key, value)]).await.unwrap().revision
    }

    pub(crate) async fn put_leased(&self, key: &str, lease: LeaseId) -> Result<Revision, StoreError> {
        let put = Op::Put {
            key: bytes(key),
            value: bytes("leased"),
            lease: Some(lease),
        };
        Ok(self.ops(vec![put]).await?.revision)
    }

    pub(crate) async fn delete(&self, key: &str) -> Revision {
        self.ops(vec![Op::Delete(KeyRange::single(key.as_bytes()))])
            .await
            .unwrap()
            .revision
    }

    pub(crate) async fn get(&self, key: &str) -> Option<KeyValue> {
        let response = self
            .store
            .range(read(KeyRange::single(key.as_bytes())))
            .await
            .unwrap();
        response.kvs.into_iter().next()
    }

    pub(crate) async fn value(&self, key: &str) -> Option<String> {
        self.get(key).await.map(|kv| facts(&kv).1)
    }

    pub(crate) async fn at(&self, revision: u64) -> Result<Vec<(String, String)>, StoreError> {
        let range = Range {
            revision: Some(Revision(revision)),
            ..read(all())
        };
        Ok(pairs(&self.store.range(range).await?))
    }

    pub(crate) async fn watch(&self, keys: KeyRange, from: Option<u64>) -> WatchStream {
        let request = WatchRequest {
            keys,
            from: from.map(Revision),
            prev: false,
        };
        self.store.watch(request).await.unwrap()
    }
}

pub(crate) fn pairs(response: &RangeResponse) -> Vec<(String, String)> {
    response.kvs.iter().map(|kv| (facts(kv).0, facts(kv).1)).collect()
}

pub(crate) fn got(response: &OpResponse) -> Vec<(String, String)> {
    match response {
        OpResponse::Get(response) => pairs(response),
        other => panic!("not a read: {other:?}"),
    }
}

/// The next batch that is not a sign of life.
pub(crate) async fn next(stream: &mut WatchStream) -> Option<Result<WatchBatch, StoreError>> {
    loop {
        let item = tokio::time::timeout(Duration::from_secs(20), stream.next())
            .await
            .expect("an event in time");
        if !matches!(&item, Some(Ok(batch)) if batch.events.is_empty()) {
            return item;
        }
    }
}

pub(crate) async fn next_batch(stream: &mut WatchStream) -> WatchBatch {
    next(stream).await.expect("the watch goes on").expect("no error")
}

/// A batch as text: `revision: +key=value -key`.
pub(crate) fn told(batch: &WatchBatch) -> String {
    use fairway_kernel_store::EventKind;
    let mut text = format!("{}:", batch.revision.0);
    for event in &batch.events {
        let (key, value, _, revision, _) = facts(&event.kv);
        assert_eq!(revision, batch.revision.0);
        match event.kind {
            EventKind::Put => text.push_str(&format!(" +{key}={value}")),
            EventKind::Delete => text.push_str(&format!(" -{key}")),
        }
    }
    text
}
