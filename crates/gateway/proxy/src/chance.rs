//! Chance for choices that nobody has to fear: which endpoint, which share, and names of requests. Not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0_u64) | 1);
}

/// The next number of this thread's sequence (SplitMix64, seeded by the process's hashing keys).
pub(crate) fn next() -> u64 {
    STATE.with(|state| {
        let seed = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(seed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// None for zero.
pub(crate) fn below(bound: usize) -> Option<usize> {
    let wide = (u128::from(next()) * bound as u128) >> 64;
    if bound == 0 {
        None
    } else {
        usize::try_from(wide).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound() {
        assert_eq!(below(0), None);
        let mut seen = [0; 5];
        for _ in 0..5000 {
            seen[below(5).unwrap()] += 1;
        }
        assert!(seen.iter().all(|times| (800..1200).contains(times)), "{seen:?}");
    }
}
