//! What a machine has in its memory, and how far its processors and devices are, kept in a file beside its disks and brought back.
//!
//! QEMU keeps that in a qcow2 file as one of its own snapshots. Here it is a file that is no disk of the machine, so that the disks stay as they
//! are: whoever keeps memory keeps copies of the disks of the same moment, and the machine stands still meanwhile.
//!
//! ```text
//!   memory ──► qcow2, which has snapshots ──► LUKS, which encrypts, and has a fixed size ──► a sparse file
//! ```
//!
//! The two formats are one above the other because QEMU gives up, and its guest with it, when a snapshot goes to a qcow2 file that is encrypted itself
//! (seen with 7.2). QEMU is told the key for as long as it has the file open. It does nothing else while it saves or loads, and does not
//! answer: how long that takes grows with the memory that the guest uses.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::machine::Machine;

/// Names in QEMU, of which there is one at a time: what is above comes first.
const NODES: [&str; 3] = ["fairway-memory", "fairway-memory-luks", "fairway-memory-file"];
const KEY: &str = "fairway-memory-key";
const JOB: &str = "fairway-memory-job";
const TAG: &str = "memory";
/// QEMU makes a key longer to guess by so many milliseconds; one that is all chance need not be.
const STRETCHING: u64 = 10;
/// What the upper format says that it is the disk of, which it is not.
const SIZE: u64 = 1 << 20;
/// What QEMU says if that cannot be measured, and how often it is asked again.
const COARSE: &str = "accurate CPU usage";
const ATTEMPTS: u32 = 50;
/// How long QEMU may take to make an empty file.
const MAKING: Duration = Duration::from_secs(60);

/// A file for memory, as QEMU is told of it.
#[derive(Clone, Copy)]
pub struct MemoryFile<'a> {
    /// Where it is; relative to the machine's directory, or absolute.
    pub path: &'a Path,
    /// The key that it is encrypted with.
    pub key: &'a str,
}

impl std::fmt::Debug for MemoryFile<'_> {
    /// Without the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MemoryFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// Keeps memory in an empty file, which becomes `most` bytes large at most. The machine has to stand still, so that its disks can be copied as
    /// they are at this moment; it does so afterwards, too.
    pub async fn save_memory(
        &self,
        file: MemoryFile<'_>,
        most: u64,
        timeout: Duration,
    ) -> Result<(), MachineError> {
        self.stands_still().await?;
        // What somebody who was killed has left.
        self.close_memory().await;
        let saving = async {
            self.open_memory(file, Some(most)).await?;
            self.memory_job("snapshot-save", timeout).await
        };
        let saved = saving.await;
        self.close_memory().await;
        saved?;
        self.stands_still().await
    }

    /// Brings memory back into a machine of the same build that has not run yet, on disks of the same moment. It stands still then.
    pub async fn load_memory(&self, file: MemoryFile<'_>, timeout: Duration) -> Result<(), MachineError> {
        self.close_memory().await;
        let loading = async {
            self.open_memory(file, None).await?;
            self.memory_job("snapshot-load", timeout).await
        };
        let loaded = loading.await;
        self.close_memory().await;
        loaded
    }

    async fn stands_still(&self) -> Result<(), MachineError> {
        match self.state().await?.as_str() {
            "paused" | "prelaunch" => Ok(()),
            state => Err(MachineError::Failed(format!(
                "keeping memory: the machine has to stand still, and is {state}"
            ))),
        }
    }

    async fn memory_job(&self, command: &str, timeout: Duration) -> Result<(), MachineError> {
        let [memory, ..] = NODES;
        let arguments = json!({"job-id": JOB, "tag": TAG, "vmstate": memory, "devices": [memory]});
        self.job_to_its_end(command, arguments, JOB, timeout).await
    }

    /// Opens a file for memory; with a size it is made one first.
    async fn open_memory(&self, file: MemoryFile<'_>, most: Option<u64>) -> Result<(), MachineError> {
        let [memory, luks, below] = NODES;
        let secret = json!({"qom-type": "secret", "id": KEY, "data": file.key});
        self.qmp().execute("object-add", secret).await?;
        let add = async |node: Value| self.qmp().execute("blockdev-add", node).await;
        add(json!({"driver": "file", "node-name": below, "filename": file.path})).await?;
        if let Some(most) = most {
            let options = json!({
                "driver": "luks", "file": below, "size": most.next_multiple_of(1 << 20), "key-secret": KEY,
                "iter-time": STRETCHING,
            });
            self.make_format(options).await?;
        }
        add(json!({"driver": "luks", "node-name": luks, "file": below, "key-secret": KEY})).await?;
        if most.is_some() {
            self.make_format(json!({"driver": "qcow2", "file": luks, "size": SIZE}))
                .await?;
        }
        add(json!({"driver": "qcow2", "node-name": memory, "file": luks})).await?;
        Ok(())
    }

    async fn make_format(&self, options: Value) -> Result<(), MachineError> {
        let arguments = json!({"job-id": JOB, "options": options});
        let mut attempts = 0;
        loop {
            attempts += 1;
            let made = self.job_to_its_end("blockdev-create", arguments.clone(), JOB, MAKING);
            match made.await {
                // QEMU measures how quick the processor is, by a clock that on some hosts has not moved meanwhile.
                Err(MachineError::Failed(why)) if why.contains(COARSE) && attempts < ATTEMPTS => {}
                made => return made,
            }
        }
    }

    /// Closes a file for memory, as far as it was opened.
    async fn close_memory(&self) {
        let mut steps = vec![("job-dismiss", json!({"id": JOB}))];
        steps.extend(NODES.map(|node| ("blockdev-del", json!({"node-name": node}))));
        steps.push(("object-del", json!({"id": KEY})));
        for (command, arguments) in steps {
            // Mostly there is none.
            let _ = self.qmp().execute(command, arguments).await;
        }
    }

    /// The board with its version, such as `pc-q35-7.2`.
    pub async fn board(&self) -> Result<String, MachineError> {
        let arguments = json!({"path": "/machine", "property": "type"});
        let kind = self.qmp().execute("qom-get", arguments).await?;
        let kind = kind.as_str().unwrap_or_default();
        Ok(kind.strip_suffix("-machine").unwrap_or(kind).to_owned())
    }

    /// QEMU's version, such as `7.2.22`.
    pub async fn version(&self) -> Result<String, MachineError> {
        let found = self.qmp().execute("query-version", Value::Null).await?;
        let number = |part: &str| found["qemu"][part].as_u64().unwrap_or_default();
        Ok(format!(
            "{}.{}.{}",
            number("major"),
            number("minor"),
            number("micro")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let file = MemoryFile {
            path: Path::new("memory.luks"),
            key: "0123",
        };
        assert!(!format!("{file:?}").contains("0123"));
    }
}
