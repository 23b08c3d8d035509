//! Why a chart could not be loaded or rendered.

/// What went wrong. The texts are Helm's where Helm has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file of the tree could not be read.
    #[error(transparent)]
    Tree(#[from] fairway_gitops_tree::TreeError),
    /// The chart itself is wrong.
    #[error("{0}")]
    Chart(String),
    /// Charts that it needs are not there.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {0}"
    )]
    MissingDependencies(String),
    /// An archive is wrong or too large.
    #[error("{0}")]
    Archive(String),
    /// Values could not be read or merged.
    #[error("{0}")]
    Values(String),
    /// Values do not fit the schemas of the charts.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// A template could not be read or executed.
    #[error("{0}")]
    Template(String),
    /// A template's result is no manifest.
    #[error("{0}")]
    Manifest(String),
}

impl Error {
    /// The same error within a sub-chart.
    pub(crate) fn in_subchart(self, file: &str, chart: &str) -> Self {
        Self::Chart(format!("error unpacking subchart {file} in {chart}: {self}"))
    }
}
