//! Why a source could not be rendered.

use fairway_gitops_helm as helm;
use fairway_gitops_kustomize as kustomize;
use fairway_gitops_tree::TreeError;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A chart.
    #[error("the chart {directory:?}: {source}")]
    Helm {
        /// Its directory.
        directory: String,
        /// Why.
        source: helm::Error,
    },
    /// A kustomization.
    #[error(transparent)]
    Kustomize(#[from] kustomize::Error),
    /// A manifest, or what was rendered.
    #[error("{path}: {why}")]
    Manifest {
        /// The file or directory.
        path: String,
        /// Why.
        why: String,
    },
    /// A pattern of files.
    #[error("the pattern {pattern:?} is not one: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        why: String,
    },
    /// A variable.
    #[error("substituting variables: {0}")]
    Variable(String),
}
