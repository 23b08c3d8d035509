//! Which rule a request belongs to.
