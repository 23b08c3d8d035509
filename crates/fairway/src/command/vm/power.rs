//! Whether a machine runs: start, stop, restart, pause, unpause, soft-reboot, reset, freeze, unfreeze, migrate, migrate-cancel.

use anyhow::{anyhow, bail, ensure};
use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE_MIGRATION;
use serde_json::{Value, json};

use super::session::{Located, Session};
use super::target::Kind;
use crate::cli::vm::DryRun;
use crate::cli::vm::power::{Freeze, Migrate, Named, Pause, Start, Stop};

/// The directives of a dry run, which is announced.
pub(super) fn directives(dry_run: &DryRun) -> Option<Vec<&'static str>> {
    dry_run.is_dry.then(|| {
        println!("Dry Run execution");
        vec!["All"]
    })
}

pub(super) async fn start(session: &Session, options: &Start) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let mut body = json!({"paused": options.is_paused});
    add_directives(&mut body, &options.dry_run);
    put(session, &machine, Kind::Machine, "start", &body)
        .await
        .map_err(|error| anyhow!("Error starting VirtualMachine {error}"))?;
    scheduled("VM", &machine, "start");
    Ok(())
}

pub(super) async fn stop(session: &Session, options: &Stop) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let mut body = json!({});
    add_directives(&mut body, &options.dry_run);
    let what = match forced(options)? {
        None => "error stopping VirtualMachine",
        Some(seconds) => {
            body["gracePeriod"] = json!(seconds);
            "error force stopping VirtualMachine:"
        }
    };
    put(session, &machine, Kind::Machine, "stop", &body)
        .await
        .map_err(|error| anyhow!("{what} {error}"))?;
    scheduled("VM", &machine, "stop");
    Ok(())
}

pub(super) async fn restart(session: &Session, options: &Stop) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let mut body = json!({});
    add_directives(&mut body, &options.dry_run);
    let what = match forced(options)? {
        None => "error restarting VirtualMachine:",
        Some(seconds) => {
            body["gracePeriodSeconds"] = json!(seconds);
            "error force restarting VirtualMachine:"
        }
    };
    put(session, &machine, Kind::Machine, "restart", &body)
        .await
        .map_err(|error| anyhow!("{what} {error}"))?;
    scheduled("VM", &machine, "restart");
    Ok(())
}

/// Seconds that the guest gets, if it is not to be asked.
fn forced(options: &Stop) -> anyhow::Result<Option<i64>> {
    ensure!(
        options.is_forced == options.grace_period.is_some(),
        "Must both use --force=true and set --grace-period."
    );
    Ok(options.grace_period)
}

pub(super) async fn migrate(session: &Session, options: &Migrate) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let mut body = json!({});
    add_directives(&mut body, &options.dry_run);
    put(session, &machine, Kind::Machine, "migrate", &body)
        .await
        .map_err(|error| anyhow!("Error migrating VirtualMachine {error}"))?;
    scheduled("VM", &machine, "migrate");
    Ok(())
}

pub(super) async fn migrate_cancel(session: &Session, options: &Named) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    let name = &machine.name;
    let kind = VIRTUAL_MACHINE_INSTANCE_MIGRATION;
    let all = format!(
        "/apis/{}/namespaces/{}/{}",
        kind.api_version(),
        machine.namespace,
        kind.plural
    );
    let selected = format!("{all}?labelSelector=kubevirt.io%2Fvmi-name%3D{name}");
    let found = session
        .list(&selected)
        .await
        .map_err(|error| anyhow!("Error fetching virtual machine instance migration list  {error}"))?;
    let is_under_way = |it: &&Value| !matches!(it["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let Some(migration) = found.iter().find(is_under_way) else {
        bail!("Found no migration to cancel for {name}");
    };
    let migration = migration["metadata"]["name"].as_str().unwrap_or_default();
    session
        .ask("DELETE", &format!("{all}/{migration}"), None)
        .await
        .map_err(|error| {
            anyhow!("Error canceling migration {migration} of a VirtualMachine {name}: {error}")
        })?;
    scheduled("VM", &machine, "migrate-cancel");
    Ok(())
}

