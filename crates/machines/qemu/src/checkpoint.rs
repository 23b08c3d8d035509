//! Backups of all disks of a machine at one moment, and of what has changed since an earlier one.
//!
//! A checkpoint is a record of what changes from a moment on (QEMU's dirty bitmap), one on every disk, kept with the disk when QEMU ends. A
//! backup makes a new checkpoint and begins to copy in one transaction; what it copies is everything, or what the record of an
//! earlier checkpoint holds. That record is not emptied: it goes when whoever ordered the backup has it and says so, so that a backup that
//! was lost on its way can be made again.
//!
//! A record is not to be used if QEMU was killed (QEMU marks it), and is not there on a disk that was copied along by a migration.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::machine::Machine;

/// Records of ours have this before their names.
const PREFIX: &str = "fairway-";

/// A disk that can be backed up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its node in QEMU's graph.
    pub node: String,
    /// Where its file is, as QEMU says: relative to the machine's directory, or absolute.
    pub file: String,
    /// Bytes that the guest sees.
    pub size: u64,
    /// The checkpoints whose records can be used.
    pub checkpoints: Vec<String>,
    /// The checkpoints whose records were damaged when QEMU was killed.
    pub damaged: Vec<String>,
}

/// One copy of a backup.
#[derive(Debug, Clone, Copy)]
pub struct Copy<'a> {
    /// The disk's node.
    pub node: &'a str,
    /// Where to: a qcow2 file of the same size, empty. What it names behind itself is not opened.
    pub file: &'a Path,
    /// The name of the job.
    pub job: &'a str,
    /// Only what has changed since this checkpoint.
    pub since: Option<&'a str>,
}

impl Machine {
    /// The disks that the guest writes to and that are qcow2 files.
    pub async fn disks_to_back_up(&self) -> Result<Vec<Disk>, MachineError> {
        let nodes = self
            .qmp()
            .execute("query-named-block-nodes", json!({"flat": true}))
            .await?;
        Ok(disks(&nodes))
    }

    /// Begins to copy disks, all of the same moment, and makes a checkpoint of that moment. Jobs are asked about by
    /// [`Machine::copied`] and ended by [`Machine::break_copy_off`], also by somebody else.
    pub async fn begin_backup(&self, copies: &[Copy<'_>], checkpoint: &str) -> Result<(), MachineError> {
        let mut actions = Vec::new();
        let mut added = Vec::new();
        let mut outcome = Ok(());
        for copy in copies {
            let layer = json!({
                "driver": "qcow2", "node-name": copy.job, "backing": null,
                "file": {"driver": "file", "filename": copy.file},
            });
            if let Err(error) = self.qmp().execute("blockdev-add", layer).await {
                outcome = Err(MachineError::from(error));
                break;
            }
            added.push(copy.job);
            actions.push(json!({"type": "block-dirty-bitmap-add", "data": {
                "node": copy.node, "name": name(checkpoint), "persistent": true,
            }}));
            let mut backup = json!({
                "job-id": copy.job, "device": copy.node, "target": copy.job, "sync": "full", "auto-dismiss": false,
            });
            if let Some(since) = copy.since {
                backup["sync"] = json!("bitmap");
                backup["bitmap"] = json!(name(since));
                backup["bitmap-mode"] = json!("never");
            }
            actions.push(json!({"type": "blockdev-backup", "data": backup}));
        }
        if outcome.is_ok() {
            let begun = self
                .qmp()
                .execute("transaction", json!({"actions": actions}))
                .await;
            outcome = begun.map(drop).map_err(MachineError::from);
        }
        if outcome.is_err() {
            for job in added {
                let _ = self
                    .qmp()
                    .execute("blockdev-del", json!({"node-name": job}))
                    .await;
            }
        }
        outcome
    }

    /// Forgets a checkpoint, on every disk that has it.
    pub async fn forget_checkpoint(&self, checkpoint: &str) -> Result<(), MachineError> {
        for disk in self.disks_to_back_up().await? {
            let mut known = disk.checkpoints.iter().chain(&disk.damaged);
            if known.any(|known| known == checkpoint) {
                self.remove_bitmap(&disk.node, &name(checkpoint)).await?;
            }
        }
        Ok(())
    }

    /// Waits until copies that were begun are whole.
    pub async fn finish_backup(&self, jobs: &[&str], timeout: Duration) -> Result<(), MachineError> {
        let waiting = async {
            for job in jobs {
                while !self.copied(job).await? {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Ok(())
        };
        tokio::time::timeout(timeout, waiting).await.unwrap_or_else(|_| {
            Err(MachineError::Late {
                what: "a backup".to_owned(),
                seconds: timeout.as_secs(),
            })
        })
    }
}

fn name(checkpoint: &str) -> String {
    format!("{PREFIX}{checkpoint}")
}

fn disks(nodes: &Value) -> Vec<Disk> {
    let nodes = nodes.as_array().map_or(&[][..], Vec::as_slice);
    let is_disk = |node: &&Value| node["drv"] == "qcow2" && node["ro"] == false;
    nodes.iter().filter(is_disk).filter_map(disk).collect()
}

fn disk(node: &Value) -> Option<Disk> {
    let records = node["dirty-bitmaps"].as_array();
    let (mut checkpoints, mut damaged) = (Vec::new(), Vec::new());
    for record in records.into_iter().flatten() {
        let Some(name) = record["name"].as_str().and_then(|it| it.strip_prefix(PREFIX)) else {
            continue;
        };
        let is_whole = record["recording"] == true && record["inconsistent"] != true;
        match is_whole {
            true => checkpoints.push(name.to_owned()),
            false => damaged.push(name.to_owned()),
        }
    }
    checkpoints.sort();
    damaged.sort();
    Some(Disk {
        node: node["node-name"].as_str()?.to_owned(),
        file: node["file"].as_str()?.to_owned(),
        size: node["image"]["virtual-size"].as_u64()?,
        checkpoints,
        damaged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_with_their_disks() {
        let record = |name: &str, recording: bool, inconsistent: bool| json!({"name": name, "recording": recording, "inconsistent": inconsistent, "persistent": true});
        let nodes = json!([
            {"node-name": "f-root", "drv": "file", "ro": false, "file": "root.qcow2", "image": {"virtual-size": 9}},
            {"node-name": "d-root", "drv": "qcow2", "ro": false, "file": "root.qcow2", "image": {"virtual-size": 512},
                "dirty-bitmaps": [
                    record("fairway-b", true, false), record("fairway-a", true, false),
                    record("somebody-elses", true, false), record("fairway-c", false, true),
                ]},
            {"node-name": "d-seed", "drv": "raw", "ro": true, "file": "seed.iso", "image": {"virtual-size": 1}},
            {"node-name": "d-image", "drv": "qcow2", "ro": true, "file": "image", "image": {"virtual-size": 1}},
        ]);
        let expected = Disk {
            node: "d-root".to_owned(),
            file: "root.qcow2".to_owned(),
            size: 512,
            checkpoints: vec!["a".to_owned(), "b".to_owned()],
            damaged: vec!["c".to_owned()],
        };
        assert_eq!(disks(&nodes), [expected]);
        assert_eq!(disks(&Value::Null), []);
    }
}
