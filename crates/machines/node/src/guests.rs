//! The machines of this node, for whoever serves the API: consoles, screens, and things to be done or asked that are not in an object.

mod agent_views;
mod backups;
mod cloud_init;
mod console;
mod copies;
mod memory;
mod usage;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_controller::ObjectKey;
use fairway_fabric::Connection;
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use fairway_machines_plan::settings::NODES_PLUG;
use fairway_machines_qemu::agent::AgentError;
use fairway_machines_qemu::{Confinement, Machine, MachineError, names};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::Node;
use crate::instance::input::Input;
use crate::instance::{confining, home, memory as kept};
use crate::registry::Reached;

/// Upstream's words where there is no agent.
const NO_AGENT: &str = "VMI does not have guest agent connected";
/// The most that is told of what a console printed.
const MAX_TAIL: usize = 256 << 10;

impl Node {
    fn reach(&self, node: &str, key: &ObjectKey) -> Result<Reached, Refusal> {
        self.is_here(node, key)?;
        self.registry
            .get(key)
            .ok_or_else(|| Refusal::NotRunning(key.clone()))
    }

    fn is_here(&self, node: &str, key: &ObjectKey) -> Result<(), Refusal> {
        if node == self.name() {
            return Ok(());
        }
        Err(Refusal::NodeLost {
            key: key.clone(),
            node: node.to_owned(),
            why: format!("this is {}, and there is no way from here", self.name()),
        })
    }

    async fn enter(&self, node: &str, key: &ObjectKey, door: Door) -> Result<Box<dyn Connection>, Refusal> {
        if let Door::Backup { disk, offset } = &door {
            self.is_here(node, key)?;
            return backups::open(&self.directory, key, disk, *offset).await;
        }
        let reached = self.reach(node, key)?;
        match door {
            Door::Backup { .. } => Err(Refusal::NotRunning(key.clone())),
            Door::Console => {
                let console = reached
                    .console
                    .ok_or_else(|| Refusal::Lacks("No serial consoles are present.".to_owned()))?;
                Ok(Box::new(console::open(&console)))
            }
            Door::Vnc if reached.has_screen => {
                let stream = reached.machine.dial(names::VNC).await.map_err(failed)?;
                Ok(Box::new(stream))
            }
            Door::Vnc => Err(Refusal::Lacks("No graphics devices are present.".to_owned())),
        }
    }

    async fn obey(&self, node: &str, key: &ObjectKey, order: Order) -> Result<Value, Refusal> {
        if let Order::ConsoleTail { bytes } = order {
            self.is_here(node, key)?;
            return Ok(json!({"tail": self.tail(key, bytes)}));
        }
        let reached = self.reach(node, key)?;
        let machine = &reached.machine;
        match order {
            Order::Pause => machine.pause().await.map_err(failed)?,
            Order::Unpause => machine.resume().await.map_err(failed)?,
            Order::Reset => machine.reset().await.map_err(failed)?,
            Order::SoftReboot => soft_reboot(&reached).await?,
            Order::Freeze { unfreeze_seconds } => freeze(&reached, unfreeze_seconds).await?,
            Order::Unfreeze => thaw(&reached).await?,
            Order::Screenshot => {
                if !reached.has_screen {
                    return Err(Refusal::Lacks("No graphics devices are present.".to_owned()));
                }
                let picture = machine.screendump().await.map_err(failed)?;
                return Ok(json!({"png": STANDARD.encode(picture)}));
            }
            Order::GuestOsInfo => return agent_views::info(&reached.agent).await.map_err(silent),
            Order::UserList => return agent_views::users(&reached.agent).await.map_err(silent),
            Order::FilesystemList => return agent_views::filesystems(&reached.agent).await.map_err(silent),
            Order::CloudInit => return cloud_init::status(&reached.agent).await.map_err(silent),
            Order::Usage => {
                return usage::of(machine.pid()).map_err(|error| Refusal::Failed(error.to_string()));
            }
            Order::UsageHistory => return Ok(reached.history.tell()),
            Order::BeginCopy { disk, to } => {
                let confinement = self.confinement(machine);
                copies::begin(machine, &confinement, &disk, &to).await?;
            }
            Order::KeepMemory { to } => {
                let confinement = self.confinement(machine);
                let accelerator = self.accelerator().await?;
                return memory::keep(machine, &confinement, &self.directory, accelerator, &to).await;
            }
            Order::CopyDone { to } => return copies::done(machine, &to).await,
            Order::BreakCopyOff { to } => copies::break_off(machine, &to).await?,
            Order::BeginBackup(backup) => {
                let _alone = self.backups.lock().await;
                let confinement = self.confinement(machine);
                return backups::begin(&reached, &confinement, &self.directory, key, &backup).await;
            }
            Order::BackupStatus => {
                let _alone = self.backups.lock().await;
                return backups::status(machine, &self.directory, key).await;
            }
            Order::EndBackup { keep, forget } => {
                let _alone = self.backups.lock().await;
                backups::end(machine, &self.directory, key, keep, forget.as_deref()).await?;
            }
            Order::ConsoleTail { .. } => {}
        }
        Ok(Value::Null)
    }

