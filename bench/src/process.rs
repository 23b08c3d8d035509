//! CPU time and memory of a process as Linux tells them: by its clock and in `/proc`.

use std::collections::BTreeSet;
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

/// Memory that would be free if this process ended: pages that no other has, be they of files or not.
pub(crate) fn private_bytes(pid: u32) -> Result<u64> {
    let text = read(pid, "smaps_rollup")?;
    let of = |key| parse_line(&text, key).with_context(|| format!("/proc/{pid}/smaps_rollup has no {key}"));
    Ok(of("Private_Clean:")? + of("Private_Dirty:")?)
}

/// The process that has started another.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let text = read(pid, "status").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

/// Of that, what is not a page of a file: a program gives pages of files back without a loss, and some do.
pub(crate) fn anonymous_bytes(pid: u32) -> Result<u64> {
    let text = read(pid, "status")?;
    parse_line(&text, "RssAnon:").with_context(|| format!("/proc/{pid}/status has no RssAnon"))
}

/// A process and all below it that run.
fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        at += 1;
        // Each thread has the children that it made. What ends meanwhile has none.
        let threads = std::fs::read_dir(format!("/proc/{parent}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// CPU time of a process and of all that it has started, finished or not.
pub(crate) fn family_cpu(pid: u32) -> Result<Duration> {
    families_cpu(&[pid])
}

/// CPU time of processes and of all that they have started, each counted once even where one has started another.
pub(crate) fn families_cpu(pids: &[u32]) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    let members: BTreeSet<u32> = pids.iter().flat_map(|pid| family(*pid)).collect();
    for member in members {
        let own = match (cpu_time(member), pids.contains(&member)) {
            (Ok(own), _) => own,
            (Err(error), true) => return Err(error),
            // It has ended meanwhile, and counts among its parent's finished children.
            (Err(_), false) => continue,
        };
        let finished = read(member, "stat").ok().and_then(|text| parse_finished(&text));
        sum += own + finished.unwrap_or_default();
    }
    Ok(sum)
}

/// Memory of a process and of all that it has started and that run.
pub(crate) fn family_resident(pid: u32) -> Result<u64> {
    let own = resident_bytes(pid)?;
    let others = family(pid).into_iter().skip(1);
    Ok(own + others.filter_map(|child| resident_bytes(child).ok()).sum::<u64>())
}

/// User and system time of children that have ended and were waited for.
fn parse_finished(stat: &str) -> Option<Duration> {
    // The name of the program may contain anything, but it ends with the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    // Linux has told user programs hundredths of a second on every architecture since it has had this file.
    Some(Duration::from_millis((user + system) * 10))
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
    fn counts_children_that_have_ended() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 10 11 25 17 20 0 1 0 5 6 7";
        assert_eq!(parse_finished(stat), Some(Duration::from_millis(420)));
        assert_eq!(parse_finished("7 (a) S"), None);
    }

    #[test]
    fn a_family_has_its_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        assert!(family(own).contains(&child.id()));
        assert!(family_resident(own).unwrap() > resident_bytes(own).unwrap());
        // Named twice, and a child by itself, too, each counts once. Long beside what other tests do meanwhile.
        while cpu_time(own).unwrap() < Duration::from_millis(300) {}
        let once = family_cpu(own).unwrap();
        let again = families_cpu(&[own, own, child.id()]).unwrap();
        assert!(again < once * 3 / 2, "{once:?} {again:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!family(own).contains(&child.id()));
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
