//! `fairway template`, `fairway new` and `fairway voyage` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use super::gitops::Place;

/// Options of `template`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Template {
    /// What to do.
    #[command(subcommand)]
    pub command: TemplateCommand,
}

/// What can be done with software templates.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum TemplateCommand {
    /// List software templates.
    #[command(visible_alias = "ls")]
    List(TemplateList),
    /// Show what a template asks and does.
    Show(TemplateShow),
}

/// Options of `template list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TemplateList {
    /// Which API.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `template show`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TemplateShow {
    /// The template: NAME, or template:NAMESPACE/NAME.
    pub template: String,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `new`.
#[derive(Args, Clone, Debug)]
pub(crate) struct New {
    /// The template: NAME, or template:NAMESPACE/NAME.
    pub template: String,
    /// An answer, such as name=web. A value that is JSON (a number, true, a list) is taken as such. May be repeated.
    #[arg(long = "set", value_name = "QUESTION=ANSWER")]
    pub set: Vec<String>,
    /// A file with answers, as YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub values: Option<PathBuf>,
    /// A secret for the template, read from a file: NAME=FILE. It is kept in a Secret, and shown nowhere.
    #[arg(long = "secret-file", value_name = "NAME=FILE")]
    pub secret_files: Vec<String>,
    /// The namespace of the Voyage.
    #[arg(short = 'n', long, default_value = "default")]
    pub namespace: String,
    /// Keep what was made if the run fails, so that `fairway voyage retry` goes on from there.
    #[arg(long)]
    pub keep: bool,
    /// Show what would be made, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait for the run.
    #[arg(long, conflicts_with = "dry_run")]
    pub detach: bool,
    /// Ask nothing: take defaults, and fail if an answer is missing.
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `voyage`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Voyage {
    /// What to do.
    #[command(subcommand)]
    pub command: VoyageCommand,
}

/// What can be done with runs of templates.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum VoyageCommand {
    /// List runs.
    #[command(visible_alias = "ls")]
    List(VoyageList),
    /// Show a run: its steps, and what it made.
    Get(VoyageNamed),
    /// Print what the steps of a run said, and follow it until it is over.
    Logs(VoyageNamed),
    /// Try again from the step that failed.
    Retry(VoyageNamed),
    /// Stop a run; what it made is taken back.
    Cancel(VoyageNamed),
    /// Take back what a run has made, in the opposite order.
    Decommission(VoyageNamed),
}

/// Options of `voyage list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct VoyageList {
    /// The namespace [default: all].
    #[arg(short = 'n', long)]
    pub namespace: Option<String>,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// A run by name.
#[derive(Args, Clone, Debug)]
pub(crate) struct VoyageNamed {
    /// The run.
    pub name: String,
    /// Its namespace.
    #[arg(short = 'n', long, default_value = "default")]
    pub namespace: String,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
