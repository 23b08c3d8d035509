//! Of several agents for one export, one works: the one that holds a Lease on the service cluster.
//!
//! The clocks of the others are not trusted: a Lease has run out when it has not changed for its duration by our own. It
//! elects and does not fence; two agents that both believe to be it write the same, and copies are never taken over.

use std::time::Duration;

use fairway_controller::requests::{Requests, version};
use fairway_controller::{Failure, Shutdown};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

/// As client-go's defaults.
const DURATION: Duration = Duration::from_secs(15);
const GIVE_UP: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// A candidate.
pub struct Election {
    leases: Requests,
    collection: String,
    name: String,
    identity: String,
    /// When the Lease was last seen to change, and in which version.
    seen: Option<(Value, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Move {
    Create,
    Take,
    Renew,
    Wait,
}

fn decide(lease: Option<&Value>, identity: &str, unchanged: Duration) -> Move {
    let Some(lease) = lease else {
        return Move::Create;
    };
    let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str);
    let seconds = lease
        .pointer("/spec/leaseDurationSeconds")
        .and_then(Value::as_u64);
    match holder.unwrap_or_default() {
        "" => Move::Take,
        holder if holder == identity => Move::Renew,
        _ if unchanged >= seconds.map_or(DURATION, Duration::from_secs) => Move::Take,
        _ => Move::Wait,
    }
}

impl Election {
    /// A candidate for the Lease of that name. No two may have the same identity.
    pub fn new(service: Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            leases: Requests::new(service),
            collection: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
        }
    }

    /// Waits to be elected; false at the end.
    pub async fn win(&mut self, mut shutdown: Shutdown) -> bool {
        loop {
            match self.step().await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(failure) if failure.is_conflict() => {}
                Err(failure) => tracing::warn!(reason = failure.sentence(), "the Lease cannot be had"),
            }
            tokio::select! {
                () = shutdown.wait() => return false,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    /// Holds the Lease; returns when it is lost, or gives it back at the end.
    pub async fn hold(&mut self, mut shutdown: Shutdown) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < GIVE_UP {
            tokio::select! {
                () = shutdown.wait() => {
                    self.release().await;
                    return;
                }
                () = tokio::time::sleep(RETRY) => {}
            }
            match tokio::time::timeout(GIVE_UP.saturating_sub(renewed.elapsed()), self.step()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(failure)) => {
                    tracing::warn!(reason = failure.sentence(), "the Lease cannot be renewed");
                }
                Err(_) => return,
            }
        }
    }

    fn address(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// One look at the Lease: whether it is ours.
    async fn step(&mut self) -> Result<bool, Failure> {
        let lease = self.leases.get(&self.address()).await?;
        let unchanged = match (&lease, &self.seen) {
            (Some(lease), Some((known, since))) if *known == version(lease) => since.elapsed(),
            (Some(lease), _) => {
                self.seen = Some((version(lease), Instant::now()));
                Duration::ZERO
            }
            (None, _) => Duration::ZERO,
        };
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let spec = json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": DURATION.as_secs(),
            "acquireTime": now, "renewTime": now,
        });
        match decide(lease.as_ref(), &self.identity, unchanged) {
            Move::Wait => Ok(false),
            Move::Create => {
                let made = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": self.name}, "spec": spec,
                });
                self.leases.create(&self.collection, &made).await
            }
            Move::Renew => self.write(lease.as_ref(), json!({"renewTime": now})).await,
            Move::Take => {
                let mut spec = spec;
                let transitions = lease
                    .as_ref()
                    .and_then(|it| it.pointer("/spec/leaseTransitions")?.as_i64());
                spec["leaseTransitions"] = json!(transitions.unwrap_or(0) + 1);
                self.write(lease.as_ref(), spec).await
            }
        }
    }

    async fn write(&self, lease: Option<&Value>, spec: Value) -> Result<bool, Failure> {
        let read = lease.map_or(Value::Null, version);
        let patch = json!({"metadata": {"resourceVersion": read}, "spec": spec});
        Ok(self.leases.merge(&self.address(), &patch).await?.is_some())
    }

    /// So that the next one need not wait. If it fails, the Lease runs out.
    async fn release(&self) {
        if let Ok(Some(lease)) = self.leases.get(&self.address()).await
            && decide(Some(&lease), &self.identity, Duration::ZERO) == Move::Renew
        {
            let _ = self.write(Some(&lease), json!({"holderIdentity": ""})).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_when_nobody_keeps_it() {
        let lease = |holder: &str| json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
        let (own, anothers, free) = (lease("a"), lease("b"), lease(""));
        for (lease, seconds, expected) in [
            (None, 0, Move::Create),
            (Some(&free), 0, Move::Take),
            (Some(&own), 60, Move::Renew),
            (Some(&anothers), 14, Move::Wait),
            (Some(&anothers), 15, Move::Take),
        ] {
            let unchanged = Duration::from_secs(seconds);
            assert_eq!(decide(lease, "a", unchanged), expected, "{lease:?} {seconds}");
        }
    }
}
