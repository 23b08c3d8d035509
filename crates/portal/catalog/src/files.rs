//! Files of hosted repositories, as the catalog sees them. The binary makes this of its Git host; tests of memory.

use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_portal_entity::place::Hosted;
use futures::future::BoxFuture;

/// Why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesError {
    /// There is no such repository or revision, or none that this workspace may read.
    NotFound(String),
    /// Reading failed; another time it may not.
    Failed(String),
}

/// Repositories of this installation.
pub trait Files: Send + Sync + 'static {
    /// The address of the Git host, without a slash at its end.
    fn host(&self) -> &str;

    /// A repository at a revision, for a workspace: its own, and those of others that everybody may read. Without one, only what
    /// everybody may read.
    fn open<'a>(
        &'a self,
        asker: Option<&'a WorkspaceId>,
        hosted: &'a Hosted,
    ) -> BoxFuture<'a, Result<Arc<dyn Snapshot>, FilesError>>;

    /// The address of the default branch's catalog file in a repository of a workspace; none if the repository has no such branch or
    /// file.
    fn catalog_file<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        repository: &'a str,
    ) -> BoxFuture<'a, Result<Option<Hosted>, FilesError>>;
}

/// A repository at one commit. What it says may take a moment: it is asked where waiting is allowed.
pub trait Snapshot: Send + Sync {
    /// The commit.
    fn commit(&self) -> &str;

    /// A file; none if there is none.
    fn read(&self, path: &str) -> Result<Option<Arc<[u8]>>, String>;

    /// All paths, for patterns.
    fn list(&self) -> Result<Vec<String>, String>;
}
