//! Registries of container images, as the Open Container Initiative has them.
//!
//! - [`Reference`]: what people write, such as `quay.io/containerdisks/fedora:40`.
//! - [`Credentials`]: who asks, out of Docker's configuration as Kubernetes keeps it.
//! - [`Manifest`]: what an image consists of; of several platforms one is chosen.
//! - [`Registry`]: asks for manifests, with the token that the registry wants, and says how its blobs are asked for.
//!
//! All but the last are values without the network between. Everything that a registry says is bounded, and compared with its
//! digest where it has one. The crate must not know what is in an image.

mod challenge;
mod client;
mod credentials;
mod manifest;
mod reference;

pub use client::{Blob, Registry, RegistryError};
pub use credentials::Credentials;
pub use manifest::{Descriptor, Manifest};
pub use reference::{Digest, Reference, Version};
