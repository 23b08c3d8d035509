//! Why a backup cannot be read or written, in words for whoever holds the file.

use std::io;

/// What went wrong. `at` is the place in the file.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something else entirely.
    #[error("this is not a Fairway backup")]
    NotABackup,
    /// Of the future.
    #[error("the backup has format {0}, and this version of Fairway reads formats up to {FORMAT}; use the newer version that wrote it", FORMAT = crate::FORMAT)]
    NewerFormat(u32),
    /// The end is missing.
    #[error("the backup is cut off after {at} bytes: it was not finished, or not copied whole")]
    Truncated {
        /// Where it ends.
        at: u64,
    },
    /// A digest does not fit, or what it protects makes no sense.
    #[error("the backup is damaged near byte {at}: {what}")]
    Damaged {
        /// Where the chunk begins.
        at: u64,
        /// In what way.
        what: &'static str,
    },
    /// The writer said so.
    #[error("the backup was given up by the server that made it: {0}")]
    Failed(String),
    /// The keys do not open.
    #[error("the keys in the backup do not open: the passphrase is wrong, or the backup was altered")]
    WrongPassphrase,
    /// The parameters of the passphrase are not acceptable.
    #[error("the keys in the backup cannot be opened: {0}")]
    Keys(&'static str),
    /// An entry that no store would take.
    #[error("an entry is too large for a backup: {0} bytes")]
    TooLarge(usize),
    /// Keys must rise.
    #[error("entries must be given in order of their keys")]
    OutOfOrder,
    /// A file that cannot be in a backup.
    #[error("{0:?} cannot be the next file of a backup")]
    Path(String),
    /// Reading or writing failed.
    #[error("could not {attempted} the backup")]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}
