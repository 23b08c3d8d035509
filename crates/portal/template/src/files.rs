//! The working tree of a run: a value, not a directory.
//!
//! Nothing that a template writes can leave it, because there is nowhere else to write to: paths are cleaned when they are made, links
//! do not exist, and sizes are bounded. A run that is taken up again makes the same tree by doing the same steps.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The most files.
pub const MAX_FILES: usize = 2000;
/// The largest file.
pub const MAX_FILE: usize = 8 << 20;
/// All files together.
pub const MAX_TOTAL: usize = 32 << 20;
/// The longest path.
const MAX_PATH: usize = 512;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// What is in it.
    pub content: Arc<[u8]>,
    /// Whether it can be run.
    pub is_executable: bool,
}

impl File {
    /// A file with this in it.
    pub fn new(content: impl Into<Arc<[u8]>>) -> Self {
        Self {
            content: content.into(),
            is_executable: false,
        }
    }

    /// Its text, if it is text: no zero byte, and UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self.content.contains(&0) {
            true => None,
            false => std::str::from_utf8(&self.content).ok(),
        }
    }
}

/// Why something cannot be done with files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// A path that leads out, or cannot be one.
    #[error("{path:?} cannot be the path of a file: {why}")]
    Path {
        /// As it was written.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such file or directory.
    #[error("there is no {0:?}")]
    Missing(String),
    /// There is one already.
    #[error("{0:?} exists already")]
    Exists(String),
    /// Too much.
    #[error("{0}")]
    TooLarge(String),
}

/// Cleans a path: relative, with `/`, without `.` and `..`, and nothing that Git or another system takes for something else. The empty
/// path is the whole tree.
pub fn clean(path: &str) -> Result<String, FilesError> {
    let wrong = |why: &'static str| FilesError::Path {
        path: path.chars().take(200).collect(),
        why,
    };
    if path.len() > MAX_PATH {
        return Err(wrong("it is too long"));
    }
    if path.contains(|c: char| c.is_control()) {
        return Err(wrong("it has control characters"));
    }
    if path.contains('\\') {
        return Err(wrong("it has a backslash"));
    }
    if path.starts_with('/') || path.as_bytes().get(1) == Some(&b':') {
        return Err(wrong("it is not relative"));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(wrong("it leads out of the working tree")),
            _ => {
                let lower = part.to_lowercase();
                let bare = lower.trim_end_matches([' ', '.']);
                if bare == ".git" || bare == "git~1" {
                    return Err(wrong("it names Git's own directory"));
                }
                parts.push(part);
            }
        }
    }
    Ok(parts.join("/"))
}

/// Files by their cleaned paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, File>);

impl Files {
    /// Every file, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of their bytes.
    pub fn size(&self) -> usize {
        self.0.values().map(|file| file.content.len()).sum()
    }

    /// A file.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.0.get(&clean(path).ok()?)
    }

    /// Writes a file, whatever was there.
    pub fn write(&mut self, path: &str, file: File) -> Result<(), FilesError> {
        let clean = clean(path)?;
        if clean.is_empty() {
            return Err(FilesError::Path {
                path: path.to_owned(),
                why: "it names no file",
            });
        }
        let above = clean.match_indices('/').map(|(at, _)| &clean[..at]);
        for directory in above {
            if self.0.contains_key(directory) {
                return Err(FilesError::Exists(directory.to_owned()));
            }
        }
        if self.below(&clean).next().is_some() {
            return Err(FilesError::Exists(clean));
        }
        let replaced = self.0.get(&clean).map_or(0, |old| old.content.len());
        if file.content.len() > MAX_FILE {
            return Err(FilesError::TooLarge(format!(
                "{clean:?} is larger than {} MiB",
                MAX_FILE >> 20
            )));
        }
        if self.size() - replaced + file.content.len() > MAX_TOTAL {
            return Err(FilesError::TooLarge(format!(
                "the files are larger than {} MiB together",
                MAX_TOTAL >> 20
            )));
        }
        if self.0.len() >= MAX_FILES && !self.0.contains_key(&clean) {
            return Err(FilesError::TooLarge(format!(
                "there are more than {MAX_FILES} files"
            )));
        }
        self.0.insert(clean, file);
        Ok(())
    }

    /// Files below a directory, with their paths from there on.
    pub fn below<'a>(&'a self, directory: &str) -> impl Iterator<Item = (&'a str, &'a File)> + use<'a> {
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        self.0
            .range(prefix.clone()..)
            .map_while(move |(path, file)| Some((path.strip_prefix(&prefix)?, file)))
    }

    /// The tree below a directory as one of its own.
    pub fn subtree(&self, directory: &str) -> Result<Self, FilesError> {
        let directory = clean(directory)?;
        let files = self
            .below(&directory)
            .map(|(path, file)| (path.to_owned(), file.clone()));
        Ok(Self(files.collect()))
    }

    /// Removes a file or a directory with all that is in it; whether there was one.
    pub fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        let clean = clean(path)?;
        let before = self.0.len();
        let prefix = format!("{clean}/");
        self.0
            .retain(|known, _| !clean.is_empty() && *known != clean && !known.starts_with(&prefix));
        Ok(self.0.len() != before)
    }

    /// Moves or copies a file or directory.
    pub fn rename(&mut self, from: &str, to: &str, overwrite: bool, keep: bool) -> Result<(), FilesError> {
        let (from_clean, to_clean) = (clean(from)?, clean(to)?);
        let moved: Vec<(String, File)> = match self.0.get(&from_clean) {
            Some(file) => vec![(to_clean, file.clone())],
            None => self
                .below(&from_clean)
                .map(|(path, file)| {
                    let path = match to_clean.is_empty() {
                        true => path.to_owned(),
                        false => format!("{to_clean}/{path}"),
                    };
                    (path, file.clone())
                })
                .collect(),
        };
        if moved.is_empty() {
            return Err(FilesError::Missing(from.to_owned()));
        }
        let taken = moved
            .iter()
            .find(|(path, _)| self.0.contains_key(path) && *path != from_clean);
        if let (Some((path, _)), false) = (taken, overwrite) {
            return Err(FilesError::Exists(path.clone()));
        }
        if !keep {
            self.remove(&from_clean)?;
        }
        moved
            .into_iter()
            .try_for_each(|(path, file)| self.write(&path, file))
    }

    /// Paths that a pattern matches: `*` within a part, `**` over parts, `?` one character.
    pub fn matching(&self, pattern: &Pattern) -> Vec<String> {
        let found = self.0.keys().filter(|path| pattern.matches(path));
        found.cloned().collect()
    }
}

