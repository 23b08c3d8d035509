//! `fairway app` on the command line: the words of `argocd app`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::gitops::{DetailFormat, ListFormat, Place};

/// Options of `app`.
#[derive(Args, Clone, Debug)]
pub(crate) struct App {
    /// What to do.
    #[command(subcommand)]
    pub command: AppCommand,
}

/// What can be done with Applications.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum AppCommand {
    /// List Applications.
    #[command(visible_alias = "ls")]
    List(List),
    /// Show an Application.
    Get(Get),
    /// Show how what is deployed differs from the source. Ends with 1 if it does, with 2 if that could not be found out.
    Diff(Diff),
    /// Show what a sync, a branch or a pull request would do, and what that does to what runs.
    Plan(Plan),
    /// Make what is deployed as the source says.
    Sync(Box<Sync>),
    /// Wait until Applications are synced and healthy.
    Wait(Wait),
    /// Show past deployments.
    History(History),
    /// Go back to a past deployment: the one of this number, or the one before the last.
    Rollback(Rollback),
    /// List the resources of an Application.
    Resources(Resources),
    /// End the operation that is under way.
    TerminateOp(Named),
    /// Let a sync go on that waits because it would delete much, a machine or a disk.
    Approve(Approve),
    /// Delete Applications with what they deployed.
    Delete(Delete),
}

/// One Application.
#[derive(Args, Clone, Debug)]
pub(crate) struct Named {
    /// Its name, or NAMESPACE/NAME.
    pub name: String,
    /// The namespace that it is in [default: where it is found; argocd and openshift-gitops first].
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    pub app_namespace: Option<String>,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Several Applications, by names or labels.
#[derive(Args, Clone, Debug)]
pub(crate) struct Several {
    /// Their names, or NAMESPACE/NAME.
    pub names: Vec<String>,
    /// Those with these labels: =, ==, !=, in, notin, exists and not exists.
    #[arg(short = 'l', long)]
    pub selector: Option<String>,
    /// The namespace that they are in.
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    pub app_namespace: Option<String>,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `app list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: ListFormat,
    /// Those with these labels.
    #[arg(short = 'l', long)]
    pub selector: Option<String>,
    /// Those of this project; may be repeated.
    #[arg(short = 'p', long)]
    pub project: Vec<String>,
    /// Those with a source in this repository.
    #[arg(short = 'r', long)]
    pub repo: Option<String>,
    /// Those in this namespace.
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    pub app_namespace: Option<String>,
    /// Those that deploy to this cluster, by name or address.
    #[arg(short = 'c', long)]
    pub cluster: Option<String>,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// Options of `app get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Get {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: DetailFormat,
    /// Compare with the source first.
    #[arg(long)]
    pub refresh: bool,
    /// Compare with the source first, and render it anew.
    #[arg(long)]
    pub hard_refresh: bool,
    /// Show the last operation, too.
    #[arg(long)]
    pub show_operation: bool,
    /// Show the Helm parameters, too.
    #[arg(long)]
    pub show_params: bool,
    /// Of which of several sources, counted from 1.
    #[arg(long, value_name = "NUMBER", conflicts_with = "source_name")]
    pub source_position: Option<usize>,
    /// Of which of several sources, by name.
    #[arg(long, value_name = "NAME")]
    pub source_name: Option<String>,
    /// Seconds to wait for a refresh; 0 for as long as it takes.
    #[arg(long, default_value_t = 0)]
    pub timeout: u64,
    /// Which.
    #[command(flatten)]
    pub app: Named,
}

/// Options of `app diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Diff {
    /// Compare with this revision of the source.
    #[arg(long, conflicts_with = "local")]
    pub revision: Option<String>,
    /// Revisions of several sources, in their order; may be repeated.
    #[arg(long, conflicts_with_all = ["local", "revision"])]
    pub revisions: Vec<String>,
    /// Compare with the files of this directory in place of the source's.
    #[arg(long, value_name = "PATH")]
    pub local: Option<PathBuf>,
    /// The directory that stands for the repository of --local, if manifests refer to files beside theirs [default: that of
    /// --local].
    #[arg(long, value_name = "PATH", requires = "local")]
    pub local_repo_root: Option<PathBuf>,
    /// Whether differences end it with 1.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub exit_code: bool,
    /// What differences end it with.
    #[arg(long, default_value_t = 1)]
    pub diff_exit_code: u8,
    /// Compare with the source first, before anything is looked up.
    #[arg(long)]
    pub refresh: bool,
    /// Compare with the source first, and render it anew.
    #[arg(long)]
    pub hard_refresh: bool,
    /// Which.
    #[command(flatten)]
    pub app: Named,
}

/// Options of `app plan`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Of one Application: its name, or NAMESPACE/NAME [default: all that --repo touches].
    pub name: Option<String>,
    /// The namespace that Applications are in.
    #[arg(short = 'N', long, value_name = "NAMESPACE")]
    pub app_namespace: Option<String>,
    /// A revision of the one source of the Application.
    #[arg(long, requires = "name", conflicts_with_all = ["branch", "pull"])]
    pub revision: Option<String>,
    /// The repository of --branch or --pull: OWNER/NAME of a hosted one, or an address.
    #[arg(long, value_name = "OWNER/NAME")]
    pub repo: Option<String>,
    /// What this branch would do.
    #[arg(long, requires = "repo", conflicts_with = "pull")]
    pub branch: Option<String>,
    /// The branch that --branch would become part of [default: the repository's default branch].
    #[arg(long, requires = "branch")]
    pub base: Option<String>,
    /// What this pull request of a hosted repository would do.
    #[arg(long, value_name = "NUMBER", requires = "repo")]
    pub pull: Option<u64>,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    pub output: PlanFormat,
    /// Where.
    #[command(flatten)]
    pub place: Place,
}

