//! Git repositories on disk.
//!
//! The one adapter to Git: [`Git`] says how the `git` program is run, a [`Repository`] is a bare repository that plain
//! `git` reads, a [`Remote`] is somebody else's. What happens inside a repository (resolve a revision, read files, commit)
//! goes through `git cat-file` and `git fast-import`; what comes from outside through `git fetch`. Why the program and no
//! library: `docs/decisions/0005-git.md`.
//!
//! Children are run with a cleared environment, without configuration of the machine or a user, without prompts and
//! hooks, in a process group of their own that ends when the caller loses interest, within a time and an amount of output.
//! Secrets reach them through the environment or files of mode 0600, never as arguments.
//!
//! Two things live longer than a call: idle `cat-file` children, which end after some seconds, and the thread that ends
//! them, which ends with the last of them. The crate must not know clusters, objects of the API, or HTTP servers.

mod batch;
mod commit;
mod commit_info;
mod error;
mod history;
mod id;
mod incoming;
mod merge;
mod process;
mod reading;
mod refs;
mod remote;
mod repository;

pub use commit::{Change, FileChange, NewCommit};
pub use commit_info::{CommitInfo, Signature};
pub use error::GitError;
pub use history::FileDifference;
pub use id::ObjectId;
pub use incoming::IncomingObject;
pub use merge::Merged;
pub use process::{Command, Git, Options, Running};
pub use refs::{RefName, branch_problem, ref_problem};
pub use remote::{Credentials, Fetched, Remote, RemoteRef, RemoteRefs, split_credentials};
pub use repository::{Reference, Repository};
