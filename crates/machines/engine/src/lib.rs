//! The controllers of virtual machines that need no host.
