//! A network namespace with nothing in it but loopback, for a program that cannot be told which address to listen on.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const MARK: &str = "FAIRWAY_BENCH_NAMESPACE";

pub(super) fn is_inside() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs this very command again inside, instead of this process.
pub(super) fn enter(module: Option<&Path>) -> Result<()> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new("unshare");
    command.arg("--net");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        // Who is not root gets the right to make one by being root of a user namespace.
        command.arg("--map-root-user");
    }
    command
        .args(["sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(this)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1");
    // Inside, nobody can be asked for it.
    if let Some(module) = module.filter(|_| !std::env::args().any(|word| word.starts_with("--module"))) {
        command.arg("--module").arg(module);
    }
    let failure = command.exec();
    bail!("cannot make a network namespace with unshare (util-linux) and ip (iproute2): {failure}")
}
