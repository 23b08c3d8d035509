//! A directory on disk as the tree that is rendered.

use std::path::Path;

use anyhow::{Context, bail};
use fairway_gitops_tree::{Limits, Tree, TreeBuilder};

/// Directories that nothing is rendered from.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];
/// Files that are larger than this are no source of manifests.
const MAX_FILE: u64 = 32 << 20;

/// Reads everything below a directory.
pub(super) fn load(root: &Path) -> anyhow::Result<Tree> {
    let mut builder = TreeBuilder::new(Limits::default());
    add(&mut builder, root, root)?;
    Ok(builder.build())
}

fn add(builder: &mut TreeBuilder, root: &Path, directory: &Path) -> anyhow::Result<()> {
    let reading = || format!("reading {}", directory.display());
    let mut entries = std::fs::read_dir(directory)
        .with_context(reading)?
        .collect::<Result<Vec<_>, _>>()
        .with_context(reading)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let reading = || format!("reading {}", path.display());
        let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else {
            bail!("{}: the name is not UTF-8", path.display());
        };
        let kind = entry.file_type().with_context(reading)?;
        if kind.is_symlink() {
            let target = std::fs::read_link(&path).with_context(reading)?;
            // A link that leads out is refused when somebody follows it, and not before.
            if let Some(target) = target.to_str() {
                let _ = builder.link(name, target);
            }
        } else if kind.is_dir() {
            if LEFT_OUT.iter().any(|left| entry.file_name() == *left) {
                continue;
            }
            builder.directory(name)?;
            add(builder, root, &path)?;
        } else if kind.is_file() && entry.metadata().with_context(reading)?.len() <= MAX_FILE {
            builder.file(name, std::fs::read(&path).with_context(reading)?)?;
        }
    }
    Ok(())
}
