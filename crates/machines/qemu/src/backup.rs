//! Copies of a machine's disks and memory while it runs: layers, backups, saved states.
//!
//! Three ways, for three purposes:
//! - A **layer** ([`Machine::add_layer`]): the disk goes on in a new file, and the old one does not change any more. It is the way to a
//!   snapshot of disks that have bitmaps, and is undone by merging ([`Machine::merge_layer`]).
//! - A **backup** ([`Machine::back_up`]): everything, or with a bitmap what has changed since, is copied to a file while the guest
//!   runs; the copy is of the moment at which it began. [`Machine::begin_copy`] does that to a layer over the same image, and does not
//!   wait for the end.
//! - A **saved state** ([`Machine::save_state`]): memory and disks within the qcow2 files. QEMU refuses to go back to one as
//!   long as a disk has a bitmap.
//!
//! Whoever wants more than the disks' state at a power cut freezes the guest's file systems by the agent around the call.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::event::Event;
use crate::machine::Machine;
use crate::qmp::QmpError;

/// What a backup copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent<'a> {
    /// Everything.
    Full,
    /// What has changed since the bitmap was made or last used; the bitmap starts anew when it has worked.
    Since(&'a str),
}

impl Machine {
    /// Lets a disk go on in a new file, which is made for it; what was written before stays in the old one.
    pub async fn add_layer(&self, node: &str, file: &str, new_node: &str) -> Result<(), MachineError> {
        let arguments = json!({
            "node-name": node, "snapshot-file": file, "snapshot-node-name": new_node, "format": "qcow2",
        });
        self.qmp().execute("blockdev-snapshot-sync", arguments).await?;
        Ok(())
    }

    /// Merges the layer that the guest writes to into the node below, and lets the guest go on there. The node below is named,
    /// because without a name QEMU would merge everything into the lowest file, which is the image that machines share.
    pub async fn merge_layer(&self, node: &str, below: &str, timeout: Duration) -> Result<(), MachineError> {
        let job = format!("merge-{node}");
        let mut events = self.qmp().events();
        let arguments = json!({"job-id": job, "device": node, "top-node": node, "base-node": below});
        self.qmp().execute("block-commit", arguments).await?;
        let merging = async {
            loop {
                match events.next().await {
                    // The two are the same, and stay so until the job is completed.
                    Some(Event::BlockJobReady { device }) if device == job => {
                        self.qmp()
                            .execute("block-job-complete", json!({"device": job}))
                            .await?;
                    }
                    Some(Event::BlockJobEnded { device, error }) if device == job => {
                        return match error {
                            None => Ok(()),
                            Some(why) => Err(MachineError::Failed(format!("merging a layer: {why}"))),
                        };
                    }
                    None => return Err(QmpError::Closed.into()),
                    Some(_) => {}
                }
            }
        };
        within(timeout, "merging a layer", merging).await
    }

    /// Begins to keep record of what changes on a disk, for backups of that alone. The record is kept with the disk.
    pub async fn add_bitmap(&self, node: &str, name: &str) -> Result<(), MachineError> {
        let arguments = json!({"node": node, "name": name, "persistent": true});
        self.qmp().execute("block-dirty-bitmap-add", arguments).await?;
        Ok(())
    }

    /// Forgets a record of changes.
    pub async fn remove_bitmap(&self, node: &str, name: &str) -> Result<(), MachineError> {
        let arguments = json!({"node": node, "name": name});
        self.qmp().execute("block-dirty-bitmap-remove", arguments).await?;
        Ok(())
    }

    /// Copies a disk to a new qcow2 file of the same size, which has to be there and empty.
    pub async fn back_up(
        &self,
        node: &str,
        file: &str,
        extent: &Extent<'_>,
        timeout: Duration,
    ) -> Result<(), MachineError> {
        let target = format!("backup-{node}");
        let layer = json!({
            "driver": "qcow2", "node-name": target, "file": {"driver": "file", "filename": file},
        });
        self.qmp().execute("blockdev-add", layer).await?;
        let outcome = self.copy(node, &target, extent, timeout).await;
        let removed = self
            .qmp()
            .execute("blockdev-del", json!({"node-name": target}))
            .await;
        outcome?;
        removed?;
        Ok(())
    }

