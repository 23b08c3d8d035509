//! A chart: what its files say, before any values.

mod archive;
mod ignore;
mod load;
mod metadata;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_text_gotemplate::{Functions, ParseError, Template, parse};
use serde_json::{Map, Value as Json};

pub use archive::ArchiveLimits;
pub(crate) use metadata::scalar_text;
pub use metadata::{Dependency, Maintainer, Metadata};

/// A file of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path within the chart.
    pub name: String,
    /// Its bytes, without a byte order mark.
    pub data: Arc<[u8]>,
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
    parsed: Arc<Mutex<ParsedFiles>>,
}

/// Templates by the path under which they were read.
type ParsedFiles = HashMap<String, (Arc<[u8]>, Vec<Arc<Template>>)>;

impl Chart {
    /// Its name, or its alias.
    pub fn name(&self) -> &str {
        &self.metadata.name
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
        let text = fairway_text_gotemplate::text::lossy(data);
        let templates = parse(path, &text, functions)?;
        lock().insert(path.to_owned(), (data.clone(), templates.clone()));
        Ok(templates)
    }

    /// Whether it only has definitions for others.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }
}