    /// How guests run here.
    async fn accelerator(&self) -> Result<&'static str, Refusal> {
        let Some(context) = self.context.get() else {
            return Err(Refusal::Failed("the node is only starting".to_owned()));
        };
        let facts = context.host.facts().await;
        let facts = facts.map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(kept::word(facts.accelerator()))
    }

    /// What keeps a machine in.
    fn confinement(&self, machine: &Machine) -> Confinement {
        let name = confining::name(machine.directory());
        let context = self.context.get();
        context.map(|it| it.isolation.of(&name)).unwrap_or_default()
    }

    /// The end of what a console printed, also of a machine that has ended and whose instance is still there.
    fn tail(&self, key: &ObjectKey, bytes: usize) -> String {
        let printed = match self.registry.get(key).and_then(|it| it.console) {
            Some(console) => console.scrollback(),
            None => home::of_key(&self.directory, key)
                .map(|path| fairway_machines_qemu::console::kept(&path))
                .unwrap_or_default(),
        };
        let start = printed.len().saturating_sub(bytes.min(MAX_TAIL));
        String::from_utf8_lossy(&printed[start..]).into_owned()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn failed(error: MachineError) -> Refusal {
    Refusal::Failed(error.to_string())
}

fn silent(error: AgentError) -> Refusal {
    match error {
        AgentError::Silent | AgentError::NoPort(_) => Refusal::Lacks(NO_AGENT.to_owned()),
        other => Refusal::Failed(other.to_string()),
    }
}

/// By the agent, or by the keys that every system knows.
async fn soft_reboot(reached: &Reached) -> Result<(), Refusal> {
    if reached.agent.ping().await.is_ok() && reached.agent.shutdown(true).await.is_ok() {
        return Ok(());
    }
    let key = |name: &str| json!({"type": "qcode", "data": name});
    let keys = json!({"keys": [key("ctrl"), key("alt"), key("delete")]});
    let sent = reached.machine.qmp().execute("send-key", keys).await;
    sent.map(drop).map_err(|error| Refusal::Failed(error.to_string()))
}

async fn freeze(reached: &Reached, seconds: Option<u64>) -> Result<(), Refusal> {
    reached.agent.freeze().await.map_err(silent)?;
    let _ = reached.notes.send(Input::Frozen(true)).await;
    if let Some(seconds) = seconds.filter(|it| *it > 0) {
        // Whoever asked may be gone by then; a guest that stands still for ever is worth less than a copy.
        let reached = reached.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let _ = thaw(&reached).await;
        });
    }
    Ok(())
}

async fn thaw(reached: &Reached) -> Result<(), Refusal> {
    reached.agent.thaw().await.map_err(silent)?;
    let _ = reached.notes.send(Input::Frozen(false)).await;
    Ok(())
}

impl Guests for Node {
    fn can_plug(&self) -> bool {
        NODES_PLUG
    }

    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        door: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(self.enter(node, key, door))
    }

    fn figures(&self) -> BoxFuture<'_, String> {
        Box::pin(self.count())
    }

    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(self.obey(node, key, order))
    }
}
