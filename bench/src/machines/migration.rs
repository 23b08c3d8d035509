//! A machine moves between two nodes of this host, and between two QEMUs by hand: how long it took, and how long its guest stood still.
//!
//! Both sides have the same arguments, parameters and guest, and copy the disk along, as the nodes share no storage. By hand the two
//! QEMUs meet by sockets without encryption; Fairway's nodes do so only if machines have no users of their own, else by TCP with TLS.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::boot::{self, Template};
use super::by_hand::{Disk, Hand};
use super::guest::TINY;
use super::qmp::Qmp;
use super::{Bench, objects};
use crate::{process, server};

const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);
/// The second node.
pub(super) const SECOND: &str = "second";

/// What one migration took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// From the wish until the guest ran at the other place.
    pub(super) total: Duration,
    /// Of that, sending memory, as QEMU says.
    pub(super) memory: Duration,
    /// And how long the guest stood still, as QEMU says.
    pub(super) downtime: Duration,
}

/// Moves of both sides.
pub(super) struct Moves {
    pub(super) fairway: Vec<Moved>,
    pub(super) by_hand: Vec<Moved>,
}

/// Another node of this host: a process of its own, which ends with this.
pub(super) struct Second {
    process: Child,
}

impl Second {
    /// Joins with a new token, and waits until it is ready.
    pub(super) async fn start(bench: &Bench, binary: &Path) -> Result<Self> {
        let data = bench
            .second
            .clone()
            .context("there is no place for a second node")?;
        std::fs::create_dir_all(&data)?;
        let kubeconfig = bench.data.join("kubeconfig");
        let token = said(
            Command::new(binary)
                .args(["node", "token", "create", "--kubeconfig"])
                .arg(&kubeconfig),
        )
        .await?;
        // What it says is what is to be typed on the other host.
        let words = token.split_whitespace().skip(1);
        let mut join = Command::new(binary);
        join.args(words).arg("--data").arg(&data);
        said(join.args(["--node-name", SECOND])).await?;
        let log = bench.scratch.join("second.log");
        let arguments = [
            "node".to_owned(),
            format!("--data={}", data.display()),
            "--node-addresses=127.0.0.2".to_owned(),
        ];
        let mut process = server::spawn(binary, &arguments, &log)?;
        server::until("the second node", &mut process, &log, async || {
            let node = bench.get(&format!("{}/{SECOND}", objects::NODES)).await;
            node.ok().flatten().is_some_and(|node| is_ready(&node))
        })
        .await?;
        Ok(Self { process })
    }

    /// Bytes that the node takes.
    pub(super) fn resident(&self) -> Result<u64> {
        process::resident_bytes(self.process.id().context("the second node has ended")?)
    }
}

