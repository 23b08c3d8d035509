//! Where instances run.

/// Thousandths of a processor that a processor of a guest counts as, if nobody says otherwise: upstream's ratio of ten.
pub(crate) const MILLI_PER_VCPU: i64 = 100;
