//! Compare-and-set transactions, revisions and limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_store::{
    Compare, CompareTarget, KeyRange, LeaseId, MAX_TXN_BYTES, MAX_TXN_OPS, MAX_VALUE_BYTES, Op, OpResponse,
    Revision, StoreError, Txn,
};

use super::harness::{Fixture, all, bytes, facts, got, put_op, read};

fn compare(key: &str, target: CompareTarget) -> Compare {
    Compare {
        key: bytes(key),
        target,
    }
}

pub(crate) async fn a_put_creates_then_updates(f: &Fixture) {
    assert_eq!(f.store.revision().await, Ok(Revision(0)));
    let first = f.ops(vec![put_op("a", "1")]).await.unwrap();
    assert_eq!((first.succeeded, first.revision), (true, Revision(1)));
    assert_eq!(first.responses, [OpResponse::Put(None)]);
    let second = f.ops(vec![put_op("a", "2")]).await.unwrap();
    let OpResponse::Put(Some(previous)) = &second.responses[0] else {
        panic!("{second:?}")
    };
    assert_eq!(facts(previous), ("a".into(), "1".into(), 1, 1, 1));
    assert_eq!(
        facts(&f.get("a").await.unwrap()),
        ("a".into(), "2".into(), 1, 2, 2)
    );
}

pub(crate) async fn revisions_rise_by_one_per_writing_transaction(f: &Fixture) {
    assert_eq!(f.put("a", "1").await, Revision(1));
    assert_eq!(
        f.ops(vec![put_op("b", "1"), put_op("c", "1")])
            .await
            .unwrap()
            .revision,
        Revision(2)
    );
    assert_eq!(
        f.ops(vec![Op::Get(read(all()))]).await.unwrap().revision,
        Revision(2)
    );
    assert_eq!(f.put("a", "2").await, Revision(3));
    assert_eq!(
        f.get("b").await.unwrap().mod_revision,
        f.get("c").await.unwrap().mod_revision
    );
    assert_eq!(f.store.revision().await, Ok(Revision(3)));
}

pub(crate) async fn a_failed_comparison_runs_the_other_branch(f: &Fixture) {
    f.put("a", "1").await;
    let txn = |revision: u64| Txn {
        compare: vec![compare("a", CompareTarget::ModRevision(Revision(revision)))],
        success: vec![put_op("a", "2")],
        failure: vec![Op::Get(read(KeyRange::single(b"a")))],
    };
    let lost = f.store.txn(txn(7)).await.unwrap();
    assert_eq!((lost.succeeded, lost.revision), (false, Revision(1)));
    assert_eq!(got(&lost.responses[0]), [("a".into(), "1".into())]);
    let won = f.store.txn(txn(1)).await.unwrap();
    assert_eq!((won.succeeded, won.revision), (true, Revision(2)));
    assert_eq!(f.value("a").await.unwrap(), "2");
}

pub(crate) async fn every_comparison_target_is_compared(f: &Fixture) {
    f.put("x", "0").await;
    f.put("a", "1").await;
    f.put("a", "2").await;
    let cases = [
        ("a", CompareTarget::ModRevision(Revision(3)), true),
        ("a", CompareTarget::ModRevision(Revision(2)), false),
        ("a", CompareTarget::ModRevision(Revision(0)), false),
        ("a", CompareTarget::CreateRevision(Revision(2)), true),
        ("a", CompareTarget::CreateRevision(Revision(3)), false),
        ("a", CompareTarget::Version(2), true),
        ("a", CompareTarget::Version(1), false),
        ("a", CompareTarget::Value(bytes("2")), true),
        ("a", CompareTarget::Value(bytes("1")), false),
        ("none", CompareTarget::ModRevision(Revision(0)), true),
        ("none", CompareTarget::CreateRevision(Revision(0)), true),
        ("none", CompareTarget::Version(0), true),
        ("none", CompareTarget::Value(Bytes::new()), false),
    ];
    for (key, target, holds) in cases {
        let txn = Txn {
            compare: vec![compare(key, target.clone())],
            ..Txn::default()
        };
        assert_eq!(
            f.store.txn(txn).await.unwrap().succeeded,
            holds,
            "{key} {target:?}"
        );
    }
    let both = vec![
        compare("a", CompareTarget::Version(2)),
        compare("x", CompareTarget::Version(9)),
    ];
    let txn = Txn {
        compare: both,
        ..Txn::default()
    };
    assert!(!f.store.txn(txn).await.unwrap().succeeded, "all must hold");
}

