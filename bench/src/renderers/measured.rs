//! What a command costs: CPU time and the peak of its memory, as the kernel counted them.
//!
//! The kernel adds up the costs of children, so each command is run by a process that has no other: this program again,
//! as `measured`. It prints what the kernel tells it and nothing else.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// What one run of a command took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// User and system time.
    pub(crate) cpu: Duration,
    /// The most memory that was resident at a time, in bytes.
    pub(crate) peak: u64,
}

/// Runs a command so many times, its output thrown away, and prints CPU microseconds per run and the peak in KiB.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (program, arguments) = options.command.split_first().context("no command")?;
    for _ in 0..options.repeat {
        let status = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("running {program}"))?;
        if !status.success() {
            bail!("{program} failed: {status}");
        }
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking what the children took")?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    println!("{} {}", cpu / i64::from(options.repeat.max(1)), usage.max_rss());
    Ok(())
}

/// What a command costs, on average over so many runs; the peak is the highest of them.
pub(crate) fn cost(program: &Path, arguments: &[&str], repeat: u32) -> Result<Cost> {
    let this = std::env::current_exe().context("finding this program")?;
    let output = Command::new(this)
        .args(["measured", "--repeat", &repeat.to_string(), "--"])
        .arg(program)
        .args(arguments)
        .output()
        .context("running this program again")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    parse(&String::from_utf8_lossy(&output.stdout)).context("the costs that were printed are none")
}

fn parse(text: &str) -> Option<Cost> {
    let (cpu, peak) = text.trim().split_once(' ')?;
    Some(Cost {
        cpu: Duration::from_micros(cpu.parse().ok()?),
        peak: peak.parse::<u64>().ok()? * 1024,
    })
}

/// The middle one of several figures.
pub(crate) fn median<T: Ord + Copy>(mut figures: Vec<T>) -> Option<T> {
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        let cost = Cost {
            cpu: Duration::from_micros(1500),
            peak: 2 << 20,
        };
        assert_eq!(parse("1500 2048\n"), Some(cost));
        assert_eq!(parse("fast\n"), None);
    }

    #[test]
    fn the_middle_of_three() {
        assert_eq!(median(vec![3, 1, 2]), Some(2));
        assert_eq!(median(Vec::<u8>::new()), None);
    }
}
