//! Virtual machines, without anything that touches the world: what KubeVirt's objects mean, what is wrong with them, which
//! machine they describe, how QEMU is told so, and what to do next with a machine that is observed.
//!
//! The way of an object: [`instance`] makes an instance of a machine, [`instancetype`] and [`defaults`] complete its JSON, [`validate`] judges it, [`plan`] makes a
//! [`machine::MachinePlan`] of it, with everything that cannot be had ([`unsupported`]) named, and [`argv`] writes it as
//! arguments of QEMU for a given host. [`seed`] and [`iso`] make the disks that a guest reads its configuration from.
//! [`attachment`] reads
//! networks. [`compatibility`] says where a guest that runs can go on. [`confinement`] says what a machine's processes may take of their host, and [`processors`] which of its processors a machine has for itself. [`lifecycle`] and [`phase`] decide what happens when; [`impact`] says beforehand what a change will cost.
//! [`admission`] is how all this meets the requests of clients.

mod edit;

pub mod admission;
pub mod argv;
pub mod attachment;
pub mod compatibility;
pub mod confinement;
pub mod defaults;
pub mod expand;
pub mod identity;
pub mod impact;
pub mod instance;
pub mod instancetype;
pub mod iso;
pub mod lifecycle;
pub mod machine;
pub mod memory_hotplug;
pub mod node;
pub mod pci;
pub mod phase;
pub mod plan;
pub mod processors;
pub mod seed;
pub mod settings;
pub mod unsupported;
pub mod validate;
pub mod view;
