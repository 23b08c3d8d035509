//! What lies on a virtual disk, as values: a directory tree becomes an initrd ([`cpio`]), an ext4 or a FAT file system
//! ([`ext4`], [`fat`]), these become a disk with a partition table ([`mbr`]); a kernel image gives up the kernel in it
//! ([`kernel`]), an ELF file says what it needs ([`elf`]), and a qcow2 file what it refers to ([`qcow2`]).
//!
//! The same tree gives the same bytes, whoever asks and on whatever day: there is no user, no time and no chance in here.
//! The readers are made for files that strangers made: every offset is checked, and nothing is allocated by what a file
//! claims. The crate must not open files: what is written comes back as [`Sparse`].

pub mod cpio;
pub mod elf;
pub mod ext4;
pub mod fat;
pub mod kernel;
pub mod mbr;
pub mod qcow2;
mod sparse;
mod tree;

pub use sparse::Sparse;
pub use tree::{Content, Node, Tree};

/// Why a tree does not become an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// More content than room.
    #[error("the {what} needs more than the {room} bytes that it may have")]
    Full {
        /// The file system.
        what: &'static str,
        /// How many bytes it has.
        room: u64,
    },
    /// Something that the format cannot say.
    #[error("{path}: {why}")]
    Unrepresentable {
        /// Which path.
        path: String,
        /// What about it.
        why: &'static str,
    },
}
