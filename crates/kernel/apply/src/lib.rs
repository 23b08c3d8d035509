//! Patches, server-side apply and managed fields, as pure functions.
//!
//! Four layers, each usable alone: [`fieldpath`] names fields and sets of them, [`typed`] compares and merges values
//! by their shape, [`updater`] decides who owns what after a write, and [`managed_fields`] keeps that record in
//! `metadata.managedFields` the way Kubernetes does. [`patch`] holds the three patch formats, which need none of it.

pub mod fieldpath;
pub mod managed_fields;
pub mod patch;
pub mod typed;
pub mod updater;
mod value_order;