pub(crate) async fn a_deleted_key_starts_again(f: &Fixture) {
    f.put("a", "1").await;
    f.put("a", "2").await;
    let gone = f.ops(vec![Op::Delete(KeyRange::single(b"a"))]).await.unwrap();
    let OpResponse::Delete(deleted) = &gone.responses[0] else {
        panic!("{gone:?}")
    };
    assert_eq!(facts(&deleted[0]), ("a".into(), "2".into(), 1, 2, 2));
    assert_eq!((deleted.len(), gone.revision), (1, Revision(3)));
    assert_eq!(f.get("a").await, None);
    f.put("a", "3").await;
    assert_eq!(
        facts(&f.get("a").await.unwrap()),
        ("a".into(), "3".into(), 4, 4, 1)
    );
}

pub(crate) async fn operations_see_those_before_them(f: &Fixture) {
    f.put("a", "1").await;
    f.put("b", "1").await;
    let response = f
        .ops(vec![
            Op::Get(read(all())),
            put_op("a", "2"),
            Op::Get(read(all())),
            Op::Delete(KeyRange::single(b"b")),
            put_op("c", "3"),
            Op::Get(read(all())),
        ])
        .await
        .unwrap();
    let expect = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    };
    assert_eq!(got(&response.responses[0]), expect(&[("a", "1"), ("b", "1")]));
    assert_eq!(got(&response.responses[2]), expect(&[("a", "2"), ("b", "1")]));
    assert_eq!(got(&response.responses[5]), expect(&[("a", "2"), ("c", "3")]));
    let OpResponse::Get(last) = &response.responses[5] else {
        panic!()
    };
    assert_eq!((response.revision, last.revision), (Revision(3), Revision(3)));
    let OpResponse::Get(first) = &response.responses[0] else {
        panic!()
    };
    assert_eq!(first.revision, Revision(2));
}

pub(crate) async fn a_range_is_deleted_in_one_revision(f: &Fixture) {
    for key in ["p/1", "p/2", "p/3", "q/1"] {
        f.put(key, "v").await;
    }
    let response = f.ops(vec![Op::Delete(KeyRange::prefix(b"p/"))]).await.unwrap();
    let OpResponse::Delete(deleted) = &response.responses[0] else {
        panic!("{response:?}")
    };
    assert_eq!((deleted.len(), response.revision), (3, Revision(5)));
    assert_eq!(f.at(5).await.unwrap(), [("q/1".into(), "v".into())]);
    assert_eq!(f.at(4).await.unwrap().len(), 4);
}

pub(crate) async fn deleting_nothing_is_not_a_write(f: &Fixture) {
    f.put("a", "1").await;
    let response = f.ops(vec![Op::Delete(KeyRange::single(b"none"))]).await.unwrap();
    assert_eq!(
        (response.revision, &response.responses[0]),
        (Revision(1), &OpResponse::Delete(vec![]))
    );
    assert_eq!(f.store.revision().await, Ok(Revision(1)));
}

pub(crate) async fn a_transaction_that_fails_leaves_nothing_behind(f: &Fixture) {
    f.put("a", "1").await;
    let leased = Op::Put {
        key: bytes("c"),
        value: bytes("x"),
        lease: Some(LeaseId(4711)),
    };
    let failed = f.ops(vec![put_op("a", "2"), put_op("b", "2"), leased]).await;
    assert_eq!(failed, Err(StoreError::LeaseNotFound(LeaseId(4711))));
    assert_eq!(f.at(1).await.unwrap(), [("a".into(), "1".into())]);
    assert_eq!(f.store.revision().await, Ok(Revision(1)));
    assert_eq!(f.put("b", "1").await, Revision(2));
    assert_eq!(f.get("b").await.unwrap().version, 1);
}

pub(crate) async fn a_key_is_written_once_per_transaction(f: &Fixture) {
    let duplicate = Err(StoreError::DuplicateKey("a".into()));
    assert_eq!(f.ops(vec![put_op("a", "1"), put_op("a", "2")]).await, duplicate);
    assert_eq!(f.ops(vec![put_op("a", "1"), Op::Delete(all())]).await, duplicate);
    assert_eq!(
        f.ops(vec![Op::Delete(KeyRange::prefix(b"a")), put_op("a", "1")])
            .await,
        duplicate
    );
    let failure = vec![put_op("a", "1"), put_op("a", "2")];
    assert_eq!(
        f.store
            .txn(Txn {
                failure,
                ..Txn::default()
            })
            .await,
        duplicate,
        "in the branch not taken too"
    );
    assert!(
        f.ops(vec![Op::Delete(all()), Op::Delete(all())]).await.is_ok(),
        "deletions may overlap"
    );
    assert_eq!(f.store.revision().await, Ok(Revision(0)));
}

