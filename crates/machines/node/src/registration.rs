//! The Node of this host: made when it is not there, kept up to date, and alive as long as its Lease is renewed.
//!
//! The Node is written when something about it changed, and its conditions every few minutes; the Lease every ten seconds, which is what
//! others judge by. It is in the root workspace, whose scheduler places machines of all.

mod document;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, Requests, Shutdown};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::context::Context;
use crate::supervise;
use document::{Facts, Machine};

/// How often the Lease is renewed.
const RENEW: Duration = Duration::from_secs(10);
/// How long others wait for it; upstream's.
const LEASE_SECONDS: u32 = 40;
/// How often conditions are confirmed although nothing changed.
const CONFIRM: Duration = Duration::from_secs(300);
/// The start of a process is for those who wait for the API.
const AFTER_START: Duration = Duration::from_millis(200);
/// How soon what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const NODES: &str = "/api/v1/nodes";

/// Keeps the Node of this host.
pub(crate) struct Registration {
    context: Arc<Context>,
    api: Requests,
}

impl Registration {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let api = Requests::new(context.clients.root());
        Self { context, api }
    }

    /// Until the end.
    pub(crate) async fn run(self, mut shutdown: Shutdown) {
        let mut next = Instant::now() + AFTER_START;
        let mut written: Option<(Facts, Instant)> = None;
        let mut fails = false;
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep_until(next) => {}
                // What the host can do is known by now.
                () = self.context.host.news() => {}
            }
            match self.beat(&mut written).await {
                Ok(()) => {
                    fails = false;
                    next = Instant::now() + RENEW;
                }
                Err(failure) => {
                    // Once is enough: machines run on, and others see the Lease.
                    if !fails && !failure.is_conflict() {
                        tracing::warn!(
                            node = self.context.node,
                            reason = failure.sentence(),
                            "the node cannot say that it is alive; trying again"
                        );
                    }
                    fails = true;
                    next = Instant::now() + RETRY;
                }
            }
        }
    }

    async fn beat(&self, written: &mut Option<(Facts, Instant)>) -> Result<(), Failure> {
        let facts = self.facts();
        let path = format!("{NODES}/{}", facts.name);
        let found = self.api.get(&path).await?;
        let is_due = written
            .as_ref()
            .is_none_or(|(before, at)| *before != facts || at.elapsed() >= CONFIRM);
        // Whoever thought the node lost has said so.
        let is_doubted = found.as_ref().is_none_or(|it| document::is_doubted(it, &facts));
        if is_due || is_doubted {
            self.write(&path, found, &facts).await?;
            *written = Some((facts, Instant::now()));
        }
        self.renew().await
    }

    fn facts(&self) -> Facts {
        let known = self.context.host.known();
        Facts {
            name: self.context.node.clone(),
            address: self.context.address,
            has_qemu: self.context.host.has_program(),
            acceleration: known.map(|it| it.acceleration.clone()),
            missing: self.context.isolation.missing(),
            data_path: self.context.data_path.clone(),
            fence: supervise::promise(&self.context.directory, self.context.fencing.as_ref()),
            is_full: document::is_full(&self.context.directory),
            alone: self.context.processors.count(),
            machine: Machine::here(),
        }
    }

    async fn write(&self, path: &str, found: Option<Value>, facts: &Facts) -> Result<(), Failure> {
        let now = now();
        let found = match found {
            Some(found) => found,
            None => {
                let node = document::node(facts);
                self.api.create(NODES, &node).await?;
                node
            }
        };
        if let Some(change) = document::to_change(&found, facts) {
            self.api.merge(path, &json!({"metadata": change})).await?;
        }
        let status = document::status(&found["status"], facts, &now);
        self.api
            .merge(&format!("{path}/status"), &json!({ "status": status }))
            .await?;
        Ok(())
    }

    async fn renew(&self) -> Result<(), Failure> {
        let name = &self.context.node;
        let asked = supervise::now();
        let spec = json!({
            "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        });
        let renewed = self
            .api
            .merge(&format!("{LEASES}/{name}"), &json!({ "spec": spec }))
            .await?;
        if renewed.is_none() {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec,
            });
            self.api.create(LEASES, &lease).await?;
        }
        if self.context.fencing.is_some()
            && let Err(error) = supervise::renewed(&self.context.directory, asked)
        {
            tracing::warn!(directory = %self.context.directory.display(), %error, "it is not written down that the lease was renewed: machines end if that goes on");
        }
        Ok(())
    }
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reads a file of the kernel's; nothing if it is not there.
fn read(path: &str) -> String {
    let text = std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    text.trim().to_owned()
}

/// A field of a list of conditions or the like, by type.
fn by_type<'v>(list: &'v Value, kind: &str) -> Option<&'v Value> {
    list.as_array()?.iter().find(|it| it["type"] == kind)
}
