//! How a machine's process comes to be, and how it is found again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::confine::{Confinement, read_made};
use crate::machine::Machine;
use crate::process::{Handle, Identity};
use crate::qmp::{Qmp, QmpError};
use crate::{MachineError, failed, names, socket};

/// How long QEMU may take until it can be talked to. It reads images and firmware first.
const START: Duration = Duration::from_secs(60);
/// How long an answer to the first word may take.
const GREETING: Duration = Duration::from_secs(10);
/// Writes its own number down and becomes what follows. QEMU could do that itself, but asks for the way from the top of all directories to the file,
/// part of which is closed to a user of its own.
const NOTE: &str = r#"echo $$ > "$0" && exec "$@""#;
/// What every QEMU of ours is told.
const MONITOR: &str = "chardev=fairway-qmp,mode=control";
/// A log that is larger than this begins anew when the machine starts.
const MAX_LOG: u64 = 1 << 20;
/// The longest number of a process, with what follows it.
const MAX_NUMBER: u64 = 32;
/// How much of the log is shown when something went wrong.
const LOG_TAIL: usize = 2048;

/// A machine that is to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// QEMU, such as `qemu-system-x86_64`.
    pub program: PathBuf,
    /// What the machine consists of. Paths are relative to its directory, in which QEMU runs; sockets have the names of
    /// [`crate::names`].
    pub arguments: Vec<String>,
    /// The machine's own directory. It is made, and shut off from everybody else.
    pub directory: PathBuf,
    /// Whether QEMU gives up all system calls that it does not need. There is no reason to say no but a QEMU that cannot.
    pub sandbox: bool,
    /// What starts QEMU, with its own arguments; QEMU's command line follows. It gives the process a session of its own, so that no
    /// signal for Fairway's terminal reaches it. A supervisor that fences the machine goes here: it may stay, as the
    /// process of the machine is the one that listens on the QMP socket, whoever started it.
    pub starter: Vec<String>,
    /// Whether QEMU ends when that does, however it comes to its end.
    pub bound: bool,
    /// The user and the control group that it runs in.
    pub confinement: Confinement,
}

impl Launch {
    /// A machine of these arguments, in the usual way.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>, arguments: Vec<String>) -> Self {
        Self {
            program: program.into(),
            arguments,
            directory: directory.into(),
            sandbox: true,
            starter: vec!["setsid".to_owned()],
            bound: false,
            confinement: Confinement::default(),
        }
    }

    /// The whole command line: that of the machine, and what this crate needs to keep hold of it.
    pub fn command(&self) -> Vec<String> {
        let mut starter = self.starter.clone();
        starter.extend(["sh", "-c", NOTE, names::PID].map(str::to_owned));
        let mut command = self.confinement.around(&starter, self.bound);
        command.push(self.program.display().to_string());
        command.extend(self.arguments.iter().cloned());
        let socket = format!("socket,id=fairway-qmp,path={},server=on,wait=off", names::QMP);
        for argument in [
            "-no-user-config",
            "-nodefaults",
            "-chardev",
            &socket,
            "-mon",
            MONITOR,
            "-msg",
            "timestamp=on",
        ] {
            command.push(argument.to_owned());
        }
        if self.sandbox {
            command.push("-sandbox".to_owned());
            command
                .push("on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny".to_owned());
        }
        command
    }
}

/// What was found in a machine's directory.
#[derive(Debug)]
pub enum Adopted {
    /// The machine runs, and is in hand again.
    Running(Box<Machine>),
    /// There is a process, but it does not talk: it hangs, or another Fairway has it.
    Silent(Orphan),
    /// There is none.
    Gone,
}

/// A process of ours that does not talk.
#[derive(Debug)]
pub struct Orphan {
    handle: Handle,
    /// What was tried.
    pub why: String,
}

impl Orphan {
    /// Its number, for messages.
    pub fn pid(&self) -> u32 {
        self.handle.identity.pid
    }

    /// Ends it, and waits for the end.
    pub async fn kill(&self) -> Result<(), MachineError> {
        self.handle.kill().map_err(|source| MachineError::Process {
            pid: self.pid(),
            action: "killed",
            source,
        })?;
        match tokio::time::timeout(Duration::from_secs(30), self.handle.ended()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(MachineError::Late {
                what: format!("the end of the killed process {}", self.pid()),
                seconds: 30,
            }),
        }
    }
}

