//! Where instances run.

pub(crate) mod ground;
pub(crate) mod instance;
pub(crate) mod labels;
pub(crate) mod needs;
pub(crate) mod neighbours;
pub(crate) mod node;
pub(crate) mod place;
pub(crate) mod scheduler;
mod score;
pub(crate) mod unplaced;

/// Thousandths of a processor that a processor of a guest counts as, if nobody says otherwise: upstream's ratio of ten.
pub(crate) const MILLI_PER_VCPU: i64 = 100;
