//! What only the embedded backend promises: that it survives restarts, refuses what it cannot use, keeps its files to
//! itself, and stays small.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_kernel_store::engine::sqlite::{FORMAT, SqliteEngine};
use fairway_kernel_store::{
    EmbeddedStore, KeyRange, LogStore, ManualClock, Op, Options, Range, Revision, Store, StoreError, Txn,
    WatchRequest,
};
use futures::StreamExt;

fn open(directory: &Path) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(directory, &Options::default())
}

fn put(key: &str, value: impl Into<Bytes>) -> Txn {
    let key = Bytes::copy_from_slice(key.as_bytes());
    Txn {
        success: vec![Op::Put {
            key,
            value: value.into(),
            lease: None,
        }],
        ..Txn::default()
    }
}

fn read(keys: KeyRange) -> Range {
    Range {
        keys,
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    }
}

async fn pairs(store: &dyn Store, revision: Option<u64>) -> Vec<(String, String)> {
    let range = Range {
        revision: revision.map(Revision),
        ..read(KeyRange::prefix(b""))
    };
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let response = store.range(range).await.unwrap();
    response
        .kvs
        .iter()
        .map(|kv| (text(&kv.key), text(&kv.value)))
        .collect()
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    {
        let store = open(directory.path()).unwrap();
        store.txn(put("a", "1")).await.unwrap();
        store.txn(put("a", "2")).await.unwrap();
        store.txn(put("b", "3")).await.unwrap();
        let delete = Txn {
            success: vec![Op::Delete(KeyRange::single(b"b"))],
            ..Txn::default()
        };
        store.txn(delete).await.unwrap();
        store.txn(put("a", "5")).await.unwrap();
        store.compact(Revision(2)).await.unwrap();
        // Dropped without being closed.
    }
    for _ in 0..2 {
        let store = open(directory.path()).unwrap();
        assert_eq!(store.revision().await, Ok(Revision(5)));
        assert_eq!(pairs(&store, None).await, [("a".into(), "5".into())]);
        assert_eq!(
            pairs(&store, Some(3)).await,
            [("a".into(), "2".into()), ("b".into(), "3".into())]
        );
        let range = Range {
            revision: Some(Revision(1)),
            ..read(KeyRange::prefix(b""))
        };
        let compacted = StoreError::Compacted {
            requested: Revision(1),
            oldest: Revision(2),
        };
        assert_eq!(store.range(range).await, Err(compacted));
        let request = WatchRequest {
            keys: KeyRange::prefix(b""),
            from: Some(Revision(2)),
            prev: true,
        };
        let batches: Vec<_> = store
            .watch(request)
            .await
            .unwrap()
            .take(4)
            .map(Result::unwrap)
            .collect()
            .await;
        let revisions: Vec<u64> = batches.iter().map(|batch| batch.revision.0).collect();
        assert_eq!(revisions, [2, 3, 4, 5]);
        assert_eq!(batches[3].events[0].prev.as_ref().unwrap().value, "2");
        let kv = &store.range(read(KeyRange::single(b"a"))).await.unwrap().kvs[0];
        assert_eq!((kv.version, kv.create_revision), (3, Revision(1)));
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn leases_survive_a_restart_with_their_full_time() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Arc::clone(&clock) as _,
        ..Options::default()
    };
    let (kept, ended);
    {
        let store = EmbeddedStore::open(directory.path(), &options).unwrap();
        kept = store.lease_grant(10).await.unwrap();
        ended = store.lease_grant(10).await.unwrap();
        let key = Bytes::from_static(b"leased");
        let leased = Op::Put {
            key,
            value: Bytes::new(),
            lease: Some(kept),
        };
        store
            .txn(Txn {
                success: vec![leased],
                ..Txn::default()
            })
            .await
            .unwrap();
        store.lease_revoke(ended).await.unwrap();
        clock.advance(Duration::from_secs(9));
    }
    let store = EmbeddedStore::open(directory.path(), &options).unwrap();
    assert_eq!(
        store.lease_keep_alive(ended).await,
        Err(StoreError::LeaseNotFound(ended))
    );
    let next = store.lease_grant(10).await.unwrap();
    assert!(next > ended, "numbers are not used twice");
    clock.advance(Duration::from_secs(9));
    store.txn(put("x", "v")).await.unwrap();
    assert_eq!(pairs(&store, None).await.len(), 2);
    clock.advance(Duration::from_secs(1));
    store.txn(put("x", "v")).await.unwrap();
    assert_eq!(pairs(&store, None).await, [("x".into(), "v".into())]);
}

#[tokio::test]
async fn a_directory_belongs_to_one_store_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)));
    let message = error.to_string();
    assert!(message.contains("in use by another process"), "{message}");
    assert!(
        message.contains(&directory.path().display().to_string()),
        "{message}"
    );
    store.close().await.unwrap();
    // Closed, though not dropped.
    open(directory.path()).unwrap();
}

#[test]
fn what_it_cannot_use_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).unwrap());
    let path = directory.path().join("store.db");
    let set = |pragma: &str| {
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(&format!("PRAGMA {pragma}"))
            .unwrap();
        let before = fs::read(&path).unwrap();
        let error = open(directory.path()).unwrap_err();
        assert_eq!(before, fs::read(&path).unwrap());
        error.to_string()
    };
    let newer = set(&format!("user_version = {}", FORMAT + 1));
    assert!(
        newer.contains("has format 2") && newer.contains("up to 1"),
        "{newer}"
    );
    let foreign = set("application_id = 7");
    assert!(foreign.contains("not a Fairway store"), "{foreign}");
    fs::write(
        &path,
        "this is not a database, whatever its name says".repeat(100),
    )
    .unwrap();
    let garbage = open(directory.path()).unwrap_err();
    assert!(matches!(garbage, StoreError::Unusable(_)), "{garbage}");
}

