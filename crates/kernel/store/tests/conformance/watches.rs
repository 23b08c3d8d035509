//! Watches: complete, in order, bounded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_kernel_store::{KeyRange, Op, Revision, StoreError, Txn, WatchRequest};
use futures::StreamExt;

use super::harness::{Fixture, RING_BYTES, all, facts, next, next_batch, put_op, told};

pub(crate) async fn a_watch_follows(f: &Fixture) {
    f.put("a", "before").await;
    let mut watch = f.watch(all(), None).await;
    f.put("a", "1").await;
    assert_eq!(told(&next_batch(&mut watch).await), "2: +a=1");
    f.delete("a").await;
    let deletion = next_batch(&mut watch).await;
    assert_eq!(told(&deletion), "3: -a");
    assert_eq!(
        facts(&deletion.events[0].kv),
        ("a".into(), String::new(), 0, 3, 0)
    );
    assert_eq!(deletion.events[0].prev, None);
}

pub(crate) async fn a_watch_replays_then_follows_without_gap(f: &Fixture) {
    f.put("a", "1").await;
    f.put("a", "2").await;
    f.delete("a").await;
    let mut watch = f.watch(all(), Some(2)).await;
    f.put("a", "4").await;
    for expected in ["2: +a=2", "3: -a", "4: +a=4"] {
        assert_eq!(told(&next_batch(&mut watch).await), expected);
    }
}

pub(crate) async fn a_watch_replays_from_disk(f: &Fixture) {
    // Far more than the ring holds, so that most of it has to come from the engine.
    let filler = "x".repeat(1024);
    let count = 4 * RING_BYTES / filler.len();
    for n in 0..count {
        f.ops(vec![put_op("k", &format!("{n}")), put_op("filler", &filler)])
            .await
            .unwrap();
    }
    let mut watch = f.watch(KeyRange::single(b"k"), Some(1)).await;
    for n in 0..count {
        assert_eq!(told(&next_batch(&mut watch).await), format!("{}: +k={n}", n + 1));
        if n % 16 == 0 {
            f.put("elsewhere", &filler).await;
        }
    }
    let revision = f.put("k", "live").await.0;
    assert_eq!(
        told(&next_batch(&mut watch).await),
        format!("{revision}: +k=live")
    );
}

pub(crate) async fn a_revision_is_one_batch(f: &Fixture) {
    let mut live = f.watch(all(), None).await;
    f.ops(vec![put_op("b", "1"), put_op("a", "1")]).await.unwrap();
    f.ops(vec![Op::Delete(all()), Op::Get(super::harness::read(all()))])
        .await
        .unwrap();
    let expected = ["1: +b=1 +a=1", "2: -a -b"];
    let mut replayed = f.watch(all(), Some(1)).await;
    for watch in [&mut live, &mut replayed] {
        for expected in expected {
            assert_eq!(told(&next_batch(watch).await), expected);
        }
    }
}

pub(crate) async fn a_watch_sees_only_its_range(f: &Fixture) {
    f.put("p/1", "v").await;
    let mut watch = f.watch(KeyRange::prefix(b"p/"), Some(1)).await;
    f.put("q/1", "v").await;
    f.ops(vec![put_op("p/2", "v"), put_op("q/2", "v")]).await.unwrap();
    f.put("o", "v").await;
    f.put("p/3", "v").await;
    for expected in ["1: +p/1=v", "3: +p/2=v", "5: +p/3=v"] {
        assert_eq!(told(&next_batch(&mut watch).await), expected);
    }
}

pub(crate) async fn previous_values_come_on_request(f: &Fixture) {
    f.put("a", "1").await;
    f.put("a", "2").await;
    f.delete("a").await;
    f.put("a", "4").await;
    let filler = "x".repeat(RING_BYTES);
    for ring in ["from the ring", "from the engine"] {
        let request = WatchRequest {
            keys: KeyRange::single(b"a"),
            from: Some(Revision(1)),
            prev: true,
        };
        let mut watch = f.store.watch(request).await.unwrap();
        let mut previous = Vec::new();
        for _ in 0..4 {
            let batch = next_batch(&mut watch).await;
            previous.push(
                batch.events[0]
                    .prev
                    .as_ref()
                    .map(|kv| (facts(kv).1, kv.mod_revision.0)),
            );
        }
        assert_eq!(
            previous,
            [None, Some(("1".into(), 1)), Some(("2".into(), 2)), None],
            "{ring}"
        );
        for n in 0..20 {
            f.put(&format!("filler{n}"), &filler).await;
        }
    }
}

pub(crate) async fn a_watch_of_the_compacted_past_ends(f: &Fixture) {
    let filler = "x".repeat(RING_BYTES);
    for n in 0..20 {
        f.put("a", &format!("{n}{filler}")).await;
    }
    f.store.compact(Revision(3)).await.unwrap();
    let mut watch = f.watch(all(), Some(2)).await;
    let gone = StoreError::Compacted {
        requested: Revision(2),
        oldest: Revision(3),
    };
    assert_eq!(next(&mut watch).await, Some(Err(gone)));
    assert_eq!(watch.next().await, None);
    let mut watch = f.watch(all(), Some(4)).await;
    assert_eq!(next_batch(&mut watch).await.revision, Revision(4));
}

