//! Arithmetic on ranges of sizes and costs; it saturates instead of overflowing.

/// The least and the most that an evaluation may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// At least this.
    pub min: u64,
    /// At most this; `u64::MAX` when nothing bounds it.
    pub max: u64,
}

/// A size or a cost that is known to lie between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Range = Range {
        min: 0,
        max: u64::MAX,
    };
    /// The neutral element of `union`.
    pub(super) const EMPTY: Range = Range {
        min: u64::MAX,
        max: 0,
    };

    pub(super) fn fixed(value: u64) -> Range {
        Range {
            min: value,
            max: value,
        }
    }

    pub(super) fn add(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn multiply(self, other: Range) -> Range {
        Range {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Multiplies and rounds up.
    pub(super) fn scale(self, factor: f64) -> Range {
        // A float-to-integer cast saturates, which is what is wanted beyond 2^64.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Range {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    pub(super) fn union(self, other: Range) -> Range {
        Range {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}
