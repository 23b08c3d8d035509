//! The machines of this host that run, as others reach them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::ObjectKey;
use fairway_machines_qemu::{Agent, Console, Machine};
use tokio::sync::mpsc;

use crate::instance::input::Input;
use crate::metrics::history::History;

/// A machine that runs.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) machine: Machine,
    /// The serial port, if it has one.
    pub(crate) console: Option<Console>,
    pub(crate) agent: Agent,
    /// The agent answers.
    pub(crate) answers: Arc<AtomicBool>,
    /// It has a screen.
    pub(crate) has_screen: bool,
    /// The hardware addresses of its cards.
    pub(crate) cards: Arc<[String]>,
    /// What it used in the last hour.
    pub(crate) history: Arc<History>,
    /// Its task.
    pub(crate) notes: mpsc::Sender<Input>,
}

impl Reached {
    /// Whether the guest has an agent that answers.
    pub(crate) fn has_agent(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }
}

/// The machines that run.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<HashMap<ObjectKey, (String, Reached)>>);

impl Registry {
    fn all(&self) -> MutexGuard<'_, HashMap<ObjectKey, (String, Reached)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, key: &ObjectKey, uid: &str, reached: Reached) {
        self.all().insert(key.clone(), (uid.to_owned(), reached));
    }

    /// Forgets a machine, unless another of the same name is there by now.
    pub(crate) fn remove(&self, key: &ObjectKey, uid: &str) {
        let mut all = self.all();
        if all.get(key).is_some_and(|(known, _)| known == uid) {
            all.remove(key);
        }
    }

    /// Cards came or went.
    pub(crate) fn set_cards(&self, key: &ObjectKey, cards: Arc<[String]>) {
        if let Some((_, reached)) = self.all().get_mut(key) {
            reached.cards = cards;
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Reached> {
        self.all().get(key).map(|(_, reached)| reached.clone())
    }

    /// All of them.
    pub(crate) fn entries(&self) -> Vec<(ObjectKey, Reached)> {
        let all = self.all();
        all.iter()
            .map(|(key, (_, reached))| (key.clone(), reached.clone()))
            .collect()
    }
}