/// Starts a machine. It runs when this returns, unless its arguments say that it waits (`-S`, `-incoming`).
pub async fn start(launch: &Launch) -> Result<Machine, MachineError> {
    let directory = &launch.directory;
    if let Some(pid) = occupant(directory).await {
        return Err(MachineError::Start(format!(
            "the process {pid} is the machine in {} already; adopt it, or stop it first",
            directory.display()
        )));
    }
    prepare(launch)?;
    let log = open_log(directory)?;
    let second = log.try_clone().map_err(failed("opening", directory))?;
    let line = launch.command();
    let (program, arguments) = line
        .split_first()
        .ok_or_else(|| MachineError::Start("there is no program".to_owned()))?;
    tracing::debug!(directory = %directory.display(), command = line.join(" "), "starting QEMU");
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(second)
        .spawn()
        .map_err(|error| MachineError::Start(format!("{program} cannot be run: {error}")))?;
    let outcome = connect(&mut child, directory).await;
    match outcome {
        Ok((qmp, handle)) => {
            write_record(directory, &handle.identity)?;
            Ok(Machine::new(directory.clone(), qmp, handle, Some(child)))
        }
        Err(error) => {
            // Whatever was started is ended: nobody could get hold of it later.
            let _ = child.start_kill();
            let _ = child.wait().await;
            match adopt(directory).await? {
                Adopted::Running(machine) => machine.kill().await?,
                Adopted::Silent(orphan) => orphan.kill().await?,
                Adopted::Gone => {}
            }
            Err(error)
        }
    }
}

