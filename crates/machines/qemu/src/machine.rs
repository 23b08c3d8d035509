//! A running machine in hand.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::watch;

use crate::confine::read_made;
use crate::event::Event;
use crate::process::Handle;
use crate::qmp::{Qmp, QmpError};
use crate::{MachineError, failed, launch, names, socket};

/// How long QEMU may take to end when it is told to.
const QUIT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a process. One that waits for a disk of a lost server cannot be ended.
const KILL: Duration = Duration::from_secs(30);
/// A guest may be busy booting when the button is pressed, and not see it: it is pressed again so often.
const PRESS_AGAIN: Duration = Duration::from_secs(10);
/// The largest picture of a screen.
const MAX_PICTURE: u64 = 64 << 20;

/// How a machine came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Why QEMU ended by its own account, such as `guest-shutdown` or `host-qmp-quit`; nothing if it did not say, which
    /// means that it crashed or was killed.
    pub reason: Option<String>,
    /// Whether the guest wanted it.
    pub by_guest: bool,
    /// What the system says, if this Fairway has started the process.
    pub status: Option<ExitStatus>,
    /// The last that QEMU said, if it crashed.
    pub log: String,
}

impl Exit {
    /// Whether the machine ended without having been asked to, by anybody.
    pub fn is_crash(&self) -> bool {
        self.reason.is_none()
    }
}

/// How far one had to go to stop a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The guest switched itself off.
    ByGuest,
    /// QEMU was told to end.
    Quit,
    /// The process was killed.
    Killed,
}

/// A running machine. Clones are the same one. When the last is gone the process goes on, and can be adopted.
#[derive(Debug, Clone)]
pub struct Machine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    qmp: Qmp,
    handle: Arc<Handle>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Machine {
    pub(crate) fn new(directory: PathBuf, qmp: Qmp, handle: Handle, child: Option<Child>) -> Self {
        let (sender, exit) = watch::channel(None);
        let handle = Arc::new(handle);
        tokio::spawn(watch_over(
            directory.clone(),
            qmp.events(),
            Arc::clone(&handle),
            child,
            sender,
        ));
        Self {
            inner: Arc::new(Inner {
                directory,
                qmp,
                handle,
                exit,
            }),
        }
    }

    /// Its own directory.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// The number of its process, for people and metrics.
    pub fn pid(&self) -> u32 {
        self.inner.handle.identity.pid
    }

    /// Whether the process is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.inner.handle.identity.is_alive()
    }

    /// QMP, for everything that has no function of its own.
    pub fn qmp(&self) -> &Qmp {
        &self.inner.qmp
    }

    /// Connects to one of its sockets, such as [`names::VNC`].
    pub async fn dial(&self, name: &str) -> Result<UnixStream, MachineError> {
        let path = self.inner.directory.join(name);
        socket::dial(&self.inner.directory, name)
            .await
            .map_err(failed("connecting to", &path))
    }

    /// Waits for the end.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.inner.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            Err(_) => None,
        }
        // The watching task always says something before it ends, unless the whole runtime is shut down.
        .unwrap_or(Exit {
            reason: None,
            by_guest: false,
            status: None,
            log: String::new(),
        })
    }

    /// How it came to its end, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.inner.exit.borrow().clone()
    }

    /// What QEMU calls its state: `running`, `paused`, `inmigrate`, `shutdown`, `io-error`, ...
    pub async fn state(&self) -> Result<String, MachineError> {
        let status = self.inner.qmp.execute("query-status", Value::Null).await?;
        Ok(status["status"].as_str().unwrap_or_default().to_owned())
    }

    /// Lets the processors stand still.
    pub async fn pause(&self) -> Result<(), MachineError> {
        self.simple("stop").await
    }

    /// Lets the processors run.
    pub async fn resume(&self) -> Result<(), MachineError> {
        self.simple("cont").await
    }

    /// Presses the reset button.
    pub async fn reset(&self) -> Result<(), MachineError> {
        self.simple("system_reset").await
    }

    /// Presses the power button: the guest is asked to switch itself off.
    pub async fn press_power_button(&self) -> Result<(), MachineError> {
        self.simple("system_powerdown").await
    }

    async fn simple(&self, command: &str) -> Result<(), MachineError> {
        self.inner.qmp.execute(command, Value::Null).await?;
        Ok(())
    }

    /// Stops the machine: asks the guest and gives it time, then tells QEMU, then ends the process. With no time the guest is not asked.
    pub async fn stop(&self, grace: Duration) -> Result<Stopped, MachineError> {
        if !grace.is_zero() && self.ask_to_stop(grace).await {
            return Ok(Stopped::ByGuest);
        }
        // It may take the word with it into its end.
        let _ = self.inner.qmp.execute_within("quit", Value::Null, QUIT).await;
        if self.ends_within(QUIT).await {
            return Ok(Stopped::Quit);
        }
        self.kill().await?;
        Ok(Stopped::Killed)
    }

    async fn ask_to_stop(&self, grace: Duration) -> bool {
        let asking = async {
            loop {
                // One that is paused would not see the button.
                if self.state().await.is_ok_and(|state| state == "paused") {
                    let _ = self.resume().await;
                }
                if self.press_power_button().await.is_err() {
                    // QEMU does not talk: either it is ending, or the next step is due.
                    return self.ends_within(Duration::from_secs(1)).await;
                }
                if self.ends_within(PRESS_AGAIN).await {
                    return true;
                }
            }
        };
        tokio::time::timeout(grace, asking).await.unwrap_or(false)
    }

    /// Ends the process without asking anybody, and waits for the end.
    pub async fn kill(&self) -> Result<(), MachineError> {
        self.inner.handle.kill().map_err(|source| MachineError::Process {
            pid: self.pid(),
            action: "killed",
            source,
        })?;
        match self.ends_within(KILL).await {
            true => Ok(()),
            false => Err(MachineError::Late {
                what: format!("the end of the killed process {}", self.pid()),
                seconds: KILL.as_secs(),
            }),
        }
    }

    async fn ends_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.ended()).await.is_ok()
    }

    /// A picture of the screen, as PNG. The machine needs a graphics device.
    pub async fn screendump(&self) -> Result<Vec<u8>, MachineError> {
        let name = format!("{}/screen.png", names::LIVE);
        let path = self.inner.directory.join(&name);
        let arguments = json!({"filename": name, "format": "png"});
        self.inner.qmp.execute("screendump", arguments).await?;
        let file = path.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let picture = read_made(&file, MAX_PICTURE);
            let _ = std::fs::remove_file(&file);
            picture
        });
        let picture = reading.await.unwrap_or_else(|error| Err(error.into()));
        picture.map_err(failed("reading", &path))
    }

    /// Waits until QEMU's state is this one.
    pub async fn wait_for_state(&self, wanted: &str, time: Duration) -> Result<(), MachineError> {
        // Every change of state comes with an event, but the state may be there already.
        let mut events = self.inner.qmp.events();
        let waiting = async {
            loop {
                if self.state().await? == wanted {
                    return Ok(());
                }
                if let Ok(None) = tokio::time::timeout(Duration::from_secs(1), events.next()).await {
                    return Err(MachineError::Qmp(QmpError::Closed));
                }
            }
        };
        tokio::time::timeout(time, waiting).await.unwrap_or_else(|_| {
            Err(MachineError::Late {
                what: format!("the state {wanted}"),
                seconds: time.as_secs(),
            })
        })
    }
}

