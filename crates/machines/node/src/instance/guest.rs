//! What the agent in a guest says, asked for as long as its port is open.
//!
//! A guest may be hostile: calls are bounded in time and size by the agent's client, and what it says is told as its word and never
//! acted on.

use std::time::Duration;

use fairway_machines_qemu::Agent;
use fairway_machines_qemu::agent::{Interface, OsInfo};
use tokio::sync::mpsc;

use super::input::Input;

/// How soon to ask again while the agent does not answer: its port is open before it is ready.
const SOON: Duration = Duration::from_secs(1);
/// The longest time between two such attempts.
const LATER: Duration = Duration::from_secs(15);
/// How long a guest is left alone after its agent answered for the first time: it is still starting, and what it is asked it does instead.
const SETTLE: Duration = Duration::from_secs(2);
/// How often a guest that has just come up is asked: addresses come late.
const YOUNG: Duration = Duration::from_secs(5);
/// How many times that is.
const YOUNG_ROUNDS: u32 = 6;
/// How often one that has been up for a while is asked.
const OLD: Duration = Duration::from_secs(60);

/// What the agent says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Guest {
    /// What system it is.
    pub(crate) os: Option<OsInfo>,
    /// Its network interfaces.
    pub(crate) interfaces: Vec<Interface>,
    /// The agent's version.
    pub(crate) version: String,
}

/// Asks the agent until nobody listens any more. It is told that the guest answers, and what. One that is starting is left to that for
/// a moment.
pub(crate) async fn follow(agent: Agent, listener: mpsc::Sender<Input>, mut is_starting: bool) {
    let mut pause = SOON;
    let mut rounds = 0;
    loop {
        if is_starting && agent.ping().await.is_ok() {
            is_starting = false;
            if listener.send(Input::Guest(Box::default())).await.is_err() {
                return;
            }
            tokio::time::sleep(SETTLE).await;
        }
        match ask(&agent).await {
            Some(guest) => {
                if listener.send(Input::Guest(Box::new(guest))).await.is_err() {
                    return;
                }
                rounds += 1;
                pause = if rounds <= YOUNG_ROUNDS { YOUNG } else { OLD };
            }
            None if rounds > 0 => {
                // It was there and is not: restarting, or the guest does not let it work.
                rounds = 0;
                pause = SOON;
            }
            None => pause = (pause * 2).min(LATER),
        }
        tokio::time::sleep(pause).await;
    }
}

/// One round of questions; nothing if the agent does not answer.
pub(crate) async fn ask(agent: &Agent) -> Option<Guest> {
    agent.ping().await.ok()?;
    Some(Guest {
        os: agent.os_info().await.ok(),
        interfaces: agent.interfaces().await.unwrap_or_default(),
        version: agent.version().await.unwrap_or_default(),
    })
}
