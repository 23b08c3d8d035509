//! A change, carried out on a running machine. Each can be done again: what is there already is left as it is, so that an attempt
//! that was interrupted is completed by the next.

use std::time::Duration;

use fairway_machines_plan::argv::{self, ArgvError, Backing, Layout, LayoutError};
use fairway_machines_plan::machine::{CardPlan, DiskBus, DiskPlan, MachinePlan};
use fairway_machines_qemu::{Machine, MachineError, QmpError};
use serde_json::{Value, json};

use super::Change;

/// How long a guest may take to let a device go.
const LET_GO: Duration = Duration::from_secs(30);
/// The device by which memory grows, as the plan names it.
const MEMORY: &str = "memory1";

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotApplied {
    /// It cannot be made as long as the machine runs.
    NeedsRestart(String),
    /// It may succeed later.
    NotNow(String),
}

impl From<MachineError> for NotApplied {
    fn from(error: MachineError) -> Self {
        Self::NotNow(error.to_string())
    }
}

impl From<QmpError> for NotApplied {
    fn from(error: QmpError) -> Self {
        match &error {
            QmpError::Refused { description, .. } if description.contains("does not support hotplug") => {
                Self::NeedsRestart(error.to_string())
            }
            _ => Self::NotNow(error.to_string()),
        }
    }
}

impl From<ArgvError> for NotApplied {
    fn from(error: ArgvError) -> Self {
        Self::NeedsRestart(error.to_string())
    }
}

impl From<LayoutError> for NotApplied {
    fn from(error: LayoutError) -> Self {
        Self::NeedsRestart(error.to_string())
    }
}

/// The machine after a change.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) plan: MachinePlan,
    pub(crate) layout: Layout,
}

/// Carries a change out. `backing` is the file of a disk that comes; `started_memory` are the bytes that the machine began with.
pub(crate) async fn apply(
    machine: &Machine,
    mut plan: MachinePlan,
    mut layout: Layout,
    change: &Change,
    backing: Option<&Backing>,
    started_memory: u64,
) -> Result<Applied, NotApplied> {
    match change {
        Change::Sockets(sockets) => {
            let count = sockets * plan.cpu.cores * plan.cpu.threads;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            machine.set_processors(count).await?;
        }
        Change::Memory(bytes) => {
            let more = bytes.saturating_sub(started_memory);
            machine.set_requested_memory(MEMORY, more).await?;
        }
        Change::PlugDisk(disk) => {
            if disk.bus == DiskBus::Scsi && !plan.needs_scsi() {
                let why = "the machine was started without a SCSI controller; restart it to get one";
                return Err(NotApplied::NeedsRestart(why.to_owned()));
            }
            plan.disks.push((**disk).clone());
            layout = room(&layout, &plan)?;
            let backing =
                backing.ok_or_else(|| NotApplied::NotNow(format!("disk {} has no file", disk.name)))?;
            plug_disk(machine, &plan, disk, backing, &layout).await?;
        }
        Change::UnplugDisk(name) => {
            if let Some(disk) = plan.disk(name) {
                unplug_disk(machine, disk).await?;
            }
            plan.disks.retain(|it| it.name != *name);
            layout = room(&layout, &plan)?;
        }
        Change::PlugCard(card) => {
            plan.cards.push((**card).clone());
            layout = room(&layout, &plan)?;
            plug_card(machine, &plan, card, &layout).await?;
        }
        Change::UnplugCard(name) => {
            remove(machine, &argv::card_id(name)).await?;
            let backend = json!({"id": argv::node_name("net", name)});
            let gone = machine.qmp().execute("netdev_del", backend).await;
            gone.map(drop).or_else(unless_absent)?;
            plan.cards.retain(|it| it.name != *name);
            layout = room(&layout, &plan)?;
        }
        Change::Link { card, up } => {
            let arguments = json!({"name": argv::card_id(card), "up": up});
            machine.qmp().execute("set_link", arguments).await?;
            for it in plan.cards.iter_mut().filter(|it| it.name == *card) {
                it.link_up = *up;
            }
        }
    }
    Ok(Applied { plan, layout })
}

/// The layout with a place for everything; the machine has the ports that it was started with, and no more.
fn room(layout: &Layout, plan: &MachinePlan) -> Result<Layout, NotApplied> {
    let mut extended = layout.clone();
    extended.extend(plan)?;
    match extended.fits_into(layout) {
        true => Ok(extended),
        false => Err(NotApplied::NeedsRestart(
            "the machine has no free port for another device; restart it to get more".to_owned(),
        )),
    }
}

async fn plug_disk(
    machine: &Machine,
    plan: &MachinePlan,
    disk: &DiskPlan,
    backing: &Backing,
    layout: &Layout,
) -> Result<(), NotApplied> {
    let device = argv::disk_device(plan, disk, layout)?;
    if let Some(group) = argv::throttle_group(disk) {
        add(machine, "object-add", group).await?;
    }
    for node in argv::disk_nodes(disk, backing) {
        if let Err(error) = add(machine, "blockdev-add", node).await {
            drop_nodes(machine, disk).await;
            return Err(error);
        }
    }
    if let Err(error) = add(machine, "device_add", device).await {
        drop_nodes(machine, disk).await;
        return Err(error);
    }
    Ok(())
}

async fn unplug_disk(machine: &Machine, disk: &DiskPlan) -> Result<(), NotApplied> {
    remove(machine, &argv::disk_id(&disk.name)).await?;
    drop_nodes(machine, disk).await;
    Ok(())
}

/// Lets go of what is behind a disk, as far as it is there.
async fn drop_nodes(machine: &Machine, disk: &DiskPlan) {
    for prefix in ["t", "d", "f"] {
        let node = json!({"node-name": argv::node_name(prefix, &disk.name)});
        let _ = machine.qmp().execute("blockdev-del", node).await;
    }
    if disk.limits.any() {
        let group = json!({"id": argv::node_name("limits", &disk.name)});
        let _ = machine.qmp().execute("object-del", group).await;
    }
}

async fn plug_card(
    machine: &Machine,
    plan: &MachinePlan,
    card: &CardPlan,
    layout: &Layout,
) -> Result<(), NotApplied> {
    let device = argv::card_device(plan, card, layout)?;
    add(machine, "netdev_add", argv::card_backend(card)).await?;
    if let Err(error) = add(machine, "device_add", device).await {
        let backend = json!({"id": argv::node_name("net", &card.name)});
        let _ = machine.qmp().execute("netdev_del", backend).await;
        return Err(error);
    }
    Ok(())
}

async fn remove(machine: &Machine, device: &str) -> Result<(), NotApplied> {
    machine.remove_device(device, LET_GO).await?;
    Ok(())
}

/// Adds something; that it is there already is as good.
async fn add(machine: &Machine, command: &str, arguments: Value) -> Result<(), NotApplied> {
    match machine.qmp().execute(command, arguments).await {
        Ok(_) => Ok(()),
        Err(error) if is_there(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_there(error: &QmpError) -> bool {
    match error {
        QmpError::Refused { description, .. } => {
            let description = description.to_lowercase();
            description.contains("duplicate")
                || description.contains("already exists")
                || description.contains("attempt to add duplicate")
        }
        _ => false,
    }
}

fn unless_absent(error: QmpError) -> Result<(), NotApplied> {
    match &error {
        QmpError::Refused {
            class, description, ..
        } if class == "DeviceNotFound" || description.contains("not found") => Ok(()),
        _ => Err(error.into()),
    }
}
