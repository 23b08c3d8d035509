//! Putting a chart together from its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_gitops_tree::{Kind, Problem, Reader, path};
use fairway_text_gotemplate::formats::yaml_fault;
use fairway_text_yaml as yaml;
use serde_json::{Map, Value as Json};

use super::archive::{self, ArchiveLimits};
use super::ignore::Rules;
use super::{Chart, Data, File, Metadata};
use crate::error::Error;
use crate::values::{as_table, floats};

/// How deep charts may lie in charts.
const MAX_DEPTH: usize = 16;
/// The size of one file; Helm's limit.
const MAX_FILE: usize = 5 * 1024 * 1024;
/// How many directories a walk may enter: a link may lead back up.
const MAX_DIRECTORIES: usize = 10_000;

pub(super) const YAML: yaml::Limits = yaml::Limits {
    bytes: MAX_FILE,
    depth: 100,
    aliased: 100_000,
};

impl Chart {
    /// Reads the chart in a directory of a tree, or the `.tgz` at a path.
    pub fn load(reader: &Reader, directory: &str) -> Result<Self, Error> {
        if reader.kind(directory)? == Some(Kind::File) {
            return Self::from_archive(&reader.read(directory)?, ArchiveLimits::default());
        }
        Self::from_files(directory_files(reader, directory)?)
    }

    /// Reads a chart from the bytes of a `.tgz`.
    pub fn from_archive(bytes: &[u8], limits: ArchiveLimits) -> Result<Self, Error> {
        Self::from_files(archive::read(bytes, limits)?)
    }

    /// Puts a chart together from files whose paths are relative to it.
    pub fn from_files(files: Vec<File>) -> Result<Self, Error> {
        build(files, MAX_DEPTH)
    }
}

/// The files of a directory that `.helmignore` does not leave out, in the order in which Helm walks them.
pub fn directory_files(reader: &Reader, directory: &str) -> Result<Vec<File>, Error> {
    let root = path::normalise(directory)?;
    let within = |name: &str| {
        if root.is_empty() {
            name.to_owned()
        } else {
            format!("{root}/{name}")
        }
    };
    let rules = match reader.kind(&within(".helmignore"))? {
        Some(Kind::File) => reader.read_text(&within(".helmignore"))?,
        _ => String::new(),
    };
    let rules = Rules::parse(&rules).map_err(Error::Chart)?;
    let mut files = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut directories = 0;
    let mut push_entries = |open: &mut Vec<String>, at: &str| -> Result<(), Error> {
        directories += 1;
        if directories > MAX_DIRECTORIES {
            return Err(Error::Chart(format!(
                "{directory}: the chart has more than {MAX_DIRECTORIES} directories"
            )));
        }
        let full = if at.is_empty() { root.clone() } else { within(at) };
        let names = reader.list(&full)?;
        open.extend(names.iter().rev().map(|name| match at.is_empty() {
            true => name.clone(),
            false => format!("{at}/{name}"),
        }));
        Ok(())
    };
    push_entries(&mut open, "")?;
    while let Some(name) = open.pop() {
        let full = within(&name);
        let size = match reader.size(&full) {
            // A link that leads nowhere is no fault if nobody wants what it leads to.
            Err(error) if error.problem == Problem::NotFound && rules.ignores(&name, false) => continue,
            size => size?,
        };
        let is_directory = size.is_none();
        if rules.ignores(&name, is_directory) {
            continue;
        }
        if is_directory {
            push_entries(&mut open, &name)?;
            continue;
        }
        if size.is_some_and(|size| size > MAX_FILE as u64) {
            return Err(Error::Chart(format!(
                "chart file {name:?} is larger than the maximum file size {MAX_FILE}"
            )));
        }
        files.push(File {
            name,
            data: Data::Unread(reader.clone(), full),
        });
    }
    Ok(files)
}

/// The bytes without a byte order mark.
pub(super) fn without_mark(data: Arc<[u8]>) -> Arc<[u8]> {
    match data.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.into(),
        None => data,
    }
}