async fn said(command: &mut Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output().await?;
    if !done.status.success() {
        bail!(
            "{command:?} ended with {}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn is_ready(object: &Value) -> bool {
    has(object, "Ready")
}

fn has(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|it| it["type"] == condition && it["status"] == "True")
}

/// Boots the same guest on both sides, and moves it so many times.
pub(super) async fn measure(bench: &Bench, binary: &Path, port: u16, rounds: usize) -> Result<Moves> {
    let machine = objects::booting(TINY.image, &TINY, &bench.key.public);
    bench.create(objects::MACHINES, &machine).await?;
    bench.key.login(port).await?;
    let (pid, directory) = bench.running().pop().context("the machine does not run")?;
    let template = boot::template(&bench.scratch, TINY, pid, &directory)?;
    let second = Second::start(bench, binary).await?;
    let outcome = both(bench, &template, port, rounds).await;
    // While there is somebody to end them there.
    let cleared = bench.clear().await;
    drop(second);
    bench.delete(&format!("{}/{SECOND}", objects::NODES)).await?;
    let moves = outcome?;
    cleared?;
    Ok(moves)
}

async fn both(bench: &Bench, template: &Template, port: u16, rounds: usize) -> Result<Moves> {
    let mut source = Hand::start(bench.place(), template, Disk::Layer).await?;
    source.login(&bench.key).await?;
    let mut source = (Qmp::connect(&source.file("live/qmp.sock")).await?, source);
    let (mut fairway, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let ours = moved(bench, round).await.context("by Fairway")?;
        let hand;
        (hand, source) = moved_by_hand(bench, template, source).await.context("by hand")?;
        eprintln!(
            "migration {} of {rounds}: Fairway {ours:?}; by hand {hand:?}",
            round + 1
        );
        fairway.push(ours);
        by_hand.push(hand);
    }
    // Both guests live.
    bench.key.login(port).await?;
    source.1.login(&bench.key).await?;
    source.1.end().await?;
    Ok(Moves { fairway, by_hand })
}

async fn moved(bench: &Bench, round: usize) -> Result<Moved> {
    let path = format!("{}/{}", objects::INSTANCES, TINY.image);
    until(bench, &path, |instance| has(instance, "LiveMigratable")).await?;
    bench.delete(objects::EVENTS).await?;
    let name = format!("move-{round}");
    let began = Instant::now();
    bench
        .create(objects::MIGRATIONS, &objects::migration(&name, TINY.image))
        .await?;
    let migration = bench.get(&format!("{}/{name}", objects::MIGRATIONS)).await?;
    let uid = migration.context("the migration is gone")?["metadata"]["uid"].take();
    let is_over = |instance: &Value| {
        let state = &instance["status"]["migrationState"];
        state["migrationUid"] == uid && (state["completed"] == true || state["failed"] == true)
    };
    let instance = until(bench, &path, is_over).await?;
    let total = began.elapsed();
    let state = &instance["status"]["migrationState"];
    if state["failed"] == true {
        bail!("it failed: {state}");
    }
    loop {
        let events = bench.get(objects::EVENTS).await?.unwrap_or_default();
        let all = events["items"].as_array().into_iter().flatten();
        let told = all.filter_map(|event| event["message"].as_str()).find_map(told);
        match told {
            Some((memory, downtime)) => {
                return Ok(Moved {
                    total,
                    memory,
                    downtime,
                });
            }
            None if began.elapsed() > PATIENCE => bail!("no event says how long the guest stood still"),
            None => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// How long memory was sent and the guest stood still, if a message says so.
fn told(message: &str) -> Option<(Duration, Duration)> {
    let (_, times) = message
        .strip_prefix("Everything was sent: ")?
        .split_once(" MiB of memory in ")?;
    let (memory, downtime) = times.split_once(" ms; the guest stood still for ")?;
    let downtime = downtime.strip_suffix(" ms.")?;
    let milliseconds = |text: &str| text.parse().ok().map(Duration::from_millis);
    Some((milliseconds(memory)?, milliseconds(downtime)?))
}

async fn until(bench: &Bench, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let began = Instant::now();
    loop {
        let object = bench.get(path).await?.unwrap_or_default();
        if is_so(&object) {
            return Ok(object);
        }
        if began.elapsed() > PATIENCE {
            bail!(
                "{path} is not as expected after {PATIENCE:?}: {}",
                object["status"]
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The guest moves to a new QEMU, and the old one ends.
async fn moved_by_hand(
    bench: &Bench,
    template: &Template,
    (mut source, old): (Qmp, Hand),
) -> Result<(Moved, (Qmp, Hand))> {
    let disk = disk_node(&template.line).context("the machine's arguments name no disk")?;
    let began = Instant::now();
    let new = Hand::start(bench.place(), template, Disk::Empty).await?;
    let mut destination = Qmp::connect(&new.file("live/qmp.sock")).await?;
    for side in [&mut source, &mut destination] {
        configure(side).await?;
    }
    let socket = |name: &str| -> PathBuf { new.file("live").join(name) };
    let (disks, memory) = (socket("disks.sock"), socket("memory.sock"));
    let server = json!({"addr": {"type": "unix", "data": {"path": disks}}});
    destination.execute("nbd-server-start", server).await?;
    let export = json!({"type": "nbd", "id": "export", "node-name": disk, "name": "disk", "writable": true});
    destination.execute("block-export-add", export).await?;
    let uri = format!("unix:{}", memory.display());
    destination
        .execute("migrate-incoming", json!({ "uri": uri }))
        .await?;

    let there = json!({"driver": "nbd", "node-name": "there", "export": "disk", "server": {"type": "unix", "path": disks}});
    source.execute("blockdev-add", there).await?;
    let copy = json!({"job-id": "copy", "device": disk, "target": "there", "sync": "full"});
    source.execute("blockdev-mirror", copy).await?;
    source
        .until("query-block-jobs", |jobs| jobs[0]["ready"] == true)
        .await?;
    source.execute("migrate", json!({ "uri": uri })).await?;
    let stands_still = |state: &Value| state["status"] == "pre-switchover" || state["status"] == "failed";
    source.until("query-migrate", stands_still).await?;
    // A copy that keeps up is ended, not broken off, by this.
    source
        .execute("block-job-cancel", json!({"device": "copy"}))
        .await?;
    let none = |jobs: &Value| jobs.as_array().is_some_and(Vec::is_empty);
    source.until("query-block-jobs", none).await?;
    source
        .execute("blockdev-del", json!({"node-name": "there"}))
        .await?;
    destination.execute("nbd-server-stop", json!({})).await?;
    source
        .execute("migrate-continue", json!({"state": "pre-switchover"}))
        .await?;
    let is_over = |state: &Value| {
        let is_known = state["total-time"].as_u64().unwrap_or(0) > 0;
        (state["status"] == "completed" && is_known) || state["status"] == "failed"
    };
    let state = source.until("query-migrate", is_over).await?;
    if state["status"] != "completed" {
        bail!("QEMU says {state}");
    }
    destination
        .until("query-status", |status| status["status"] == "running")
        .await?;
    let total = began.elapsed();
    old.end().await?;
    let milliseconds = |name: &str| Duration::from_millis(state[name].as_u64().unwrap_or(0));
    let moved = Moved {
        total,
        memory: milliseconds("total-time"),
        downtime: milliseconds("downtime"),
    };
    Ok((moved, (destination, new)))
}

/// What Fairway sets, too.
async fn configure(side: &mut Qmp) -> Result<()> {
    let capabilities = json!({"capabilities": [
        {"capability": "events", "state": true},
        {"capability": "auto-converge", "state": true},
        {"capability": "pause-before-switchover", "state": true},
    ]});
    side.execute("migrate-set-capabilities", capabilities).await?;
    let parameters = json!({
        "downtime-limit": 300, "max-bandwidth": 0,
        "announce-initial": 50, "announce-max": 550, "announce-rounds": 5, "announce-step": 100,
    });
    side.execute("migrate-set-parameters", parameters).await?;
    Ok(())
}

/// The node of the disk that the guest writes to.
fn disk_node(line: &[String]) -> Option<String> {
    line.iter()
        .filter_map(|word| serde_json::from_str::<Value>(word).ok())
        .find(|it| it["driver"] == "qcow2" && it["read-only"] != true)
        .and_then(|it| it["node-name"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_migrations_are_understood() {
        let message = "Everything was sent: 71 MiB of memory in 930 ms; the guest stood still for 18 ms.";
        let expected = (Duration::from_millis(930), Duration::from_millis(18));
        assert_eq!(told(message), Some(expected));
        for message in [
            "Everything was sent: 71 MiB of memory in an unknown number of ms; the guest stood still for 18 ms.",
            "The guest was started.",
        ] {
            assert_eq!(told(message), None, "{message}");
        }
    }

    #[test]
    fn the_disk_that_is_written_to() {
        let line = [
            "-blockdev",
            r#"{"driver":"file","node-name":"f-root","filename":"disk"}"#,
            r#"{"driver":"qcow2","node-name":"d-image","read-only":true}"#,
            r#"{"driver":"qcow2","node-name":"d-root","file":"f-root","read-only":false}"#,
        ];
        assert_eq!(disk_node(&line.map(str::to_owned)).as_deref(), Some("d-root"));
        assert_eq!(disk_node(&["-m".to_owned()]), None);
    }
}
