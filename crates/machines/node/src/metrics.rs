//! Figures of machines, under KubeVirt's names and labels: taken when somebody asks for them. Only the few of which there is a history for the
//! pages of machines are taken all the time ([`history`], [`ring`]).
//!
//! What is known of machines and instances comes from their objects ([`cluster`], [`described`], [`objects`]), what is known of running machines from QEMU, the host and the guest's agent
//! ([`sample`]). One that does not answer in time is left out. The objects are told of by the server, which sees all of them; each node tells
//! of the machines that run there, and sees no others.

mod cluster;
mod counting;
mod described;
mod filesystems;
pub(crate) mod history;
mod moving;
mod objects;
mod ring;
mod sample;
mod text;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_controller::{ClientFactory, Clients, ObjectKey, Requests};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{Node, USER};
use text::Page;

/// How long all machines together may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Guests go on saying how they use their memory for so long after somebody asked.
const INTERESTED: Duration = Duration::from_secs(300);
/// All machines, their migrations, and what is kept of them.
const MACHINES: &str = "/apis/kubevirt.io/v1/virtualmachines";
const MIGRATIONS: &str = "/apis/kubevirt.io/v1/virtualmachineinstancemigrations";
const SNAPSHOTS: &str = "/apis/snapshot.kubevirt.io/v1beta1/virtualmachinesnapshots";
/// Disks of machines, and where machines run.
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";
const NODES: &str = "/api/v1/nodes";
/// All instances.
const INSTANCES: &str = "/apis/kubevirt.io/v1/virtualmachineinstances";

impl Node {
    /// Figures of the machines that run here, as Prometheus reads them. Nothing before the node runs.
    pub(crate) async fn count(&self) -> String {
        let Some(context) = self.context.get() else {
            return String::new();
        };
        let mut page = Page::default();
        let instances = all(&context.clients, INSTANCES).await;
        let samples = self.samples().await;
        for (key, sample) in &samples {
            sample.add(self.name(), key, instances.get(key), &mut page);
        }
        self.lose_interest();
        page.write()
    }

    /// Asks all machines that run here, at once.
    async fn samples(&self) -> BTreeMap<ObjectKey, sample::Sample> {
        let mut asking = JoinSet::new();
        for (key, reached) in self.registry.entries() {
            asking.spawn(async move { (key, sample::take(&reached).await) });
        }
        let mut found = BTreeMap::new();
        let gathering = async {
            while let Some(answer) = asking.join_next().await {
                if let Ok((key, Some(sample))) = answer {
                    found.insert(key, sample);
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, gathering).await;
        found
    }

    /// Guests are asked to say how they use their memory as long as somebody reads it: when nobody has for a while, they stop.
    fn lose_interest(&self) {
        use std::sync::atomic::Ordering;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let node = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(INTERESTED).await;
            if node.asked.load(Ordering::Relaxed) == asked {
                for (_, reached) in node.registry.entries() {
                    sample::follow_memory(&reached.machine, Duration::ZERO).await;
                }
            }
        });
    }
}

/// Figures of all machines, wherever they run or do not, of their migrations and of their snapshots.
pub async fn figures_of_instances(clients: &ClientFactory) -> String {
    let clients = clients.clients(USER);
    let (machines, instances, migrations, snapshots, claims, nodes) = tokio::join!(
        all(&clients, MACHINES),
        all(&clients, INSTANCES),
        all(&clients, MIGRATIONS),
        all(&clients, SNAPSHOTS),
        all(&clients, CLAIMS),
        all(&clients, NODES),
    );
    let known = cluster::Known {
        machines,
        instances,
        migrations,
        snapshots,
        claims,
        nodes,
    };
    let mut page = Page::default();
    objects::add(&known.instances, &mut page);
    cluster::add(&known, &mut page);
    described::add(&known, &mut page);
    page.write()
}

/// All objects of a kind in all workspaces, as far as they can be read.
async fn all(clients: &Clients, path: &str) -> BTreeMap<ObjectKey, Value> {
    let every = Requests::new(clients.every());
    let all = every.list(path).await.unwrap_or_default();
    let reach = clients.reach();
    let keyed = |object: Value| {
        let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).ok()?;
        Some((ObjectKey::of(reach, &metadata), object))
    };
    all.into_iter().filter_map(keyed).collect()
}