/// A pattern of paths.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

impl Pattern {
    /// Reads a pattern as globby does.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let wrong = || format!("{pattern:?} cannot be used as a pattern of paths");
        if pattern.len() > MAX_PATH {
            return Err(wrong());
        }
        let mut source = "^".to_owned();
        let mut rest = pattern.strip_prefix("./").unwrap_or(pattern);
        let mut braces = 0_usize;
        while let Some(c) = rest.chars().next() {
            let (made, length) = match c {
                '*' if rest.starts_with("**/") => ("(?:[^/]+/)*".to_owned(), 3),
                '*' if rest.starts_with("**") => (".*".to_owned(), 2),
                '*' => ("[^/]*".to_owned(), 1),
                '?' => ("[^/]".to_owned(), 1),
                '{' => {
                    braces += 1;
                    ("(?:".to_owned(), 1)
                }
                '}' if braces > 0 => {
                    braces -= 1;
                    (")".to_owned(), 1)
                }
                ',' if braces > 0 => ("|".to_owned(), 1),
                c => (regex::escape(&c.to_string()), c.len_utf8()),
            };
            source.push_str(&made);
            rest = &rest[length..];
        }
        source.push('$');
        let built = regex::RegexBuilder::new(&source).size_limit(1 << 20).build();
        built.map(Self).map_err(|_| wrong())
    }

    /// Whether a path is meant.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Files {
        let mut files = Files::default();
        for path in paths {
            files.write(path, File::new(path.as_bytes())).unwrap();
        }
        files
    }

    #[test]
    fn paths_do_not_lead_out() {
        for (path, expected) in [
            ("a/b", Some("a/b")),
            ("./a//b/", Some("a/b")),
            ("", Some("")),
            ("../a", None),
            ("a/../../b", None),
            ("/etc/passwd", None),
            ("a\\..\\b", None),
            ("C:/x", None),
            ("a\0b", None),
            ("a\nb", None),
            (".git/hooks/pre-commit", None),
            ("x/.GIT/config", None),
            (".git /config", None),
            ("GIT~1/config", None),
            (".gitignore", Some(".gitignore")),
        ] {
            assert_eq!(clean(path).ok().as_deref(), expected, "{path:?}");
        }
        assert!(clean(&"a/".repeat(600)).is_err());
    }

    #[test]
    fn files_are_moved_copied_and_removed() {
        let mut files = tree(&["a/x", "a/y/z", "b", "ab/c"]);
        files.rename("a", "d", false, false).unwrap();
        assert_eq!(
            files.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            ["ab/c", "b", "d/x", "d/y/z"]
        );
        files.rename("d/x", "e", false, true).unwrap();
        assert!(files.get("d/x").is_some() && files.get("e").is_some());
        assert_eq!(
            files.rename("b", "e", false, false),
            Err(FilesError::Exists("e".to_owned()))
        );
        files.rename("b", "e", true, false).unwrap();
        assert_eq!(
            files.rename("b", "f", false, false),
            Err(FilesError::Missing("b".to_owned()))
        );
        assert!(files.remove("d").unwrap() && !files.remove("d").unwrap());
        assert_eq!(files.len(), 2);
        assert!(files.remove("../x").is_err());
    }

    #[test]
    fn a_path_is_a_file_or_a_directory() {
        let mut files = tree(&["a/b"]);
        assert!(files.write("a", File::new(*b"x")).is_err());
        assert!(files.write("a/b/c", File::new(*b"x")).is_err());
    }

    #[test]
    fn sizes_are_bounded() {
        let mut files = Files::default();
        assert!(files.write("big", File::new(vec![0; MAX_FILE + 1])).is_err());
        for at in 0..MAX_FILES {
            files.write(&format!("f{at}"), File::new(*b"")).unwrap();
        }
        assert!(files.write("one-more", File::new(*b"")).is_err());
        assert!(files.write("f1", File::new(*b"again")).is_ok());
    }

    #[test]
    fn patterns_match_paths() {
        for (pattern, path, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "b/a.yaml", false),
            ("**/*.yaml", "b/c/a.yaml", true),
            ("**/*.yaml", "a.yaml", true),
            (".github/**", ".github/workflows/x.yml", true),
            ("a/{b,c}/?", "a/c/x", true),
            ("a", "a/b", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).unwrap().matches(path),
                expected,
                "{pattern} {path}"
            );
        }
    }
}
