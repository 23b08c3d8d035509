//! Rotation on a store that is used, and one that crashes.

use std::sync::Arc;

use bytes::Bytes;
use ring::rand::SystemRandom;

use super::*;
use crate::{MemoryStore, value};

fn ring(keys: &[(u32, u8)], current: u32) -> KeyRing {
    let keys = keys.iter().map(|(id, byte)| (*id, [*byte; 32]));
    KeyRing::new(keys, current, Arc::new(SystemRandom::new())).unwrap()
}

async fn put(store: &dyn Store, key: String, value: Bytes) {
    let op = Op::Put {
        key: key.into(),
        value,
        lease: None,
    };
    let txn = Txn {
        success: vec![op],
        ..Txn::default()
    };
    store.txn(txn).await.unwrap();
}

async fn filled(keys: &KeyRing, count: usize) -> MemoryStore {
    let store = MemoryStore::with_options(&crate::Options::default()).unwrap();
    for number in 0..count {
        let key = format!("/s/{number:04}");
        let sealed = keys.seal(key.as_bytes(), key.as_bytes()).unwrap();
        put(&store, key, sealed).await;
        put(&store, format!("/p/{number:04}"), value::plain(b"open")).await;
    }
    put(&store, "!reserved".to_owned(), Bytes::from_static(b"\x02raw")).await;
    store
}

#[tokio::test]
async fn everything_is_sealed_again_and_nothing_else_is_touched() {
    let keys = ring(&[(1, 7)], 1);
    let store = filled(&keys, 300).await;
    let before = survey(&store, b"/").await.unwrap();
    assert_eq!(before.by_key, BTreeMap::from([(1, 300)]));
    assert_eq!(before.under_others(2), 300);

    keys.replace([(1, [7; 32]), (2, [8; 32])], 2).unwrap();
    let written = store.revision().await.unwrap();
    assert_eq!(reseal(&store, &keys, b"/").await.unwrap(), 300);
    let after = survey(&store, b"/").await.unwrap();
    assert_eq!(after.by_key, BTreeMap::from([(2, 300)]));
    assert_eq!(after.revision.0, written.0 + 300, "plain values are not written");
    assert_eq!(reseal(&store, &keys, b"/").await.unwrap(), 0, "once is enough");

    // The past needs the old key until it is forgotten; the present does not.
    assert!(!is_forgotten(&store, after.revision).await.unwrap());
    store.compact(after.revision).await.unwrap();
    assert!(is_forgotten(&store, after.revision).await.unwrap());
    keys.replace([(2, [8; 32])], 2).unwrap();
    let mut pages = Pages::below(b"/s/");
    while let Some(page) = pages.next(&store).await.unwrap() {
        for kv in page.kvs {
            assert_eq!(keys.open(&kv.key, &kv.value).unwrap(), kv.key);
        }
    }
}

#[tokio::test]
async fn whoever_writes_meanwhile_wins() {
    let keys = ring(&[(1, 7)], 1);
    let store = filled(&keys, 3).await;
    keys.replace([(1, [7; 32]), (2, [8; 32])], 2).unwrap();
    let first = Range {
        keys: KeyRange::single(b"/s/0001"),
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    };
    let stale = store.range(first.clone()).await.unwrap().kvs.remove(0);
    put(
        &store,
        "/s/0001".to_owned(),
        keys.seal(b"/s/0001", b"newer").unwrap(),
    )
    .await;
    assert_ne!(
        store.range(first.clone()).await.unwrap().kvs[0].mod_revision,
        stale.mod_revision
    );
    assert_eq!(reseal(&store, &keys, b"/").await.unwrap(), 2);
    let now = store.range(first).await.unwrap().kvs.remove(0);
    assert_eq!(&keys.open(b"/s/0001", &now.value).unwrap()[..], b"newer");
}

#[test]
fn a_file_rotates_and_forgets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let ring = KeyRing::load_or_create(&path).unwrap();
    let old = ring.current();
    let sealed = ring.seal(b"k", b"v").unwrap();
    let new = value::key_file::rotate(&path).unwrap();
    assert_ne!(old, new);
    let entries = value::key_file::list(&path).unwrap();
    assert_eq!(
        entries.iter().map(|e| (e.id, e.current)).collect::<Vec<_>>(),
        [(old, false), (new, true)]
    );
    assert!(entries.iter().all(|e| e.created.is_some()));
    assert_eq!(
        ring.current(),
        old,
        "nothing changes before the ring is loaded again"
    );
    ring.reload(&path).unwrap();
    assert_eq!((ring.current(), ring.ids().len()), (new, 2));
    assert_eq!(&ring.open(b"k", &sealed).unwrap()[..], b"v");
    value::key_file::remove(&path, &[old, new]).unwrap();
    ring.reload(&path).unwrap();
    assert_eq!(ring.ids(), [new], "the key that seals stays");
    assert_eq!(ring.open(b"k", &sealed), Err(ValueError::UnknownKey(old)));
}
