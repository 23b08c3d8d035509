//! Verbs that change whether a machine runs.

use clap::Args;

use super::{DryRun, switch};

/// A machine by name.
#[derive(Args, Clone, Debug)]
pub(crate) struct Named {
    /// The machine: NAME or NAMESPACE/NAME.
    #[arg(value_name = "VM")]
    pub name: String,
}

/// Options of `vm start`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Start {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Start it paused.
    #[arg(long = "paused", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_paused: bool,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}

/// Options of `vm stop` and `vm restart`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stop {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Do not wait for the guest: with --grace-period=0.
    #[arg(long = "force", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_forced: bool,
    /// Seconds that the guest has to shut down; only with --force, and only 0.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub grace_period: Option<i64>,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}

/// Options of `vm migrate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Migrate {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}

/// Options of `vm freeze`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Freeze {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Unfreeze it by itself after so long, such as 30s or 5m; 0s for never.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub unfreeze_timeout: String,
}

/// Options of `vm pause` and `vm unpause`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pause {
    /// What: vm NAME, vmi NAME, or NAME alone for a vm.
    #[arg(value_name = "[vm|vmi] NAME", num_args = 1..=2, required = true)]
    pub words: Vec<String>,
    /// Nothing is to be changed.
    #[command(flatten)]
    pub dry_run: DryRun,
}
