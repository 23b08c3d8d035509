//! A store that was filled from a picture of another: the same keys, later revisions, no history.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use bytes::Bytes;
use fairway_kernel_store::{
    EmbeddedStore, Import, KeyRange, KeyValue, Op, Options, Range, Revision, Store, StoreError, Txn,
    WatchRequest,
};
use futures::StreamExt;

fn kv(key: &str, create: u64, modified: u64, version: u64) -> KeyValue {
    KeyValue {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::from(format!("value of {key}")),
        create_revision: Revision(create),
        mod_revision: Revision(modified),
        version,
        lease: None,
    }
}

fn all(revision: Option<u64>) -> Range {
    Range {
        keys: KeyRange::prefix(b""),
        revision: revision.map(Revision),
        limit: 0,
        keys_only: false,
        count_only: false,
    }
}

#[tokio::test]
async fn keys_keep_their_revisions_and_history_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut import = Import::create(&path).unwrap();
    // In order of keys, as a backup has them; two were written by one transaction.
    let keys = [
        kv("a", 5, 9, 2),
        kv("b", 3, 3, 1),
        kv("c", 9, 9, 1),
        kv("d", 9, 9, 1),
    ];
    import.put(&keys[..2]).unwrap();
    import.put(&keys[2..]).unwrap();
    import.finish(Revision(1_000), b"!mark", b"from there").unwrap();

    let store = EmbeddedStore::open(&path, &Options::default()).unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision(1_000));
    let found = store.range(all(None)).await.unwrap();
    assert_eq!(found.kvs[1..], keys);
    assert_eq!(&found.kvs[0].key[..], b"!mark");
    for old in [1, 9, 999] {
        let refused = store.range(all(Some(old))).await;
        assert!(
            matches!(
                refused,
                Err(StoreError::Compacted {
                    oldest: Revision(1_000),
                    ..
                })
            ),
            "{refused:?}"
        );
        let request = WatchRequest {
            keys: KeyRange::prefix(b""),
            from: Some(Revision(old)),
            prev: false,
        };
        let first = match store.watch(request).await {
            Ok(mut stream) => stream.next().await.unwrap(),
            Err(refused) => Err(refused),
        };
        assert!(matches!(first, Err(StoreError::Compacted { .. })), "{first:?}");
    }
    let put = Txn {
        success: vec![Op::Put {
            key: Bytes::from_static(b"a"),
            value: Bytes::from_static(b"new"),
            lease: None,
        }],
        ..Txn::default()
    };
    assert_eq!(store.txn(put).await.unwrap().revision, Revision(1_001));
    let lease = store.lease_grant(60).await.unwrap();
    assert!(lease.0 > 0);
    let changed = store
        .range(Range {
            keys: KeyRange::single(b"a"),
            ..all(None)
        })
        .await
        .unwrap();
    let changed = &changed.kvs[0];
    assert_eq!((changed.create_revision, changed.version), (Revision(5), 3));
    drop(store);
    let store = EmbeddedStore::open(&path, &Options::default()).unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision(1_001));
    assert_eq!(store.range(all(None)).await.unwrap().count, 5);
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut import = Import::create(&path).unwrap();
    import.put(&[kv("a", 1, 50, 2)]).unwrap();
    assert_eq!(import.put(&[kv("", 1, 50, 2)]), Err(StoreError::EmptyKey));
    let mut large = kv("b", 1, 2, 1);
    large.value = Bytes::from(vec![0; 2 * 1024 * 1024]);
    assert!(matches!(import.put(&[large]), Err(StoreError::TooLarge { .. })));
    assert!(matches!(
        import.finish(Revision(50), b"!", b""),
        Err(StoreError::Unusable(_))
    ));
    assert!(matches!(Import::create(&path), Err(StoreError::Unusable(_))));
}
