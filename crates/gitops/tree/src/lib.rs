//! A read-only tree of files in memory, and a record of what was read from it.
//!
//! Renderers are functions of a directory. They get it as a [`Tree`]: paths and bytes, put together by a caller that
//! read them from a disk, a Git commit or an archive, or will when they are asked for ([`Source`]), within [`Limits`].
//! They read it through a [`Reader`], which refuses every way out of the tree and remembers which files, absent files and folders it was asked for. Those are
//! the [`Inputs`] of the result: as long as none of them changes, the result stays the same.
//!
//! Paths are relative to the tree's root, with `/` between their parts and neither `.` nor `..` in them; the root
//! itself is the empty path. The crate must not know what files mean, and touches no file system.

mod builder;
mod change;
mod error;
mod inputs;
mod lazy;
pub mod path;
mod reader;

pub use builder::{Limits, Tree, TreeBuilder};
pub use change::Change;
pub use error::{Problem, TreeError};
pub use inputs::Inputs;
pub use lazy::{Entry, Found, Source};
pub use reader::{Kind, Reader};

#[cfg(test)]
mod tests;
