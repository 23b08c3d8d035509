//! The same machine by hand: a layer over the image by `qemu-img`, and QEMU with the arguments that Fairway gave it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::boot::{Boot, Ports, Template};
use super::login::Key;
use super::objects;
use crate::{process, server};

/// Files of Fairway's own process that another one would stumble over.
const NOT_COPIED: [&str; 2] = ["qemu.pid", "qemu.log"];

/// Where a machine is made by hand, and what of.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Directories are made there.
    pub(crate) scratch: &'a Path,
    /// The data directory that has the images.
    pub(crate) data: &'a Path,
    /// Who is let in.
    pub(crate) key: &'a Key,
}

/// What a disk is at first.
pub(super) enum Disk {
    /// A layer over the image.
    Layer,
    /// Nothing: a guest arrives, and brings it along.
    Empty,
}

/// A QEMU that was started by hand. It ends with this.
pub(super) struct Hand {
    directory: TempDir,
    child: Child,
    pub(super) ports: Ports,
    /// How long it took until there was a process.
    started: Duration,
}

impl Hand {
    /// Starts it. One with an empty disk waits for a guest.
    pub(super) async fn start(place: Place<'_>, template: &Template, disk: Disk) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("h").tempdir_in(place.scratch)?;
        for entry in std::fs::read_dir(&template.directory)? {
            let entry = entry?;
            if !NOT_COPIED.iter().any(|name| entry.file_name() == *name) {
                std::fs::copy(entry.path(), directory.path().join(entry.file_name()))?;
            }
        }
        // Its sockets are made there.
        std::fs::create_dir(directory.path().join("live"))?;
        let image = image(place.data, template.guest.image)?;
        let file = directory.path().join("disk.qcow2");
        let ports = Ports {
            ssh: server::free_port()?,
            iperf: server::free_port()?,
        };
        let mut line = line(template, &file.display().to_string(), ports)?;
        if matches!(disk, Disk::Empty) {
            line.extend(["-incoming".to_owned(), "defer".to_owned()]);
        }
        let (program, arguments) = line.split_first().context("the machine has no command line")?;

        let began = Instant::now();
        let mut create = Command::new("qemu-img");
        create.args(["create", "-q", "-f", "qcow2"]);
        if matches!(disk, Disk::Layer) {
            create.args(["-F", "qcow2", "-b"]).arg(&image);
        }
        let size = format!("{}M", template.guest.disk);
        let made = create.arg(&file).arg(size).status().await?;
        if !made.success() {
            bail!("qemu-img failed");
        }
        let child = Command::new(program)
            .args(arguments)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.path().join("stderr"))?)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start QEMU by hand")?;
        Ok(Self {
            directory,
            child,
            ports,
            started: began.elapsed(),
        })
    }

    /// A file of its own.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns as soon as somebody could log in.
    pub(super) async fn login(&mut self, key: &Key) -> Result<()> {
        tokio::select! {
            login = key.login(self.ports.ssh) => login,
            ended = self.child.wait() => {
                let why = std::fs::read_to_string(self.file("stderr")).unwrap_or_default();
                bail!("QEMU by hand ended with {ended:?}: {why}");
            }
        }
    }

    pub(super) async fn end(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// Boots it, and ends it.
pub(crate) async fn run(place: Place<'_>, template: &Template) -> Result<Boot> {
    let began = Instant::now();
    let mut hand = Hand::start(place, template, Disk::Layer).await?;
    // Copying Fairway's files is no part of the boot.
    let preparing = began.elapsed().saturating_sub(hand.started);
    let pid = hand.child.id().context("QEMU has ended")?;
    hand.login(place.key).await?;
    let boot = Boot {
        started: hand.started,
        login: began.elapsed().saturating_sub(preparing),
        qemu: process::cpu_time(pid)?,
        others: Duration::ZERO,
    };
    hand.end().await?;
    Ok(boot)
}

/// The image that layers lie over.
fn image(data: &Path, name: &str) -> Result<PathBuf> {
    let images = data.join("images");
    let text = std::fs::read(images.join("images").join(Path::new(name).with_extension("json")))
        .with_context(|| format!("the image {name} is gone"))?;
    let image: serde_json::Value = serde_json::from_slice(&text)?;
    let digest = image["digest"].as_str().context("the image has no digest")?;
    Ok(images.join("blobs").join(digest))
}

/// Fairway's command line with another disk, and with QEMU's own network instead of the switch.
fn line(template: &Template, disk: &str, ports: Ports) -> Result<Vec<String>> {
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
    *value = user_network(value, ports).context("the machine's network is described in an unknown way")?;
    Ok(line)
}

/// A network of QEMU's own under the same name.
fn user_network(value: &str, ports: Ports) -> Option<String> {
    let id = match serde_json::from_str::<serde_json::Value>(value) {
        Ok(object) => object["id"].as_str()?.to_owned(),
        Err(_) => value
            .split(',')
            .find_map(|word| word.strip_prefix("id="))?
            .to_owned(),
    };
    let Ports { ssh, iperf } = ports;
    let inside = objects::IPERF;
    Some(format!(
        "user,id={id},hostfwd=tcp:127.0.0.1:{ssh}-:22,hostfwd=tcp:127.0.0.1:{iperf}-:{inside}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_replaced_in_both_forms() {
        let ports = Ports { ssh: 7, iperf: 8 };
        let wanted =
            Some("user,id=net0,hostfwd=tcp:127.0.0.1:7-:22,hostfwd=tcp:127.0.0.1:8-:5201".to_owned());
        let plain = "stream,id=net0,server=on,addr.type=unix,addr.path=net0.sock";
        assert_eq!(user_network(plain, ports), wanted);
        assert_eq!(user_network(r#"{"type":"stream","id":"net0"}"#, ports), wanted);
        assert_eq!(user_network("stream", ports), None);
    }
}
