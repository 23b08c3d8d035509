//! After work comes rest: when the server has been busy and is no longer, it gives back the memory that it does not need.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long after the API is ready starting is over: by then the controllers have seen what there is.
const SETTLED: Duration = Duration::from_secs(3);
/// How often it is looked whether there is something to give back, and how long a time must be quiet before.
const LOOK: Duration = Duration::from_secs(15);
/// What a quiet server may use of a core, in hundredths.
const QUIET_PERCENT: u32 = 1;
/// How much of files must have been mapped since the last time. Little work maps code, too: the first Gateway some five
/// times this. What is needed again comes back for some milliseconds in all.
const WORTH: u64 = 4 << 20;

/// Gives back after the start, and whenever work has mapped something and is over. Ends with the process.
pub(super) async fn run() {
    tokio::time::sleep(SETTLED).await;
    let mut kept = give_back().await;
    loop {
        let before = cpu();
        tokio::time::sleep(LOOK).await;
        let Some(mapped) = fairway_memory::mapped_of_files() else {
            // There is nothing to give back on this system.
            return;
        };
        // The kernel takes pages on its own, too.
        kept = kept.min(mapped);
        let used = cpu().saturating_sub(before);
        if is_due(used, mapped - kept) {
            kept = give_back().await;
        }
    }
}

/// Whether it is time, after a look with so much of a core used, and so many bytes more mapped than after the last time.
fn is_due(used: Duration, grown: u64) -> bool {
    used <= LOOK * QUIET_PERCENT / 100 && grown > WORTH
}

/// What is mapped of files after that, in bytes.
async fn give_back() -> u64 {
    // It waits for locks of the allocator, which a worker must not.
    let _ = tokio::task::spawn_blocking(fairway_memory::give_back).await;
    fairway_memory::mapped_of_files().unwrap_or(0)
}

/// What the process has used of all cores.
fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.try_into().unwrap_or(0),
        used.tv_nsec.try_into().unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_given_back_after_work_and_not_during_it() {
        const MIB: u64 = 1 << 20;
        for (milliseconds, grown, expected, reason) in [
            (0, 0, false, "nothing was mapped"),
            (150, 25 * MIB, true, "a small burst, such as a first Gateway"),
            (20, 4 * MIB + 1, true, "just enough"),
            (20, 4 * MIB, false, "it would be mapped again at once"),
            (151, 25 * MIB, false, "there is still work"),
            (15_000, 90 * MIB, false, "there is much work"),
        ] {
            let used = Duration::from_millis(milliseconds);
            assert_eq!(is_due(used, grown), expected, "{reason}");
        }
    }
}
