//! Options of `render`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Show what a chart, a kustomization or a directory of manifests comes to.
#[derive(Args, Clone, Debug)]
pub(crate) struct Render {
    /// The directory; what it is, is found out by its files. A file is taken for a packed chart.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Nothing outside of this directory can be read [default: the Git repository around PATH, else what kustomize would read].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub output: Format,
    /// A file of values for a chart; the last one wins.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub values: Vec<PathBuf>,
    /// A value for a chart: key=value, in helm's syntax.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The same, always as a text.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set_string: Vec<String>,
    /// The same, as JSON.
    #[arg(long, value_name = "KEY=JSON")]
    pub set_json: Vec<String>,
    /// A variable to substitute in the result: NAME=VALUE, or NAME for that of the environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// A file of ConfigMaps whose data are such variables; --env wins over it.
    #[arg(long, value_name = "FILE")]
    pub env_from: Vec<PathBuf>,
    /// The order of a kustomization's objects.
    #[arg(long, value_enum, default_value_t = Order::Legacy)]
    pub reorder: Order,
    /// The name of a chart's release.
    #[arg(long, value_name = "NAME", default_value = "release-name")]
    pub release: String,
    /// The namespace of a chart's release.
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// Print what is in a chart's crds directory, too.
    #[arg(long)]
    pub include_crds: bool,
    /// Read directories below a directory of manifests, too.
    #[arg(long)]
    pub recurse: bool,
    /// Only manifests whose path matches.
    #[arg(long, value_name = "GLOB", default_value = "")]
    pub include: String,
    /// Not the manifests whose path matches.
    #[arg(long, value_name = "GLOB", default_value = "")]
    pub exclude: String,
    /// Fetch the repositories that a kustomization names by address, with git.
    #[arg(long)]
    pub allow_remote: bool,
    /// Where fetched repositories are kept [default: ~/.cache/fairway/remote-bases].
    #[arg(long, value_name = "DIR", requires = "allow_remote")]
    pub remote_cache: Option<PathBuf>,
    /// Tell on standard error what it took, and which files the result depends on.
    #[arg(long)]
    pub stats: bool,
    /// Run the original beside it, and show the difference.
    #[arg(long, value_enum, value_name = "TOOL")]
    pub diff_with: Option<Original>,
}

/// How to print objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// As the original prints them.
    Yaml,
    /// One JSON list.
    Json,
}

/// Orders of a kustomization's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// What others need comes first.
    Legacy,
    /// As they were read.
    None,
}

/// The original tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Original {
    /// `kustomize build`
    Kustomize,
    /// `helm template`
    Helm,
}
