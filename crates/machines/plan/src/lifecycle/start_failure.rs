//! Starts that failed, and how long the next one waits.

use jiff::{SignedDuration, Timestamp};

use super::is_final;
use crate::view::{RunStrategy, StartFailure, VirtualMachineInstance};

/// The longest that a start waits.
const LONGEST: u64 = 300;
/// The shortest that the first one waits.
const SHORTEST: u64 = 10;
/// Seconds after which a guest that runs has started well.
const STEADY: i64 = 30;

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

/// When the guest of an instance began to run.
fn ran_at(vmi: &VirtualMachineInstance) -> Option<Timestamp> {
    let mut all = vmi.status.phase_transition_timestamps.iter();
    let running = all.find(|it| it.phase == "Running")?;
    running.phase_transition_timestamp.parse().ok()
}

/// Whether the guest of an instance has run.
pub(super) fn has_run(vmi: &VirtualMachineInstance) -> bool {
    ran_at(vmi).is_some()
}

/// Seconds until a guest that runs has started well.
pub(super) fn until_steady(vmi: &VirtualMachineInstance, now: Timestamp) -> Option<u64> {
    let ran_at = ran_at(vmi).filter(|_| !is_final(vmi))?;
    let left = STEADY - (now.as_second() - ran_at.as_second());
    u64::try_from(left).ok().filter(|it| *it > 0)
}

/// Whether a guest ended of itself, and so soon that it might do so for ever.
fn fell_over(vmi: &VirtualMachineInstance, ran_at: Timestamp, now: Timestamp) -> bool {
    let asked = vmi.metadata.deletion_timestamp.is_some();
    vmi.status.phase == "Failed" && !asked && now.as_second() - ran_at.as_second() < STEADY
}

/// Starts that failed in a row, after an instance was seen.
///
/// Upstream counts guests that never ran. One that runs for a moment and then fails would be started again and again here, where
/// nothing else takes time; so that counts too, but for the first time.
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
    if !again {
        return None;
    }
    let Some(vmi) = vmi else {
        return before.cloned();
    };
    let counted = before.is_some_and(|it| it.last_failed_vmi_uid == vmi.metadata.uid);
    let ran_at = ran_at(vmi);
    let failed = match ran_at {
        Some(ran_at) => fell_over(vmi, ran_at, now),
        None => is_final(vmi),
    };
    if !failed || counted {
        let well = ran_at.is_some() && !counted && until_steady(vmi, now).is_none();
        return before.filter(|_| !well).cloned();
    }
    let count = before.map_or(0, |it| it.consecutive_fail_count) + 1;
    let delay = match (ran_at, count) {
        (Some(_), 1) => 0,
        (Some(_), _) => delay_seconds(count - 1, chance),
        (None, _) => delay_seconds(count, chance),
    };
    let delay = SignedDuration::from_secs(i64::try_from(delay).unwrap_or(0));
    let retry = now.checked_add(delay).ok();
    Some(StartFailure {
        consecutive_fail_count: count,
        last_failed_vmi_uid: vmi.metadata.uid.clone(),
        retry_after_timestamp: retry.map(|it| it.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    })
}