#[tokio::test]
async fn files_are_private() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    let store = open(&directory).unwrap();
    store.txn(put("a", "1")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&directory), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["lock", "store.db", "store.db-shm", "store.db-wal"]);
    // One that was made too open is narrowed.
    store.close().await.unwrap();
    fs::set_permissions(directory.join("store.db"), fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&directory).unwrap());
    assert_eq!(mode(&directory.join("store.db")), 0o600);
}

#[tokio::test]
async fn neither_log_nor_database_grows_without_bound() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open(directory.path()).unwrap());
    let size = |name: &str| fs::metadata(directory.path().join(name)).map_or(0, |metadata| metadata.len());
    let mut largest = 0;
    for round in 0..60 {
        let mut writers = Vec::new();
        for writer in 0..32 {
            let store = Arc::clone(&store);
            let value = vec![round as u8; 64 * 1024];
            writers.push(tokio::spawn(async move {
                store.txn(put(&format!("k{writer}"), value)).await.unwrap()
            }));
        }
        for writer in writers {
            writer.await.unwrap();
        }
        let revision = store.revision().await.unwrap();
        store.compact(revision).await.unwrap();
        largest = largest.max(size("store.db-wal"));
    }
    // 120 MB have been written; 2 MB are current.
    assert!(largest < 40 << 20, "the log grew to {largest}");
    store.close().await.unwrap();
    assert!(
        size("store.db") < 30 << 20,
        "the database grew to {}",
        size("store.db")
    );
    assert_eq!(size("store.db-wal"), 0);
    let store = open(directory.path()).unwrap();
    assert_eq!(pairs(&store, None).await.len(), 32);
}

#[tokio::test]
async fn an_interrupted_compaction_is_finished_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let count = |table: &str| {
        let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
        connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get::<_, u32>(0)
            })
            .unwrap()
    };
    {
        let store = open(directory.path()).unwrap();
        for n in 0..50 {
            store.txn(put("k", n.to_string())).await.unwrap();
        }
        store.close().await.unwrap();
    }
    // As if the process had died after the promise and before the deed.
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
    connection
        .execute("INSERT INTO fact VALUES ('compacted', 40)", [])
        .unwrap();
    drop(connection);
    assert_eq!(count("record"), 50);
    {
        let store = open(directory.path()).unwrap();
        assert_eq!(pairs(&store, Some(40)).await, [("k".into(), "39".into())]);
        let range = Range {
            revision: Some(Revision(39)),
            ..read(KeyRange::prefix(b""))
        };
        assert!(matches!(
            store.range(range).await,
            Err(StoreError::Compacted { .. })
        ));
        store.txn(put("other", "v")).await.unwrap();
        store.close().await.unwrap();
    }
    assert_eq!(count("record"), 12);
}

#[tokio::test]
async fn reads_race_compaction_and_stay_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Box::new(SqliteEngine::open(directory.path()).unwrap());
    let store = Arc::new(LogStore::start(engine, &Options::default()).unwrap());
    let pair = |n: u32| {
        let op = |key: &'static str| Op::Put {
            key: Bytes::from(key),
            value: n.to_string().into(),
            lease: None,
        };
        Txn {
            success: vec![op("left"), op("right")],
            ..Txn::default()
        }
    };
    store.txn(pair(0)).await.unwrap();
    let writer = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 1..400 {
                let revision = store.txn(pair(n)).await.unwrap().revision;
                store.compact(revision).await.unwrap();
            }
        })
    };
    let mut reads = 0;
    while !writer.is_finished() {
        let now = pairs(store.as_ref(), None).await;
        assert_eq!(now.len(), 2);
        assert_eq!(now[0].1, now[1].1, "both sides are of one revision");
        reads += 1;
    }
    writer.await.unwrap();
    assert!(reads > 10, "only {reads} reads");
}

/// A machine that crashes before a new store is settled leaves a log that ends somewhere. Whatever the place, what can be
/// read is a beginning of what was written.
#[tokio::test]
async fn a_crash_before_a_new_store_is_settled_leaves_a_beginning() {
    const WRITES: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_unsettled(directory.path(), &Options::default()).unwrap();
    for number in 0..WRITES {
        store.txn(put(&format!("{number:03}"), "x")).await.unwrap();
    }
    let log = fs::read(directory.path().join("store.db-wal")).unwrap();
    let mut lengths = Vec::new();
    for part in 0..=16 {
        let crashed = tempfile::tempdir().unwrap();
        fs::copy(directory.path().join("store.db"), crashed.path().join("store.db")).unwrap();
        fs::write(crashed.path().join("store.db-wal"), &log[..log.len() * part / 16]).unwrap();
        let found = pairs(&open(crashed.path()).unwrap(), None).await;
        let beginning: Vec<_> = (0..found.len())
            .map(|number| (format!("{number:03}"), "x".to_owned()))
            .collect();
        assert_eq!(found, beginning);
        lengths.push(found.len());
    }
    assert!(lengths.is_sorted() && lengths[0] == 0, "{lengths:?}");
    assert_eq!(lengths.last(), Some(&WRITES), "{lengths:?}");
    store.settle().await.unwrap();
    store.settle().await.unwrap();
    drop(store);
    assert_eq!(pairs(&open(directory.path()).unwrap(), None).await.len(), WRITES);
}
