//! How long to wait before the next attempt: longer after every failure, and never in step with others.

use std::time::Duration;

/// Exponential delays between two bounds.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// Never longer than this, jitter aside.
    pub most: Duration,
}

impl Default for Backoff {
    /// Quick at first, since most failures pass at once; as client-go's rate limiter at the far end.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(5),
            most: Duration::from_secs(120),
        }
    }
}

impl Backoff {
    /// The delay after so many failures in a row (at least one). `chance` is in `0.0..1.0` and adds up to a quarter.
    pub fn delay(&self, failures: u32, chance: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let base = self.first.saturating_mul(1 << doublings).min(self.most);
        base.mul_f64(1.0 + chance.clamp(0.0, 1.0) / 4.0)
    }
}

/// A number in `0.0..1.0` for jitter. It need not be secret, only different from call to call and process to process.
pub fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let bits = SEED.hash_one(CALLS.fetch_add(1, Ordering::Relaxed)) >> 40;
    // 24 bits are exact in a f64.
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(1_u32 << 24)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Backoff, chance};

    #[test]
    fn delays_double_up_to_a_bound() {
        let backoff = Backoff {
            first: Duration::from_millis(10),
            most: Duration::from_secs(1),
        };
        for (failures, chance, millis) in [
            (0, 0.0, 10),
            (1, 0.0, 10),
            (2, 0.0, 20),
            (7, 0.0, 640),
            (8, 0.0, 1000),
            (u32::MAX, 0.0, 1000),
            (1, 0.8, 12),
            (8, 1.0, 1250),
        ] {
            let want = Duration::from_millis(millis);
            assert_eq!(backoff.delay(failures, chance), want, "{failures} {chance}");
        }
    }

    #[test]
    fn chance_varies_within_its_bounds() {
        let drawn: Vec<f64> = (0..100).map(|_| chance()).collect();
        assert!(drawn.iter().all(|c| (0.0..1.0).contains(c)));
        assert!(drawn.iter().any(|c| *c < 0.5) && drawn.iter().any(|c| *c >= 0.5));
    }
}
