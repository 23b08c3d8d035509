//! Disks of virtual machines as claims.