/// Waits until QEMU talks, or has ended.
async fn connect(child: &mut Child, directory: &Path) -> Result<(Qmp, Handle), MachineError> {
    let end = Instant::now() + START;
    let mut pause = Duration::from_millis(2);
    loop {
        // QEMU opens the socket before it has looked at its devices: it may still end because of one of them.
        if let Ok(stream) = socket::dial(directory, names::QMP).await
            && let Ok(handle) = owner(&stream)
        {
            match Qmp::open(stream, GREETING).await {
                Ok(qmp) => return Ok((qmp, handle)),
                Err(QmpError::Closed) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ended = child
            .try_wait()
            .map_err(|error| MachineError::Start(error.to_string()))?;
        if let Some(status) = ended {
            let said = log_tail(directory);
            return Err(MachineError::Start(match said.as_str() {
                "" => format!("it ended with {status}"),
                said => format!("it ended with {status}: {said}"),
            }));
        }
        if Instant::now() >= end {
            return Err(MachineError::Start(format!(
                "it did not open its QMP socket within {} s; it said: {}",
                START.as_secs(),
                log_tail(directory)
            )));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// The process that listens on the other side.
fn owner(stream: &UnixStream) -> Result<Handle, MachineError> {
    let pid = stream
        .peer_cred()
        .ok()
        .and_then(|credentials| u32::try_from(credentials.pid()?).ok())
        .ok_or_else(|| {
            MachineError::Failed("the kernel does not say who listens on the QMP socket".to_owned())
        })?;
    Handle::open(pid).map_err(|source| MachineError::Process {
        pid,
        action: "opened",
        source,
    })
}

/// Finds the machine of a directory again, after Fairway was started anew. The guest does not notice.
pub async fn adopt(directory: &Path) -> Result<Adopted, MachineError> {
    if let Ok(stream) = socket::dial(directory, names::QMP).await {
        let handle = owner(&stream)?;
        return match Qmp::open(stream, GREETING).await {
            Ok(qmp) => {
                write_record(directory, &handle.identity)?;
                let machine = Machine::new(directory.to_owned(), qmp, handle, None);
                Ok(Adopted::Running(Box::new(machine)))
            }
            Err(error) => Ok(Adopted::Silent(Orphan {
                handle,
                why: error.to_string(),
            })),
        };
    }
    // Nobody listens. There may be a process nevertheless, which has not come to it yet, or is beyond it.
    for identity in [read_record(directory), read_pid_file(directory)]
        .into_iter()
        .flatten()
    {
        if identity.is_alive()
            && let Ok(handle) = Handle::open(identity.pid)
            && handle.identity == identity
        {
            return Ok(Adopted::Silent(Orphan {
                handle,
                why: "it does not listen on its QMP socket".to_owned(),
            }));
        }
    }
    Ok(Adopted::Gone)
}

/// The process that is the machine of a directory now.
async fn occupant(directory: &Path) -> Option<u32> {
    if let Ok(stream) = socket::dial(directory, names::QMP).await {
        return owner(&stream).ok().map(|handle| handle.identity.pid);
    }
    process_of(directory)
}

/// The process that is written down as the machine of a directory, if it is alive. Whether it answers is not asked.
pub fn process_of(directory: &Path) -> Option<u32> {
    let known = [read_record(directory), read_pid_file(directory)];
    let alive = known.into_iter().flatten().find(Identity::is_alive);
    alive.map(|identity| identity.pid)
}

/// Makes the directory, for its owner alone, without what an earlier process has left.
fn prepare(launch: &Launch) -> Result<(), MachineError> {
    let directory = &launch.directory;
    let made = launch.confinement.make(directory);
    made.map_err(failed("making", directory))?;
    for name in [names::QMP, names::PID, names::RECORD] {
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("removing", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn open_log(directory: &Path) -> Result<File, MachineError> {
    let path = directory.join(names::LOG);
    let is_large = std::fs::metadata(&path).is_ok_and(|found| found.len() > MAX_LOG);
    OpenOptions::new()
        .create(true)
        .append(!is_large)
        .write(true)
        .truncate(is_large)
        .mode(0o600)
        .open(&path)
        .map_err(failed("opening", &path))
}

/// The last that QEMU said.
pub(crate) fn log_tail(directory: &Path) -> String {
    let text = std::fs::read(directory.join(names::LOG)).unwrap_or_default();
    let start = text.len().saturating_sub(LOG_TAIL);
    String::from_utf8_lossy(&text[start..]).trim().to_owned()
}

fn write_record(directory: &Path, identity: &Identity) -> Result<(), MachineError> {
    let path = directory.join(names::RECORD);
    let draft = directory.join(format!(".{}", names::RECORD));
    let text = serde_json::to_vec(identity).unwrap_or_default();
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, &path))
        .map_err(failed("writing", &path))
}

fn read_record(directory: &Path) -> Option<Identity> {
    let text = std::fs::read(directory.join(names::RECORD)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// What the process wrote down itself. A number alone proves nothing, so the process has to be QEMU in this directory.
fn read_pid_file(directory: &Path) -> Option<Identity> {
    let text = read_made(&directory.join(names::PID), MAX_NUMBER).ok()?;
    let pid: u32 = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    let identity = Identity::of(pid).ok()?;
    let works_in = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let is_ours = works_in == std::fs::canonicalize(directory).ok()?
        && line
            .split(|byte| *byte == 0)
            .any(|word| word == MONITOR.as_bytes());
    // The number may have been given away in between.
    (is_ours && Identity::of(pid).ok()? == identity).then_some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_keeps_hold_of_the_machine() {
        let launch = Launch::new("qemu", "/d", vec!["-m".to_owned(), "64".to_owned()]);
        let line = launch.command().join(" ");
        assert!(
            line.starts_with("setsid sh -c ")
                && line.contains(" qemu.pid qemu -m 64 -no-user-config -nodefaults"),
            "{line}"
        );
        assert!(line.contains("path=live/qmp.sock,server=on,wait=off"), "{line}");
        assert!(line.contains("-sandbox on,"), "{line}");
    }

    #[tokio::test]
    async fn what_cannot_start_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let mut launch = Launch::new(
            "sh",
            directory.path(),
            vec!["-c".to_owned(), "echo bad disk; exit 3".to_owned()],
        );
        let error = start(&launch).await.unwrap_err().to_string();
        assert!(error.contains("bad disk") && error.contains("3"), "{error}");
        launch.starter = vec!["/no/such/program".to_owned()];
        let error = start(&launch).await.unwrap_err().to_string();
        assert!(error.contains("/no/such/program cannot be run"), "{error}");
    }

    #[tokio::test]
    async fn a_number_that_is_somebody_elses_is_not_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(matches!(adopt(path).await.unwrap(), Adopted::Gone));
        std::fs::create_dir(path.join(names::LIVE)).unwrap();
        // The number of this very process, as a leftover file would have it.
        std::fs::write(path.join(names::PID), std::process::id().to_string()).unwrap();
        let mut identity = Identity::of(std::process::id()).unwrap();
        identity.start_time += 1;
        write_record(path, &identity).unwrap();
        assert!(matches!(adopt(path).await.unwrap(), Adopted::Gone));
    }
}
