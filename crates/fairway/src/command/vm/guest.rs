//! What the guest's agent tells.

use anyhow::{Context as _, anyhow};
use serde_json::Value;

use super::session::{Refused, Session};
use super::target::Kind;
use crate::cli::vm::power::Named;

pub(super) async fn os_info(session: &Session, options: &Named) -> anyhow::Result<()> {
    let (name, told) = ask(session, options, "guestosinfo").await?;
    show(
        &told.map_err(|error| {
            anyhow!("Error getting guestosinfo of VirtualMachineInstance {name}, {error}")
        })?,
    );
    Ok(())
}

pub(super) async fn file_systems(session: &Session, options: &Named) -> anyhow::Result<()> {
    let (name, told) = ask(session, options, "filesystemlist").await?;
    show(
        &told.map_err(|error| {
            anyhow!("Error listing filesystems of VirtualMachineInstance {name}, {error}")
        })?,
    );
    Ok(())
}

pub(super) async fn users(session: &Session, options: &Named) -> anyhow::Result<()> {
    let (name, told) = ask(session, options, "userlist").await?;
    show(&told.map_err(|error| anyhow!("Error listing users of VirtualMachineInstance {name}, {error}"))?);
    Ok(())
}

async fn ask(
    session: &Session,
    options: &Named,
    what: &str,
) -> anyhow::Result<(String, Result<Value, Refused>)> {
    let machine = session.target(&options.name)?;
    let told = session
        .ask("GET", &machine.subresource(Kind::Instance, what), None)
        .await;
    let told = match told {
        Ok(body) => Ok(serde_json::from_slice(&body).context("the server's answer is not JSON")?),
        Err(refused) => Err(refused),
    };
    Ok((machine.name, told))
}

fn show(told: &Value) {
    println!("{told:#}");
}
