//! Plain manifests: the YAML and JSON files of a directory, in the order of their names.

use fairway_gitops_tree::path::join;
use fairway_gitops_tree::{Kind, Reader};

use crate::error::Error;
use crate::glob::Glob;
use crate::objects;

/// A file that says so in a comment is not a manifest.
const SKIP_MARK: &str = "+argocd:skip-file-rendering";
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];
/// The most bytes of all files together.
const MAX_BYTES: usize = 64 << 20;

/// Which files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectorySource {
    /// Whether directories below are read, too.
    pub recurse: bool,
    /// Only files that match; empty: all.
    pub include: String,
    /// Not the files that match.
    pub exclude: String,
}

/// The text of all manifests, each checked on its own so that an error names its file.
pub(crate) fn gather(reader: &Reader, directory: &str, source: &DirectorySource) -> Result<String, Error> {
    let pattern = |text: &str| match text {
        "" => Ok(None),
        text => Glob::new(text).map(Some),
    };
    let (include, exclude) = (pattern(&source.include)?, pattern(&source.exclude)?);
    let mut files = Vec::new();
    find(reader, directory, "", source.recurse, &mut files)?;
    let mut out = String::new();
    for relative in files {
        let is_manifest = ENDINGS.iter().any(|ending| relative.ends_with(ending));
        let is_wanted = include.as_ref().is_none_or(|glob| glob.matches(&relative))
            && !exclude.as_ref().is_some_and(|glob| glob.matches(&relative));
        if relative.ends_with(".jsonnet") && is_wanted {
            return Err(Error::Manifest {
                path: relative,
                why: "Jsonnet is not rendered; leave the file out by directory.exclude".to_owned(),
            });
        }
        if !is_manifest || !is_wanted {
            continue;
        }
        let text = reader.read_text(&join(directory, &relative)?)?;
        if text.contains(SKIP_MARK) {
            continue;
        }
        if out.len() + text.len() > MAX_BYTES {
            return Err(Error::Manifest {
                path: relative,
                why: format!("the manifests have more than the limit of {MAX_BYTES} bytes"),
            });
        }
        if objects(&text, &relative)?.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push_str("---\n");
        }
        out.push_str(text.trim_start_matches("---\n"));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
}

fn find(
    reader: &Reader,
    directory: &str,
    below: &str,
    recurse: bool,
    files: &mut Vec<String>,
) -> Result<(), Error> {
    let here = join(directory, below)?;
    for name in reader.list(&here)? {
        let relative = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        match reader.kind(&join(directory, &relative)?)? {
            Some(Kind::Directory) if recurse => find(reader, directory, &relative, recurse, files)?,
            Some(Kind::File) => files.push(relative),
            _ => {}
        }
    }
    Ok(())
}
