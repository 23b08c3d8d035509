//! A write that the machine did not finish: SQLite's write-ahead log, cut or damaged behind the last acknowledged commit.
//!
//! What was synced cannot tear, what was not may: the log after the acknowledged part is cut at every sector, or its
//! sectors are dropped or overwritten in every pattern of a small set. The store must open with all that was
//! acknowledged, and with the unfinished transaction either whole or absent.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::path::Path;

use bytes::Bytes;
use fairway_kernel_store::{EmbeddedStore, KeyRange, Op, Options, Range, Revision, Store, Txn};

const SECTOR: usize = 512;
const FRAME: usize = 4096 + 24;

fn put(keys: &[&str], value: &str, length: usize) -> Txn {
    let value: Bytes = value.bytes().cycle().take(length).collect();
    let success = keys
        .iter()
        .map(|key| Op::Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: value.clone(),
            lease: None,
        })
        .collect();
    Txn {
        success,
        ..Txn::default()
    }
}

/// The part of a log that has frames in it: the file is longer, so that it need not grow at every commit.
fn used(log: &[u8]) -> usize {
    let last = log.iter().rposition(|byte| *byte != 0).unwrap();
    32 + (last - 32) / FRAME * FRAME + FRAME
}

/// Opens a copy with another log; true if the unfinished transaction is there.
async fn check(database: &[u8], log: &[u8], scratch: &Path, what: &str) -> bool {
    fs::create_dir_all(scratch).unwrap();
    fs::write(scratch.join("store.db"), database).unwrap();
    fs::write(scratch.join("store.db-wal"), log).unwrap();
    let _ = fs::remove_file(scratch.join("store.db-shm"));
    let store =
        EmbeddedStore::open(scratch, &Options::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let keys = KeyRange::prefix(b"");
    let range = Range {
        keys,
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    };
    let found = store.range(range).await.unwrap();
    let seen: Vec<(&[u8], usize, u8)> = found
        .kvs
        .iter()
        .map(|kv| (&kv.key[..], kv.value.len(), kv.value[0]))
        .collect();
    let whole = match found.revision {
        Revision(3) => {
            assert_eq!(
                seen,
                [(&b"a"[..], 3000, b'3'), (b"b", 3000, b'3'), (b"c", 900, b'2')],
                "{what}"
            );
            true
        }
        Revision(2) => {
            assert_eq!(seen, [(&b"a"[..], 700, b'1'), (b"c", 900, b'2')], "{what}");
            false
        }
        other => panic!("{what}: at {other:?}"),
    };
    // Life goes on.
    let next = store.txn(put(&["d"], "4", 10)).await.unwrap().revision;
    assert_eq!(next.0, found.revision.0 + 1);
    store.close().await.unwrap();
    whole
}

#[tokio::test]
async fn an_unfinished_commit_is_whole_or_absent() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), &Options::default()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::read(directory.path().join(name)).unwrap();
    store.txn(put(&["a"], "1", 700)).await.unwrap();
    store.txn(put(&["c"], "2", 900)).await.unwrap();
    let acknowledged = used(&file("store.db-wal"));
    store.txn(put(&["a", "b"], "3", 3000)).await.unwrap();
    let (database, mut log) = (file("store.db"), file("store.db-wal"));
    assert!(
        check(
            &database,
            &log,
            &scratch.path().join("extended"),
            "with the zeros behind it"
        )
        .await
    );
    log.truncate(used(&log));
    assert!(
        log.len() >= acknowledged + 8 * SECTOR,
        "the last commit has several sectors"
    );
    assert!(check(&database, &log, &scratch.path().join("whole"), "untouched").await);
    for cut in (acknowledged..log.len()).step_by(SECTOR / 2) {
        let whole = check(
            &database,
            &log[..cut],
            &scratch.path().join("cut"),
            &format!("cut at {cut}"),
        )
        .await;
        assert!(!whole, "cut at {cut}, and yet complete");
    }
    // Sectors that never arrived (zeros), or arrived as something else, in patterns of eight.
    let sectors = (log.len() - acknowledged).div_ceil(SECTOR);
    let mut damaged = 0;
    for pattern in 1..=255_u16 {
        for filler in [0x00, 0xff] {
            let mut torn = log.clone();
            for sector in (0..sectors).filter(|sector| pattern >> (sector % 8) & 1 == 1) {
                let start = acknowledged + sector * SECTOR;
                let end = (start + SECTOR).min(log.len());
                torn[start..end].fill(filler);
            }
            let what = format!("pattern {pattern:08b} of {filler:02x}");
            // Where the sectors held nothing but the filler, nothing was torn.
            let whole = check(&database, &torn, &scratch.path().join("torn"), &what).await;
            assert_eq!(whole, torn == log, "{what}");
            damaged += u32::from(torn != log);
        }
    }
    assert!(damaged > 400, "only {damaged} patterns did damage");
}
