//! Disks in container images, as DataVolumes name them.

use std::sync::Arc;

use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_image::Image;
use fairway_registry::{Credentials, Reference};

use super::http::{made_room, secret};
use super::{Origin, Origins, blocking};
use crate::decide::source;
use crate::fill::{FillError, Progress};
use crate::pull::{Pull, PullError};

/// What Docker's configuration is called in a Secret.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

impl Origins {
    /// Reads what a container image takes.
    pub(super) async fn registry(
        &self,
        requests: &Requests,
        claim: &ObjectKey,
        registry: &source::Registry,
    ) -> Result<Origin, Failure> {
        let Some(text) = registry.url.strip_prefix("docker://") else {
            return Ok(Origin::Refused(format!(
                "{:?} is no image of a registry: it must begin with docker://; archives and layouts on a disk are imported with \
                 `fairway image import`",
                registry.url
            )));
        };
        let reference = match Reference::parse(text) {
            Ok(reference) => reference,
            Err(why) => {
                return Ok(Origin::Refused(format!(
                    "{text:?} is no image of a registry: {why}"
                )));
            }
        };
        let mut credentials = None;
        if !registry.secret_ref.is_empty() {
            let Some(secret) = secret(requests, claim, &registry.secret_ref).await? else {
                return Ok(Origin::asks(
                    "ErrClaimNotValid",
                    format!(
                        "the Secret {} of spec.source.registry doesn't exist",
                        registry.secret_ref
                    ),
                ));
            };
            credentials = match secret.get(DOCKER_CONFIG) {
                Some(configuration) => match Credentials::find(configuration.as_bytes(), &reference) {
                    Ok(found) => found,
                    Err(why) => {
                        return Ok(Origin::Refused(format!(
                            "the Secret {}: {why}",
                            registry.secret_ref
                        )));
                    }
                },
                None => {
                    let text = |name: &str| secret.get(name).map(String::as_str).unwrap_or_default();
                    Some(Credentials::new(text("accessKeyId"), text("secretKey")))
                }
            };
        }
        let outbound = match self.trusting(requests, claim, &registry.cert_config_map).await? {
            Ok(outbound) => outbound,
            Err(origin) => return Ok(origin),
        };
        Ok(Origin::Registry(Box::new(Pull {
            reference,
            path: None,
            credentials,
            outbound,
            is_insecure: false,
        })))
    }

    /// Pulls a disk of at most `size` bytes.
    pub(super) async fn pull(
        &self,
        pull: &Pull,
        size: u64,
        progress: &Arc<Progress>,
    ) -> Result<Image, FillError> {
        let _alone = self.alone.with(&pull.reference.to_string()).await;
        let images = Arc::clone(&self.images);
        let cache = blocking(move || images.open()).await?;
        match pull.pull(&cache, size, progress).await {
            Ok(image) => Ok(image),
            Err(PullError::Image(error)) => Err(made_room(&cache, error).await),
            Err(PullError::Registry(error)) => Err(FillError {
                is_final: error.is_final(),
                message: error.to_string(),
            }),
        }
    }
}
