//! After work comes rest: when the server has been busy and is no longer, it gives back the memory that it does not need.
//! Short work may need much: the document of a large kind that a client asks for once takes megabytes for a moment.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long after the API is ready starting is over: by then the controllers have seen what there is.
const SETTLED: Duration = Duration::from_secs(3);
/// How long a time must be quiet.
const QUIET: Duration = Duration::from_mins(1);
/// What a quiet server may use of a core, in hundredths.
const QUIET_PERCENT: u32 = 1;

/// How much may have become free before it is given back although little was done.
const MUCH: usize = 2 << 20;

/// Gives back after the start, after every busy time, and when much has become free. Ends with the process.
pub(super) async fn run() {
    tokio::time::sleep(SETTLED).await;
    give_back().await;
    let (mut busy, mut unused) = (false, fairway_memory::unused());
    loop {
        let before = cpu();
        tokio::time::sleep(QUIET).await;
        let quiet = cpu().saturating_sub(before) <= QUIET * QUIET_PERCENT / 100;
        if quiet && (busy || fairway_memory::unused() > unused + MUCH) {
            give_back().await;
            unused = fairway_memory::unused();
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
