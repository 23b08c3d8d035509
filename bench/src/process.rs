//! CPU time and memory of a process as Linux tells them: by its clock and in `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// User and system time of a process and its finished threads.
///
/// From the process's CPU clock, which counts nanoseconds: `/proc/PID/stat` counts hundredths of a second, too coarse for
/// what a few dozen operations take.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let of = i32::try_from(pid).with_context(|| format!("{pid} is no process id"))?;
    clock_getcpuclockid(Pid::from_raw(of))
        .and_then(clock_gettime)
        .map(Duration::from)
        .with_context(|| format!("cannot read the CPU clock of process {pid}: has the server ended?"))
}

/// Memory of a process that is in RAM.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let text = read(pid, "status")?;
    parse_line(&text, "VmRSS:").with_context(|| format!("/proc/{pid}/status has no VmRSS"))
}

/// Of that, what is not a page of a file: a program gives pages of files back without a loss, and some do.
pub(crate) fn anonymous_bytes(pid: u32) -> Result<u64> {
    let text = read(pid, "status")?;
    parse_line(&text, "RssAnon:").with_context(|| format!("/proc/{pid}/status has no RssAnon"))
}

fn read(pid: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}: has the server ended?"))
}

fn parse_line(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t 1024 kB\n";
        assert_eq!(parse_line(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(parse_line(status, "RssAnon:"), Some(1 << 20));
        assert_eq!(parse_line("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn sees_its_own_process() {
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() > 100_000);
        let before = cpu_time(own).unwrap();
        assert!(before > Duration::ZERO);
        while cpu_time(own).unwrap() == before {}
    }
}
