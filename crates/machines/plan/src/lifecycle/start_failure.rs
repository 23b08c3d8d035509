//! Starts that failed, and how long the next one waits.

use jiff::{SignedDuration, Timestamp};

use super::is_final;
use crate::view::{RunStrategy, StartFailure, VirtualMachineInstance};

/// The longest that a start waits.
const LONGEST: u64 = 300;
/// The shortest that the first one waits.
const SHORTEST: u64 = 10;

/// Seconds that the start after so many failures waits: their square, times ten, and up to half of that by chance.
pub fn delay_seconds(failures: i64, chance: u32) -> u64 {
    let failures = u64::try_from(failures.max(1)).unwrap_or(1);
    let step = (LONGEST / 30).max(SHORTEST);
    let delay = step.saturating_mul(failures.saturating_mul(failures));
    let more = u64::from(chance) % (delay / 2 + 1);
    delay.saturating_add(more).min(LONGEST)
}

/// Seconds until a start may be tried.
pub(super) fn seconds_left(failure: Option<&StartFailure>, now: Timestamp) -> u64 {
    let retry = failure.and_then(|it| it.retry_after_timestamp.as_ref());
    let retry: Option<Timestamp> = retry.and_then(|it| it.parse().ok());
    let left = retry.map_or(0, |it| it.as_second() - now.as_second());
    u64::try_from(left).unwrap_or(0)
}

fn ever_ran(vmi: &VirtualMachineInstance) -> bool {
    vmi.status
        .phase_transition_timestamps
        .iter()
        .any(|it| it.phase == "Running")
}

/// Starts that failed in a row, after an instance was seen.
pub(super) fn next(
    before: Option<&StartFailure>,
    vmi: Option<&VirtualMachineInstance>,
    strategy: RunStrategy,
    now: Timestamp,
    chance: u32,
) -> Option<StartFailure> {
    let again = matches!(
        strategy,
        RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once
    );
    if !again || vmi.is_some_and(ever_ran) {
        return None;
    }
    let Some(failed) = vmi.filter(|it| is_final(it)) else {
        return before.cloned();
    };
    if before.is_some_and(|it| it.last_failed_vmi_uid == failed.metadata.uid) {
        return before.cloned();
    }
    let count = before.map_or(0, |it| it.consecutive_fail_count) + 1;
    let delay = SignedDuration::from_secs(i64::try_from(delay_seconds(count, chance)).unwrap_or(0));
    let retry = now.checked_add(delay).ok();
    Some(StartFailure {
        consecutive_fail_count: count,
        last_failed_vmi_uid: failed.metadata.uid.clone(),
        retry_after_timestamp: retry.map(|it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    })
}
