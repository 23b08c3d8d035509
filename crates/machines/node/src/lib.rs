//! What runs on a host that has virtual machines.

pub mod instance;