fn read_yaml(file: &File) -> Result<Json, Error> {
    let limits = yaml::Limits {
        bytes: usize::MAX,
        ..YAML
    };
    yaml::from_slice(&file.data.read()?, limits).map_err(|error| {
        Error::Chart(format!(
            "cannot load {}: error converting YAML to JSON: {}",
            file.name,
            yaml_fault(&error)
        ))
    })
}

fn build(files: Vec<File>, depth: usize) -> Result<Chart, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::Chart(format!(
            "charts are nested more than {MAX_DEPTH} deep"
        )));
    };
    let mut metadata: Option<Metadata> = None;
    if let Some(file) = files.iter().find(|file| file.name == "Chart.yaml") {
        let mut read = Metadata::default();
        let document = read_yaml(file)?;
        read.read(&document)
            .map_err(|error| Error::Chart(format!("cannot load Chart.yaml: {error}")))?;
        if read.api_version.is_empty() {
            read.api_version = "v1".to_owned();
        }
        metadata = Some(read);
    }
    let mut values = Map::new();
    let mut schema = None;
    let (mut templates, mut others) = (Vec::new(), Vec::new());
    let mut subcharts: BTreeMap<String, Vec<File>> = BTreeMap::new();
    let mut warnings = Vec::new();
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" | "Chart.lock" => {}
            "values.yaml" => {
                values = as_table(read_yaml(&file)?)
                    .map_err(|error| Error::Chart(format!("cannot load values.yaml: {error}")))?;
            }
            "values.schema.json" => schema = Some(file.data.read()?),
            "requirements.yaml" | "requirements.lock" => {
                let read = metadata.get_or_insert_default();
                if read.api_version != "v1" {
                    warnings.push("Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.".to_owned());
                }
                if file.name == "requirements.yaml" {
                    let document = read_yaml(&file)?;
                    let fault = |error| Error::Chart(format!("cannot load requirements.yaml: {error}"));
                    read.read(&document).map_err(fault)?;
                }
                if read.api_version == "v1" {
                    others.push(file);
                }
            }
            name if name.starts_with("templates/") => {
                let data = Data::Read(file.data.read()?);
                templates.push(File { data, ..file });
            }
            name if name.starts_with("charts/") => {
                if name.ends_with(".prov") {
                    others.push(file);
                    continue;
                }
                let inner = name["charts/".len()..].to_owned();
                let chart = inner.split('/').next().unwrap_or_default().to_owned();
                subcharts.entry(chart).or_default().push(File {
                    name: inner,
                    data: file.data,
                });
            }
            _ => others.push(file),
        }
    }
    let Some(mut metadata) = metadata else {
        return Err(Error::Chart("Chart.yaml file is missing".to_owned()));
    };
    metadata.validate()?;
    let mut dependencies = Vec::new();
    for (name, files) in subcharts {
        if let Some(chart) = subchart(&name, files, &metadata.name, depth)? {
            warnings.extend(chart.warnings.iter().cloned());
            dependencies.push(chart);
        }
    }
    Ok(Chart {
        metadata,
        values: Arc::new(floats(values)),
        schema,
        templates: Arc::new(templates),
        files: Arc::new(others),
        dependencies,
        warnings,
        renamed_from: None,
        parsed: Arc::default(),
    })
}

fn subchart(name: &str, files: Vec<File>, parent: &str, depth: usize) -> Result<Option<Chart>, Error> {
    if name.starts_with(['_', '.']) {
        return Ok(None);
    }
    let in_subchart = |error: Error| error.in_subchart(name, parent);
    if name.ends_with(".tgz") {
        let Some(file) = files.first().filter(|file| file.name == name) else {
            return Err(Error::Chart(format!(
                "error unpacking subchart tar in {parent}: expected {name}"
            )));
        };
        let files = archive::read(&file.data.read()?, ArchiveLimits::default()).map_err(in_subchart)?;
        return build(files, depth).map(Some).map_err(in_subchart);
    }
    let files: Vec<File> = files
        .into_iter()
        .filter_map(|file| {
            let (_, inner) = file.name.split_once('/')?;
            Some(File {
                name: inner.to_owned(),
                data: file.data,
            })
        })
        .collect();
    build(files, depth).map(Some).map_err(in_subchart)
}
