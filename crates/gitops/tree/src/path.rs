//! Paths as text: normalised, and never outside of the root. Nothing here looks at a tree.

use crate::error::{Problem, TreeError};

/// The longest path; more than any file system allows.
pub const MAX_PATH: usize = 4096;

/// A path without `.`, `..` and empty parts. Absolute paths and those that climb above the root are refused.
pub fn normalise(path: &str) -> Result<String, TreeError> {
    join("", path)
}

/// The path that `relative` means within the directory `base`, which is normalised already.
pub fn join(base: &str, relative: &str) -> Result<String, TreeError> {
    let refuse = |problem| Err(TreeError::new(relative, problem));
    if relative.len() + base.len() >= MAX_PATH {
        return refuse(Problem::PathTooLong {
            size: relative.len() + base.len() + 1,
            limit: MAX_PATH,
        });
    }
    if relative.contains('\0') {
        return refuse(Problem::BadCharacter);
    }
    if relative.starts_with('/') {
        return refuse(Problem::Escapes);
    }
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return refuse(Problem::Escapes);
                }
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

/// The directory that a path lies in; the root for a path at the top.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether `path` is `directory` or lies below it.
pub fn is_within(path: &str, directory: &str) -> bool {
    directory.is_empty()
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
