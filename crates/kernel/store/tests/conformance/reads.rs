//! Ranges now and in the past, and what compaction leaves of them.

use bytes::Bytes;
use fairway_kernel_store::{KeyRange, MAX_VALUE_BYTES, Op, Range, Revision, StoreError};

use super::harness::{Fixture, all, bytes, facts, pairs, put_op, read};

fn keys(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(key, _)| key.as_str()).collect()
}

pub(crate) async fn ranges_are_half_open_and_ordered(f: &Fixture) {
    for key in ["c", "a", "b", "b/1", "b\u{7f}", "d"] {
        f.put(key, "v").await;
    }
    let cases: [(&str, &str, &[&str]); 7] = [
        ("a", "c", &["a", "b", "b/1", "b\u{7f}"]),
        ("b", "b/1", &["b"]),
        ("", "b", &["a"]),
        ("c", "", &["c", "d"]),
        ("", "", &["a", "b", "b/1", "b\u{7f}", "c", "d"]),
        ("b", "b", &[]),
        ("c", "a", &[]),
    ];
    for (start, end, expected) in cases {
        let range = KeyRange {
            start: bytes(start),
            end: bytes(end),
        };
        let response = f.store.range(read(range)).await.unwrap();
        assert_eq!(keys(&pairs(&response)), expected, "{start}..{end}");
        assert_eq!((response.count, response.more), (expected.len(), false));
    }
    let response = f.store.range(read(KeyRange::prefix(b"b"))).await.unwrap();
    assert_eq!(keys(&pairs(&response)), ["b", "b/1", "b\u{7f}"]);
    assert_eq!(KeyRange::prefix(&[b'a', 0xff]).end, &[b'b'][..]);
    assert_eq!(KeyRange::prefix(&[0xff, 0xff]).end, &[][..]);
}

pub(crate) async fn a_limit_cuts_and_says_so(f: &Fixture) {
    for n in 0..10 {
        f.put(&format!("k{n}"), "v").await;
    }
    for (limit, returned, more) in [(0, 10, false), (3, 3, true), (10, 10, false), (11, 10, false)] {
        let response = f.store.range(Range { limit, ..read(all()) }).await.unwrap();
        assert_eq!(
            (response.kvs.len(), response.count, response.more),
            (returned, 10, more),
            "limit {limit}"
        );
        assert_eq!(response.revision, Revision(10));
    }
    // Page by page at one revision, as a list with `continue` does, while writes go on.
    let mut seen = Vec::new();
    let mut start = bytes("");
    loop {
        let range = Range {
            keys: KeyRange {
                start,
                end: bytes(""),
            },
            revision: Some(Revision(10)),
            limit: 4,
            ..read(all())
        };
        let page = f.store.range(range).await.unwrap();
        seen.extend(pairs(&page).into_iter().map(|(key, _)| key));
        f.put(&format!("k{}x", seen.len()), "later").await;
        if !page.more {
            break;
        }
        start = KeyRange::single(&page.kvs.last().unwrap().key).end;
    }
    assert_eq!(seen, (0..10).map(|n| format!("k{n}")).collect::<Vec<_>>());
}

pub(crate) async fn keys_only_and_count_only(f: &Fixture) {
    f.put("a", "1").await;
    f.put("b", "2").await;
    let response = f
        .store
        .range(Range {
            keys_only: true,
            limit: 1,
            ..read(all())
        })
        .await
        .unwrap();
    assert_eq!(facts(&response.kvs[0]), ("a".into(), String::new(), 1, 1, 1));
    assert_eq!((response.kvs.len(), response.count, response.more), (1, 2, true));
    let response = f
        .store
        .range(Range {
            count_only: true,
            ..read(all())
        })
        .await
        .unwrap();
    assert_eq!((response.kvs.len(), response.count, response.more), (0, 2, false));
    let in_txn = f
        .ops(vec![Op::Get(Range {
            count_only: true,
            ..read(all())
        })])
        .await
        .unwrap();
    assert!(format!("{in_txn:?}").contains("count: 2"), "{in_txn:?}");
}

