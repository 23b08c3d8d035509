//! What a directory is, as Argo CD finds out: by the files in it and nothing else.

use fairway_gitops_tree::{Kind as Entry, Reader};

use crate::error::Error;

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A chart.
    Helm,
    /// A kustomization.
    Kustomize,
    /// Plain manifests.
    Directory,
}

const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Finds out.
pub fn detect(reader: &Reader, directory: &str) -> Result<Kind, Error> {
    let has = |name: &str| -> Result<bool, Error> {
        let path = fairway_gitops_tree::path::join(directory, name)?;
        Ok(reader.kind(&path)? == Some(Entry::File))
    };
    if has("Chart.yaml")? {
        return Ok(Kind::Helm);
    }
    for name in KUSTOMIZATIONS {
        if has(name)? {
            return Ok(Kind::Kustomize);
        }
    }
    Ok(Kind::Directory)
}
