//! What happens to a machine: everything that its task hears of, beside the instance itself, of which only the last word counts.

use fairway_machines_qemu::{Event, Exit, Machine, MachineError};

use super::disks::{NotReady, Prepared};
use super::guest::Guest;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A claim of its namespace has changed.
    Claim(String),
    /// Its disks are ready, or why not.
    Prepared(Box<Result<Prepared, NotReady>>),
    /// Its process was started.
    Started(Box<Result<Machine, MachineError>>),
    /// QEMU says something.
    Qemu(Event),
    /// The process has ended.
    Ended(Exit),
    /// The agent says something.
    Guest(Box<Guest>),
    /// The guest's file systems stand still, or no longer.
    Frozen(bool),
}
