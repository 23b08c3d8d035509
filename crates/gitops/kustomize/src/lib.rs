//! What `kustomize build` makes of a directory, as a function from files to objects.
//!
//! [`build`] takes a tree of files and gives the objects that kustomize 5.8 would print, byte for byte when they are
//! written with [`Built::to_yaml`]. It starts no process and reaches nothing outside of the tree: charts and remote bases
//! go through interfaces that the caller supplies ([`ChartRenderer`], [`Fetcher`]). What a build may cost is bounded by
//! [`Limits`]; which files a result depends on, the tree's reader knows.
//!
//! The way of a build: [`target`] reads a kustomization and, through it, others; [`read`] makes resources of files; each
//! [`transform`]er changes them; at the end names are settled ([`name_reference`]) and the result is ordered. The crate
//! must not know Git, clients or controllers.

mod build;
mod config;
mod decode;
mod error;
mod fieldspec;
mod generate;
mod git_url;
mod helm;
mod id;
mod kustomization;
mod limits;
mod loader;
mod merge;
mod name_reference;
mod node;
mod openapi;
mod order;
mod origin;
mod plugin;
mod read;
mod resmap;
mod resource;
mod selector;
mod styled;
mod target;
mod timestamp;
mod transform;
mod vars;

pub use build::{Built, LoadRestrictions, Options, Ports, Reorder, build};
pub use error::{Error, ErrorKind};
pub use git_url::RepositorySpec;
pub use helm::{ChartRenderer, ChartRequest};
pub use limits::Limits;
pub use loader::Fetcher;
