//! `fairway up`: in the foreground, or detached.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_machines_image::Cache;

use super::running::Running;
use super::service;
use crate::cli::Up;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::server;

/// Tells a server that it was started in the background.
const DETACHED: &str = "FAIRWAY_DETACHED";
/// How long a detached server may take to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// What runs machines.
const QEMU: &str = "qemu-system-x86_64";

/// Starts the server.
pub(crate) fn run(options: &Up) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    if let Some(running) = Running::find(&data)? {
        println!("Fairway is running already (process {}).", running.pid);
        print_welcome(&data, &running, None);
        return Ok(ExitCode::SUCCESS);
    }
    crate::backup::refuse_unfinished(&data)?;
    let config = Config::read(&data, options)?;
    data.create()?;
    if options.detach {
        return detach(&data);
    }
    let runtime = service::prepare("fairway", &config.log)?;
    runtime.block_on(server::run(&data, &config, |running, password| {
        print_welcome(&data, running, password);
        leave_terminal();
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
    command
        .args(words)
        .env("FAIRWAY_DATA", data.path())
        .env(DETACHED, "1");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        // A group of its own, so that Ctrl-C in this terminal does not reach it.
        .process_group(0)
        .spawn()
        .context("the server could not be started")?;
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        if Running::find(data)?.is_some_and(|r| r.pid == child.id()) {
            // What it says once, such as a password, is said by it alone and kept nowhere.
            if let Some(mut said) = child.stdout.take() {
                let _ = std::io::copy(&mut said, &mut std::io::stdout());
            }
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

/// Whoever started it in the background has read what was to be said, and waits for the end of it.
fn leave_terminal() {
    if std::env::var_os(DETACHED).is_none() {
        return;
    }
    let nothing = OpenOptions::new().write(true).open("/dev/null");
    if let Ok(nothing) = nothing
        && let Err(error) = rustix::stdio::dup2_stdout(&nothing)
    {
        tracing::warn!(%error, "the output could not be closed");
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn print_welcome(data: &DataDir, running: &Running, password: Option<&str>) {
    let administrator = fairway_portal_identity::ADMINISTRATOR;
    let told = match password {
        Some(password) => format!("password {password}   (shown this once)"),
        None => format!("fairway user set-password {administrator} --org root sets a new password"),
    };
    let images = Cache::open(&data.images()).and_then(|cache| cache.images());
    let images: Vec<String> = images
        .unwrap_or_default()
        .into_iter()
        .map(|image| image.name)
        .collect();
    let has_qemu = is_on_path(QEMU);
    let shown = match (has_qemu, images.is_empty()) {
        (false, _) => {
            format!("no machine runs here: {QEMU} is not installed (on Debian: scripts/tools.sh qemu)")
        }
        (true, true) => "none yet: fairway image build tiny makes one".to_owned(),
        (true, false) => images.join(", "),
    };
    let mut text = format!(
        "Fairway is ready.\n\n  Portal           {}\n  Kubernetes API   https://{}\n  Git              {}\n  Sign-in          {}\n  administrator    \
         {administrator}, {told}\n  images           {shown}\n  kubeconfig       {}\n  data             {}\n\nTry next:\n",
        running.portal().unwrap_or_default(),
        running.listen,
        running.git().unwrap_or_default(),
        running.sign_in().unwrap_or_default(),
        data.kubeconfig().display(),
        data.path().display(),
    );
    // Where it was built is seldom where programs are looked for.
    if let Ok(program) = std::env::current_exe()
        && !is_on_path("fairway")
        && let Some(directory) = program.parent()
    {
        text += &format!("  export PATH={}:$PATH\n", directory.display());
    }
    text += &format!("  export KUBECONFIG={}\n", data.kubeconfig().display());
    text += match has_qemu {
        true => "  fairway new virtual-machine   # asks a few questions; a machine out of Git comes of it\n",
        false => {
            "  fairway new virtual-machine --dry-run   # asks a few questions, and shows what would come of them\n"
        }
    };
    text += "  fairway voyage list\n  fairway status\n";
    // Whoever reads this may stop reading early; that is no reason to fail.
    let _ = write!(std::io::stdout(), "{text}");
}

/// Whether a program can be called by its name alone.
fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
