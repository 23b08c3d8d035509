//! What happens to a machine: everything that its task hears of, beside the instance itself, of which only the last word counts.

use fairway_machines_qemu::migrate::Progress;
use fairway_machines_qemu::{Event, Exit, Machine, MachineError};

use super::disks::{NotReady, Prepared};
use super::guest::Guest;
use super::migration::Listening;
use super::probe::Purpose;
use super::status::VolumeFacts;
use super::{changing, credentials};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// Its disks are ready, or why not.
    Prepared(Box<Result<Prepared, NotReady>>),
    /// Its process was started.
    Started(Box<Result<Machine, MachineError>>),
    /// Memory that was kept could not be brought back, and why: the machine starts from its disks.
    Forgotten(String),
    /// QEMU says something.
    Qemu(Event),
    /// The process has ended.
    Ended(Exit),
    /// The agent says something.
    Guest(Box<Guest>),
    /// The guest's file systems stand still, or no longer.
    Frozen(bool),
    /// What the answers to a probe have come to.
    Probed {
        /// Which probe.
        purpose: Purpose,
        /// Nothing if all is well, else why not.
        verdict: Result<(), String>,
    },
    /// A probe cannot be asked, and why.
    Unaskable {
        /// Which probe.
        purpose: Purpose,
        /// Why.
        why: String,
    },
    /// Keys and passwords are in the guest, or why not.
    Credentials(credentials::Outcome),
    /// A change of the running machine has come to an end.
    Changed(Box<changing::Outcome>),
    /// A machine that moves was sent, or why not.
    Sent(String, Result<Progress, String>),
    /// A machine is waited for, or why not.
    Listening(Box<Result<Listening, String>>),
    /// A machine that came runs, or why not.
    Awake(Result<(), String>),
    /// Something new is known of a disk.
    Volume(String, Box<VolumeFacts>),
}
