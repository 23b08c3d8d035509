//! From where a disk is filled: what a source stands for, looked up.

mod claims;
mod http;
mod place;
mod registry;
pub(crate) mod server;
mod snapshots;

use std::sync::Arc;

use fairway_controller::{Clients, Failure, ObjectKey, Requests};
use fairway_machines_image::{Image, ImageError};
use fairway_outbound::{AllowedHosts, Outbound};

use crate::IMAGES_NAMESPACE;
use crate::alone::Alone;
use crate::decide::fitting;
use crate::decide::source::Source;
use crate::decide::status::Told;
use crate::fill::{FillError, Progress};
use crate::images::Images;
use crate::place::{Content, Place};
use crate::pull::Pull;
use crate::view::{self, Named};

pub(crate) use http::Fetch;
pub(crate) use server::Remote;

/// How a DataSource is looked up.
const DATA_SOURCES: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces";

/// What a disk is filled with.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// Something that is here. How many bytes it has; nothing has none.
    Here { content: Content, size: Option<u64> },
    /// A file on the web.
    Http(Fetch),
    /// A disk in a container image.
    Registry(Box<Pull>),
    /// Something in the cache of the control plane.
    Server(Box<Remote>),
    /// Whatever is sent.
    Upload,
    /// Something is missing, which may come.
    Waits(Told),
    /// The same, and nobody tells when it comes.
    Asks(Told),
    /// It cannot be.
    Refused(String),
}

impl Origin {
    fn waits(reason: &'static str, message: String) -> Self {
        Self::Waits(Told { reason, message })
    }

    fn asks(reason: &'static str, message: String) -> Self {
        Self::Asks(Told { reason, message })
    }

    /// How many bytes there are, if that is known beforehand.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Here { size, .. } => *size,
            Self::Server(remote) => Some(remote.record.virtual_size),
            _ => None,
        }
    }
}

/// What is known of whether a disk may be a copy of one in another namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permit {
    /// What may be copied, as it was found when the DataVolume was made.
    pub(crate) noted: Option<Named>,
    /// The machine that the disk is made for: its service account is asked.
    pub(crate) machine: Option<String>,
}

/// Where a disk goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) directory: std::path::PathBuf,
    /// Bytes that are asked for.
    pub(crate) size: u64,
    pub(crate) preallocation: bool,
}

/// Looks sources up, and carries them out.
pub(crate) struct Origins {
    clients: Clients,
    pub(crate) place: Arc<Place>,
    pub(crate) images: Arc<Images>,
    node: String,
    /// Whether the images that everybody may start from are the control plane's, and this is another host.
    pub(crate) has_server: bool,
    allowed_hosts: AllowedHosts,
    outbound: Arc<Outbound>,
    /// Who fetches something lets others wait.
    alone: Alone,
}

impl Origins {
    pub(crate) fn new(
        clients: Clients,
        (place, images): (Arc<Place>, Arc<Images>),
        (node, has_server): (String, bool),
        allowed_hosts: AllowedHosts,
    ) -> Self {
        Self {
            clients,
            place,
            images,
            node,
            has_server,
            outbound: Arc::new(Outbound::new(allowed_hosts.clone()).set_by("--image-allowed-hosts")),
            allowed_hosts,
            alone: Alone::default(),
        }
    }

    /// What a source stands for, seen from the claim that is to be filled.
    pub(crate) async fn look_up(
        &self,
        claim: &ObjectKey,
        source: &Source,
        permit: &Permit,
    ) -> Result<Origin, Failure> {
        let requests = Requests::new(self.clients.of(&claim.workspace));
        match source {
            Source::Blank => Ok(Origin::Here {
                content: Content::Blank,
                size: None,
            }),
            Source::Upload => Ok(Origin::Upload),
            Source::Http(http) => self.http(&requests, claim, http).await,
            Source::Registry(registry) => self.registry(&requests, claim, registry).await,
            Source::Claim(named) => self.claim(&requests, claim, named, permit).await,
            Source::Snapshot(named) => self.snapshot(&requests, claim, named, permit).await,
            Source::Reference(named) => self.data_source(&requests, claim, named, permit).await,
        }
    }

