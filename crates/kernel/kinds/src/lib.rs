//! What each built-in kind does on write: defaults, preparation, validation, warnings.
//!
//! Pure: objects in, objects and findings out. The shape of an object has been checked before it comes here: declared
//! fields have their types, unknown fields and nulls are gone. Texts are those that Kubernetes users know.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod at;
pub mod autoscaling;
pub mod certificates;
pub mod event;
pub mod ip;
pub mod job;
pub mod meta;
pub mod pod;
pub mod quantity;
pub mod read;
pub mod scale;
pub mod selector;
pub mod service;
pub mod strategy;
pub use fairway_kernel_scalar::names as validation;

pub mod admission_expressions;
mod admissionregistration;
mod apiregistration;
mod conditions;
mod configmap;
mod coordination;
mod daemonset;
mod deployment;
mod devices;
mod endpoints;
mod flowcontrol;
mod go_dump;
mod ingress;
mod namespace;
mod networking;
mod node;
mod persistentvolume;
mod persistentvolumeclaim;
mod quota;
mod rbac;
mod registry;
mod replicaset;
mod resources;
mod scheduling;
mod secret;
mod servers;
mod serviceaccount;
mod statefulset;
mod storage;
mod workload;

pub use registry::strategy;
pub use strategy::{Profile, Scope, Strategy, WriteContext};

#[cfg(test)]
mod answers_tests;
#[cfg(test)]
mod check;
#[cfg(test)]
mod core_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod refusal_tests;
