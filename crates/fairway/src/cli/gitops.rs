//! What the commands for Applications, ApplicationSets, projects and clusters have in common on the command line.

use clap::{Args, ValueEnum};

use super::workspace::Where;

/// Which API is meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// The context of the kubeconfig to use [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The workspace to look into, such as root:acme [default: that of the context].
    #[arg(short = 'w', long, value_name = "PATH")]
    pub workspace: Option<String>,
    /// The kubeconfig.
    #[command(flatten)]
    pub place: Where,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// A table with every column.
    Wide,
    /// Names.
    Name,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// How one object is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetailFormat {
    /// Text.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Text with resources as a tree.
    Tree,
    /// The same with ages.
    #[value(name = "tree=detailed")]
    TreeDetailed,
}