    async fn copy(
        &self,
        node: &str,
        target: &str,
        extent: &Extent<'_>,
        timeout: Duration,
    ) -> Result<(), MachineError> {
        let mut arguments = json!({"job-id": target, "device": node, "target": target, "sync": "full"});
        if let Extent::Since(bitmap) = extent {
            arguments["sync"] = "incremental".into();
            arguments["bitmap"] = (*bitmap).into();
        }
        let mut events = self.qmp().events();
        self.qmp().execute("blockdev-backup", arguments).await?;
        let copying = events.find(|event| match event {
            Event::BlockJobEnded { device, error } if device == target => Some(error.clone()),
            _ => None,
        });
        let copying = async {
            match copying.await {
                Some(None) => Ok(()),
                Some(Some(why)) => Err(MachineError::Failed(format!("copying a disk: {why}"))),
                None => Err(QmpError::Closed.into()),
            }
        };
        let outcome = within(timeout, "copying a disk", copying).await;
        if matches!(outcome, Err(MachineError::Late { .. })) {
            let arguments = json!({"device": target, "force": true});
            let _ = self.qmp().execute("block-job-cancel", arguments).await;
        }
        outcome
    }

    /// Begins to copy what was written to a disk to a qcow2 file of the same size, which is empty and lies over the same image. The
    /// copy is of the moment at which this returns. The job stays until [`Machine::copied`] or [`Machine::break_copy_off`], also
    /// if whoever began it is gone; to begin it twice changes nothing.
    pub async fn begin_copy(&self, node: &str, file: &Path, job: &str) -> Result<(), MachineError> {
        if self.job(job).await?.is_some() {
            return Ok(());
        }
        // Half of an attempt: it was added, and nothing was begun.
        let _ = self
            .qmp()
            .execute("blockdev-del", json!({"node-name": job}))
            .await;
        let layer = json!({
            "driver": "qcow2", "node-name": job, "file": {"driver": "file", "filename": file},
        });
        self.qmp().execute("blockdev-add", layer).await?;
        let arguments = json!({
            "job-id": job, "device": node, "target": job, "sync": "top", "auto-dismiss": false,
        });
        let begun = self.qmp().execute("blockdev-backup", arguments).await;
        if begun.is_err() {
            let _ = self
                .qmp()
                .execute("blockdev-del", json!({"node-name": job}))
                .await;
        }
        begun?;
        Ok(())
    }

    /// Whether a copy that was begun is whole; then the file is closed and the job forgotten. An error says that it is lost.
    pub async fn copied(&self, job: &str) -> Result<bool, MachineError> {
        let Some(found) = self.job(job).await? else {
            return Err(MachineError::Failed(
                "copying a disk: nobody copies it any more".to_owned(),
            ));
        };
        if found["status"] != "concluded" {
            return Ok(false);
        }
        let error = found["error"].as_str().map(str::to_owned);
        self.qmp().execute("job-dismiss", json!({"id": job})).await?;
        self.qmp()
            .execute("blockdev-del", json!({"node-name": job}))
            .await?;
        match error {
            None => Ok(true),
            Some(why) => Err(MachineError::Failed(format!("copying a disk: {why}"))),
        }
    }