pub(crate) async fn the_past_stays_readable(f: &Fixture) {
    f.put("a", "1").await;
    f.put("b", "1").await;
    f.put("a", "2").await;
    f.delete("b").await;
    f.put("b", "3").await;
    let expect: [&[(&str, &str)]; 6] = [
        &[],
        &[("a", "1")],
        &[("a", "1"), ("b", "1")],
        &[("a", "2"), ("b", "1")],
        &[("a", "2")],
        &[("a", "2"), ("b", "3")],
    ];
    for (revision, expected) in expect.into_iter().enumerate() {
        let got = f.at(revision as u64).await.unwrap();
        let got: Vec<_> = got
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(got, expected, "at {revision}");
        let in_txn = Op::Get(Range {
            revision: Some(Revision(revision as u64)),
            ..read(all())
        });
        let in_txn = f.ops(vec![in_txn]).await.unwrap();
        let in_txn = super::harness::got(&in_txn.responses[0]);
        let in_txn: Vec<_> = in_txn
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(in_txn, expected, "in a transaction at {revision}");
    }
}

pub(crate) async fn the_future_is_refused(f: &Fixture) {
    f.put("a", "1").await;
    let future = StoreError::Future {
        requested: Revision(2),
        current: Revision(1),
    };
    assert_eq!(f.at(2).await, Err(future.clone()));
    let in_txn = Op::Get(Range {
        revision: Some(Revision(2)),
        ..read(all())
    });
    assert_eq!(f.ops(vec![put_op("a", "2"), in_txn]).await, Err(future.clone()));
    assert_eq!(f.store.compact(Revision(2)).await, Err(future));
    assert_eq!(f.value("a").await.unwrap(), "1");
}

pub(crate) async fn compaction_forgets_what_is_before_it(f: &Fixture) {
    f.put("a", "1").await;
    f.put("a", "2").await;
    f.put("b", "1").await;
    f.delete("b").await;
    f.put("a", "3").await;
    f.store.compact(Revision(4)).await.unwrap();
    for revision in 0..4 {
        let gone = StoreError::Compacted {
            requested: Revision(revision),
            oldest: Revision(4),
        };
        assert_eq!(f.at(revision).await, Err(gone.clone()));
        let in_txn = Op::Get(Range {
            revision: Some(Revision(revision)),
            ..read(all())
        });
        assert_eq!(f.ops(vec![in_txn]).await, Err(gone));
    }
    assert_eq!(f.at(4).await.unwrap(), [("a".into(), "2".into())]);
    assert_eq!(f.at(5).await.unwrap(), [("a".into(), "3".into())]);
    assert_eq!(f.store.compact(Revision(4)).await, Ok(()), "again");
    assert_eq!(
        f.store.compact(Revision(2)).await,
        Ok(()),
        "what is gone stays gone"
    );
    assert!(matches!(f.at(3).await, Err(StoreError::Compacted { .. })));
    assert_eq!(f.store.revision().await, Ok(Revision(5)));
}

pub(crate) async fn compaction_keeps_what_is_current(f: &Fixture) {
    for n in 0..50 {
        f.put(&format!("once{n:02}"), "v").await;
        f.put("often", &n.to_string()).await;
        f.put("gone", "v").await;
        f.delete("gone").await;
    }
    let current = f.store.revision().await.unwrap();
    f.store.compact(current).await.unwrap();
    let now = f.store.range(read(all())).await.unwrap();
    assert_eq!(now.count, 51);
    assert_eq!(f.value("often").await.unwrap(), "49");
    assert_eq!(
        facts(&f.get("once00").await.unwrap()),
        ("once00".into(), "v".into(), 1, 1, 1)
    );
    assert_eq!(f.get("gone").await, None);
    f.put("gone", "back").await;
    assert_eq!(f.get("gone").await.unwrap().version, 1);
}

pub(crate) async fn large_values_come_back_whole(f: &Fixture) {
    let value: Bytes = (0..MAX_VALUE_BYTES).map(|n| (n * 31 % 251) as u8).collect();
    let put = Op::Put {
        key: bytes("large"),
        value: value.clone(),
        lease: None,
    };
    f.ops(vec![put]).await.unwrap();
    f.put("small", "v").await;
    assert_eq!(f.get("large").await.unwrap().value, value);
    f.put("large", "small now").await;
    let range = Range {
        revision: Some(Revision(1)),
        ..read(KeyRange::single(b"large"))
    };
    assert_eq!(f.store.range(range).await.unwrap().kvs[0].value, value);
}
