//! Verbs that show machines: what virtctl leaves to kubectl, and more.

use clap::Args;

use super::power::Named;
use crate::cli::Output;
use crate::cli::gitops::ListFormat;

/// Options of `vm list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// Of all namespaces.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Those with these labels only.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// How to print.
    #[arg(short = 'o', long = "output", value_enum)]
    pub format: Option<ListFormat>,
}

/// Options of `vm top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Top {
    /// Of all namespaces.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Those with these labels only.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Seconds over which use of processors is measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `vm events`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Events {
    /// Of this machine, its disks and its migrations: NAME or NAMESPACE/NAME [default: of all machines].
    #[arg(value_name = "VM")]
    pub name: Option<String>,
    /// Of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub all_namespaces: bool,
    /// Go on with those that come.
    #[arg(short = 'f', long)]
    pub follow: bool,
}

/// Options of `vm why`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Why {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
