//! `fairway undelete` on the command line.

use clap::Args;

use super::gitops::{ListFormat, Place};

/// Options of `undelete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Undelete {
    /// What to bring back: KIND/NAME, the name of a tombstone, or `list` to see what there is [default: list].
    pub what: Vec<String>,
    /// The namespace that it was in.
    #[arg(short = 'n', long)]
    pub namespace: Option<String>,
    /// What belonged to this Application: NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "APP")]
    pub app: Option<String>,
    /// Mark it as the Application's again. One that prunes by itself deletes it again unless its source has it by then.
    #[arg(long)]
    pub keep_owner: bool,
    /// How the list is printed.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: ListFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}
