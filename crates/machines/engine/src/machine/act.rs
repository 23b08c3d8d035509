//! What was decided about a machine, done.

use fairway_api::kubevirt::{DATA_VOLUME, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_plan::instance::{self, InstanceError};
use fairway_machines_plan::lifecycle::{Action, Decision, FINALIZER, LiveChange};
use fairway_machines_plan::settings::Settings;
use serde_json::{Value, json};

use super::observe::Seen;
use super::{Machines, Trouble, disks, live, start, volume_requests as wanted};
use crate::objects::{collection, is_leaving, items, locked, ours, path, text, without_finalizers};

/// Volumes that are to come or go become part of machine and instance; whether the machine has changed by that.
pub(crate) async fn volume_requests(seen: &Seen, requests: &Requests) -> Result<bool, Trouble> {
    let left = wanted::left(&seen.vm);
    if left.is_empty() || is_leaving(&seen.vm) {
        return Ok(false);
    }
    let trouble = |failure| {
        let doing = "Error encountered while handling volume hotplug requests";
        Trouble::of("HotPlugVolumeError", doing, failure)
    };
    let apply = |spec: &Value| {
        let applied = left.iter().fold(
            (spec.clone(), false),
            |(spec, changed), request| match wanted::applied(&spec, request) {
                Some(spec) => (spec, true),
                None => (spec, changed),
            },
        );
        applied.1.then(|| wanted::lists(&applied.0))
    };
    let (namespace, name) = (
        text(&seen.vm, "/metadata/namespace"),
        text(&seen.vm, "/metadata/name"),
    );
    // The instance first: a machine that shows a request has done with it.
    let running = seen.vmi.as_ref().filter(|it| !is_leaving(it));
    if let Some((vmi, lists)) = running.and_then(|it| Some((it, apply(&it["spec"])?))) {
        let patch = json!({"metadata": locked(vmi, json!({})), "spec": lists});
        let place = path(&VIRTUAL_MACHINE_INSTANCE, namespace, name);
        requests.merge(&ours(&place), &patch).await.map_err(trouble)?;
    }
    let Some(lists) = apply(&seen.vm["spec"]["template"]["spec"]) else {
        return Ok(false);
    };
    let patch = json!({"metadata": locked(&seen.vm, json!({})), "spec": {"template": {"spec": lists}}});
    let place = path(&VIRTUAL_MACHINE, namespace, name);
    requests.merge(&ours(&place), &patch).await.map_err(trouble)?;
    Ok(true)
}

/// One pass's hands.
struct Hands<'h> {
    machines: &'h Machines,
    key: &'h ObjectKey,
    requests: &'h Requests,
}

/// Does what was decided, but for what comes after the status.
pub(crate) async fn carry_out(
    machines: &Machines,
    key: &ObjectKey,
    seen: &mut Seen,
    decision: &Decision,
    settings: &Settings,
    requests: &Requests,
) -> Result<(), Trouble> {
    let hands = Hands {
        machines,
        key,
        requests,
    };
    // An instance that is to be followed by another must not be gone before that is written down.
    let asked = items(&seen.vm, "/status/stateChangeRequests").count();
    if decision.status.state_change_requests.len() > asked {
        hands.ask(seen, decision).await?;
    }
    for action in &decision.actions {
        match action {
            Action::AddFinalizer => hands.add_finalizer(seen).await?,
            Action::CreateDataVolumes(names) => hands.create_data_volumes(seen, names).await?,
            Action::SetRunning => hands.set_running(seen).await?,
            Action::DeleteInstance { .. } => hands.delete_instance(seen).await?,
            Action::CreateInstance { paused } => hands.create_instance(seen, settings, *paused).await?,
            Action::UpdateInstance(changes) => hands.update_instance(seen, changes).await?,
            Action::ReleaseInstance { .. } | Action::RemoveFinalizer => {}
        }
    }
    for event in &decision.events {
        machines
            .tell(key, &seen.vm, event.warning, event.reason, event.message.clone())
            .await;
    }
    Ok(())
}

