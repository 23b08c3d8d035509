//! Disk images: where they come from, and where they are kept until a machine needs one.
//!
//! - [`Cache`]: finished images by their content, with names for people. Whatever is in it is whole: an image is made aside
//!   and appears in one step. A machine's disk is an overlay that starts empty ([`overlay`]).
//! - [`import`]: a file from anywhere becomes an image: unpacked within limits, judged, hashed, published.
//! - [`download`]: fetches a file from the web, and goes on where it was interrupted.
//! - [`Receiving`]: content out of another cache, by its digest.
//! - [`oci`]: finds the disk in a container image that lies on disk.
//! - [`sealed`]: files that are encrypted with a key of this host.
//! - [`build`]: makes the guest `tiny` from packages of Debian.
//!
//! The crate runs `qemu-img`, and for building `apt-get`, `apt-cache` and `dpkg-deb`. Its functions block, except for
//! [`download`]: callers on a runtime use `spawn_blocking`. It must not know what a virtual machine is.

pub mod build;
mod cache;
mod command;
mod copy;
pub mod download;
mod format;
pub mod import;
pub mod oci;
pub mod overlay;
mod receive;
pub mod sealed;
mod unpack;

pub use cache::{Cache, DirectBoot, Image, Stage};
pub use format::Format;
pub use receive::Receiving;

use std::path::{Path, PathBuf};

/// Why an image is not there.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file or directory could not be used.
    #[error("{action} {}", .path.display())]
    File {
        /// What was attempted, such as `reading`.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The image is not usable.
    #[error("{what} cannot be used as a disk: {why}")]
    Unusable {
        /// Where it came from.
        what: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The image is larger than it may be.
    #[error("{what} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// Where it came from.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The content is not what was promised.
    #[error("{what} has the checksum {found}, not {expected}: it was changed, or not transferred as a whole")]
    Checksum {
        /// Where it came from.
        what: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// The disk of this host is full.
    #[error("there is no room for {what}: {} has {free} bytes left, and {reserve} stay free", .path.display())]
    NoRoom {
        /// What was written.
        what: String,
        /// Where.
        path: PathBuf,
        /// What is left.
        free: u64,
        /// What must stay free.
        reserve: u64,
    },
    /// A program that does the work failed, or is not there.
    #[error("{program} failed: {why}")]
    Program {
        /// Which.
        program: String,
        /// What it said.
        why: String,
    },
    /// Nothing has that name.
    #[error("there is no image {0}; see what there is with: fairway image list")]
    NotFound(String),
    /// A name that cannot be one.
    #[error("{0:?} cannot be the name of an image: use lower case letters, digits, '-' and '.'")]
    Name(String),
    /// The web server did not give the file.
    #[error("fetching {url}: {why}")]
    Download {
        /// What was fetched.
        url: String,
        /// What went wrong.
        why: String,
        /// Whether trying again is of no use before somebody changes something.
        is_final: bool,
    },
    /// The image could not be put together.
    #[error("building the image: {0}")]
    Build(String),
}

/// The error of a file operation.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::File { action, path, source }
}
