//! Disks out of container images, for machines that start from one.
//!
//! A disk is fetched once and kept in the cache of images by what it is, so that a second machine shares its blocks.

use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::{ClientFactory, Clients};
use fairway_machines_image::import::DEFAULT_MAX_SIZE;
use fairway_machines_image::{Cache, Image, ImageError};
use fairway_outbound::{AllowedHosts, Outbound};
use fairway_registry::{Credentials, Digest, Reference};

use crate::alone::Alone;
use crate::fill::Progress;
use crate::images::Images;
use crate::origin::{blocking, server};
use crate::pull::{Pull, PullError};

/// What images of the installation begin with.
const LOCAL: &str = "fairway-images/";

/// When a registry is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// Whenever a machine starts.
    Always,
    /// If the disk is not here.
    #[default]
    IfNotPresent,
    /// Never: the disk has to be here.
    Never,
}

impl PullPolicy {
    /// Kubernetes' rule: what is written counts; otherwise `latest`, and what has no tag, is asked for always.
    pub fn of(written: &str, image: &str) -> Self {
        match written {
            "Always" => Self::Always,
            "IfNotPresent" => Self::IfNotPresent,
            "Never" => Self::Never,
            _ => {
                let last = image.rsplit('/').next().unwrap_or(image);
                let is_fixed =
                    last.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
                if is_fixed {
                    Self::IfNotPresent
                } else {
                    Self::Always
                }
            }
        }
    }
}

/// Which disk is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContainerDisk<'a> {
    /// The image, such as `quay.io/containerdisks/fedora:40`.
    pub image: &'a str,
    /// The disk in it; without one it is the only file under `/disk`.
    pub path: Option<&'a str>,
    /// When to ask the registry.
    pub pull_policy: PullPolicy,
    /// Credentials: the content of `.dockerconfigjson`.
    pub secret: Option<&'a [u8]>,
}

/// Why a disk is not there.
#[derive(Debug, thiserror::Error)]
pub enum ContainerDiskError {
    /// The reference cannot be one.
    #[error("{image:?} is no reference to a container image: {why}")]
    Reference {
        /// What was written.
        image: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is not here, and may not be fetched.
    #[error("container image {0:?} is not present with pull policy of Never")]
    NeverPull(String),
    /// The registry does not give it.
    #[error("failed to pull {image}: {why}")]
    Pull {
        /// What was asked for.
        image: String,
        /// What the registry says, and what to do.
        why: String,
        /// Whether trying again is of no use before somebody changes something.
        is_final: bool,
    },
    /// What was fetched is no disk, or could not be kept.
    #[error("the disk of {image} cannot be used")]
    Disk {
        /// What was asked for.
        image: String,
        /// Why.
        source: ImageError,
    },
}

impl ContainerDiskError {
    /// Whether trying again is of no use before somebody changes something.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Reference { .. } | Self::NeverPull(_) => true,
            Self::Pull { is_final, .. } => *is_final,
            Self::Disk { source, .. } => matches!(
                source,
                ImageError::Unusable { .. } | ImageError::TooLarge { .. } | ImageError::Checksum { .. }
            ),
        }
    }
}

/// Fetches disks out of container images. Making one costs nothing: the cache is opened when the first disk is asked for.
pub struct ContainerDisks {
    images: Arc<Images>,
    outbound: Arc<Outbound>,
    /// Who fetches an image lets others wait.
    alone: Alone,
    /// Where images of the installation are, if not here.
    server: Option<Clients>,
}

impl ContainerDisks {
    /// Keeps disks in the cache in this directory.
    pub fn new(images: PathBuf, allowed_hosts: AllowedHosts) -> Self {
        Self {
            images: Arc::new(Images::new(images)),
            outbound: Arc::new(Outbound::new(allowed_hosts).set_by("--image-allowed-hosts")),
            alone: Alone::default(),
            server: None,
        }
    }

    /// Fetches images of the installation from the control plane, which is another host.
    #[must_use]
    pub fn with_server(mut self, clients: &ClientFactory) -> Self {
        self.server = Some(clients.clients(crate::USER));
        self
    }

