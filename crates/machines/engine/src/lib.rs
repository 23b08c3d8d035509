//! The controllers of virtual machines that need no host: they act on what `fairway-machines-plan` decides.
//!
//! - `machine`: VirtualMachines: their disks, sizes, instances, and what their status says.
//! - `schedule`: instances without a node: a pure choice, and the controller that makes it.
//! - `migrate`: machines that move, and those that have to leave their node.
//! - `nodes`: nodes that are not heard of, and their machines.
//! - `installed`: objects that ask for what is there already.
//! - `foresee`: where machines would run that are only asked about.
//! - `settings`: what `KubeVirt` and `HyperConverged` objects say, for every workspace.
//! - `wake`: what is followed, and who looks again when something happens.
//!
//! Tasks: one watch each for machines and instances over all workspaces, which keep of each what wakes others or takes room, those of
//! settings (metadata only), and one each for nodes and their leases, which are in the root; for the first machine or instance the
//! watches of what they depend on (disks, claims, sizes: metadata only) and of migrations. Each controller takes keys from its
//! queue. Channels: every watch writes keys into queues. Objects are read when they are worked on, so that an installation
//! without machines holds next to nothing.
//!
//! It sees clients only. Must not know QEMU, files or networks.
#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tests hand over JSON literals")
)]

mod conditions;
mod foresee;
mod installed;
mod machine;
mod migrate;
mod nodes;
mod objects;
mod schedule;
mod settings;
mod wake;

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::events::Recorder;
use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Controller, Manager, Metrics, Reach, Shutdown, WorkspaceId};

use machine::Machines;
use migrate::evacuate::Evacuation;
use nodes::{Heard, Keeper};
use schedule::ground::Ground;
use schedule::scheduler::Scheduler;
use settings::SettingsOf;
use wake::{Queues, Wake};

pub use foresee::{Foreseen, Foresight};
pub use nodes::Patience;

/// Who the engine is.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-engine";

/// How many machines are worked on at once: a pass waits for the API most of the time.
const WORKERS: usize = 8;

/// What the engine is told at the start.
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// What is served here, if somebody follows it already.
    pub served: Option<Served>,
    /// Whether nodes change machines that run; otherwise every change waits for a restart.
    pub nodes_plug: bool,
    /// Is told what the scheduler knows.
    pub foresight: Foresight,
}

/// Runs the engine until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    run_with(options, Patience::default(), metrics, shutdown).await;
}

/// The same, with another patience with nodes.
pub async fn run_with(options: Options, patience: Patience, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients, metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let served = options.served.unwrap_or_else(|| {
        let (served, keeping) = Served::follow(clients.clone(), shutdown.clone());
        manager.spawn(keeping);
        served
    });
    let recorder = Recorder::new(clients.clone(), objects::COMPONENT);
    let settings = Arc::new(SettingsOf::new(clients.clone(), options.nodes_plug));
    let queues = Queues::default();
    let ground = Arc::new(Ground::new(
        Cache::new(&Reach::One(WorkspaceId::root())),
        Cache::new(clients.reach()),
    ));
    let foresight = options.foresight;
    foresight.learn(clients.clone(), Arc::clone(&settings), Arc::clone(&ground));
    let heard = Arc::new(Heard::default());
    let wake = Arc::new(Wake::new(
        clients.clone(),
        served.changes(),
        Arc::clone(&ground),
        Arc::clone(&heard),
        queues.clone(),
        Arc::clone(&settings),
        shutdown.clone(),
    ));
    for task in wake.follow() {
        manager.spawn(task);
    }
    let installations = installed::Installations::new(clients.clone());
    let installations = Controller::new("machine-installations", queues.installations, installations);
    manager.spawn(installations.run(manager.metrics(), shutdown.clone()));
    let machines = Machines::new(clients.clone(), Arc::clone(&settings), recorder.clone());
    let machines = Controller::new("virtualmachine", queues.machines, machines).workers(WORKERS);
    manager.spawn(machines.run(manager.metrics(), shutdown.clone()));
    // One at a time, so that no room is given away twice.
    let scheduler = Scheduler::new(clients.clone(), recorder.clone(), Arc::clone(&ground));
    let scheduler = Controller::new("machine-scheduler", queues.unplaced, scheduler);
    manager.spawn(scheduler.run(manager.metrics(), shutdown.clone()));
    let mover = migrate::Migrations::new(
        clients.clone(),
        recorder.clone(),
        Arc::clone(&settings),
        Arc::clone(&ground),
        Arc::clone(&heard),
        patience,
        // An alert of machines that people run by upstream's monitoring asks for this name.
        manager.metrics().counter("kubevirt_vm_migration_failed_total"),
    );
    let mover = Controller::new("machine-migrations", queues.migrations, mover);
    manager.spawn(mover.run(manager.metrics(), shutdown.clone()));
    let leaving = Evacuation::new(clients.clone(), recorder, settings, Arc::clone(&ground));
    let leaving = Controller::new("machine-evacuation", queues.left, leaving);
    manager.spawn(leaving.run(manager.metrics(), shutdown.clone()));
    let recorder = Recorder::new(clients.clone(), "node-controller");
    let keeper = Keeper::new(clients, recorder, ground, heard, patience);
    let keeper = Controller::new("machine-nodes", queues.nodes, keeper);
    manager.spawn(keeper.run(manager.metrics(), shutdown));
    manager.run().await;
}
