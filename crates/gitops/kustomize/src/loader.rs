//! Reads files for one kustomization: those in its directory, and others only if the caller allows it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use fairway_gitops_tree::{Kind, Problem, Reader, Tree, path};

use crate::error::{Error, ErrorKind, Result, Within};
use crate::git_url::{self, RepositorySpec};
use crate::limits::Limits;

/// Brings what is not in the tree. The build itself never reaches out.
pub trait Fetcher {
    /// The content of a file at an address; none if the address is not one of a file.
    fn file(&self, url: &str) -> std::result::Result<Option<Arc<[u8]>>, String>;

    /// The files of a repository.
    fn repository(&self, repository: &RepositorySpec) -> std::result::Result<Tree, String>;

    /// A chart, as a tree whose root is the chart.
    fn chart(&self, repository: &str, name: &str, version: &str) -> std::result::Result<Tree, String>;
}

/// What all loaders of a build share.
pub(crate) struct Shared<'f> {
    pub(crate) limits: Limits,
    pub(crate) fetcher: Option<&'f dyn Fetcher>,
    read_bytes: Cell<usize>,
    entered: Cell<usize>,
    trees: Cell<usize>,
}

impl<'f> Shared<'f> {
    pub(crate) fn new(limits: Limits, fetcher: Option<&'f dyn Fetcher>) -> Self {
        Self {
            limits,
            fetcher,
            read_bytes: Cell::default(),
            entered: Cell::default(),
            trees: Cell::default(),
        }
    }
}

/// Reads files relative to a directory.
pub(crate) struct Loader<'f> {
    shared: Rc<Shared<'f>>,
    pub(crate) reader: Reader,
    /// Tells trees apart.
    tree: usize,
    /// The directory, after symbolic links.
    pub(crate) root: String,
    /// Whether files outside of the directory are refused.
    restricted: bool,
    repository: Option<RepositorySpec>,
    parent: Option<Rc<Loader<'f>>>,
    depth: usize,
}

