//! One machine of this host.

pub mod launch;