pub(super) async fn pause(session: &Session, options: &Pause) -> anyhow::Result<()> {
    let (kind, machine) = meant(session, &options.words)?;
    let mut body = json!({});
    add_directives(&mut body, &options.dry_run);
    let name = &machine.name;
    let vm = match kind {
        Kind::Machine => Some(machine_of(session, &machine).await?),
        Kind::Instance => None,
    };
    let done = put(session, &machine, Kind::Instance, "pause", &body).await;
    match (done, vm) {
        (Ok(()), _) => {}
        (Err(error), Some(vm)) if error.is_not_found() => {
            let is_halted = match vm["spec"]["runStrategy"].as_str() {
                Some(strategy) => strategy == "Halted",
                None => vm["spec"]["running"] != true,
            };
            match is_halted {
                true => bail!(
                    "Error pausing VirtualMachineInstance {name}. VirtualMachine {name} is not set to run"
                ),
                false => bail!("Error pausing VirtualMachineInstance {name}, it was not found"),
            }
        }
        (Err(error), _) => bail!("Error pausing VirtualMachineInstance {name}: {error}"),
    }
    scheduled("VMI", &machine, "pause");
    Ok(())
}

pub(super) async fn unpause(session: &Session, options: &Pause) -> anyhow::Result<()> {
    let (kind, machine) = meant(session, &options.words)?;
    let mut body = json!({});
    add_directives(&mut body, &options.dry_run);
    if kind == Kind::Machine {
        machine_of(session, &machine).await?;
    }
    put(session, &machine, Kind::Instance, "unpause", &body)
        .await
        .map_err(|error| anyhow!("Error unpausing VirtualMachineInstance {}: {error}", machine.name))?;
    scheduled("VMI", &machine, "unpause");
    Ok(())
}

pub(super) async fn soft_reboot(session: &Session, options: &Named) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    put(session, &machine, Kind::Instance, "softreboot", &Value::Null)
        .await
        .map_err(|error| {
            anyhow!(
                "Error soft rebooting VirtualMachineInstance {}: {error}",
                machine.name
            )
        })?;
    scheduled("VMI", &machine, "soft-reboot");
    Ok(())
}

pub(super) async fn reset(session: &Session, options: &Named) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    put(session, &machine, Kind::Instance, "reset", &Value::Null)
        .await
        .map_err(|error| anyhow!("Error reseting VirtualMachineInstance {}: {error}", machine.name))?;
    scheduled("VMI", &machine, "reset");
    Ok(())
}

/// virtctl has no such verb: upstream does it from within the pod of a machine.
pub(super) async fn freeze(session: &Session, options: &Freeze) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let body = json!({"unfreezeTimeout": options.unfreeze_timeout});
    put(session, &machine, Kind::Instance, "freeze", &body)
        .await
        .map_err(|error| anyhow!("Error freezing VirtualMachineInstance {}: {error}", machine.name))?;
    println!("VMI {} is frozen", machine.name);
    Ok(())
}

pub(super) async fn unfreeze(session: &Session, options: &Named) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    put(session, &machine, Kind::Instance, "unfreeze", &Value::Null)
        .await
        .map_err(|error| {
            anyhow!(
                "Error unfreezing VirtualMachineInstance {}: {error}",
                machine.name
            )
        })?;
    println!("VMI {} is not frozen any more", machine.name);
    Ok(())
}

/// `vm NAME`, `vmi NAME`, or a target alone, which is a machine unless it says otherwise.
fn meant(session: &Session, words: &[String]) -> anyhow::Result<(Kind, Located)> {
    match words {
        [kind, name] => match Kind::parse(kind) {
            Some(kind) => Ok((kind, session.target(name)?)),
            None => bail!("unsupported resource type: {kind}"),
        },
        [name] => {
            let machine = session.target(name)?;
            Ok((machine.kind.unwrap_or(Kind::Machine), machine))
        }
        _ => bail!("name a machine: vm NAME, vmi NAME, or NAME"),
    }
}

async fn machine_of(session: &Session, machine: &Located) -> anyhow::Result<Value> {
    let found = session.get(&machine.object(Kind::Machine)).await;
    found.map_err(|error| anyhow!("Error getting VirtualMachine {}: {error}", machine.name))
}

async fn put(
    session: &Session,
    machine: &Located,
    kind: Kind,
    what: &str,
    body: &Value,
) -> Result<(), super::session::Refused> {
    let body = (!body.is_null()).then_some(body);
    let done = session.ask("PUT", &machine.subresource(kind, what), body).await;
    done.map(drop)
}

fn add_directives(body: &mut Value, dry_run: &DryRun) {
    if let Some(directives) = directives(dry_run) {
        body["dryRun"] = json!(directives);
    }
}

fn scheduled(what: &str, machine: &Located, verb: &str) {
    println!("{what} {} was scheduled to {verb}", machine.name);
}