    /// An image of the installation.
    async fn named(&self, cache: &Cache, name: &str) -> Result<Image, ContainerDiskError> {
        let image = || format!("{LOCAL}{name}");
        let remote = match &self.server {
            Some(server) => server::find(server.root(), name).await,
            None => Ok(None),
        };
        let remote = remote.map_err(|failure| ContainerDiskError::Pull {
            image: image(),
            why: failure.sentence(),
            is_final: false,
        })?;
        let found = match remote {
            Some(remote) => {
                let progress = Progress::default();
                server::receive(&self.images, &self.alone, &remote, DEFAULT_MAX_SIZE, &progress).await
            }
            None => cache.get(name),
        };
        found.map_err(|source| ContainerDiskError::Disk {
            image: image(),
            source,
        })
    }

    /// The disk, as an image over which machines have layers of their own (`fairway_machines_image::overlay::over`).
    ///
    /// `fairway-images/NAME` is an image of the installation by its name, and no registry is asked. For others the policy says when the
    /// registry is asked. What was fetched with other credentials is not there for who asks without asking: the registry decides who
    /// may have it.
    pub async fn fetch(&self, wanted: &ContainerDisk<'_>) -> Result<Image, ContainerDiskError> {
        let image = wanted.image.to_owned();
        let unusable = |source: ImageError| ContainerDiskError::Disk {
            image: image.clone(),
            source,
        };
        let text = wanted.image.strip_prefix("docker://").unwrap_or(wanted.image);
        let images = Arc::clone(&self.images);
        let cache = blocking(move || images.open()).await.map_err(unusable)?;
        if let Some(name) = text.strip_prefix(LOCAL) {
            let name = name.split(':').next().unwrap_or(name);
            return self.named(&cache, name).await;
        }
        let wrong = |why: String| ContainerDiskError::Reference {
            image: image.clone(),
            why,
        };
        let reference = Reference::parse(text).map_err(wrong)?;
        let secret = wanted.secret.unwrap_or_default();
        let key = known_as(&reference, wanted.path, secret);
        let _alone = self.alone.with(&key).await;
        if wanted.pull_policy != PullPolicy::Always
            && let Some(kept) = cache.kept(&key).map_err(unusable)?
        {
            return Ok(kept);
        }
        if wanted.pull_policy == PullPolicy::Never {
            return Err(ContainerDiskError::NeverPull(image));
        }
        let credentials = match wanted.secret {
            Some(secret) => {
                Credentials::find(secret, &reference).map_err(|why| ContainerDiskError::Pull {
                    image: image.clone(),
                    why,
                    is_final: true,
                })?
            }
            None => None,
        };
        let pull = Pull {
            reference,
            path: wanted.path.map(str::to_owned),
            credentials,
            outbound: Arc::clone(&self.outbound),
            is_insecure: false,
        };
        let pulled = pull.pull(&cache, DEFAULT_MAX_SIZE, &Arc::default()).await;
        let pulled = pulled.map_err(|error| match error {
            PullError::Registry(error) => ContainerDiskError::Pull {
                image: image.clone(),
                is_final: error.is_final(),
                why: error.to_string(),
            },
            PullError::Image(source) => unusable(source),
        })?;
        cache.keep(&key, pulled).map_err(unusable)
    }
}

/// Under what a disk is found again without asking: by whom it was fetched is part of it.
fn known_as(reference: &Reference, path: Option<&str>, secret: &[u8]) -> String {
    let secret = Digest::of(secret);
    let path = path.unwrap_or_default();
    Digest::of(format!("reference {reference} {path} {secret}").as_bytes())
        .hex()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_registry_is_asked() {
        for (written, image, expected) in [
            ("", "quay.io/disks/fedora", PullPolicy::Always),
            ("", "quay.io/disks/fedora:latest", PullPolicy::Always),
            ("", "quay.io/disks/fedora:40", PullPolicy::IfNotPresent),
            ("", "localhost:5000/fedora", PullPolicy::Always),
            ("", "fedora@sha256:00", PullPolicy::IfNotPresent),
            ("Always", "fedora:40", PullPolicy::Always),
            ("Never", "fedora", PullPolicy::Never),
        ] {
            assert_eq!(PullPolicy::of(written, image), expected, "{written} {image}");
        }
    }
}