/// Waits for the end of the process, and finds out why.
async fn watch_over(
    directory: PathBuf,
    mut events: crate::qmp::Events,
    handle: Arc<Handle>,
    mut child: Option<Child>,
    exit: watch::Sender<Option<Exit>>,
) {
    let mut reason = None;
    let mut is_connected = true;
    let ended = handle.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            event = events.next(), if is_connected => match event {
                Some(Event::Shutdown { by_guest, reason: why }) => reason = Some((by_guest, why)),
                Some(_) => {}
                None => is_connected = false,
            },
            () = &mut ended => break,
        }
    }
    // What QEMU said last may still be in the socket.
    while is_connected {
        match tokio::time::timeout(Duration::from_secs(1), events.next()).await {
            Ok(Some(Event::Shutdown {
                by_guest,
                reason: why,
            })) => reason = Some((by_guest, why)),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => is_connected = false,
        }
    }
    let status = match &mut child {
        Some(child) => tokio::time::timeout(Duration::from_secs(5), child.wait())
            .await
            .ok()
            .and_then(Result::ok),
        None => None,
    };
    let log = match reason {
        Some(_) => String::new(),
        None => launch::log_tail(&directory),
    };
    let (by_guest, reason) = match reason {
        // A signal that somebody sent to QEMU is not what anybody asked Fairway for.
        Some((_, why)) if why == "host-signal" => (false, None),
        Some((by_guest, why)) => (by_guest, Some(why)),
        None => (false, None),
    };
    for name in [names::QMP, names::PID, names::RECORD] {
        let _ = std::fs::remove_file(directory.join(name));
    }
    tracing::debug!(directory = %directory.display(), ?reason, ?status, "QEMU has ended");
    let _ = exit.send(Some(Exit {
        reason,
        by_guest,
        status,
        log,
    }));
}
