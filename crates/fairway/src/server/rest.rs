//! After work comes rest: when the server has been busy and is no longer, it gives back the memory that it does not need.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long after the API is ready starting is over: by then the controllers have seen what there is.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a time must be quiet.
const QUIET: Duration = Duration::from_mins(1);
/// What a quiet server may use of a core, in hundredths.
const QUIET_PERCENT: u32 = 1;

/// Gives back after the start, and after every busy time. Ends with the process.
pub(super) async fn run() {
    tokio::time::sleep(SETTLED).await;
    give_back().await;
    // What is looked at once in a while for the first time comes after that, and is given back in the first quiet minute.
    let mut busy = true;
    loop {
        let before = cpu();
        tokio::time::sleep(QUIET).await;
        let quiet = cpu().saturating_sub(before) <= QUIET * QUIET_PERCENT / 100;
        if quiet && busy {
            give_back().await;
        }
        busy = !quiet;
    }
}

async fn give_back() {
    // It waits for locks of the allocator, which a worker must not.
    let _ = tokio::task::spawn_blocking(fairway_memory::give_back).await;
}

/// What the process has used of all cores.
fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.try_into().unwrap_or(0),
        used.tv_nsec.try_into().unwrap_or(0),
    )
}
