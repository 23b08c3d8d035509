//! Snapshots of machines, bringing machines back to them, and machines like others, as KubeVirt has them.
//!
//! - [`snapshots`]: a VirtualMachineSnapshot keeps the machine's object and takes a VolumeSnapshot of each of its claims. The
//!   guest of a machine that runs is quieted for the moment at which its copies begin.
//! - [`restores`]: a VirtualMachineRestore makes claims of the VolumeSnapshots, and gives the machine its object back with them.
//! - [`clones`]: a VirtualMachineClone is a snapshot and a restore to another machine, with what must differ taken away.
//!
//! It meets everybody else in objects: whoever keeps volumes takes the VolumeSnapshots, whoever runs machines quiets them when asked
//! through the API. Decisions are in [`decide`]. Tasks: one watch for each of the three kinds, and a controller each. What is under
//! way is looked at again and again until it is done: it is seldom, and short. Must not know disks or hosts.

mod api;
mod clones;
mod decide;
mod quiet;
mod restores;
mod snapshots;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::events::Recorder;
use fairway_controller::kinds::Kind;
use fairway_controller::served::Served;
use fairway_controller::{
    ClientFactory, Controller, Manager, Metadata, Metrics, ObjectKey, Queue, Reach, Shutdown,
};
use kube::runtime::watcher::Event;

/// Who it is.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-snapshots";

/// As who events are written.
const COMPONENT: &str = "fairway-machines-snapshots";

/// How soon to look again at what is under way.
const SOON: Duration = Duration::from_millis(200);
/// How soon to look again at what waits for somebody.
const LATER: Duration = Duration::from_secs(2);
/// How soon to try again what went wrong.
const RETRY: Duration = Duration::from_secs(5);

/// What it is told at the start.
pub struct Options {
    /// Makes clients.
    pub clients: ClientFactory,
    /// What is served here, if somebody follows it already.
    pub served: Option<Served>,
}

/// Looks after snapshots, restores and clones until the end.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients, metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let served = match options.served {
        Some(served) => served,
        None => {
            let (served, following) = Served::follow(clients.clone(), shutdown.clone());
            manager.spawn(following);
            served
        }
    };
    let queues: [Queue<ObjectKey>; 3] = Default::default();
    let (heard, reach) = (queues.clone(), manager.reach().clone());
    manager.spawn(follow_all(
        clients.every(),
        served.changes(),
        |kind| queue_of(kind).is_some(),
        shutdown.clone(),
        move |change| hear(&heard, &reach, change),
    ));
    let [snapshots, restores, clones] = queues;
    let recorder = Recorder::new(clients.clone(), COMPONENT);
    let shared = || (clients.clone(), recorder.clone());
    let controller = Controller::new("vm-snapshots", snapshots, snapshots::Snapshots(shared())).workers(4);
    manager.spawn(controller.run(manager.metrics(), shutdown.clone()));
    let controller = Controller::new("vm-restores", restores, restores::Restores(shared())).workers(4);
    manager.spawn(controller.run(manager.metrics(), shutdown.clone()));
    let controller = Controller::new("vm-clones", clones, clones::Clones(shared())).workers(4);
    manager.spawn(controller.run(manager.metrics(), shutdown));
    manager.run().await;
}

/// Whose work a kind is. A workspace whose own definition has taken a kind over has controllers of its own for it.
fn queue_of(kind: &Kind) -> Option<usize> {
    let name = (kind.resource.group.as_str(), kind.resource.kind.as_str());
    let kinds = [
        ("snapshot.kubevirt.io", "VirtualMachineSnapshot"),
        ("snapshot.kubevirt.io", "VirtualMachineRestore"),
        ("clone.kubevirt.io", "VirtualMachineClone"),
    ];
    kinds
        .iter()
        .position(|it| *it == name)
        .filter(|_| kind.is_common())
}

fn hear(queues: &[Queue<ObjectKey>; 3], reach: &Reach, change: Change<Metadata>) {
    let Change::Event(kind, event) = change else {
        return;
    };
    let Some(queue) = queue_of(&kind).and_then(|index| queues.get(index)) else {
        return;
    };
    if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = *event {
        queue.add(ObjectKey::of(reach, &object.metadata));
    }
}
