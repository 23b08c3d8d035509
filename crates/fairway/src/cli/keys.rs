//! `fairway keys` on the command line.

use clap::{Args, Subcommand, ValueEnum};

use super::{Data, Output};

/// Options of `keys`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Keys {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// What to do; without it, the keys are listed.
    #[command(subcommand)]
    pub command: Option<KeysCommand>,
}

/// What can be done with keys.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum KeysCommand {
    /// Make new keys and use them from now on; what the old ones encrypted is encrypted again.
    Rotate(Rotate),
    /// Drop old keys that nothing needs any more.
    Prune(Prune),
}

/// Options of `keys rotate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rotate {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Rotate only these keys.
    #[arg(long, value_enum)]
    pub only: Option<KeyKind>,
    /// Wait until everything has been encrypted again.
    #[arg(long)]
    pub wait: bool,
    /// Seconds to wait for the server.
    #[arg(long, default_value_t = 60)]
    pub timeout: u64,
}

/// Options of `keys prune`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Prune {
    /// State.
    #[command(flatten)]
    pub data: Data,
}

/// Kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyKind {
    /// Those that encrypt Secrets at rest.
    Encryption,
    /// Those that sign service-account tokens.
    ServiceAccount,
}
