//! How others reach a running machine, whichever node it is on.
//!
//! Whoever serves the API holds a [`Guests`] and does not know where a machine runs: a node of this process answers for its
//! own, and for machines elsewhere the request goes through the stream that their node keeps open. What is in the guest's network is reached through
//! `fairway-fabric` instead.
//!
//! The crate must not know QEMU, nodes or the API server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairway_controller::ObjectKey;
use fairway_fabric::{Connection, Destination, DialError};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A stream of bytes into a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Door {
    /// The first serial port, with the end of what was printed before.
    Console,
    /// The screen: RFB.
    Vnc,
    /// What was backed up of a disk, from this byte on: a qcow2 file. How long it is is told by [`Order::BackupStatus`].
    Backup { disk: String, offset: u64 },
}

/// A backup of all disks of a machine, of one moment. A checkpoint of that moment is made, since which the next one may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Backup {
    /// The name of the checkpoint: a few lower-case letters, digits and dashes. Names that come later sort later.
    pub checkpoint: String,
    /// Only what has changed since this checkpoint is copied. Of a disk that does not have it everything is.
    pub since: Option<String>,
    /// What a copy of changes lies over, by the name of the disk: the file with everything before, as it is called where both are kept.
    pub behind: BTreeMap<String, String>,
}

/// Something to be done to a machine, or asked of it, that is not in its object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Let the processors stand still.
    Pause,
    /// Let them run.
    Unpause,
    /// Press the reset button.
    Reset,
    /// Ask the guest to restart.
    SoftReboot,
    /// Let the guest's file systems be written out and stand still; thawed by itself after so many seconds.
    Freeze { unfreeze_seconds: Option<u64> },
    /// Let them be written again.
    Unfreeze,
    /// A picture of the screen, as PNG in base64: `{"png": "..."}`.
    Screenshot,
    /// KubeVirt's `VirtualMachineInstanceGuestAgentInfo`.
    GuestOsInfo,
    /// KubeVirt's `VirtualMachineInstanceGuestOSUserList`.
    UserList,
    /// KubeVirt's `VirtualMachineInstanceFileSystemList`.
    FilesystemList,
    /// What cloud-init keeps of itself in the guest, by the agent: `{"status": {...}, "result": {...}}`, its `status.json` and `result.json`;
    /// `null` for what is not there.
    CloudInit,
    /// The end of what the serial port printed, as text: `{"tail": "..."}`.
    ConsoleTail { bytes: usize },
    /// What the machine has used of its host: `{"cpuSeconds": 1.5, "residentBytes": 1}`.
    Usage,
    /// What it used in the last hour, as columns of the same length: `{"time": [1], "processors": [0.5], ...}`.
    UsageHistory,
    /// Begin to copy what was written to a disk, which is in this file of the node, to another, which is empty and lies over the same
    /// image. The copy is of the moment at which the answer comes, whatever the guest writes then. To order it twice changes nothing.
    BeginCopy { disk: PathBuf, to: PathBuf },
    /// Whether that copy is whole by now: `{"done": true}`. A failure says that it is lost.
    CopyDone { to: PathBuf },
    /// Nobody wants that copy any more.
    BreakCopyOff { to: PathBuf },
    /// Keep the memory of a machine that stands still in this directory of the node: encrypted, with what is needed to know whether another
    /// machine can go on with it (`moment` of `fairway-machines-volumes`). The answer comes when it is kept: `{"bytes": 1}`.
    KeepMemory { to: PathBuf },
    /// Begin a backup. The guest's file systems stand still for that moment, if its agent answers:
    /// `{"frozen": true, "disks": [{"name": "root", "size": 1, "since": "one", "why": ""}]}`; `why` says why a disk is copied as a whole.
    /// What was copied stays on the node until [`Order::EndBackup`]; there is one backup of a machine at a time.
    BeginBackup(Backup),
    /// How far it is: `{"checkpoint": "two", "done": true, "disks": [{"name": "root", "bytes": 1}]}`. A failure says that it is lost.
    BackupStatus,
    /// What was copied is removed. Its checkpoint is kept only if whoever ordered it has everything; then an older one may be forgotten.
    EndBackup { keep: bool, forget: Option<String> },
}

/// Why a machine was not reached.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It does not run there.
    #[error("{0} is not running")]
    NotRunning(ObjectKey),
    /// The node does not answer.
    #[error("the node {node} of {key} cannot be reached: {why}")]
    NodeLost {
        key: ObjectKey,
        node: String,
        why: String,
    },
    /// The machine has no such thing, such as a screen or an agent.
    #[error("{0}")]
    Lacks(String),
    /// It is in a state in which that cannot be.
    #[error("{0}")]
    Conflict(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// The running machines of an installation.
pub trait Guests: Send + Sync + 'static {
    /// Whether nodes plug disks into machines that run.
    fn can_plug(&self) -> bool;

    /// Opens a stream. Who opens the console takes it over from whoever typed before.
    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        door: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>>;

    /// Opens a connection to a port of a machine that is on another node; nothing if the network of this process leads there.
    fn dial<'a>(
        &'a self,
        node: &'a str,
        to: &'a Destination,
    ) -> Option<BoxFuture<'a, Result<Box<dyn Connection>, DialError>>> {
        let _ = (node, to);
        None
    }

    /// Figures of the machines that run here, as Prometheus reads them.
    fn figures(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::ready(String::new()))
    }

    /// Does something, and returns what there is to tell; `null` if nothing.
    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>>;
}
