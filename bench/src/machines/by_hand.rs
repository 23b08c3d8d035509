//! The same boot by hand: a layer over the image by `qemu-img`, and QEMU with the arguments that Fairway gave it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::Bench;
use super::boot::{Boot, Template};
use crate::{process, server};

/// Files of Fairway's own process that another one would stumble over.
const NOT_COPIED: [&str; 2] = ["qemu.pid", "qemu.log"];

pub(super) async fn run(bench: &Bench, template: &Template) -> Result<Boot> {
    let directory = tempfile::Builder::new().prefix("h").tempdir_in(&bench.scratch)?;
    for entry in std::fs::read_dir(&template.directory)? {
        let entry = entry?;
        if !NOT_COPIED.iter().any(|name| entry.file_name() == *name) {
            std::fs::copy(entry.path(), directory.path().join(entry.file_name()))?;
        }
    }
    // Its sockets are made there.
    std::fs::create_dir(directory.path().join("live"))?;
    let image = image(bench)?;
    let disk = directory.path().join("disk.qcow2");
    let port = server::free_port()?;
    let line = line(template, &disk.display().to_string(), port)?;
    let (program, arguments) = line.split_first().context("the machine has no command line")?;

    let began = Instant::now();
    let mut layer = Command::new("qemu-img");
    layer.args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"]);
    let made = layer.arg(&image).arg(&disk).arg("512M").status().await?;
    if !made.success() {
        bail!("qemu-img failed");
    }
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(directory.path().join("stderr"))?)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start QEMU by hand")?;
    let started = began.elapsed();
    let pid = child.id().context("QEMU has ended")?;
    let login = tokio::select! {
        login = bench.key.login(port) => login,
        ended = child.wait() => {
            let why = std::fs::read_to_string(directory.path().join("stderr")).unwrap_or_default();
            bail!("QEMU by hand ended with {ended:?}: {why}");
        }
    };
    login?;
    let boot = Boot {
        started,
        login: began.elapsed(),
        qemu: process::cpu_time(pid)?,
        others: Duration::ZERO,
    };
    child.kill().await?;
    Ok(boot)
}

/// The image that layers lie over.
fn image(bench: &Bench) -> Result<std::path::PathBuf> {
    let images = bench.data.join("images");
    let text = std::fs::read(images.join("images/tiny.json")).context("the image tiny is gone")?;
    let image: serde_json::Value = serde_json::from_slice(&text)?;
    let digest = image["digest"].as_str().context("the image has no digest")?;
    Ok(images.join("blobs").join(digest))
}

/// Fairway's command line with another disk, and with QEMU's own network instead of the switch.
fn line(template: &Template, disk: &str, port: u16) -> Result<Vec<String>> {
    let mut line: Vec<String> = template
        .line
        .iter()
        .map(|word| word.replace(&template.disk, disk))
        .collect();
    let at = line
        .iter()
        .position(|word| word == "-netdev")
        .context("the machine has no network")?;
    let value = line.get_mut(at + 1).context("the machine has no network")?;
    *value = user_network(value, port).context("the machine's network is described in an unknown way")?;
    Ok(line)
}

/// A network of QEMU's own under the same name.
fn user_network(value: &str, port: u16) -> Option<String> {
    let id = match serde_json::from_str::<serde_json::Value>(value) {
        Ok(object) => object["id"].as_str()?.to_owned(),
        Err(_) => value
            .split(',')
            .find_map(|word| word.strip_prefix("id="))?
            .to_owned(),
    };
    Some(format!("user,id={id},hostfwd=tcp:127.0.0.1:{port}-:22"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_replaced_in_both_forms() {
        let wanted = Some("user,id=net0,hostfwd=tcp:127.0.0.1:7-:22".to_owned());
        let plain = "stream,id=net0,server=on,addr.type=unix,addr.path=net0.sock";
        assert_eq!(user_network(plain, 7), wanted);
        assert_eq!(user_network(r#"{"type":"stream","id":"net0"}"#, 7), wanted);
        assert_eq!(user_network("stream", 7), None);
    }
}
