//! `fairway repo` on the command line.

use clap::{Args, Subcommand};

use super::Output;
use super::workspace::Where;

/// Options of `repo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Repo {
    /// What to do.
    #[command(subcommand)]
    pub command: RepoCommand,
}

/// What can be done with repositories.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum RepoCommand {
    /// Make a repository, and print where to clone it from.
    Create(Create),
    /// List the repositories of an owner.
    #[command(visible_alias = "ls")]
    List(List),
    /// Delete a repository.
    Delete(Delete),
    /// Clone a repository with git.
    Clone(CloneRepo),
    /// Make a repository that follows another one.
    Mirror(Mirror),
}

/// A repository by name.
#[derive(Args, Clone, Debug)]
pub(crate) struct Named {
    /// The repository: its owner, which is a workspace (root, or its path below root with dots), and its name.
    #[arg(value_name = "OWNER/NAME")]
    pub slug: String,
    /// Whose repositories are meant.
    #[command(flatten)]
    pub place: Where,
}

/// A token to put into an address.
#[derive(Args, Clone, Debug)]
pub(crate) struct WithToken {
    /// Put a token into the address, so that plain git works unattended. It belongs to a service account of the repository's
    /// own, which is made, and counts as long as whoever asks for it is not disabled.
    #[arg(long)]
    pub with_token: bool,
    /// How many days the token is good for.
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    pub token_days: u32,
}

/// Options of `repo create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Create {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// What is in it.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The branch that a clone checks out [default: main].
    #[arg(long, value_name = "BRANCH")]
    pub default_branch: Option<String>,
    /// Let everybody read it who reaches the server.
    #[arg(long)]
    pub public: bool,
    /// A token.
    #[command(flatten)]
    pub token: WithToken,
}

/// Options of `repo list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// The owner [default: the current workspace].
    pub owner: Option<String>,
    /// Whose repositories are meant.
    #[command(flatten)]
    pub place: Where,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `repo delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Delete {
    /// Which.
    #[command(flatten)]
    pub named: Named,
}

/// Options of `repo clone`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CloneRepo {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// Where to [default: its name].
    pub directory: Option<String>,
    /// A token.
    #[command(flatten)]
    pub token: WithToken,
}

/// Options of `repo mirror`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Mirror {
    /// Which.
    #[command(flatten)]
    pub named: Named,
    /// The address of the other repository, without credentials.
    pub url: String,
    /// The Secret with the credentials, in the form of Argo CD's repository Secrets.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub secret: Option<String>,
    /// How often to look [default: 3m].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Let everybody read it who reaches the server.
    #[arg(long)]
    pub public: bool,
}
