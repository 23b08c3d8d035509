//! A server under measurement: where to reach it, and the processes it consists of. Dropping it ends the processes
//! that were started for it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::client::{Call, Client, Endpoint};
use crate::kubeconfig;
use crate::process;

/// How long a server may take to become ready before the run is given up.
const START_LIMIT: Duration = Duration::from_secs(120);

/// How long it may take to end when it is told to.
const END_LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    pids: Vec<u32>,
    /// From the start of the first process until `/readyz` answered; unknown when it ran already.
    pub(crate) ready_after: Option<Duration>,
    /// Each is killed when the server is dropped.
    children: Vec<Child>,
}

impl Server {
    pub(crate) fn new(endpoint: Endpoint, children: Vec<Child>, ready_after: Duration) -> Self {
        let pids = children.iter().filter_map(Child::id).collect();
        Self {
            endpoint,
            pids,
            ready_after: Some(ready_after),
            children,
        }
    }

    /// A server that somebody else started.
    pub(crate) fn running(kubeconfig: &Path, pids: &[u32]) -> Result<Self> {
        let endpoint = kubeconfig::endpoint(kubeconfig)?;
        Ok(Self {
            endpoint,
            pids: pids.to_vec(),
            ready_after: None,
            children: Vec::new(),
        })
    }

    /// Ends its processes without a farewell, and waits until they are gone: their data can then be started on again.
    pub(crate) async fn stop(mut self) -> Result<()> {
        for child in &mut self.children {
            child.kill().await.context("cannot end a server")?;
        }
        Ok(())
    }

    /// Ends its processes as an operator would, and waits until they are gone: they remove what they have made outside of their data.
    pub(crate) async fn end(mut self) -> Result<()> {
        for child in &mut self.children {
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid {
                kill(Pid::from_raw(pid), Signal::SIGTERM).context("cannot end a server")?;
            }
            if tokio::time::timeout(END_LIMIT, child.wait()).await.is_err() {
                child.kill().await?;
                bail!("a server did not end within {END_LIMIT:?}");
            }
        }
        Ok(())
    }

    /// Its processes.
    pub(crate) fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// CPU time that all of its processes have used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.pids.iter().map(|pid| process::cpu_time(*pid)).sum()
    }

    /// Resident memory of all of its processes, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.pids.iter().map(|pid| process::resident_bytes(*pid)).sum()
    }

    /// Of that, what is not pages of files, in bytes.
    pub(crate) fn anonymous(&self) -> Result<u64> {
        self.pids.iter().map(|pid| process::anonymous_bytes(*pid)).sum()
    }
}

/// Starts a program in the background, with its output in a file beside its data.
pub(crate) fn spawn(program: &Path, arguments: &[String], log: &Path) -> Result<Child> {
    let output = std::fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Asks again and again until the answer is yes; says what the program wrote last when it does not come.
pub(crate) async fn until<F>(what: &str, child: &mut Child, log: &Path, mut ask: F) -> Result<()>
where
    F: AsyncFnMut() -> bool,
{
    let started = Instant::now();
    while !ask().await {
        if let Some(status) = child.try_wait()? {
            bail!("{what} ended with {status}: {}", last_lines(log));
        }
        if started.elapsed() > START_LIMIT {
            bail!("{what} was not ready after {START_LIMIT:?}: {}", last_lines(log));
        }
        // Short, because a server that is ready in tens of milliseconds is measured with it.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Whether `/readyz` answers 200.
pub(crate) async fn is_ready(endpoint: &Endpoint) -> bool {
    let Ok(client) = Client::connect(endpoint).await else {
        return false;
    };
    client
        .send(Call::get("/readyz"))
        .await
        .is_ok_and(|reply| reply.status.is_success())
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// A loopback port that is free now. Another process could take it before the server does; the server then says so.
pub(crate) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("cannot find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// An absolute path, because servers are started with other working directories in mind.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot resolve {}", path.display()))
}
