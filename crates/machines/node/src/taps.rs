//! Cards on network devices of the kernel, where this node may make them (`fairway-machines-tap`).
//!
//! A machine's devices are made with its process and are gone with it. Cards that are plugged in later have a socket, as all cards have on
//! other nodes: the switch finds either by the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairway_machines_plan::argv;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_qemu::Launch;
use fairway_machines_tap::{Card, Space, guest_device};

/// The number of the first device's open file: far beyond what a shell opens for itself.
const FIRST: i32 = 100;

/// What carries frames between machines of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataPath {
    /// The switch, all of them.
    Switch,
    /// The kernel, those of connections that the switch has allowed.
    Kernel(Taps),
    /// The switch, although the kernel was asked for: why.
    Incomplete(String),
}

/// Where devices are made, and by which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taps {
    /// The network namespace that they are in.
    pub space: Space,
    /// What makes them: this very program.
    pub program: PathBuf,
}

impl DataPath {
    fn taps(&self) -> Option<&Taps> {
        match self {
            Self::Kernel(taps) => Some(taps),
            Self::Switch | Self::Incomplete(_) => None,
        }
    }

    /// Whether machines that start here are on devices of the kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        self.taps().is_some()
    }

    /// This node ends. Machines run on, and keep what they are in.
    pub(crate) fn leave(&self) {
        if let Some(taps) = self.taps() {
            taps.space.remove_unless_used();
        }
    }

    /// The numbers of open files under which a machine finds its devices, by the names of its cards.
    pub(crate) fn files(&self, plan: &MachinePlan) -> BTreeMap<String, i32> {
        match self.taps() {
            Some(_) => plan.cards.iter().map(|it| it.name.clone()).zip(FIRST..).collect(),
            None => BTreeMap::new(),
        }
    }

    /// Has a machine's devices made before it.
    pub(crate) fn equip(&self, launch: &mut Launch, plan: &MachinePlan, directory: &Path) {
        let Some(taps) = self.taps().filter(|_| !plan.cards.is_empty()) else {
            return;
        };
        let cards: Vec<Card> = (self.files(plan).into_iter())
            .map(|(name, number)| Card {
                device: guest_device(&directory.join(argv::card_socket(&name))),
                number,
            })
            .collect();
        let mut starter = taps.space.starter(&taps.program, &cards);
        starter.append(&mut launch.starter);
        launch.starter = starter;
    }
}
