//! A machine that runs, in the hands of its task: connections, and what was last seen of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairway_machines_plan::argv;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::phase::Pause;
use fairway_machines_qemu::{Agent, Console, Machine, MachineError};
use fairway_machines_wiring::Card;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::guest::{self, Guest};
use super::input::Input;
use super::status::Live;

/// The name of the agent's port among QEMU's character devices.
const AGENT_CHARDEV: &str = "charagent0";
/// The name of the agent's port among devices.
pub(super) const AGENT_PORT: &str = "agent0";

/// A machine that runs.
pub(super) struct Running {
    pub(super) machine: Machine,
    pub(super) console: Option<Console>,
    pub(super) agent: Agent,
    /// QEMU's word for its state.
    pub(super) state: String,
    pub(super) live: Live,
    pub(super) guest: Option<Guest>,
    /// The agent answers, for others who want to know.
    pub(super) answers: Arc<AtomicBool>,
    /// Whoever asks the agent, while its port is open.
    asking: Option<AbortHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close_agent();
    }
}

impl Running {
    /// Takes a machine in hand that was started or found. From here on its task hears what happens to it.
    pub(super) async fn take(
        machine: Machine,
        plan: &MachinePlan,
        started: (u32, u64),
        inputs: &mpsc::Sender<Input>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self, MachineError> {
        let directory = machine.directory().to_owned();
        let console = match (plan.devices.serial_console, plan.devices.log_console) {
            (false, _) => None,
            (true, true) => Some(Console::open(&directory)?),
            (true, false) => Some(Console::open_forgetful(&directory)),
        };
        // Before anything is asked, so that nothing that happens meanwhile is missed.
        let mut events = machine.qmp().events();
        let listener = inputs.clone();
        tasks.spawn(async move {
            while let Some(event) = events.next().await {
                if listener.send(Input::Qemu(event)).await.is_err() {
                    return;
                }
            }
        });
        let (ending, listener) = (machine.clone(), inputs.clone());
        tasks.spawn(async move {
            let exit = ending.ended().await;
            let _ = listener.send(Input::Ended(exit)).await;
        });
        let mut running = Self {
            agent: Agent::new(&directory),
            console,
            state: String::new(),
            live: Live {
                sockets: started.0,
                memory_at_boot: started.1,
                memory: started.1,
                ..Live::default()
            },
            guest: None,
            answers: Arc::default(),
            asking: None,
            machine,
        };
        running.look().await?;
        running.live.machine_type = running.machine.board().await.unwrap_or_default();
        for card in plan.cards.iter().filter(|it| !it.link_up) {
            running.set_link(&card.name, false).await?;
        }
        if running.agent_is_open().await {
            running.ask_agent(inputs, tasks, false);
        }
        Ok(running)
    }

    /// Looks what has become of it.
    pub(super) async fn look(&mut self) -> Result<(), MachineError> {
        self.state = self.machine.state().await?;
        self.live.memory = self.live.memory_at_boot + self.more_memory().await;
        Ok(())
    }

    /// Bytes that the guest has taken of the memory which it can grow by.
    async fn more_memory(&self) -> u64 {
        let devices = self
            .machine
            .qmp()
            .execute("query-memory-devices", Value::Null)
            .await;
        let devices = devices.unwrap_or_default();
        let sizes = devices.as_array().into_iter().flatten();
        let sizes = sizes.filter(|it| it["type"] == "virtio-mem");
        sizes.filter_map(|it| it["data"]["size"].as_u64()).sum()
    }

    async fn agent_is_open(&self) -> bool {
        let devices = self.machine.qmp().execute("query-chardev", Value::Null).await;
        let devices = devices.unwrap_or_default();
        let port = devices
            .as_array()
            .into_iter()
            .flatten()
            .find(|it| it["label"] == AGENT_CHARDEV);
        port.is_some_and(|it| it["frontend-open"] == true)
    }

    /// Plugs the cable of a card in, or pulls it.
    pub(super) async fn set_link(&self, card: &str, up: bool) -> Result<(), MachineError> {
        let arguments = json!({"name": argv::card_id(card), "up": up});
        self.machine.qmp().execute("set_link", arguments).await?;
        Ok(())
    }

    /// The guest has opened the agent's port.
    pub(super) fn open_agent(&mut self, inputs: &mpsc::Sender<Input>, tasks: &mut JoinSet<()>) {
        self.ask_agent(inputs, tasks, true);
    }

    fn ask_agent(&mut self, inputs: &mpsc::Sender<Input>, tasks: &mut JoinSet<()>, is_starting: bool) {
        if self.asking.is_none() {
            let asking = guest::follow(self.agent.clone(), inputs.clone(), is_starting);
            self.asking = Some(tasks.spawn(asking));
        }
    }

    /// The agent has said something.
    pub(super) fn heard_of(&mut self, guest: Guest) {
        self.guest = Some(guest);
        self.answers.store(true, Ordering::Relaxed);
    }

    /// The guest has closed it, or is gone.
    pub(super) fn close_agent(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
        self.guest = None;
        self.answers.store(false, Ordering::Relaxed);
    }

    /// Why the guest does not run, if it does not.
    pub(super) fn pause(&self) -> Option<Pause> {
        pause(&self.state)
    }
}

/// What QEMU's word for a state means.
fn pause(state: &str) -> Option<Pause> {
    match state {
        "paused" => Some(Pause::User),
        "prelaunch" => Some(Pause::StartStrategy),
        "io-error" => Some(Pause::IoError),
        "inmigrate" | "finish-migrate" | "postmigrate" | "save-vm" | "restore-vm" | "colo" => {
            Some(Pause::Migration)
        }
        // A guest that sleeps or has given up is as it wants to be; one that shuts down ends in a moment.
        _ => None,
    }
}

/// The cards of a machine, for whoever connects them.
pub(super) fn cards(plan: &MachinePlan, directory: &Path) -> Vec<Card> {
    let cards = plan.cards.iter().filter_map(|card| {
        Some(Card {
            name: card.name.clone(),
            mac: card.mac.parse().ok()?,
            network: card.network.clone(),
            socket: directory.join(argv::card_socket(&card.name)),
        })
    });
    cards.collect()
}

/// The hardware addresses of these cards.
pub(super) fn addresses(plan: &MachinePlan) -> Arc<[String]> {
    plan.cards.iter().map(|it| it.mac.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_understood() {
        for (state, expected) in [
            ("running", None),
            ("paused", Some(Pause::User)),
            ("prelaunch", Some(Pause::StartStrategy)),
            ("io-error", Some(Pause::IoError)),
            ("postmigrate", Some(Pause::Migration)),
            ("suspended", None),
            ("something new", None),
        ] {
            assert_eq!(pause(state), expected, "{state}");
        }
    }
}
