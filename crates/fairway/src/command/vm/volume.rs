//! `fairway vm addvolume` and `removevolume`.

use std::time::Duration;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};

use super::power::directives;
use super::session::{Located, Session};
use super::target::Kind;
use crate::cli::vm::storage::{AddVolume, RemoveVolume};

/// How often it is tried if somebody else changes the machine at the same time.
const ATTEMPTS: u32 = 15;

pub(super) async fn add(session: &Session, options: &AddVolume) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let volume = &options.volume_name;
    let dry_run = directives(&options.dry_run);
    let source = source(session, &machine.namespace, volume).await?;
    let mut disk = match options.disk_type.as_str() {
        "disk" => json!({"disk": {"bus": "scsi"}}),
        "lun" => json!({"lun": {"bus": "scsi"}}),
        other => bail!("Invalid disk type '{other}'. Only LUN and Disk are supported."),
    };
    disk["serial"] = match options.serial.as_str() {
        "" => json!(volume),
        serial => json!(serial),
    };
    match options.cache.as_str() {
        "" => {}
        cache @ ("none" | "writethrough" | "writeback") => disk["cache"] = json!(cache),
        other => bail!("error adding volume, invalid cache value {other}"),
    }
    let mut body = json!({"name": volume, "disk": disk, "volumeSource": source});
    if let Some(dry_run) = dry_run {
        body["dryRun"] = json!(dry_run);
    }
    put(session, &machine, options.persists, "add", &body).await?;
    println!(
        "Successfully submitted add volume request to VM {} for volume {volume}",
        machine.name
    );
    Ok(())
}

pub(super) async fn remove(session: &Session, options: &RemoveVolume) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let volume = &options.volume_name;
    let mut body = json!({"name": volume});
    if let Some(dry_run) = directives(&options.dry_run) {
        body["dryRun"] = json!(dry_run);
    }
    put(session, &machine, options.persists, "remov", &body).await?;
    println!(
        "Successfully submitted remove volume request to VM {} for volume {volume}",
        machine.name
    );
    Ok(())
}

/// The DataVolume of this name, or the claim.
async fn source(session: &Session, namespace: &str, name: &str) -> anyhow::Result<Value> {
    let data_volume = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datavolumes/{name}");
    if session.get(&data_volume).await.is_ok() {
        return Ok(json!({"dataVolume": {"name": name, "hotpluggable": true}}));
    }
    let claim = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    match session.get(&claim).await {
        Ok(_) => Ok(json!({"persistentVolumeClaim": {"claimName": name, "hotpluggable": true}})),
        Err(refused) if refused.is_not_found() => {
            bail!("error adding volume, Volume {name} is not a DataVolume or PersistentVolumeClaim")
        }
        Err(refused) => bail!("error adding volume, {refused}"),
    }
}

async fn put(
    session: &Session,
    machine: &Located,
    persists: bool,
    verb: &str,
    body: &Value,
) -> anyhow::Result<()> {
    let kind = match persists {
        true => Kind::Machine,
        false => Kind::Instance,
    };
    let what = match verb {
        "add" => "addvolume",
        _ => "removevolume",
    };
    let path = machine.subresource(kind, what);
    for attempt in 1..=ATTEMPTS {
        match session.ask("PUT", &path, Some(body)).await {
            Ok(_) => return Ok(()),
            // A patch that tested what was there: somebody was quicker.
            Err(refused)
                if refused.code == 422 && refused.message.contains("the server rejected our request") => {}
            Err(refused) => return Err(anyhow!("error {verb}ing volume, {refused}")),
        }
        tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 3)).await;
    }
    bail!("error {verb}ing volume after {ATTEMPTS} retries")
}
