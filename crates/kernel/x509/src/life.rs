//! How long certificates last, and when they are replaced.

use std::ops::Range;

/// What is signed for less than this ends exactly when it was asked to; what lasts longer gives up the few minutes by which
/// its beginning is dated back.
const SHORT_LIFE: i64 = 8 * 3_600;
/// By how much the beginning is dated back, for clocks that are behind.
const BACKDATE: i64 = 300;

/// The authority itself is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate authority has expired, at {0} seconds after 1970")]
pub struct Expired(pub i64);

/// From when until when (seconds since 1970) a certificate for `ttl` seconds is valid. It never outlives who signs it.
pub fn window(now: i64, ttl: i64, issuer_ends: i64) -> Result<Range<i64>, Expired> {
    if now >= issuer_ends {
        return Err(Expired(issuer_ends));
    }
    let ends = if ttl < SHORT_LIFE {
        now + ttl
    } else {
        now + ttl - BACKDATE
    };
    Ok(now - BACKDATE..ends.min(issuer_ends))
}

/// The lifetime for which [`window`] was asked, so that a certificate can be replaced by one that lasts as long.
pub fn asked_for(life: &Range<i64>) -> i64 {
    let whole = life.end.saturating_sub(life.start);
    let short = whole - BACKDATE;
    if short < SHORT_LIFE { short } else { whole }
}

/// When a certificate is replaced: after 70 to 90 hundredths of its life, as a kubelet does, counted from when it was made
/// (otherwise a short one would be due at once, because its beginning is dated back). `chance` (any number) spreads
/// installations that began together.
pub fn renewal_moment(life: &Range<i64>, chance: u64) -> i64 {
    let whole = life.end.saturating_sub(life.start).max(0);
    let dated_back = if whole > BACKDATE { BACKDATE } else { 0 };
    let thousandths = 700 + i64::try_from(chance % 201).unwrap_or(0);
    let share = i128::from(whole - dated_back) * i128::from(thousandths) / 1_000;
    life.start
        .saturating_add(dated_back)
        .saturating_add(i64::try_from(share).unwrap_or(whole))
}

/// Whether it is time. One that is not valid yet is left alone: the clock may be wrong.
pub fn due(life: &Range<i64>, chance: u64, now: i64) -> bool {
    now >= renewal_moment(life, chance)
}

#[cfg(test)]
mod tests {
    use super::{Expired, asked_for, due, renewal_moment, window};

    #[test]
    fn windows() {
        let hour = 3_600;
        for (name, now, ttl, issuer_ends, want) in [
            ("short ends as asked", 10_000, 600, 1_000_000, Ok(9_700..10_600)),
            (
                "long gives up the back-dating",
                10_000,
                9 * hour,
                1_000_000,
                Ok(9_700..10_000 + 9 * hour - 300),
            ),
            (
                "never longer than the authority",
                10_000,
                9 * hour,
                10_500,
                Ok(9_700..10_500),
            ),
            (
                "an authority that is over",
                10_000,
                600,
                10_000,
                Err(Expired(10_000)),
            ),
        ] {
            assert_eq!(window(now, ttl, issuer_ends), want, "{name}");
        }
        for ttl in [10, 600, 24 * hour, 365 * 24 * hour] {
            assert_eq!(asked_for(&window(50_000, ttl, i64::MAX).unwrap()), ttl);
        }
    }

    #[test]
    fn renewal_lies_between_seven_and_nine_tenths() {
        for (life, chance, want) in [
            (0..1_300, 0, 1_000),
            (0..1_300, 100, 1_100),
            (0..1_300, 200, 1_200),
            (0..1_300, 201, 1_000),
            (0..310, 0, 307),
            (0..100, 0, 70),
            (500..500, 7, 500),
        ] {
            assert_eq!(renewal_moment(&life, chance), want, "{life:?} {chance}");
        }
        for (now, want) in [(-5, false), (999, false), (1_000, true), (2_000, true)] {
            assert_eq!(due(&(0..1_300), 0, now), want, "{now}");
        }
    }
}
