//! Verbs that show machines: what virtctl leaves to kubectl, and more.

use std::path::PathBuf;

use clap::Args;

use super::power::Named;
use crate::cli::Output;
use crate::cli::gitops::ListFormat;

/// Options of `vm expand`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Expand {
    /// Of this virtual machine: NAME or NAMESPACE/NAME.
    #[arg(long = "vm", value_name = "NAME")]
    pub name: Option<String>,
    /// Of the one that this file describes, which need not be on the server; `-` reads the standard input.
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "name")]
    pub file: Option<PathBuf>,
    /// How to print: yaml or json.
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "yaml")]
    pub output: String,
}

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
