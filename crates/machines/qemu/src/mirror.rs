//! Disks that move along with a machine: copied to the destination while the guest runs, and kept the same until it goes on there.
//!
//! The destination serves its empty disks by NBD ([`serve`]); the source copies to them ([`Mirrors::start`]) and goes on copying what the
//! guest writes. When the guest stands still for the last part of its memory, what is left is copied and the copying ends
//! ([`Mirrors::settle`]): from then on both sides have the same disks.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::event::Event;
use crate::machine::Machine;
use crate::meeting::{Meeting, TLS_NAME, TLS_OBJECT};
use crate::qmp::{Events, QmpError};

/// How often somebody looks how far copies are.
const LOOKS: Duration = Duration::from_secs(1);

/// A disk that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Its name at the destination's server.
    pub name: String,
    /// The node that the guest writes to, at the source.
    pub node: String,
}

/// How far the copy of a disk is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Its name at the destination's server.
    pub name: String,
    /// Bytes that are copied.
    pub done: u64,
    /// Bytes that there are to copy, as far as is known: what the guest writes meanwhile is added.
    pub all: u64,
}

/// Copies that are under way.
#[derive(Debug)]
pub struct Mirrors {
    names: Vec<String>,
    events: Events,
}

/// How copies are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copying {
    /// Where the destination serves.
    pub at: Meeting,
    /// Encrypted; both sides are armed for that ([`crate::meeting::arm`]).
    pub is_tls: bool,
    /// Bytes per second at most; nothing is no limit.
    pub max_bandwidth: Option<u64>,
    /// How long it may take until all copies keep up with the guest.
    pub timeout: Duration,
}

/// Lets the destination serve disks: name and node of each.
pub async fn serve(
    destination: &Machine,
    at: &Meeting,
    is_tls: bool,
    disks: &[(String, String)],
) -> Result<(), MachineError> {
    let mut server = json!({"addr": at.server()});
    if is_tls {
        server["tls-creds"] = TLS_OBJECT.into();
    }
    destination.qmp().execute("nbd-server-start", server).await?;
    for (name, node) in disks {
        let export = json!({
            "type": "nbd", "id": export(name), "node-name": node, "name": name, "writable": true,
        });
        destination.qmp().execute("block-export-add", export).await?;
    }
    Ok(())
}

