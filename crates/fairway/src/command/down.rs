//! `fairway down`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::running::Running;
use crate::cli::Down;
use crate::data_dir::DataDir;

/// Asks the server to end, and waits until it has.
pub(crate) fn run(options: &Down) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    let Some(running) = Running::find(&data)? else {
        println!("Fairway is not running on {}.", data.path().display());
        return Ok(ExitCode::SUCCESS);
    };
    let pid = i32::try_from(running.pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("its process id is out of range")?;
    kill_process(pid, Signal::TERM)
        .with_context(|| format!("process {} could not be asked to end", running.pid))?;
    let give_up = Instant::now() + Duration::from_secs(options.timeout);
    while running.is_alive() {
        if Instant::now() > give_up {
            bail!(
                "process {} has not ended after {} s; look into {} for the reason",
                running.pid,
                options.timeout,
                data.server_log().display()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("Fairway has stopped. Its state is in {}.", data.path().display());
    Ok(ExitCode::SUCCESS)
}
