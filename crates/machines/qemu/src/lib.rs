//! Machines as QEMU processes.
//!
//! ```text
//!   start / adopt ──► Machine ──► Qmp        commands, events          qmp.sock
//!                       │    ├──► Agent      the guest's own view      agent.sock
//!                       │    ├──► Console    serial port, scrollback   serial.sock
//!                       │    └──► dial(..)   VNC and others            *.sock
//!                       └─ one task watches the process until its end
//! ```
//!
//! A machine lives in a directory of its own that only its owner can enter: sockets, log, and a record of which process it is.
//! The process has a session of its own and outlives Fairway, which finds it again by its QMP socket: whoever listens there is the
//! machine, and the kernel says which process that is. Nothing is ever done to a process by its number alone, which
//! may be somebody else's by now: signals go through a handle of the process (`pidfd`).
//!
//! What a machine consists of is decided elsewhere and comes as arguments; this crate adds those by which it keeps hold of
//! the process ([`launch::Launch::command`]). It must not know objects of the API.
//!
//! Tasks: one per QMP connection (`qmp`), one per machine that waits for its end (`machine`), one per console (`console`).
//! Each ends with the value that it serves.

pub mod accel;
pub mod affinity;
pub mod agent;
pub mod backup;
pub mod checkpoint;
pub mod confine;
pub mod console;
pub mod devices;
pub mod event;
pub mod launch;
mod machine;
pub mod meeting;
mod memory;
pub mod migrate;
pub mod mirror;
mod process;
pub mod qmp;
mod ring;
mod socket;

pub use agent::Agent;
pub use confine::{Confinement, User};
pub use console::Console;
pub use event::Event;
pub use launch::{Launch, adopt, process_of, start};
pub use machine::{Exit, Machine, Stopped};
pub use memory::MemoryFile;
pub use qmp::{Qmp, QmpError};

use std::path::PathBuf;

/// How the file of a disk is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The disk as it is.
    Raw,
    /// QEMU's own.
    Qcow2,
}

impl Format {
    /// QEMU's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// Names of sockets in a machine's directory. Whoever writes a machine's arguments uses them; QEMU runs in the directory,
/// so the names alone are enough, however deep the directory lies (a socket's path has at most 107 bytes).
pub mod names {
    /// The directory within it that QEMU may write to: sockets are there, and what it is told to make.
    pub const LIVE: &str = "live";
    /// QMP; added by this crate.
    pub const QMP: &str = "live/qmp.sock";
    /// The guest agent's port.
    pub const AGENT: &str = "live/agent.sock";
    /// The first serial port.
    pub const SERIAL: &str = "live/serial.sock";
    /// VNC.
    pub const VNC: &str = "live/vnc.sock";
    /// The emulator of a TPM listens there, and QEMU connects.
    pub const TPM: &str = "live/tpm.sock";
    /// What QEMU says.
    pub const LOG: &str = "qemu.log";
    /// The scrollback of the serial port.
    pub const SCROLLBACK: &str = "console.ring";
    /// Which process it is; written by this crate.
    pub(crate) const RECORD: &str = "machine.json";
    /// Which process it is; written by the process before it becomes QEMU.
    pub(crate) const PID: &str = "qemu.pid";
}

/// Why something could not be done with a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// QEMU did not start.
    #[error("QEMU did not start: {0}")]
    Start(String),
    /// A file or directory of the machine could not be used.
    #[error("{action} {}", .path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// QEMU refused, or does not answer.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// The process could not be reached.
    #[error("the QEMU process {pid} could not be {action}")]
    Process {
        /// Which.
        pid: u32,
        /// What was attempted.
        action: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The machine did not come to a state in time.
    #[error("{what} did not happen within {seconds} s")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
    },
    /// Something went wrong that QEMU reports by events or states.
    #[error("{0}")]
    Failed(String),
}

pub(crate) fn failed(
    action: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> MachineError {
    let path = path.to_owned();
    move |source| MachineError::File { action, path, source }
}
