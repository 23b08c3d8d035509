//! Directories and files of a repository.

use std::collections::{BTreeMap, BTreeSet};

use fairway_text_glob::matches_between;
use serde_json::{Map, Value, json};

use super::{Generation, flatten};
use crate::{Error, Params, sanitize_name};

impl Generation<'_> {
    pub(super) fn git(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let (directories, files) = (&generator["directories"], &generator["files"]);
        let is_set = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        match (is_set(directories), is_set(files)) {
            (true, _) => self.directories(generator),
            (false, true) => self.files(generator),
            (false, false) => Err(Error::Generator(
                "a git generator needs directories or files".to_owned(),
            )),
        }
    }

    fn directories(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let (repository, revision) = place(generator);
        let all = self
            .sources
            .directories(repository, revision)
            .map_err(|why| failed(&format!("error getting directories from repo: {why}")))?;
        let items = generator["directories"].as_array().map_or(&[][..], Vec::as_slice);
        let mut chosen: Vec<&String> = all
            .iter()
            // As Argo CD: what is hidden is no application.
            .filter(|path| {
                !path
                    .split('/')
                    .any(|part| part.starts_with('.') && part.len() > 1)
            })
            .filter(|path| {
                let fits =
                    |item: &Value| matches_between(item["path"].as_str().unwrap_or_default(), path, &['/']);
                let excluded = items.iter().any(|item| item["exclude"] == true && fits(item));
                let included = items.iter().any(|item| item["exclude"] != true && fits(item));
                included && !excluded
            })
            .collect();
        chosen.sort_unstable();
        let make = |path: &&String| {
            let mut params = self.path_params(generator, path, None);
            self.add_values(&generator["values"], &mut params)?;
            Ok(params)
        };
        chosen.iter().map(make).collect()
    }

    fn files(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let (repository, revision) = place(generator);
        let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let items = generator["files"].as_array().map_or(&[][..], Vec::as_slice);
        let patterns = |excluding: bool| {
            let fits = move |item: &&Value| (item["exclude"] == true) == excluding;
            items.iter().filter(fits).filter_map(|item| item["path"].as_str())
        };
        for pattern in patterns(false) {
            found.extend(
                self.sources
                    .files(repository, revision, pattern)
                    .map_err(|why| failed(&why))?,
            );
        }
        for pattern in patterns(true) {
            for path in self
                .sources
                .files(repository, revision, pattern)
                .map_err(|why| failed(&why))?
                .keys()
            {
                found.remove(path);
            }
        }
        let mut all = Vec::new();
        for (path, content) in found {
            for object in objects(&path, &content)? {
                let directory = path.rsplit_once('/').map_or(".", |(directory, _)| directory);
                let file = path.rsplit('/').next().unwrap_or(&path);
                let mut params = match self.renderer.go {
                    true => object,
                    false => flatten(&Value::Object(object))
                        .into_iter()
                        .map(|(name, text)| (name, text.into()))
                        .collect(),
                };
                params.extend(self.path_params(generator, directory, Some(file)));
                self.add_values(&generator["values"], &mut params)?;
                all.push(params);
            }
        }
        Ok(all)
    }

    /// What a path is called in templates.
    fn path_params(&self, generator: &Value, path: &str, file: Option<&str>) -> Params {
        let prefix = generator["pathParamPrefix"].as_str().unwrap_or_default();
        let base = path.rsplit('/').next().unwrap_or(path);
        if self.renderer.go {
            let segments: Vec<&str> = path.split('/').collect();
            let mut tree = json!({
                "path": path, "basename": base, "basenameNormalized": sanitize_name(base), "segments": segments,
            });
            if let Some(file) = file {
                tree["filename"] = file.into();
                tree["filenameNormalized"] = sanitize_name(file).into();
            }
            let (name, value) = match prefix {
                "" => ("path", tree),
                prefix => (prefix, json!({"path": tree})),
            };
            return Map::from_iter([(name.to_owned(), value)]);
        }
        let name = match prefix {
            "" => "path".to_owned(),
            prefix => format!("{prefix}.path"),
        };
        let mut params: Params = Map::new();
        let mut set = |key: String, value: &str| {
            params.insert(key, value.into());
        };
        set(name.clone(), path);
        set(format!("{name}.basename"), base);
        set(format!("{name}.basenameNormalized"), &sanitize_name(base));
        if let Some(file) = file {
            set(format!("{name}.filename"), file);
            set(format!("{name}.filenameNormalized"), &sanitize_name(file));
        }
        for (index, part) in path.split('/').enumerate().filter(|(_, part)| !part.is_empty()) {
            set(format!("{name}[{index}]"), part);
        }
        params
    }
}

fn failed(why: &str) -> Error {
    Error::Source(format!("error generating params from git: {why}"))
}

/// Whether a pattern of a `files` generator means a file, in the manner of Git's paths: `*` stands for any characters, and a
/// directory for all that is in it.
pub fn means_file(pattern: &str, path: &str) -> bool {
    let within = path.strip_prefix(pattern.trim_end_matches('/'));
    within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || fairway_text_glob::matches(pattern, path)
}

/// Every directory that files are in, and those around it.
pub fn directories_of<'a>(files: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for file in files {
        let mut path = file;
        while let Some((parent, _)) = path.rsplit_once('/') {
            if all.contains(parent) {
                break;
            }
            all.insert(parent.to_owned());
            path = parent;
        }
    }
    all.into_iter().collect()
}

fn place(generator: &Value) -> (&str, &str) {
    let text = |field: &str| generator[field].as_str().unwrap_or_default();
    (text("repoURL"), text("revision"))
}

/// A file is one map of parameters, or a list of such maps; an empty one has none.
fn objects(path: &str, content: &[u8]) -> Result<Vec<Params>, Error> {
    let bad = |reason: String| {
        Error::Generator(format!(
            "error generating params from git: unable to process file '{path}': unable to parse file: {reason}"
        ))
    };
    let limits = fairway_text_yaml::Limits::default();
    let value = fairway_text_yaml::from_slice(content, limits).map_err(|error| bad(error.to_string()))?;
    match value {
        Value::Null => Ok(vec![Map::new()]),
        Value::Object(fields) => Ok(vec![fields]),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(fields) => Ok(fields),
                other => Err(bad(format!("an element is no map: {other}"))),
            })
            .collect(),
        other => Err(bad(format!("neither a map nor a list: {other}"))),
    }
}
