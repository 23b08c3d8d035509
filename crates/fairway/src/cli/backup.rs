//! What can be typed after `fairway backup`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Data, Output};

/// Options of `backup`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Backup {
    /// What to do.
    #[command(subcommand)]
    pub command: BackupCommand,
}

/// What can be done with a backup.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum BackupCommand {
    /// Write the state as of now into a file. Fairway may be running; nothing waits for it.
    Create(Create),
    /// Make a new data directory from a backup.
    Restore(Restore),
    /// Check a backup from beginning to end, and show what is in it.
    Inspect(Inspect),
}

/// Options of `backup create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Create {
    /// The file to write. It must not exist.
    pub file: PathBuf,
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Put the installation's keys and certificates into the backup, wrapped by the passphrase in this file (- reads
    /// standard input). Without it they are left out.
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// Options of `backup restore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Restore {
    /// The backup.
    pub file: PathBuf,
    /// State. The directory must be empty, or not be there; a config.yaml in it is kept.
    #[command(flatten)]
    pub data: Data,
    /// Passphrase of the keys in the backup (- reads standard input).
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Take keys and certificates from this data directory instead of the backup.
    #[arg(long, value_name = "DIR", conflicts_with = "passphrase_file")]
    pub keys_from: Option<PathBuf>,
    /// Restore without the installation's keys: encrypted objects (Secrets) are left out, and new keys and certificates
    /// are made at the next start.
    #[arg(long, conflicts_with_all = ["passphrase_file", "keys_from"])]
    pub drop_sealed: bool,
}

/// Options of `backup inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inspect {
    /// The backup.
    pub file: PathBuf,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
