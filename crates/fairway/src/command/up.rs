//! `fairway up`: in the foreground, or detached.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::running::Running;
use super::service;
use crate::cli::Up;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::server;

/// How long a detached server may take to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the server.
pub(crate) fn run(options: &Up) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    if let Some(running) = Running::find(&data)? {
        println!("Fairway is running already (process {}).", running.pid);
        print_welcome(&data, &running);
        return Ok(ExitCode::SUCCESS);
    }
    crate::backup::refuse_unfinished(&data)?;
    let config = Config::read(&data, options)?;
    data.create()?;
    if options.detach {
        return detach(&data);
    }
    let runtime = service::prepare("fairway", &config.log)?;
    runtime.block_on(server::run(&data, &config, |running| {
        print_welcome(&data, running);
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts this program again, on its own, and waits until it is ready.
fn detach(data: &DataDir) -> anyhow::Result<ExitCode> {
    let log = data.server_log();
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .with_context(|| format!("the log {} could not be opened", log.display()))?;
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let mut command = Command::new(program);
    // The same words again, but for the one that brought us here, and with a directory that no longer depends on anything.
    let words = std::env::args_os().skip(1).filter(|word| word != "--detach");
    command.args(words).env("FAIRWAY_DATA", data.path());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        // A group of its own, so that Ctrl-C in this terminal does not reach it.
        .process_group(0)
        .spawn()
        .context("the server could not be started")?;
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        if let Some(running) = Running::find(data)?.filter(|r| r.pid == child.id()) {
            print_welcome(data, &running);
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = child.try_wait().context("the server cannot be watched")? {
            let tail = last_lines(&std::fs::read_to_string(&log).unwrap_or_default(), 5);
            bail!(
                "the server did not start ({status}); the end of {}:\n{tail}",
                log.display()
            );
        }
        if Instant::now() > give_up {
            bail!(
                "the server is not ready after {START_TIMEOUT:?}; look into {}",
                log.display()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn print_welcome(data: &DataDir, running: &Running) {
    let kubeconfig = data.kubeconfig();
    // Whoever reads this may stop reading early; that is no reason to fail.
    let _ = writeln!(
        std::io::stdout(),
        "Fairway is ready.\n\n  Kubernetes API   https://{}\n  Git              {}\n  kubeconfig       {}\n  data             {}\n\nTry \
         next:\n  export KUBECONFIG={}\n  kubectl get namespaces\n  kubectl create configmap hello \
         --from-literal=who=you\n  fairway status",
        running.listen,
        running.git().unwrap_or_default(),
        kubeconfig.display(),
        data.path().display(),
        kubeconfig.display(),
    );
}
