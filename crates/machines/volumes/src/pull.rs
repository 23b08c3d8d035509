//! Disks out of container images in registries.
//!
//! The registry is asked for the manifest each time, so that it decides who may have the image; what the manifest names by its
//! digest is fetched once. Layers are looked at from the last to the first, as later ones cover earlier ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_machines_image::import::{self, Kept};
use fairway_machines_image::{Cache, Image, ImageError, download, oci};
use fairway_outbound::Outbound;
use fairway_registry::{Credentials, Descriptor, Digest, Reference, Registry, RegistryError};
use ring::digest::{Context, SHA256};

use crate::fill::Progress;
use crate::origin::blocking;

/// The label of a kept disk with the digest of its image.
pub(crate) const MANIFEST: &str = "manifest";

/// What is pulled, and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) reference: Reference,
    /// The disk in the image; without one it is the only file under `/disk`.
    pub(crate) path: Option<String>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) outbound: Arc<Outbound>,
    /// The registry is asked without encryption.
    pub(crate) is_insecure: bool,
}

/// Why there is no disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    #[error(transparent)]
    Registry(RegistryError),
    #[error(transparent)]
    Image(ImageError),
}

impl From<ImageError> for PullError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

/// A processor in Go's words.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Pull {
    fn registry(&self) -> Registry {
        Registry::new(
            Arc::clone(&self.outbound),
            self.reference.clone(),
            self.credentials.clone(),
            self.is_insecure,
        )
    }

    /// The digest that the reference stands for now.
    pub(crate) async fn digest(&self) -> Result<Digest, RegistryError> {
        self.registry().digest().await
    }

    /// The disk, of at most `max_size` bytes.
    pub(crate) async fn pull(
        &self,
        cache: &Cache,
        max_size: u64,
        progress: &Arc<Progress>,
    ) -> Result<Image, PullError> {
        let registry = self.registry();
        let (digest, layers) = registry
            .image(architecture())
            .await
            .map_err(PullError::Registry)?;
        let path = self.path.as_deref().unwrap_or_default();
        let key = Digest::of(format!("oci {digest} {path}").as_bytes())
            .hex()
            .to_owned();
        let (looked_in, looked_for) = (cache.clone(), key.clone());
        if let Some(kept) = blocking(move || looked_in.kept(&looked_for)).await? {
            return Ok(kept);
        }
        let mut request = import::Request::keeping(
            Kept {
                key,
                labels: BTreeMap::from([(MANIFEST.to_owned(), digest.to_string())]),
            },
            &self.reference.to_string(),
        );
        request.max_size = max_size;
        for layer in layers.iter().rev() {
            if let Some(image) = self.layer(cache, &registry, layer, &request, progress).await? {
                return Ok(image);
            }
        }
        Err(PullError::Image(ImageError::Unusable {
            what: self.reference.to_string(),
            why: match &self.path {
                Some(path) => format!("there is no {path} in it"),
                None => "there is no file under /disk in it: it is no container disk".to_owned(),
            },
        }))
    }

    /// The disk in a layer, if it has one.
    async fn layer(
        &self,
        cache: &Cache,
        registry: &Registry,
        layer: &Descriptor,
        request: &import::Request,
        progress: &Arc<Progress>,
    ) -> Result<Option<Image>, PullError> {
        let limit = import::largest_file(request.max_size);
        if layer.size > limit {
            return Err(PullError::Image(ImageError::TooLarge {
                what: request.source.clone(),
                limit,
            }));
        }
        let blob = registry.blob(&layer.digest);
        let (said, size) = (Arc::clone(progress), layer.size);
        let told = move |so_far: download::Progress| said.set(so_far.done, size.saturating_mul(2));
        let fetched =
            download::fetch(cache, &self.outbound, &blob.url, &blob.headers, layer.size, told).await?;
        let (cache, request) = (cache.clone(), request.clone());
        let (inner, expected, source) = (self.path.clone(), layer.digest.clone(), request.source.clone());
        let image = blocking(move || {
            let found = digest_of(fetched.path());
            let image = match found {
                Ok(found) if found == expected => {
                    oci::import_layer(&cache, fetched.path(), inner.as_deref(), &request, |_| {})
                }
                Ok(found) => Err(ImageError::Checksum {
                    what: format!("a layer of {source}"),
                    found: found.to_string(),
                    expected: expected.to_string(),
                }),
                Err(error) => Err(ImageError::File {
                    action: "reading",
                    path: fetched.path().to_owned(),
                    source: error,
                }),
            };
            if !matches!(image, Err(ImageError::NoRoom { .. })) {
                fetched.discard();
            }
            image
        })
        .await?;
        Ok(image)
    }
}

fn digest_of(path: &std::path::Path) -> std::io::Result<Digest> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => context.update(&buffer[..count]),
        }
    }
    let hex: String = context
        .finish()
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Digest::parse(&format!("sha256:{hex}")).ok_or_else(|| std::io::Error::other("a digest that is none"))
}
