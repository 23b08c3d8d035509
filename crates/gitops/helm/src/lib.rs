//! Charts and values to manifests, as `helm template` 3.17 renders them.
//!
//! A [`Chart`] is read once, from a directory of a [`fairway_gitops_tree::Reader`] or from the bytes of a `.tgz`, and
//! rendered as often as one likes: [`render`] is a function of the chart, the values, the release, what the cluster
//! can do ([`Capabilities`]) and the [`Environment`], which stands for everything that Helm takes from elsewhere:
//! clock, chance, and the cluster that `lookup` asks. Same input, same bytes.
//!
//! [`ValuesBuilder`] merges values files and the arguments of `--set` and its kin. The order of the manifests, the
//! hooks and the text are Helm's, byte for byte. The crate must not open files, talk to clusters, or know what is done
//! with the manifests.

mod capabilities;
mod chart;
mod dependencies;
mod engine;
mod environment;
mod error;
mod glob;
mod manifest;
mod render;
mod schema;
pub mod strvals;
mod values;

pub use capabilities::{Capabilities, KubeVersion};
pub use chart::{
    ArchiveLimits, Chart, Data, Dependency, File, Maintainer, Metadata, directory_files, unpack_chart,
    unpack_layer,
};
pub use engine::release_name;
pub use environment::{Environment, Offline};
pub use error::Error;
pub use manifest::{Content, Hook, Manifest, Reading};
pub use render::{Crd, Options, Output, Release, Rendered, render};
pub use values::ValuesBuilder;

#[cfg(test)]
mod tests;
