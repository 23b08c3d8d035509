//! Leases: time is turned by hand.

use std::time::Duration;

use fairway_kernel_store::{KeyRange, LeaseId, Op, Revision, StoreError};

use super::harness::{Fixture, all, next_batch, told};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn expiry_deletes_the_keys(f: &Fixture) {
    let lease = f.store.lease_grant(10).await.unwrap();
    f.put_leased("a", lease).await.unwrap();
    f.put_leased("b", lease).await.unwrap();
    f.put("c", "kept").await;
    assert_eq!(f.get("a").await.unwrap().lease, Some(lease));
    let mut watch = f.watch(all(), None).await;
    f.clock.advance(9 * SECOND);
    // A write goes through the same thread, so whatever was due has been done when it is answered.
    assert_eq!(f.put("d", "not yet").await, Revision(4));
    assert_eq!(told(&next_batch(&mut watch).await), "4: +d=not yet");
    f.clock.advance(SECOND);
    assert_eq!(told(&next_batch(&mut watch).await), "5: -a -b");
    assert_eq!(
        (f.get("a").await, f.value("c").await),
        (None, Some("kept".into()))
    );
    assert_eq!(
        f.store.lease_keep_alive(lease).await,
        Err(StoreError::LeaseNotFound(lease))
    );
}

pub(crate) async fn renewal_postpones_expiry(f: &Fixture) {
    let lease = f.store.lease_grant(10).await.unwrap();
    let other = f.store.lease_grant(15).await.unwrap();
    assert_ne!(lease, other);
    f.put_leased("a", lease).await.unwrap();
    f.put_leased("b", other).await.unwrap();
    for _ in 0..3 {
        f.clock.advance(9 * SECOND);
        f.store.lease_keep_alive(lease).await.unwrap();
    }
    let revision = f.put("c", "v").await;
    assert_eq!(f.value("a").await.unwrap(), "leased");
    assert_eq!((f.get("b").await, revision), (None, Revision(4)));
    f.clock.advance(10 * SECOND);
    f.put("c", "w").await;
    assert_eq!(f.get("a").await, None);
}

pub(crate) async fn revocation_deletes_in_one_revision(f: &Fixture) {
    let lease = f.store.lease_grant(60).await.unwrap();
    // More than a transaction may have operations.
    for n in 0..150 {
        f.put_leased(&format!("k{n:03}"), lease).await.unwrap();
    }
    let mut watch = f.watch(all(), None).await;
    f.store.lease_revoke(lease).await.unwrap();
    assert_eq!(next_batch(&mut watch).await.events.len(), 150);
    assert_eq!(f.store.revision().await, Ok(Revision(151)));
    assert_eq!(
        f.store.lease_revoke(lease).await,
        Err(StoreError::LeaseNotFound(lease))
    );
    let empty = f.store.lease_grant(60).await.unwrap();
    f.store.lease_revoke(empty).await.unwrap();
    assert_eq!(
        f.store.revision().await,
        Ok(Revision(151)),
        "a lease without keys leaves no trace"
    );
}

pub(crate) async fn a_key_can_leave_its_lease(f: &Fixture) {
    let first = f.store.lease_grant(60).await.unwrap();
    let second = f.store.lease_grant(60).await.unwrap();
    for key in ["free", "moved", "recreated", "stays"] {
        f.put_leased(key, first).await.unwrap();
    }
    f.put("free", "v").await;
    f.put_leased("moved", second).await.unwrap();
    f.ops(vec![Op::Delete(KeyRange::single(b"recreated"))])
        .await
        .unwrap();
    f.put("recreated", "v").await;
    f.store.lease_revoke(first).await.unwrap();
    let left: Vec<String> = f
        .at(f.store.revision().await.unwrap().0)
        .await
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(left, ["free", "moved", "recreated"]);
    assert_eq!(f.get("free").await.unwrap().lease, None);
}

pub(crate) async fn an_unknown_lease_is_refused(f: &Fixture) {
    let unknown = LeaseId(12345);
    assert_eq!(
        f.put_leased("a", unknown).await,
        Err(StoreError::LeaseNotFound(unknown))
    );
    assert_eq!(
        f.store.lease_keep_alive(unknown).await,
        Err(StoreError::LeaseNotFound(unknown))
    );
    let lease = f.store.lease_grant(0).await.unwrap();
    f.clock.advance(SECOND);
    assert_eq!(
        f.put_leased("a", lease).await,
        Err(StoreError::LeaseNotFound(lease)),
        "0 is the shortest"
    );
    assert!(matches!(
        f.store.lease_grant(u64::MAX).await,
        Err(StoreError::TooLarge { .. })
    ));
}