pub(crate) async fn a_watch_may_start_at_the_compacted_revision(f: &Fixture) {
    f.put("a", "1").await;
    f.put("a", "2").await;
    f.ops(vec![put_op("b", "3"), Op::Delete(KeyRange::single(b"a"))])
        .await
        .unwrap();
    f.store.compact(Revision(3)).await.unwrap();
    let filler = "x".repeat(RING_BYTES);
    for n in 0..20 {
        f.put(&format!("filler{n}"), &filler).await;
    }
    let mut watch = f.watch(KeyRange::prefix(b""), Some(3)).await;
    assert_eq!(told(&next_batch(&mut watch).await), "3: +b=3 -a");
}

pub(crate) async fn a_watch_of_the_future_waits(f: &Fixture) {
    f.put("a", "1").await;
    let mut watch = f.watch(all(), Some(4)).await;
    for n in 2..6 {
        f.put("a", &n.to_string()).await;
    }
    assert_eq!(told(&next_batch(&mut watch).await), "4: +a=4");
    assert_eq!(told(&next_batch(&mut watch).await), "5: +a=5");
}

pub(crate) async fn a_slow_watcher_is_told_and_can_resume(f: &Fixture) {
    let mut slow = f.watch(KeyRange::single(b"k"), None).await;
    let mut idle = f.watch(KeyRange::single(b"never"), None).await;
    let filler = "x".repeat(RING_BYTES / 8);
    f.put("k", "0").await;
    assert_eq!(told(&next_batch(&mut slow).await), "1: +k=0");
    for n in 1..=64 {
        f.put("k", &format!("{n}{filler}")).await;
    }
    assert_eq!(next(&mut slow).await, Some(Err(StoreError::SlowWatcher)));
    assert_eq!(slow.next().await, None);
    let mut resumed = f.watch(KeyRange::single(b"k"), Some(2)).await;
    for n in 1..=64 {
        assert_eq!(
            told(&next_batch(&mut resumed).await),
            format!("{}: +k={n}{filler}", n + 1)
        );
    }
    // Nothing concerned this one, so it was not slow, however much it has not looked at.
    f.put("never", "at last").await;
    assert_eq!(told(&next_batch(&mut idle).await), "66: +never=at last");
}

pub(crate) async fn an_idle_watch_reports_progress(f: &Fixture) {
    let mut watch = f.watch(KeyRange::single(b"quiet"), None).await;
    f.put("loud", "1").await;
    f.put("loud", "2").await;
    let sign = tokio::time::timeout(Duration::from_secs(20), watch.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!((sign.revision, sign.events.len()), (Revision(2), 0));
    // Once is enough, until something happens.
    assert!(
        tokio::time::timeout(Duration::from_millis(200), watch.next())
            .await
            .is_err()
    );
}

pub(crate) async fn closing_ends_watches(f: &Fixture) {
    let mut watch = f.watch(all(), None).await;
    f.put("a", "1").await;
    f.store.close().await.unwrap();
    assert_eq!(told(&next_batch(&mut watch).await), "1: +a=1");
    assert!(matches!(next(&mut watch).await, Some(Err(StoreError::Closed(_)))));
    assert_eq!(watch.next().await, None);
}

pub(crate) async fn watches_of_many_writers_lose_nothing(f: &Fixture) {
    const WRITERS: usize = 8;
    const WRITES: usize = 40;
    let mut watchers = Vec::new();
    for watcher in 0..4_u64 {
        // Each begins at another point of the history, some before it exists.
        let mut watch = f.watch(all(), Some(1 + watcher * 50)).await;
        watchers.push(tokio::spawn(async move {
            let mut seen = BTreeMap::new();
            while seen.keys().last() != Some(&((WRITERS * WRITES) as u64)) {
                let batch = next_batch(&mut watch).await;
                assert_eq!(batch.events.len(), 1);
                let (key, value, ..) = facts(&batch.events[0].kv);
                assert_eq!(seen.insert(batch.revision.0, (key, value)), None);
            }
            (1 + watcher * 50, seen)
        }));
    }
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&f.store);
        writers.push(tokio::spawn(async move {
            let mut written = Vec::new();
            for n in 0..WRITES {
                let (key, value) = (format!("w{writer}"), n.to_string());
                let txn = Txn {
                    success: vec![put_op(&key, &value)],
                    ..Txn::default()
                };
                written.push((store.txn(txn).await.unwrap().revision.0, (key, value)));
            }
            written
        }));
    }
    let mut written = BTreeMap::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    for watcher in watchers {
        let (from, seen) = watcher.await.unwrap();
        assert_eq!(seen, written.clone().split_off(&from));
    }
}