impl<'f> Loader<'f> {
    /// Starts at a directory of the tree.
    pub(crate) fn new(
        shared: Rc<Shared<'f>>,
        reader: &Reader,
        directory: &str,
        restricted: bool,
    ) -> Result<Rc<Self>> {
        let root = directory_at(reader, "", directory)?;
        Ok(Rc::new(Self {
            shared,
            reader: reader.clone(),
            tree: 0,
            root,
            restricted,
            repository: None,
            parent: None,
            depth: 0,
        }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn fetcher(&self) -> Option<&'f dyn Fetcher> {
        self.shared.fetcher
    }

    /// The directory as people write it.
    pub(crate) fn shown_root(&self) -> &str {
        match self.root.as_str() {
            "" => ".",
            root => root,
        }
    }

    /// The bytes of a file.
    pub(crate) fn load(&self, relative: &str) -> Result<Arc<[u8]>> {
        let bytes = match is_url(relative) {
            true => self.load_url(relative)?,
            false => self.load_file(relative)?,
        };
        let read = self.shared.read_bytes.get().saturating_add(bytes.len());
        self.shared.read_bytes.set(read);
        let limit = self.shared.limits.read_bytes;
        if read > limit {
            return Err(Error::of(
                ErrorKind::Limit,
                format!("'{relative}': the build has read more than the limit of {limit} bytes"),
            ));
        }
        Ok(bytes)
    }

    fn load_file(&self, relative: &str) -> Result<Arc<[u8]>> {
        let refuse = |error: fairway_gitops_tree::TreeError| Error::new(error.to_string());
        let joined = path::join(&self.root, relative).map_err(refuse)?;
        self.guard(&joined)?;
        self.reader.read(&joined).map_err(refuse)
    }

    /// Refuses a path of the tree that files may not be loaded from.
    pub(crate) fn guard(&self, joined: &str) -> Result<()> {
        if !self.restricted {
            return Ok(());
        }
        let real = self
            .reader
            .real_path(joined)
            .map_err(|error| Error::new(error.to_string()))?;
        match path::is_within(&real, &self.root) {
            true => Ok(()),
            false => Err(Error::new(format!(
                "security; file '{joined}' is not in or below '{}'",
                self.shown_root()
            ))),
        }
    }

    fn load_url(&self, url: &str) -> Result<Arc<[u8]>> {
        let Some(fetcher) = self.shared.fetcher else {
            return Err(Error::of(
                ErrorKind::Remote,
                format!("'{url}' is not in the tree, and nothing is fetched from elsewhere"),
            ));
        };
        match fetcher.file(url) {
            Ok(Some(content)) => Ok(content),
            Ok(None) if git_url::parse(url).is_some() => Err(Error::new("URL is a git repository")),
            Ok(None) => Err(Error::of(
                ErrorKind::Remote,
                format!("'{url}': there is no such file"),
            )),
            Err(why) => Err(Error::of(ErrorKind::Remote, format!("fetching '{url}': {why}"))),
        }
    }

    /// A loader for another kustomization that this one refers to.
    pub(crate) fn enter(self: &Rc<Self>, relative: &str) -> Result<Rc<Self>> {
        if relative.is_empty() {
            return Err(Error::new("new root cannot be empty"));
        }
        let limits = &self.shared.limits;
        let entered = self.shared.entered.get() + 1;
        self.shared.entered.set(entered);
        if entered > limits.kustomizations {
            return Err(Error::of(
                ErrorKind::Limit,
                format!(
                    "'{relative}': more than the limit of {} kustomizations",
                    limits.kustomizations
                ),
            ));
        }
        if self.depth >= limits.depth {
            return Err(Error::of(
                ErrorKind::Limit,
                format!(
                    "'{relative}': kustomizations are nested deeper than the limit of {}",
                    limits.depth
                ),
            ));
        }
        if let Some(repository) = git_url::parse(relative) {
            return self.enter_repository(repository);
        }
        if relative.starts_with('/') {
            return Err(Error::new(format!("new root '{relative}' cannot be absolute")));
        }
        let root = directory_at(&self.reader, &self.root, relative)?;
        self.refuse_cycle(&root)?;
        Ok(Rc::new(Self {
            shared: self.shared.clone(),
            reader: self.reader.clone(),
            tree: self.tree,
            root,
            restricted: self.restricted,
            repository: None,
            parent: Some(self.clone()),
            depth: self.depth + 1,
        }))
    }

    fn enter_repository(self: &Rc<Self>, repository: RepositorySpec) -> Result<Rc<Self>> {
        let mut ancestor = Some(self);
        while let Some(loader) = ancestor {
            if let Some(visited) = &loader.repository
                && visited.raw.starts_with(&repository.raw)
            {
                return Err(Error::new(format!(
                    "cycle detected: URI '{}' referenced by previous URI '{}'",
                    repository.raw, visited.raw
                )));
            }
            ancestor = loader.parent.as_ref();
        }
        let fetcher = self.shared.fetcher.ok_or_else(|| {
            Error::of(
                ErrorKind::Remote,
                format!(
                    "'{}' is a repository elsewhere, and nothing is fetched from elsewhere",
                    repository.raw
                ),
            )
        })?;
        let tree = fetcher
            .repository(&repository)
            .map_err(|why| Error::of(ErrorKind::Remote, format!("fetching '{}': {why}", repository.raw)))?;
        let reader = tree.reader();
        let root = directory_at(&reader, "", &repository.path).within(|| repository.raw.clone())?;
        self.shared.trees.set(self.shared.trees.get() + 1);
        Ok(Rc::new(Self {
            shared: self.shared.clone(),
            reader,
            tree: self.shared.trees.get(),
            root,
            restricted: true,
            repository: Some(repository),
            parent: Some(self.clone()),
            depth: self.depth + 1,
        }))
    }

    fn refuse_cycle(self: &Rc<Self>, candidate: &str) -> Result<()> {
        let mut ancestor = Some(self);
        while let Some(loader) = ancestor.filter(|loader| loader.tree == self.tree) {
            if path::is_within(&loader.root, candidate) {
                let shown = if candidate.is_empty() { "." } else { candidate };
                return Err(Error::new(format!(
                    "cycle detected: candidate root '{shown}' contains visited root '{}'",
                    loader.shown_root()
                )));
            }
            ancestor = loader.parent.as_ref();
        }
        Ok(())
    }
}

fn directory_at(reader: &Reader, base: &str, relative: &str) -> Result<String> {
    let not_a_root =
        |why: String| Error::new(format!("must build at directory: not a valid directory: {why}"));
    let joined = path::join(base, relative).map_err(|error| match error.problem {
        Problem::Escapes => Error::of(ErrorKind::Above, not_a_root(error.to_string()).to_string()),
        _ => not_a_root(error.to_string()),
    })?;
    match reader
        .kind(&joined)
        .map_err(|error| not_a_root(error.to_string()))?
    {
        Some(Kind::Directory) => reader
            .real_path(&joined)
            .map_err(|error| not_a_root(error.to_string())),
        Some(Kind::File) => Err(not_a_root(format!("'{relative}' is a file"))),
        None => Err(not_a_root(format!("'{joined}' does not exist"))),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}
