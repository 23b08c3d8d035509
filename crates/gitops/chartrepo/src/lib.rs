//! Repositories of charts, without the network between.
//!
//! What a version constraint means among the versions that there are ([`version`]), what an `index.yaml` says ([`Index`]),
//! how a registry is spoken to ([`oci`], [`challenge`]), where a chart is fetched and who may be told a password
//! ([`Url`]), and what `helm dependency build` would bring ([`dependency`]). Helm 3.17 and Argo CD 3.2 are followed in
//! all of it. The crate must not fetch anything, nor know Applications, Secrets or controllers.

pub mod challenge;
pub mod dependency;
mod index;
pub mod oci;
pub mod proxy;
mod url;
pub mod version;

pub use index::{Entry, Index, MAX_INDEX};
pub use url::Url;

/// Why something of a repository is of no use. The text is for the author of an Application.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

impl Unusable {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
