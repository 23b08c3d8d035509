//! A directory on disk as the tree that is rendered. Files are read when a renderer asks for them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_gitops_tree::{Found, Limits, Problem, Source, Tree};

/// Nothing is rendered from there.
const LEFT_OUT: &str = ".git";

/// The tree below a directory, which is absolute and has no links in it.
pub(super) fn tree(root: &Path) -> Tree {
    let disk = Disk {
        root: root.to_owned(),
    };
    Tree::lazy(Box::new(disk), Limits::default())
}

#[derive(Debug)]
struct Disk {
    root: PathBuf,
}

impl Source for Disk {
    fn find(&self, path: &str) -> Result<Option<Found>, Problem> {
        let full = self.root.join(path);
        if full.file_name().is_some_and(|name| name == LEFT_OUT) {
            return Ok(None);
        }
        let found = match fs::symlink_metadata(&full) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            other => other.map_err(|error| unreadable(&error))?,
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&full).map_err(|error| unreadable(&error))?;
            return Ok(Some(Found::Link(self.relative(path, &target)?)));
        }
        if kind.is_dir() {
            return Ok(Some(Found::Directory));
        }
        if !kind.is_file() {
            return Err(Problem::Unreadable {
                why: "it is neither a file nor a directory".to_owned(),
            });
        }
        Ok(Some(Found::File(found.len())))
    }

    fn read(&self, path: &str, size: u64) -> Result<Arc<[u8]>, Problem> {
        read(&self.root.join(path), size).map_err(|error| unreadable(&error))
    }

    fn names(&self, path: &str, limit: usize) -> Result<BTreeSet<String>, Problem> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(self.root.join(path)).map_err(|error| unreadable(&error))? {
            let name = entry.map_err(|error| unreadable(&error))?.file_name();
            let name = name.into_string().map_err(|name| Problem::Unreadable {
                why: format!("the name {} in it is not UTF-8", name.display()),
            })?;
            if name == LEFT_OUT {
                continue;
            }
            names.insert(name);
            if names.len() > limit {
                return Err(Problem::TooManyFiles { limit });
            }
        }
        Ok(names)
    }
}

impl Disk {
    /// A link's target as seen from the link. An absolute one leads out, unless it comes back into the tree.
    fn relative(&self, link: &str, target: &Path) -> Result<String, Problem> {
        let text = |path: &Path| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| Problem::Unreadable {
                    why: "the symbolic link's target is not UTF-8".to_owned(),
                })
        };
        match target.strip_prefix(&self.root) {
            Ok(within) if target.is_absolute() => {
                let up = "../".repeat(link.matches('/').count());
                Ok(format!("{up}{}", text(within)?))
            }
            _ => text(target),
        }
    }
}

fn unreadable(error: &io::Error) -> Problem {
    Problem::Unreadable {
        why: error.to_string(),
    }
}

/// The first bytes of a file, `size` of them unless it ends before.
fn read(path: &Path, size: u64) -> io::Result<Arc<[u8]>> {
    let mut file = fs::File::open(path)?;
    let size = usize::try_from(size).unwrap_or(0);
    // Where it stays: what is read into a list of its own would be copied there.
    let mut content: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
    let mut filled = 0;
    if let Some(buffer) = Arc::get_mut(&mut content) {
        while filled < size {
            match file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    match filled == size {
        true => Ok(content),
        false => Ok(content[..filled].into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_when_asked_and_its_links_stay_within() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join("a/b/file"), "text").unwrap();
        let link = |name: &str, target: &Path| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        link("a/relative", Path::new("b/file"));
        link("a/back", &root.join("a/b/file"));
        link("a/out", Path::new("/etc/hostname"));
        link("a/up", Path::new("../../.."));
        let reader = tree(&root).reader();
        for path in ["a/b/file", "a/relative", "a/back"] {
            assert_eq!(&*reader.read(path).unwrap(), b"text", "{path}");
        }
        assert_eq!(reader.list("").unwrap(), ["a"]);
        assert_eq!(reader.kind(".git").unwrap(), None);
        assert_eq!(reader.kind("a/b/file/below").unwrap(), None);
        for path in ["a/out", "a/up/x"] {
            let error = reader.read(path).unwrap_err().to_string();
            assert!(error.contains("leads out"), "{error}");
        }
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::write(root.join("large"), "0123456789").unwrap();
        let disk = Disk { root };
        assert_eq!(disk.find("large"), Ok(Some(Found::File(10))));
        for (size, content) in [(4, "0123"), (10, "0123456789"), (20, "0123456789")] {
            assert_eq!(disk.read("large", size).as_deref(), Ok(content.as_bytes()));
        }
        let limits = Limits {
            file_bytes: 9,
            ..Limits::default()
        };
        let error = Tree::lazy(Box::new(disk), limits)
            .reader()
            .read("large")
            .unwrap_err();
        assert_eq!(error.problem, Problem::FileTooLarge { size: 10, limit: 9 });
    }
}