pub(crate) async fn limits_are_those_of_etcd(f: &Fixture) {
    let sized = |key: usize, value: usize| Op::Put {
        key: Bytes::from(vec![b'k'; key]),
        value: Bytes::from(vec![b'v'; value]),
        lease: None,
    };
    assert!(f.ops(vec![sized(10, MAX_VALUE_BYTES)]).await.is_ok());
    let what = |result: Result<_, StoreError>| match result {
        Err(StoreError::TooLarge { what, size, limit }) => (what, size, limit),
        other => panic!("{other:?}"),
    };
    let over = MAX_VALUE_BYTES + 1;
    assert_eq!(
        what(f.ops(vec![sized(10, over)]).await),
        ("the value", over, MAX_VALUE_BYTES)
    );
    assert_eq!(
        what(f.ops(vec![sized(over, 10)]).await),
        ("the key", over, MAX_VALUE_BYTES)
    );
    let many = |n: usize| (0..n).map(|i| put_op(&format!("k{i}"), "v")).collect::<Vec<_>>();
    assert!(f.ops(many(MAX_TXN_OPS)).await.is_ok());
    assert_eq!(what(f.ops(many(MAX_TXN_OPS + 1)).await).1, MAX_TXN_OPS + 1);
    let failure = Txn {
        failure: many(MAX_TXN_OPS + 1),
        ..Txn::default()
    };
    assert_eq!(what(f.store.txn(failure).await).2, MAX_TXN_OPS);
    let two = vec![sized(1, MAX_VALUE_BYTES), sized(2, MAX_VALUE_BYTES)];
    assert_eq!(what(f.ops(two).await).2, MAX_TXN_BYTES);
    assert_eq!(f.ops(vec![put_op("", "v")]).await, Err(StoreError::EmptyKey));
    assert_eq!(f.store.revision().await, Ok(Revision(2)));
}

pub(crate) async fn exactly_one_of_many_rivals_wins(f: &Fixture) {
    let mut rivals = Vec::new();
    for rival in 0..64 {
        let store = Arc::clone(&f.store);
        rivals.push(tokio::spawn(async move {
            let txn = Txn {
                compare: vec![compare("crown", CompareTarget::ModRevision(Revision(0)))],
                success: vec![put_op("crown", &rival.to_string())],
                failure: vec![Op::Get(read(KeyRange::single(b"crown")))],
            };
            (rival, store.txn(txn).await.unwrap())
        }));
    }
    let mut outcomes = Vec::new();
    for rival in rivals {
        outcomes.push(rival.await.unwrap());
    }
    let winners: Vec<_> = outcomes
        .iter()
        .filter(|(_, response)| response.succeeded)
        .collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0].0.to_string();
    for (_, response) in outcomes.iter().filter(|(_, response)| !response.succeeded) {
        assert_eq!(got(&response.responses[0]), [("crown".into(), winner.clone())]);
    }
    assert_eq!(f.value("crown").await.unwrap(), winner);
}

pub(crate) async fn concurrent_writers_get_distinct_revisions(f: &Fixture) {
    let mut writers = Vec::new();
    for writer in 0..16 {
        let store = Arc::clone(&f.store);
        writers.push(tokio::spawn(async move {
            let mut revisions = Vec::new();
            for n in 0..20 {
                let put = put_op(&format!("{writer:02}/{n:02}"), "v");
                revisions.push(
                    store
                        .txn(Txn {
                            success: vec![put],
                            ..Txn::default()
                        })
                        .await
                        .unwrap()
                        .revision,
                );
            }
            assert!(revisions.is_sorted());
            revisions
        }));
    }
    let mut all_revisions = BTreeSet::new();
    for writer in writers {
        all_revisions.extend(writer.await.unwrap());
    }
    assert_eq!(all_revisions, (1..=320).map(Revision).collect());
    assert_eq!(f.at(320).await.unwrap().len(), 320);
}

pub(crate) async fn a_closed_store_says_so(f: &Fixture) {
    f.put("a", "1").await;
    assert_eq!(f.store.close().await, Ok(()));
    assert!(matches!(
        f.ops(vec![put_op("a", "2")]).await,
        Err(StoreError::Closed(_))
    ));
    assert!(matches!(
        f.store.range(read(all())).await,
        Err(StoreError::Closed(_))
    ));
    assert!(matches!(f.store.revision().await, Err(StoreError::Closed(_))));
    assert!(matches!(
        f.store.compact(Revision(1)).await,
        Err(StoreError::Closed(_))
    ));
    assert!(matches!(f.store.lease_grant(1).await, Err(StoreError::Closed(_))));
    assert!(matches!(f.store.close().await, Err(StoreError::Closed(_))));
}
