//! `fairway workspace` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Data, Output};

/// Options of `workspace`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Workspace {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<WorkspaceCommand>,
    /// Without a command: the same as `use`.
    #[command(flatten)]
    pub go: Use,
}

/// What can be done with workspaces.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum WorkspaceCommand {
    /// Make a workspace in the current one, and wait until it is ready.
    Create(Create),
    /// List the workspaces in the current one.
    #[command(visible_alias = "ls")]
    List(List),
    /// Show the current workspace and everything below it.
    Tree(Tree),
    /// Go to another workspace, or print the current one.
    #[command(alias = "enter")]
    Use(Use),
    /// Delete a workspace with everything inside, and wait until it is gone.
    Delete(Delete),
}

/// Whose workspaces are meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct Where {
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, or that of the Fairway on this machine].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// State of the Fairway on this machine.
    #[command(flatten)]
    pub data: Data,
}

/// Options of `workspace create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Create {
    /// Its name.
    pub name: String,
    /// Its type, by name or with its path, such as root:universal [default: what the current workspace says].
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Go there.
    #[arg(long)]
    pub enter: bool,
    /// Do not mind if it is there already.
    #[arg(long)]
    pub ignore_existing: bool,
    /// Add a context of this name for it to the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub create_context: Option<String>,
    /// Seconds to wait until it is ready.
    #[arg(long, default_value_t = 60)]
    pub timeout: u64,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `workspace list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `workspace tree`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Tree {
    /// Show whole paths instead of names.
    #[arg(short, long)]
    pub full: bool,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `workspace use`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Use {
    /// Where to go: a name or path from here, :root:… for one from the top, `..` up, `-` back, `~` home, `:` to the top;
    /// nothing or `.` prints where you are.
    #[arg(value_name = "PATH", allow_hyphen_values = true)]
    pub path: Option<String>,
    /// Print the path alone, as a shell prompt wants it.
    #[arg(long)]
    pub short: bool,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `workspace delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Delete {
    /// Its name in the current workspace.
    pub name: String,
    /// Do not wait until it is gone.
    #[arg(long)]
    pub no_wait: bool,
    /// Do not mind if it is not there.
    #[arg(long)]
    pub ignore_not_found: bool,
    /// Seconds to wait until it is gone.
    #[arg(long, default_value_t = 300)]
    pub timeout: u64,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}
