//! CPU time and memory of a process as Linux tells them in `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};

/// Ticks per second in `/proc/PID/stat`: fixed at 100 in the kernel's interface on every architecture we run on.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time of a process and its finished threads.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let text = read(pid, "stat")?;
    let ticks = parse_ticks(&text).with_context(|| format!("/proc/{pid}/stat has no times"))?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Memory of a process that is in RAM.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let text = read(pid, "status")?;
    parse_resident(&text).with_context(|| format!("/proc/{pid}/status has no VmRSS"))
}

fn read(pid: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}: has the server ended?"))
}

fn parse_ticks(stat: &str) -> Option<u64> {
    // The command's name comes second, in parentheses, and may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 27 0 0 20 0 9 0 1000 1 2 3";
        assert_eq!(parse_ticks(stat), Some(177));
        assert_eq!(parse_resident("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(parse_resident("Name:\tx\n"), None);
    }

    #[test]
    fn sees_its_own_process() {
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() > 100_000);
        assert!(cpu_time(own).is_ok());
    }
}