/// Ends serving: before the guest runs at the destination nobody else may write to its disks.
pub async fn stop_serving(destination: &Machine) -> Result<(), MachineError> {
    match destination.qmp().execute("nbd-server-stop", Value::Null).await {
        Ok(_) => Ok(()),
        Err(QmpError::Refused { description, .. }) if description.contains("not running") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn export(name: &str) -> String {
    format!("export-{name}")
}

/// Jobs on disks, and whether each keeps up with the guest.
async fn jobs(machine: &Machine) -> Result<BTreeMap<String, bool>, MachineError> {
    let found = machine.qmp().execute("query-block-jobs", Value::Null).await?;
    let all = found.as_array().into_iter().flatten();
    Ok(all
        .map(|it| {
            (
                it["device"].as_str().unwrap_or_default().to_owned(),
                it["ready"] == true,
            )
        })
        .collect())
}

const JOB: &str = "mirror-";

fn job(name: &str) -> String {
    format!("{JOB}{name}")
}

/// How far the copies of a machine's disks are, whoever began them; by name.
pub async fn copied(source: &Machine) -> Result<Vec<Copied>, MachineError> {
    let found = source.qmp().execute("query-block-jobs", Value::Null).await?;
    Ok(read(&found))
}

fn read(jobs: &Value) -> Vec<Copied> {
    let all = jobs.as_array().into_iter().flatten();
    let mut copied: Vec<Copied> = all
        .filter_map(|it| {
            let name = it["device"].as_str()?.strip_prefix(JOB)?;
            let number = |field: &str| it[field].as_u64().unwrap_or_default();
            Some(Copied {
                name: name.to_owned(),
                done: number("offset"),
                all: number("len"),
            })
        })
        .collect();
    copied.sort_by(|a, b| a.name.cmp(&b.name));
    copied
}

impl Mirrors {
    /// Begins to copy, and returns when all copies keep up with the guest. `progress` is told now and then how far they are.
    pub async fn start(
        source: &Machine,
        copying: &Copying,
        disks: &[Mirror],
        progress: impl FnMut(&[Copied]),
    ) -> Result<Self, MachineError> {
        let mut mirrors = Self {
            names: Vec::new(),
            events: source.qmp().events(),
        };
        let outcome =
            tokio::time::timeout(copying.timeout, mirrors.begin(source, copying, disks, progress)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(MachineError::Late {
                what: "copying the disks".to_owned(),
                seconds: copying.timeout.as_secs(),
            })
        });
        match outcome {
            Ok(()) => Ok(mirrors),
            Err(error) => {
                mirrors.give_up(source).await;
                Err(error)
            }
        }
    }

    async fn begin(
        &mut self,
        source: &Machine,
        copying: &Copying,
        disks: &[Mirror],
        mut progress: impl FnMut(&[Copied]),
    ) -> Result<(), MachineError> {
        for disk in disks {
            let target = job(&disk.name);
            let mut node = json!({
                "driver": "nbd", "node-name": target, "export": disk.name, "server": copying.at.client(),
            });
            if copying.is_tls {
                node["tls-creds"] = TLS_OBJECT.into();
                node["tls-hostname"] = TLS_NAME.into();
            }
            source.qmp().execute("blockdev-add", node).await?;
            self.names.push(disk.name.clone());
            let copy = json!({
                "job-id": target, "device": disk.node, "target": target, "sync": "full",
                "speed": copying.max_bandwidth.unwrap_or(0),
            });
            source.qmp().execute("blockdev-mirror", copy).await?;
        }
        let mut waiting: Vec<String> = self.names.iter().map(|it| job(it)).collect();
        let mut looks = tokio::time::interval(LOOKS);
        while !waiting.is_empty() {
            let event = tokio::select! {
                event = self.events.next() => event,
                _ = looks.tick() => {
                    // One that does not say it goes on nevertheless.
                    if let Ok(copied) = copied(source).await {
                        progress(&copied);
                    }
                    continue;
                }
            };
            match event {
                // Among what was missed may be what is waited for.
                Some(Event::Missed(_)) => {
                    let jobs = jobs(source).await?;
                    if let Some(ended) = waiting.iter().find(|it| !jobs.contains_key(*it)) {
                        return Err(MachineError::Failed(format!(
                            "copying a disk: {ended} ended early"
                        )));
                    }
                    waiting.retain(|it| jobs.get(it) != Some(&true));
                }
                Some(Event::BlockJobReady { device }) => waiting.retain(|it| *it != device),
                Some(Event::BlockJobEnded { device, error }) if waiting.contains(&device) => {
                    let why = error.unwrap_or_else(|| "it ended early".to_owned());
                    return Err(MachineError::Failed(format!("copying a disk: {why}")));
                }
                Some(_) => {}
                None => return Err(QmpError::Closed.into()),
            }
        }
        Ok(())
    }

    /// Copies what is left, while the guest stands still, and ends the copying.
    pub async fn settle(&mut self, source: &Machine) -> Result<(), MachineError> {
        let mut waiting = Vec::new();
        for name in &self.names {
            // A copy that keeps up is ended, not broken off, by this.
            let arguments = json!({"device": job(name)});
            source.qmp().execute("block-job-cancel", arguments).await?;
            waiting.push(job(name));
        }
        let ending = async {
            while !waiting.is_empty() {
                match self.events.next().await {
                    Some(Event::Missed(_)) => {
                        let jobs = jobs(source).await?;
                        waiting.retain(|it| jobs.contains_key(it));
                    }
                    Some(Event::BlockJobEnded { device, error }) => {
                        if let Some(why) = error {
                            return Err(MachineError::Failed(format!("copying a disk: {why}")));
                        }
                        waiting.retain(|it| *it != device);
                    }
                    Some(_) => {}
                    None => return Err(QmpError::Closed.into()),
                }
            }
            Ok(())
        };
        let seconds = 60;
        let ended = tokio::time::timeout(Duration::from_secs(seconds), ending).await;
        ended.unwrap_or_else(|_| {
            Err(MachineError::Late {
                what: "the end of copying the disks".to_owned(),
                seconds,
            })
        })?;
        self.drop_nodes(source).await;
        Ok(())
    }

    /// Breaks the copying off; the source is as if nothing had been.
    pub async fn give_up(&mut self, source: &Machine) {
        for name in &self.names {
            let arguments = json!({"device": job(name), "force": true});
            let _ = source.qmp().execute("block-job-cancel", arguments).await;
        }
        // A job that is broken off takes a moment to let its target go.
        for _ in 0..50 {
            let jobs = source
                .qmp()
                .execute("query-block-jobs", Value::Null)
                .await
                .unwrap_or_default();
            let ours = |it: &Value| {
                it["device"]
                    .as_str()
                    .is_some_and(|it| self.names.iter().any(|name| job(name) == it))
            };
            if !jobs.as_array().is_some_and(|all| all.iter().any(ours)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.drop_nodes(source).await;
    }

    /// Breaks all copying of a machine off, from aside: whoever began it finds out.
    pub async fn break_off(source: &Machine) {
        let jobs = source.qmp().execute("query-block-jobs", Value::Null).await;
        for found in jobs.unwrap_or_default().as_array().into_iter().flatten() {
            let name = found["device"].as_str().unwrap_or_default();
            if name.starts_with(&job("")) {
                let arguments = json!({"device": name, "force": true});
                let _ = source.qmp().execute("block-job-cancel", arguments).await;
            }
        }
    }

    async fn drop_nodes(&mut self, source: &Machine) {
        for name in std::mem::take(&mut self.names) {
            let arguments = json!({"node-name": job(&name)});
            let _ = source.qmp().execute("blockdev-del", arguments).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_told_from_other_jobs() {
        let job = |device: &str, done: u64, all: u64| json!({"device": device, "offset": done, "len": all, "ready": false});
        let jobs = json!([
            job("mirror-root", 5, 10),
            job("backup-root", 7, 10),
            job("mirror-data", 0, 0),
            {"device": "mirror-odd"},
        ]);
        let copied = |name: &str, done, all| Copied {
            name: name.to_owned(),
            done,
            all,
        };
        assert_eq!(
            read(&jobs),
            [copied("data", 0, 0), copied("odd", 0, 0), copied("root", 5, 10)]
        );
        assert!(read(&Value::Null).is_empty());
    }
}
