//! A machine and all that it consists of, as they are now.

use fairway_api::kubevirt::{DATA_VOLUME, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_plan::instance::GENERATION_ANNOTATION;
use fairway_machines_plan::lifecycle::{FINALIZER, Volumes, to_be_moved};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view::{self, VirtualMachine, VirtualMachineInstance};
use serde_json::{Value, json};

use super::disks::{self, Disk, Disks};
use super::size::{self, SizeError, Sizes};
use super::{Trouble, git, start};
use crate::objects::{
    claim, controller_of, has_finalizer, is_leaving, items, locked, ours, owner, path, read, text,
};

/// Says that a machine's disks are made when it is started.
const IMMEDIATE_DISKS: &str = "kubevirt.io/immediate-data-volume-creation";

/// What is known of a machine.
pub(crate) struct Seen {
    /// The machine.
    pub(crate) vm: Value,
    /// The same, naming the copies of its size and taste.
    pub(crate) sized: Value,
    /// A view of it.
    pub(crate) machine: VirtualMachine,
    /// Its instance.
    pub(crate) vmi: Option<Value>,
    /// A view of it.
    pub(crate) instance: Option<VirtualMachineInstance>,
    /// Its disks.
    pub(crate) volumes: Volumes,
    /// Of which of them a snapshot can be taken.
    pub(crate) snapshot_statuses: Vec<Value>,
    /// Disks are made when the machine is started, and not before.
    pub(crate) disks_when_started: bool,
    /// Its size and taste; nothing if they could not be found out.
    pub(crate) sizes: Option<Sizes>,
    /// The expanded spec of the template that the instance was started from.
    pub(crate) started: Option<Value>,
    /// The metadata of that template.
    pub(crate) started_metadata: Value,
    /// The expanded spec of the template as it is now.
    pub(crate) current: Option<Value>,
    /// What differs between them came from Git.
    pub(crate) changed_by_git: bool,
    /// Volumes that are to be others, with their content.
    pub(crate) to_be_moved: Vec<String>,
    /// What stands in the way.
    pub(crate) trouble: Option<Trouble>,
}

fn unreadable(error: &view::ViewError) -> Failure {
    Failure::NotYet(error.to_string())
}

pub(crate) async fn world(
    key: &ObjectKey,
    vm: Value,
    requests: &Requests,
    settings: &Settings,
) -> Result<Seen, Failure> {
    let machine: VirtualMachine =
        view::read(VIRTUAL_MACHINE.kind, &vm).map_err(|error| unreadable(&error))?;
    let (vmi, foreign) = own_instance(key, &vm, requests).await?;
    let disks = read_disks(&vm, &machine, requests).await?;
    let mut seen = Seen {
        sized: vm.clone(),
        volumes: disks::volumes(&machine, &disks),
        snapshot_statuses: disks::snapshot_statuses(&machine, &disks),
        disks_when_started: vm["metadata"]["annotations"][IMMEDIATE_DISKS] == "false",
        machine,
        vm,
        vmi,
        instance: None,
        sizes: None,
        started: None,
        started_metadata: Value::Null,
        current: None,
        changed_by_git: false,
        to_be_moved: Vec::new(),
        trouble: foreign,
    };
    if is_leaving(&seen.vm) {
        // Nothing is made of it any more.
        seen.sizes = Some(leaving_sizes(&seen.vm));
    } else {
        match size::resolve(&mut seen.sized, requests).await {
            Ok(sizes) => compare(&mut seen, sizes, settings, requests).await?,
            Err(error) => seen.trouble = Some(no_size(error)),
        }
    }
    let instance = seen.vmi.as_ref();
    let instance = instance.map(|it| view::read(VIRTUAL_MACHINE_INSTANCE.kind, it));
    seen.instance = instance.transpose().map_err(|error| unreadable(&error))?;
    Ok(seen)
}

/// What the status of a machine that goes says of its size stays.
fn leaving_sizes(vm: &Value) -> Sizes {
    Sizes {
        size_reference: vm["status"]["instancetypeRef"].clone(),
        taste_reference: vm["status"]["preferenceRef"].clone(),
        ..Sizes::default()
    }
}

fn no_size(error: SizeError) -> Trouble {
    let doing = "error encountered while storing instancetype.kubevirt.io controllerRevisions";
    Trouble {
        reason: "FailedCreate",
        message: format!("{doing}: {error}"),
        failure: Some(match error {
            SizeError::Api(failure) => failure,
            other => Failure::NotYet(other.to_string()),
        }),
    }
}

/// Compares what an instance was started from with what the machine says now.
async fn compare(
    seen: &mut Seen,
    sizes: Sizes,
    settings: &Settings,
    requests: &Requests,
) -> Result<(), Failure> {
    let current = start::expanded(&seen.sized["spec"], &sizes);
    seen.sizes = Some(sizes);
    let Some(vmi) = seen.vmi.clone() else {
        return Ok(());
    };
    let Some(recorded) = start::recorded(&vmi, requests).await? else {
        return Ok(());
    };
    seen.vmi = Some(bump(vmi, &seen.vm, &recorded, requests).await?);
    let namespace = text(&seen.vm, "/metadata/namespace");
    // A copy that is gone, or a clash, is told when the machine is next started.
    let Ok(before) = size::recorded(&recorded, namespace, requests).await else {
        return Ok(());
    };
    let (Ok(mut started), Ok(current)) = (start::expanded(&recorded, &before), current) else {
        return Ok(());
    };
    if let (false, Some(vmi)) = (settings.live_update, &seen.vmi) {
        started = start::with_plugged(started, &current, vmi);
    }
    let vmi = seen.vmi.as_ref().unwrap_or(&Value::Null);
    seen.to_be_moved = to_be_moved(&seen.vm, &started);
    seen.started_metadata = recorded["template"]["metadata"].clone();
    // A restart would give the guest empty disks, which nobody asked for.
    seen.changed_by_git = seen.to_be_moved.is_empty() && git::is_change_from_git(&seen.vm, &recorded, vmi);
    seen.started = Some(started);
    seen.current = Some(current);
    Ok(())
}

/// An instance whose template has not changed is of the newest generation.
async fn bump(vmi: Value, vm: &Value, recorded: &Value, requests: &Requests) -> Result<Value, Failure> {
    let generation = vm["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default()
        .to_string();
    let said = &vmi["metadata"]["annotations"][GENERATION_ANNOTATION];
    let same = recorded["template"] == vm["spec"]["template"];
    if *said == generation.as_str() || !same || is_leaving(&vmi) {
        return Ok(vmi);
    }
    let metadata = json!({
        "uid": vmi["metadata"]["uid"],
        "annotations": {GENERATION_ANNOTATION: generation},
    });
    let place = path(
        &VIRTUAL_MACHINE_INSTANCE,
        text(&vmi, "/metadata/namespace"),
        text(&vmi, "/metadata/name"),
    );
    let written = requests
        .merge(&ours(&place), &json!({"metadata": metadata}))
        .await?;
    Ok(written.unwrap_or(vmi))
}

/// The instance of a machine; one that is nobody's becomes its, and one that is somebody else's is in the way.
async fn own_instance(
    key: &ObjectKey,
    vm: &Value,
    requests: &Requests,
) -> Result<(Option<Value>, Option<Trouble>), Failure> {
    let place = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
    let Some(vmi) = requests.get(&place).await? else {
        return Ok((None, None));
    };
    match controller_of(&vmi) {
        Some(owner) if owner["uid"] == vm["metadata"]["uid"] => Ok((Some(vmi), None)),
        Some(other) => {
            let message = format!(
                "Failure while starting VMI: VirtualMachineInstance {} belongs to {} {}; it is waited for until that is gone",
                key.name,
                text(other, "/kind"),
                text(other, "/name"),
            );
            super::release(&vmi, requests).await?;
            let trouble = Trouble {
                reason: "FailedCreate",
                message,
                failure: None,
            };
            Ok((None, Some(trouble)))
        }
        None if is_leaving(&vmi) || is_leaving(vm) => Ok((None, None)),
        None => {
            let mut owners: Vec<Value> = items(&vmi, "/metadata/ownerReferences").cloned().collect();
            owners.push(owner(&VIRTUAL_MACHINE, vm));
            let mut finalizers: Vec<Value> = items(&vmi, "/metadata/finalizers").cloned().collect();
            if !has_finalizer(&vmi, FINALIZER) {
                finalizers.push(json!(FINALIZER));
            }
            let metadata = locked(&vmi, json!({"ownerReferences": owners, "finalizers": finalizers}));
            let adopted = requests
                .merge(&ours(&place), &json!({"metadata": metadata}))
                .await?;
            Ok((adopted, None))
        }
    }
}

/// Reads the disks of a machine. A DataVolume of its templates that is nobody's becomes its.
async fn read_disks(vm: &Value, machine: &VirtualMachine, requests: &Requests) -> Result<Disks, Failure> {
    let namespace = text(vm, "/metadata/namespace");
    let (filled, all) = disks::names(machine);
    let mut found = Disks::new();
    for name in all {
        let mut disk = Disk {
            claim: read(requests, &claim(namespace, &name)).await?,
            data_volume: None,
        };
        if filled.contains(&name) {
            let place = path(&DATA_VOLUME, namespace, &name);
            disk.data_volume = read(requests, &place).await?;
            let free = disk.data_volume.as_ref().filter(|it| {
                let is_ours = disks::template(vm, &name).is_some();
                is_ours && controller_of(it).is_none() && !is_leaving(it) && !is_leaving(vm)
            });
            if let Some(free) = free {
                let mut owners: Vec<Value> = items(free, "/metadata/ownerReferences").cloned().collect();
                owners.push(owner(&VIRTUAL_MACHINE, vm));
                let patch = json!({"metadata": locked(free, json!({"ownerReferences": owners}))});
                requests.merge(&ours(&place), &patch).await?;
            }
        }
        found.insert(name, disk);
    }
    Ok(found)
}
