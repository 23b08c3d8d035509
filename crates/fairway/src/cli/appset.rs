//! `fairway appset`, `fairway proj` and `fairway cluster` on the command line: the words of `argocd`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::gitops::{ListFormat, Place};

/// Options of `appset`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSet {
    /// What to do.
    #[command(subcommand)]
    pub command: AppSetCommand,
}

/// What can be done with ApplicationSets.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum AppSetCommand {
    /// List ApplicationSets.
    #[command(visible_alias = "ls")]
    List(AppSetList),
    /// Show an ApplicationSet.
    Get(AppSetGet),
    /// Create ApplicationSets from a file.
    Create(AppSetCreate),
    /// Delete ApplicationSets and their Applications.
    Delete(AppSetDelete),
    /// Show the Applications that an ApplicationSet in a file stands for; nothing is created.
    Generate(AppSetGenerate),
}

/// Options of `appset list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSetList {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: ListFormat,
    /// Those with these labels.
    #[arg(short = 'l', long)]
    pub selector: Option<String>,
    /// Those whose template has this project; may be repeated.
    #[arg(short = 'p', long)]
    pub project: Vec<String>,
    /// Those in this namespace.
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    pub appset_namespace: Option<String>,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// How one object is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Text.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of `appset get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSetGet {
    /// Its name, or NAMESPACE/NAME.
    pub name: String,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: TextFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `appset create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSetCreate {
    /// The file, or - for standard input.
    pub file: PathBuf,
    /// Change what is there already.
    #[arg(long)]
    pub upsert: bool,
    /// Create nothing; list the Applications that it would stand for in its status.
    #[arg(long)]
    pub dry_run: bool,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: TextFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `appset generate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSetGenerate {
    /// The file, or - for standard input.
    pub file: PathBuf,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: TextFormat,
    /// Where clusters are looked for.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `appset delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AppSetDelete {
    /// Their names, or NAMESPACE/NAME.
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `proj`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Project {
    /// What to do.
    #[command(subcommand)]
    pub command: ProjectCommand,
}

/// What can be done with projects.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ProjectCommand {
    /// List projects.
    #[command(visible_alias = "ls")]
    List(ProjectList),
    /// Show a project.
    Get(ProjectGet),
    /// Tokens of a project's roles.
    #[command(subcommand)]
    Role(RoleCommand),
}

/// What can be done with the roles of projects.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum RoleCommand {
    /// Make a token with which one has a role, and print it.
    #[command(visible_alias = "create-jwt")]
    CreateToken(CreateToken),
    /// List the tokens of a role.
    ListTokens(ListTokens),
    /// Revoke a token of a role.
    #[command(visible_alias = "delete-jwt")]
    DeleteToken(DeleteToken),
}

/// A role of a project.
#[derive(Args, Clone, Debug)]
pub(crate) struct RoleOf {
    /// The project.
    pub project: String,
    /// The role.
    pub role: String,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `proj role create-token`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CreateToken {
    /// Whose.
    #[command(flatten)]
    pub role: RoleOf,
    /// How long it is good: 90s, 15m, 12h, 3d; 0s means for ever.
    #[arg(short, long, value_name = "DURATION", default_value = "0s")]
    pub expires_in: String,
    /// Its name among the tokens of the role [default: a random one].
    #[arg(short, long)]
    pub id: Option<String>,
    /// Print the token and nothing else.
    #[arg(short, long)]
    pub token_only: bool,
}

/// Options of `proj role list-tokens`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListTokens {
    /// Whose.
    #[command(flatten)]
    pub role: RoleOf,
}

/// Options of `proj role delete-token`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeleteToken {
    /// The project.
    pub project: String,
    /// The role.
    pub role: String,
    /// The token: its name, or the second at which it was made.
    pub token: String,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `proj list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProjectList {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: ListFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `proj get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProjectGet {
    /// Its name.
    pub name: String,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: TextFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `cluster`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Cluster {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// What can be done with clusters.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ClusterCommand {
    /// Let Applications deploy to the cluster of a context of your kubeconfig.
    Add(Box<ClusterAdd>),
    /// List the clusters that Applications can deploy to.
    #[command(visible_alias = "ls")]
    List(ClusterList),
    /// Forget a cluster.
    Rm(ClusterRm),
}

/// Options of `cluster add`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterAdd {
    /// The context of the cluster.
    #[arg(value_name = "CONTEXT")]
    pub target: String,
    /// What to call it [default: the name of the context].
    #[arg(long)]
    pub name: Option<String>,
    /// Only these namespaces; may be repeated.
    #[arg(long)]
    pub namespace: Vec<String>,
    /// Only for this project.
    #[arg(long)]
    pub project: Option<String>,
    /// The account to deploy with [default: argocd-manager, which is made].
    #[arg(long)]
    pub service_account: Option<String>,
    /// The namespace of the account.
    #[arg(long, default_value = "kube-system")]
    pub system_namespace: String,
    /// Labels of the cluster, KEY=VALUE; may be repeated.
    #[arg(long)]
    pub label: Vec<String>,
    /// Annotations of the cluster, KEY=VALUE; may be repeated.
    #[arg(long)]
    pub annotation: Vec<String>,
    /// Change what is known of the cluster.
    #[arg(long)]
    pub upsert: bool,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Where it is added.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `cluster list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterList {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: ClusterFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// How clusters are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterFormat {
    /// A table.
    Wide,
    /// Addresses.
    Server,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of `cluster rm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterRm {
    /// Its address or name.
    pub cluster: String,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}
