//! A chart: what its files say, before any values.

mod archive;
mod ignore;
mod load;
mod metadata;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_gitops_tree::Reader;
use fairway_text_gotemplate::{Functions, ParseError, Template, parse_bytes};
use serde_json::{Map, Value as Json};

use crate::error::Error;

pub use archive::{ArchiveLimits, unpack_chart, unpack_layer};
pub use load::directory_files;
pub(crate) use metadata::scalar_text;
pub use metadata::{Dependency, Maintainer, Metadata};

/// A file of a chart.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path within the chart.
    pub name: String,
    /// What it holds.
    pub data: Data,
}

/// The bytes of a file, or where they are. Most charts have more in their documents, tests and definitions than in their
/// templates, and never look at it.
#[derive(Debug, Clone)]
pub enum Data {
    /// The bytes, without a byte order mark.
    Read(Arc<[u8]>),
    /// A file of a tree, by its path.
    Unread(Reader, String),
}

impl Data {
    /// The bytes, without a byte order mark.
    pub fn read(&self) -> Result<Arc<[u8]>, Error> {
        match self {
            Self::Read(bytes) => Ok(bytes.clone()),
            Self::Unread(reader, path) => Ok(load::without_mark(reader.read(path)?)),
        }
    }
}

/// A chart. Copies share the files, and the templates that were read from them.
#[derive(Debug, Clone)]
pub struct Chart {
    /// `Chart.yaml`
    pub metadata: Metadata,
    /// `values.yaml`; all numbers are floats, as Helm reads them.
    pub values: Arc<Map<String, Json>>,
    /// `values.schema.json`
    pub schema: Option<Arc<[u8]>>,
    /// What is under `templates/`.
    pub templates: Arc<Vec<File>>,
    /// Everything else, also what is under `crds/`.
    pub files: Arc<Vec<File>>,
    /// What is under `charts/`.
    pub dependencies: Vec<Chart>,
    /// What loading remarked.
    pub warnings: Vec<String>,
    /// Its own name, where its parent has given it another.
    pub(crate) renamed_from: Option<String>,
    parsed: Arc<Mutex<ParsedFiles>>,
}

/// Where a chart lies among charts.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Under its present name.
    pub(crate) now: String,
    /// Under the names from before any was changed.
    pub(crate) before: String,
}

impl Place {
    /// That of a chart which is in no other.
    pub(crate) fn root(name: &str) -> Self {
        Self {
            now: name.to_owned(),
            before: name.to_owned(),
        }
    }
}

/// Templates by the path under which they were read.
type ParsedFiles = HashMap<String, (Arc<[u8]>, Vec<Arc<Template>>)>;

impl Chart {
    /// Its name, or its alias.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The paths of its sub-charts, of which each has two: the one that it has now, and the one from before anything was
    /// renamed. Helm renames a chart by copying it; where the copy has no list of sub-charts of its own, they still
    /// belong to the chart that was copied.
    pub(crate) fn places(&self, path: &Place) -> Vec<(&Chart, Place)> {
        let parent = match self.metadata.has_dependencies {
            true => &path.now,
            false => &path.before,
        };
        let place = |subchart: &Chart| Place {
            now: format!("{parent}/charts/{}", subchart.name()),
            before: format!(
                "{}/charts/{}",
                path.before,
                subchart.renamed_from.as_deref().unwrap_or(subchart.name())
            ),
        };
        let subcharts = self.dependencies.iter();
        subcharts.map(|subchart| (subchart, place(subchart))).collect()
    }

    /// The templates of a file, read once per path.
    pub(crate) fn parse(
        &self,
        path: &str,
        data: &Arc<[u8]>,
        functions: &Functions,
    ) -> Result<Vec<Arc<Template>>, ParseError> {
        let lock = || self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, templates)) = lock().get(path)
            && Arc::ptr_eq(known, data)
        {
            return Ok(templates.clone());
        }
        let templates = parse_bytes(path, data, functions)?;
        lock().insert(path.to_owned(), (data.clone(), templates.clone()));
        Ok(templates)
    }

    /// Whether it only has definitions for others.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }
}