/// How plans are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// Text.
    Text,
    /// Text with the differences of every object.
    Diff,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of `app sync`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sync {
    /// Which.
    #[command(flatten)]
    pub apps: Several,
    /// Those of this project; may be repeated.
    #[arg(long)]
    pub project: Vec<String>,
    /// Change nothing, show what would happen.
    #[arg(long)]
    pub dry_run: bool,
    /// Delete what the source does not have any more.
    #[arg(long)]
    pub prune: bool,
    /// Sync to this revision.
    #[arg(long)]
    pub revision: Option<String>,
    /// Revisions of several sources; may be repeated.
    #[arg(long)]
    pub revisions: Vec<String>,
    /// Which sources --revisions are of, counted from 1.
    #[arg(long, value_delimiter = ',', conflicts_with = "source_names")]
    pub source_positions: Vec<usize>,
    /// Which sources --revisions are of, by name.
    #[arg(long)]
    pub source_names: Vec<String>,
    /// Only these resources: GROUP:KIND:NAME, GROUP:KIND:NAMESPACE/NAME, or ! in front for all but; may be repeated.
    #[arg(long)]
    pub resource: Vec<String>,
    /// How objects are changed.
    #[arg(long, value_enum)]
    pub strategy: Option<Strategy>,
    /// Make anew what cannot be changed.
    #[arg(long)]
    pub force: bool,
    /// Replace objects instead of applying them.
    #[arg(long)]
    pub replace: bool,
    /// Let the server apply.
    #[arg(long)]
    pub server_side: bool,
    /// Only what is out of sync.
    #[arg(long)]
    pub apply_out_of_sync_only: bool,
    /// Do not wait for the end.
    #[arg(long)]
    pub r#async: bool,
    /// How often a failed sync is tried again.
    #[arg(long, default_value_t = 0)]
    pub retry_limit: i64,
    /// Take the newest revision when trying again.
    #[arg(long)]
    pub retry_refresh: bool,
    /// How long to wait before trying again.
    #[arg(long, default_value = "5s")]
    pub retry_backoff_duration: String,
    /// How long to wait at most.
    #[arg(long, default_value = "3m0s")]
    pub retry_backoff_max_duration: String,
    /// By how much longer to wait each time.
    #[arg(long, default_value_t = 2)]
    pub retry_backoff_factor: i64,
    /// A remark that is kept with the operation, NAME=VALUE; may be repeated.
    #[arg(long)]
    pub info: Vec<String>,
    /// Seconds to wait for the end; 0 for as long as it takes.
    #[arg(long, default_value_t = 0)]
    pub timeout: u64,
    /// How to print the end.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: DetailFormat,
}

/// How a sync changes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Without hooks.
    Apply,
    /// With hooks.
    Hook,
}

/// Options of `app wait`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Wait {
    /// Which.
    #[command(flatten)]
    pub apps: Several,
    /// Until it is synced.
    #[arg(long)]
    pub sync: bool,
    /// Until it is healthy.
    #[arg(long)]
    pub health: bool,
    /// Until it is suspended.
    #[arg(long)]
    pub suspended: bool,
    /// Until it is degraded.
    #[arg(long)]
    pub degraded: bool,
    /// Until it is gone.
    #[arg(long)]
    pub delete: bool,
    /// Until it is hydrated.
    #[arg(long)]
    pub hydrated: bool,
    /// Until no operation is under way.
    #[arg(long)]
    pub operation: bool,
    /// Only these resources, as in `sync`; may be repeated.
    #[arg(long)]
    pub resource: Vec<String>,
    /// Seconds to wait; 0 for as long as it takes.
    #[arg(long, default_value_t = 0)]
    pub timeout: u64,
    /// How to print the end.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: DetailFormat,
}

/// Options of `app history`.
#[derive(Args, Clone, Debug)]
pub(crate) struct History {
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: HistoryFormat,
    /// Which.
    #[command(flatten)]
    pub app: Named,
}

/// How past deployments are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// A table.
    Wide,
    /// Numbers.
    Id,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of `app rollback`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rollback {
    /// Which.
    #[command(flatten)]
    pub app: Named,
    /// The number of the deployment.
    pub id: Option<i64>,
    /// Delete what that deployment did not have.
    #[arg(long)]
    pub prune: bool,
    /// Seconds to wait for the end; 0 for as long as it takes.
    #[arg(long, default_value_t = 0)]
    pub timeout: u64,
    /// How to print the end.
    #[arg(short = 'o', long, value_enum, default_value = "wide")]
    pub output: DetailFormat,
}

/// Options of `app resources`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Resources {
    /// How to print [default: a table].
    #[arg(short = 'o', long, value_enum)]
    pub output: Option<DetailFormat>,
    /// Which.
    #[command(flatten)]
    pub app: Named,
}

/// Options of `app approve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Approve {
    /// Which.
    #[command(flatten)]
    pub app: Named,
    /// What to approve, by the digest that the sync names [default: what it waits for now].
    #[arg(long)]
    pub digest: Option<String>,
}

/// Options of `app delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Delete {
    /// Which.
    #[command(flatten)]
    pub apps: Several,
    /// Whether what was deployed goes, too.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub cascade: bool,
    /// In which order what was deployed goes: foreground or background.
    #[arg(short = 'p', long, default_value = "foreground")]
    pub propagation_policy: String,
    /// Do not ask.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Wait until it is gone.
    #[arg(long)]
    pub wait: bool,
}
