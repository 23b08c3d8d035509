//! `fairway trust` on the command line.

use clap::Args;

use super::Data;

/// Options of `trust`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Trust {
    /// Print the certificate authority instead.
    #[arg(long, conflicts_with = "uninstall")]
    pub print: bool,
    /// Take it out of the stores again.
    #[arg(long)]
    pub uninstall: bool,
    /// State.
    #[command(flatten)]
    pub data: Data,
}
