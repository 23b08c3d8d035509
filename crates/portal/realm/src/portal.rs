//! How long a browser stays signed in to the portal.
//!
//! A session ends when nobody has used it for a while, when it is old, and when the sign-in that it came from ends. Its object has
//! one end, which moves on while the session is used; so everything that reads sessions knows of all three.

/// Seconds without a request after which a session ends.
pub const IDLE: i64 = 2 * 3_600;
/// Seconds after which it ends however much it is used.
pub const ABSOLUTE: i64 = 12 * 3_600;
/// Seconds that a token of the portal is good for. It never leaves the process, and whom it stands for is looked up each time.
pub const TOKEN: i64 = 3_600;
/// Seconds before its end at which a token is replaced: whoever begins to watch has it for that long at least.
pub const RENEW: i64 = 1_800;
/// Seconds by which the end must move to be worth a write.
const STEP: i64 = 300;

/// When a session ends that began at a time, is used now, and came from a sign-in that ends at another.
pub fn end(began: i64, now: i64, sign_in_ends: i64) -> i64 {
    now.saturating_add(IDLE)
        .min(began.saturating_add(ABSOLUTE))
        .min(sign_in_ends)
}

/// The end to write down now instead of the one that is; none if it is near enough.
pub fn moved(began: i64, now: i64, sign_in_ends: i64, written: i64) -> Option<i64> {
    let end = end(began, now, sign_in_ends);
    (end >= written.saturating_add(STEP)).then_some(end)
}

/// Whether a token that ends at a time is to be replaced.
pub fn is_due(token_ends: i64, now: i64) -> bool {
    now.saturating_add(RENEW) >= token_ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_the_first_of_three_bounds() {
        const FAR: i64 = 1_000_000_000;
        for (began, now, sign_in, expected, why) in [
            (0, 0, FAR, IDLE, "unused"),
            (0, 3_600, FAR, 3_600 + IDLE, "used after an hour"),
            (0, ABSOLUTE - 60, FAR, ABSOLUTE, "used all day"),
            (0, 0, 600, 600, "signed out soon"),
            (0, i64::MAX, FAR, ABSOLUTE, "no overflow"),
        ] {
            assert_eq!(end(began, now, sign_in), expected, "{why}");
        }
    }

    #[test]
    fn not_every_request_is_a_write() {
        for (now, written, expected) in [
            (0, IDLE, None),
            (STEP - 1, IDLE, None),
            (STEP, IDLE, Some(IDLE + STEP)),
            // Nothing is left to move to.
            (ABSOLUTE - 10, ABSOLUTE, None),
        ] {
            assert_eq!(moved(0, now, i64::MAX, written), expected, "{now}");
        }
        // A sign-in that ends sooner than was written ends the session by itself.
        assert_eq!(moved(0, 0, 10, IDLE), None);
    }

    #[test]
    fn tokens_are_replaced_before_they_end() {
        assert!(!is_due(TOKEN, 0));
        assert!(is_due(TOKEN, TOKEN - RENEW) && is_due(TOKEN, TOKEN + 1));
    }
}