    /// Breaks a copy off that nobody wants any more.
    pub async fn break_copy_off(&self, job: &str, timeout: Duration) -> Result<(), MachineError> {
        if self.job(job).await?.is_none() {
            return Ok(());
        }
        let _ = self.qmp().execute("job-cancel", json!({"id": job})).await;
        let ending = async {
            while let Some(found) = self.job(job).await? {
                if found["status"] == "concluded" {
                    let _ = self.copied(job).await;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        within(timeout, "breaking a copy off", ending).await
    }

    async fn job(&self, id: &str) -> Result<Option<Value>, MachineError> {
        let jobs = self.qmp().execute("query-jobs", Value::Null).await?;
        let jobs = jobs.as_array().map_or(&[][..], Vec::as_slice);
        Ok(jobs.iter().find(|found| found["id"] == id).cloned())
    }

    /// The node of a qcow2 file that is open, however it is called here.
    pub async fn node_of(&self, disk: &Path) -> Result<Option<String>, MachineError> {
        let same = |file: &str| {
            // QEMU runs in the machine's directory.
            let found = self.directory().join(file).canonicalize();
            found.is_ok_and(|found| disk.canonicalize().is_ok_and(|disk| found == disk))
        };
        let nodes = self
            .qmp()
            .execute("query-named-block-nodes", json!({"flat": true}))
            .await?;
        let nodes = nodes.as_array().map_or(&[][..], Vec::as_slice);
        let found = nodes
            .iter()
            .find(|node| node["drv"] == "qcow2" && node["file"].as_str().is_some_and(same));
        Ok(found.and_then(|node| node["node-name"].as_str().map(str::to_owned)))
    }

    /// Saves memory and disks within the disks' files; the memory goes to the file of the first node.
    pub async fn save_state(&self, tag: &str, nodes: &[&str], timeout: Duration) -> Result<(), MachineError> {
        self.state_job("snapshot-save", tag, nodes, timeout).await
    }

    /// Goes back to a saved state. The machine runs on from there if it ran before.
    pub async fn load_state(&self, tag: &str, nodes: &[&str], timeout: Duration) -> Result<(), MachineError> {
        let was_running = self.state().await? == "running";
        self.pause().await?;
        let outcome = self.state_job("snapshot-load", tag, nodes, timeout).await;
        // A load that failed leaves the machine as it was, but standing still.
        if was_running {
            self.resume().await?;
        }
        outcome
    }

    /// Forgets a saved state.
    pub async fn delete_state(
        &self,
        tag: &str,
        nodes: &[&str],
        timeout: Duration,
    ) -> Result<(), MachineError> {
        self.state_job("snapshot-delete", tag, nodes, timeout).await
    }

    async fn state_job(
        &self,
        command: &str,
        tag: &str,
        nodes: &[&str],
        timeout: Duration,
    ) -> Result<(), MachineError> {
        let job = format!("{command}-{tag}");
        let mut arguments = json!({"job-id": job, "tag": tag, "devices": nodes});
        if command != "snapshot-delete" {
            arguments["vmstate"] = nodes.first().copied().unwrap_or_default().into();
        }
        self.job_to_its_end(command, arguments, &job, timeout).await
    }

    /// Executes a command that is carried out as a job, which is named among its arguments, too, and waits for its end.
    pub(crate) async fn job_to_its_end(
        &self,
        command: &str,
        arguments: Value,
        job: &str,
        timeout: Duration,
    ) -> Result<(), MachineError> {
        let mut events = self.qmp().events();
        self.qmp().execute(command, arguments).await?;
        let concluded = async {
            let ended = events.find(|event| match event {
                Event::Job { id, status } if *id == job && status == "concluded" => Some(()),
                _ => None,
            });
            ended.await.ok_or(MachineError::Qmp(QmpError::Closed))
        };
        within(timeout, command, concluded).await?;
        let jobs = self.qmp().execute("query-jobs", Value::Null).await?;
        let jobs = jobs.as_array().map_or(&[][..], Vec::as_slice);
        let error = jobs
            .iter()
            .find(|found| found["id"] == job)
            .and_then(|found| found["error"].as_str().map(str::to_owned));
        self.qmp().execute("job-dismiss", json!({"id": job})).await?;
        match error {
            None => Ok(()),
            Some(why) => Err(MachineError::Failed(format!("{job}: {why}"))),
        }
    }
}

async fn within<T>(
    time: Duration,
    what: &str,
    work: impl Future<Output = Result<T, MachineError>>,
) -> Result<T, MachineError> {
    tokio::time::timeout(time, work).await.unwrap_or_else(|_| {
        Err(MachineError::Late {
            what: what.to_owned(),
            seconds: time.as_secs(),
        })
    })
}