    async fn data_source(
        &self,
        requests: &Requests,
        claim: &ObjectKey,
        named: &Named,
        permit: &Permit,
    ) -> Result<Origin, Failure> {
        let mut named = named.clone();
        // A DataSource may stand for another one, which stands for something itself.
        for _ in 0..2 {
            let path = format!("{DATA_SOURCES}/{}/datasources/{}", named.namespace, named.name);
            let Some(found) = requests.get(&path).await? else {
                return match named.namespace == IMAGES_NAMESPACE {
                    true => self.image(&named).await,
                    false => Ok(Origin::waits(
                        "CloneWithoutSource",
                        format!("The source datasource {} doesn't exist", named.name),
                    )),
                };
            };
            let source: view::DataSource = view::read("datasource", &found)?;
            let source = source.spec.source;
            if let Some(claimed) = &source.pvc {
                let claimed = claimed.within(&named.namespace);
                return self.claim(requests, claim, &claimed, permit).await;
            }
            match (&source.snapshot, &source.data_source) {
                (Some(kept), _) => {
                    let kept = kept.within(&named.namespace);
                    return self.snapshot(requests, claim, &kept, permit).await;
                }
                (None, Some(next)) => named = next.within(&named.namespace),
                (None, None) if named.namespace == IMAGES_NAMESPACE && claim.workspace.is_root() => {
                    return self.image(&named).await;
                }
                (None, None) => {
                    return Ok(Origin::waits(
                        "CloneWithoutSource",
                        format!(
                            "Empty source field in '{}'. DataSource may not be ready yet",
                            named.name
                        ),
                    ));
                }
            }
        }
        Ok(Origin::Refused(
            "a DataSource may stand for another one, but not over more than one step".to_owned(),
        ))
    }

    /// An image that everybody may start from.
    async fn image(&self, named: &Named) -> Result<Origin, Failure> {
        // A name stands for the same on every host, if the control plane knows it.
        if self.has_server
            && let Some(origin) = self.image_of_server(&named.name).await?
        {
            return Ok(origin);
        }
        let (images, name) = (Arc::clone(&self.images), named.name.clone());
        let found = blocking(move || images.open()?.find(&name)).await;
        match found {
            Ok(Some(image)) => Ok(Origin::Here {
                size: Some(image.virtual_size),
                content: Content::Image(Box::new(image)),
            }),
            Ok(None) | Err(ImageError::Name(_)) => Ok(Origin::asks(
                "CloneWithoutSource",
                format!(
                    "The source image {0} doesn't exist; see what there is with `fairway image list`, and build or import it \
                     with `fairway image build` or `fairway image import --name {0}`",
                    named.name
                ),
            )),
            Err(error) => Ok(Origin::asks("CloneWithoutSource", crate::fill::sentence(&error))),
        }
    }

    /// Makes a disk of what is here.
    pub(crate) async fn make(target: Target, content: Content, size: Option<u64>) -> Result<(), FillError> {
        let bytes = fitting::size(target.size, size).map_err(FillError::last)?;
        blocking(move || Place::make(&target.directory, &content, bytes, target.preallocation)).await?;
        Ok(())
    }

    /// Carries an origin out that takes a while.
    pub(crate) async fn carry_out(
        self: Arc<Self>,
        origin: Origin,
        target: Target,
        progress: Arc<Progress>,
    ) -> Result<(), FillError> {
        match origin {
            Origin::Here { content, size } => Self::make(target, content, size).await,
            Origin::Http(fetch) => {
                let image = self.fetch(&fetch, target.size, progress).await?;
                Self::make_from(target, image).await
            }
            Origin::Registry(pull) => {
                let image = self.pull(&pull, target.size, &progress).await?;
                Self::make_from(target, image).await
            }
            Origin::Server(remote) => {
                let image = self.receive(&remote, target.size, &progress).await?;
                Self::make_from(target, image).await
            }
            Origin::Upload => Err(FillError::passing("nothing was sent yet")),
            Origin::Waits(told) | Origin::Asks(told) => Err(FillError::passing(told.message)),
            Origin::Refused(why) => Err(FillError::last(why)),
        }
    }

    /// Makes a disk over an image.
    pub(crate) async fn make_from(target: Target, image: Image) -> Result<(), FillError> {
        let size = Some(image.virtual_size);
        Self::make(target, Content::Image(Box::new(image)), size).await
    }
}

/// Does what takes the disk's time where it keeps nobody waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(ImageError::Build(format!("the work broke off: {error}"))),
    }
}
