//! What the process of a machine has used of its host, as the kernel counts it.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use serde_json::{Value, json};

/// Linux's `USER_HZ`, which no program can be told otherwise.
const PER_SECOND: u64 = 100;

/// The processor time of a process since its start, and the memory that it holds.
pub(super) fn of(pid: u32) -> Result<Value> {
    let ticks = ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat"))?);
    let memory = resident(&std::fs::read_to_string(format!("/proc/{pid}/status"))?);
    let (Some(ticks), Some(memory)) = (ticks, memory) else {
        let why = format!("what the kernel says of the process {pid} cannot be understood");
        return Err(Error::new(ErrorKind::InvalidData, why));
    };
    let time = Duration::from_millis(ticks.saturating_mul(1000 / PER_SECOND));
    Ok(json!({"cpuSeconds": time.as_secs_f64(), "residentBytes": memory}))
}

/// Time in the process and in the kernel for it, from `stat`. The name may hold anything, so it is passed first.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// Bytes in memory, from `status`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 7 8 20 0 3 0 12345 1000 10";
        assert_eq!(ticks(stat), Some(200));
        assert_eq!(
            resident("Name:\tqemu\nVmRSS:\t    2048 kB\nThreads:\t3\n"),
            Some(2 << 20)
        );
        assert_eq!((ticks("42 (a) S 1"), resident("Name:\tqemu\n")), (None, None));
        let own = of(std::process::id()).unwrap();
        assert!(own["residentBytes"].as_u64().unwrap() > 1 << 20, "{own}");
        assert!(of(u32::MAX).is_err());
    }
}