/// Lets go what has been told of.
pub(crate) async fn let_go(seen: &Seen, decision: &Decision, requests: &Requests) -> Result<(), Failure> {
    let (namespace, name) = (
        text(&seen.vm, "/metadata/namespace"),
        text(&seen.vm, "/metadata/name"),
    );
    for action in &decision.actions {
        let (kind, object) = match action {
            Action::ReleaseInstance { .. } => (&VIRTUAL_MACHINE_INSTANCE, seen.vmi.as_ref()),
            Action::RemoveFinalizer => (&VIRTUAL_MACHINE, Some(&seen.vm)),
            _ => continue,
        };
        if let Some(patch) = object.and_then(|it| without_finalizers(it, &[FINALIZER])) {
            requests
                .merge(&ours(&path(kind, namespace, name)), &patch)
                .await?;
        }
    }
    Ok(())
}

fn no_instance(failure: Failure) -> Trouble {
    Trouble::of("FailedCreate", "Failure while starting VMI", failure)
}

impl Hands<'_> {
    fn machine(&self) -> String {
        path(&VIRTUAL_MACHINE, &self.key.namespace, &self.key.name)
    }

    fn instance(&self) -> String {
        path(&VIRTUAL_MACHINE_INSTANCE, &self.key.namespace, &self.key.name)
    }

    async fn ask(&self, seen: &mut Seen, decision: &Decision) -> Result<(), Trouble> {
        let patch = json!({
            "metadata": locked(&seen.vm, json!({})),
            "status": {"stateChangeRequests": decision.status.state_change_requests},
        });
        let place = ours(&format!("{}/status", self.machine()));
        let doing = "failed to patch VM with start action";
        let failed = |failure| Trouble::of("FailedDelete", doing, failure);
        if let Some(written) = self.requests.merge(&place, &patch).await.map_err(failed)? {
            seen.vm = written;
        }
        Ok(())
    }

    async fn add_finalizer(&self, seen: &mut Seen) -> Result<(), Trouble> {
        let mut finalizers: Vec<Value> = items(&seen.vm, "/metadata/finalizers").cloned().collect();
        finalizers.push(json!(FINALIZER));
        let patch = json!({"metadata": locked(&seen.vm, json!({"finalizers": finalizers}))});
        let written = self.requests.merge(&ours(&self.machine()), &patch).await;
        let failed = |failure| Trouble::of("FailedUpdateError", "The finalizer could not be added", failure);
        if let Some(written) = written.map_err(failed)? {
            seen.vm = written;
        }
        Ok(())
    }

    async fn create_data_volumes(&self, seen: &Seen, names: &[String]) -> Result<(), Trouble> {
        let doing = "Error encountered while creating DataVolumes: failed to create DataVolume";
        let failed = |failure| Trouble::of("FailedCreate", doing, failure);
        for name in names {
            let Some(template) = disks::template(&seen.vm, name) else {
                continue;
            };
            let made = disks::data_volume(&seen.vm, template);
            let place = ours(&collection(&DATA_VOLUME, &self.key.namespace));
            let (warning, reason, message) = match self.requests.create(&place, &made).await {
                Ok(true) => (
                    false,
                    "SuccessfulDataVolumeCreate",
                    format!("Created DataVolume {name}"),
                ),
                Ok(false) => continue,
                Err(failure) => {
                    let why = failure.sentence();
                    let (reason, message) = match why.contains("insufficient permissions in clone source") {
                        true => (
                            "UnauthorizedDataVolumeCreate",
                            "Not authorized to create DataVolume",
                        ),
                        false => ("FailedDataVolumeCreate", "Error creating DataVolume"),
                    };
                    let message = format!("{message} {name}: {why}");
                    self.machines
                        .tell(self.key, &seen.vm, true, reason, message)
                        .await;
                    return Err(failed(failure));
                }
            };
            self.machines
                .tell(self.key, &seen.vm, warning, reason, message)
                .await;
        }
        Ok(())
    }

    async fn set_running(&self, seen: &Seen) -> Result<(), Trouble> {
        let spec = match seen.vm["spec"]["runStrategy"].is_null() {
            true => json!({"running": true}),
            false => json!({"runStrategy": "Always"}),
        };
        let patch = json!({"metadata": locked(&seen.vm, json!({})), "spec": spec});
        self.requests
            .merge(&ours(&self.machine()), &patch)
            .await
            .map(drop)
            .map_err(no_instance)
    }

    async fn delete_instance(&self, seen: &Seen) -> Result<(), Trouble> {
        let Some(vmi) = &seen.vmi else {
            return Ok(());
        };
        let deleted = self.requests.delete_read(&self.instance(), vmi).await;
        if let Err(failure) = deleted {
            let name = &self.key.name;
            let message = format!(
                "Error deleting virtual machine instance {name}: {}",
                failure.sentence()
            );
            self.machines
                .tell(self.key, &seen.vm, true, "FailedDelete", message)
                .await;
            let doing = "Failure attempting to delete VMI";
            return Err(Trouble::of("FailedDelete", doing, failure));
        }
        Ok(())
    }

    async fn create_instance(&self, seen: &Seen, settings: &Settings, paused: bool) -> Result<(), Trouble> {
        let sizes = seen.sizes.clone().unwrap_or_default();
        let made = instance::of_machine(
            &seen.sized,
            sizes.size.as_ref(),
            sizes.taste.as_ref(),
            settings,
            paused,
        );
        let mut vmi = match made {
            Ok(vmi) => vmi,
            Err(error) => {
                let message = whole(&error);
                self.machines
                    .tell(self.key, &seen.vm, true, "FailedCreate", message.clone())
                    .await;
                return Err(Trouble {
                    reason: "FailedCreate",
                    message: format!("Failure while starting VMI: {message}"),
                    failure: None,
                });
            }
        };
        let record = start::record(&seen.sized, self.requests)
            .await
            .map_err(no_instance)?;
        vmi["status"] = json!({"virtualMachineRevisionName": record});
        let place = ours(&collection(&VIRTUAL_MACHINE_INSTANCE, &self.key.namespace));
        match self.requests.create(&place, &vmi).await {
            Ok(true) => start::forget_earlier(&seen.sized, self.requests)
                .await
                .map_err(no_instance),
            // Somebody was quicker; it is seen in the next pass.
            Ok(false) => Err(no_instance(Failure::NotYet(format!(
                "VirtualMachineInstance {} exists already",
                self.key.name
            )))),
            Err(failure) => {
                let message = format!("Error creating virtual machine instance: {}", failure.sentence());
                self.machines
                    .tell(self.key, &seen.vm, true, "FailedCreate", message)
                    .await;
                Err(no_instance(failure))
            }
        }
    }

    async fn update_instance(&self, seen: &Seen, changes: &[LiveChange]) -> Result<(), Trouble> {
        let (Some(vmi), Some(started), Some(current)) = (&seen.vmi, &seen.started, &seen.current) else {
            return Ok(());
        };
        let Some(patch) = live::patch(vmi, changes, started, current) else {
            return Ok(());
        };
        let (reason, what) = match changes.first() {
            Some(LiveChange::Sockets(_)) => ("HotPlugCPUError", "CPU change request"),
            Some(LiveChange::Memory(_)) => ("HotPlugMemoryError", "memory hotplug requests"),
            Some(LiveChange::Volumes { .. }) => ("VolumesUpdateError", "volumes update requests"),
            Some(LiveChange::Interfaces { .. }) => (
                "HotPlugNetworkInterfaceError",
                "network interface update requests",
            ),
            Some(LiveChange::Placement {
                field: "tolerations", ..
            }) => ("TolerationsChangeError", "tolerations change request"),
            Some(LiveChange::Placement { .. }) => ("AffinityChangeError", "node affinity change request"),
            Some(LiveChange::Metadata(_)) | None => ("FailedUpdateError", "label change request"),
        };
        let doing = format!("Error encountered while handling {what}");
        let written = self.requests.merge(&ours(&self.instance()), &patch).await;
        written
            .map(drop)
            .map_err(|failure| Trouble::of(reason, &doing, failure))
    }
}

/// An error with what it came from.
fn whole(error: &InstanceError) -> String {
    match error {
        InstanceError::Conflicts(source) => format!("{error}: {source}"),
        InstanceError::Defaults(source) => format!("{error}: {source}"),
        InstanceError::NoTemplate => error.to_string(),
    }
}
