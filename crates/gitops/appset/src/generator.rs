//! Generators: from a list, from clusters, from a repository, from pull requests, and from combinations of these.

mod combine;
mod git;
mod pull_request;
mod selector;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{Error, MAX_PARAMS, Params, Renderer, sanitize_name};
pub use git::{directories_of, means_file};
pub use pull_request::PullRequest;
pub use selector::matches as selector_matches;

/// How deep generators may nest. Argo CD allows one matrix or merge in another.
const MAX_DEPTH: usize = 4;

/// A cluster that Applications can go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The address of its API.
    pub server: String,
    /// The project that it belongs to; empty if none.
    pub project: String,
    /// Labels of its Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations of its Secret.
    pub annotations: BTreeMap<String, String>,
}

/// What generators ask of the world.
pub trait Sources {
    /// All clusters, the one that the set is in among them (without labels, if it has no Secret).
    fn clusters(&self) -> Result<Vec<Cluster>, String>;
    /// All directories of a repository at a revision.
    fn directories(&self, repository: &str, revision: &str) -> Result<Vec<String>, String>;
    /// All files of a repository at a revision whose path matches a glob, with their contents.
    fn files(
        &self,
        repository: &str,
        revision: &str,
        pattern: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, String>;
    /// The open pull requests that a `pullRequest` generator looks at, before its filters.
    fn pull_requests(&self, generator: &Value) -> Result<Vec<PullRequest>, String>;
    /// The parameters of what a `scmProvider`, `clusterDecisionResource` or `plugin` generator finds.
    fn others(&self, kind: &str, generator: &Value) -> Result<Vec<Params>, String>;
}

/// One generator's yield: parameters, and the template that it has for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// For each Application.
    pub params: Vec<Params>,
    /// What goes over the set's own template.
    pub template: Value,
}

/// What all generators of an ApplicationSet yield.
pub fn generate(spec: &Value, sources: &dyn Sources) -> Result<Vec<Generated>, Error> {
    let renderer = Renderer::of(spec)?;
    let generation = Generation { renderer, sources };
    let mut all = Vec::new();
    let mut count = 0;
    for generator in spec["generators"].as_array().into_iter().flatten() {
        let params = generation.params(generator, None, 0)?;
        count += params.len();
        if count > MAX_PARAMS {
            return Err(Error::TooMany(MAX_PARAMS));
        }
        let kind = kind_of(generator)?;
        all.push(Generated {
            params,
            template: generator[kind]["template"].clone(),
        });
    }
    Ok(all)
}

pub(crate) struct Generation<'a> {
    pub(crate) renderer: Renderer,
    pub(crate) sources: &'a dyn Sources,
}

const KINDS: &[&str] = &[
    "list",
    "clusters",
    "git",
    "matrix",
    "merge",
    "pullRequest",
    "scmProvider",
    "clusterDecisionResource",
    "plugin",
];

fn kind_of(generator: &Value) -> Result<&'static str, Error> {
    let mut kinds = KINDS
        .iter()
        .filter(|kind| generator.get(**kind).is_some_and(|value| !value.is_null()));
    match (kinds.next(), kinds.next()) {
        (Some(kind), None) => Ok(kind),
        (None, _) => Err(Error::Generator(format!(
            "a generator is none of {}",
            KINDS.join(", ")
        ))),
        (Some(one), Some(two)) => Err(Error::Generator(format!(
            "a generator is both {one} and {two}; make it two"
        ))),
    }
}

impl Generation<'_> {
    /// What a generator yields. Inside a matrix its texts are filled with what the generator before it yielded.
    fn params(&self, generator: &Value, given: Option<&Params>, depth: usize) -> Result<Vec<Params>, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Generator("generators are nested too deeply".to_owned()));
        }
        let kind = kind_of(generator)?;
        let filled = match given {
            Some(params) => self.fill(&generator[kind], params)?,
            None => generator[kind].clone(),
        };
        let mut all = match kind {
            "list" => self.list(&filled)?,
            "clusters" => self.clusters(&filled)?,
            "git" => self.git(&filled)?,
            "matrix" => self.matrix(&filled, given, depth)?,
            "merge" => self.merge(&filled, given, depth)?,
            "pullRequest" => self.pull_requests(&filled)?,
            other => {
                let mut found = self.sources.others(other, &filled).map_err(Error::Source)?;
                for params in &mut found {
                    self.add_values(&filled["values"], params)?;
                }
                found
            }
        };
        if all.len() > MAX_PARAMS {
            return Err(Error::TooMany(MAX_PARAMS));
        }
        let selector = &generator["selector"];
        if !selector.is_null() {
            let mut kept = Vec::with_capacity(all.len());
            for params in all {
                if selector::matches(selector, &labels(&params))? {
                    kept.push(params);
                }
            }
            all = kept;
        }
        Ok(all)
    }

    /// Fills a generator, but not its `values` and its template, which are filled later with more.
    fn fill(&self, generator: &Value, params: &Params) -> Result<Value, Error> {
        let Value::Object(fields) = generator else {
            return Ok(generator.clone());
        };
        let mut out = Map::new();
        for (name, value) in fields {
            let later = ["template", "values", "generators"].contains(&name.as_str());
            out.insert(
                name.clone(),
                if later {
                    value.clone()
                } else {
                    self.renderer.value(value, params)?
                },
            );
        }
        Ok(Value::Object(out))
    }

    fn list(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let mut all = Vec::new();
        for element in generator["elements"].as_array().into_iter().flatten() {
            let Some(fields) = element.as_object() else {
                return Err(Error::Generator(format!(
                    "an element of a list generator is no map: {element}"
                )));
            };
            all.push(if self.renderer.go {
                fields.clone()
            } else {
                flat_element(fields)?
            });
        }
        let text = generator["elementsYaml"].as_str().unwrap_or_default();
        if !text.is_empty() {
            let limits = fairway_text_yaml::Limits::default();
            let bad = |reason: String| {
                Error::Generator(format!("reading elementsYaml of a list generator: {reason}"))
            };
            let value = fairway_text_yaml::from_str(text, limits).map_err(|error| bad(error.to_string()))?;
            for element in value.as_array().into_iter().flatten() {
                let fields = element
                    .as_object()
                    .ok_or_else(|| bad(format!("no map: {element}")))?;
                all.push(fields.clone());
            }
        }
        Ok(all)
    }

    fn clusters(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let selector = &generator["selector"];
        let selects = !selector["matchLabels"].is_null() || !selector["matchExpressions"].is_null();
        let mut all = Vec::new();
        for cluster in self.sources.clusters().map_err(Error::Source)? {
            let labels: BTreeMap<String, String> = cluster.labels.clone();
            // The cluster that the set is in has no labels unless it has a Secret, and a selector then leaves it out.
            if selects && !selector::matches(selector, &labels)? {
                continue;
            }
            let mut params = self.cluster(&cluster);
            self.add_values(&generator["values"], &mut params)?;
            all.push(params);
        }
        if generator["flatList"] == true {
            let list: Vec<Value> = all.into_iter().map(Value::Object).collect();
            return Ok(vec![Map::from_iter([(
                "clusters".to_owned(),
                Value::Array(list),
            )])]);
        }
        Ok(all)
    }

    fn cluster(&self, cluster: &Cluster) -> Params {
        let mut params = Map::new();
        params.insert("name".to_owned(), cluster.name.as_str().into());
        params.insert("nameNormalized".to_owned(), sanitize_name(&cluster.name).into());
        params.insert("server".to_owned(), cluster.server.as_str().into());
        params.insert("project".to_owned(), cluster.project.as_str().into());
        let maps = [("annotations", &cluster.annotations), ("labels", &cluster.labels)];
        if self.renderer.go {
            let filled = maps.iter().filter(|(_, map)| !map.is_empty());
            let metadata: Map<String, Value> = filled
                .map(|(name, map)| ((*name).to_owned(), json!(map)))
                .collect();
            params.insert("metadata".to_owned(), Value::Object(metadata));
            return params;
        }
        for (name, map) in maps {
            for (key, value) in map {
                params.insert(format!("metadata.{name}.{key}"), value.as_str().into());
            }
        }
        params
    }

    /// Adds `values`, filled with the parameters so far. All are filled before one is added, so that they cannot feed on
    /// each other.
    fn add_values(&self, values: &Value, params: &mut Params) -> Result<(), Error> {
        let mut filled = Vec::new();
        for (name, value) in values.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            filled.push((name.clone(), self.renderer.text(&text, params)?));
        }
        if filled.is_empty() {
            return Ok(());
        }
        if self.renderer.go {
            let map: Map<String, Value> = filled
                .into_iter()
                .map(|(name, text)| (name, text.into()))
                .collect();
            params.insert("values".to_owned(), Value::Object(map));
        } else {
            params.extend(
                filled
                    .into_iter()
                    .map(|(name, text)| (format!("values.{name}"), Value::from(text))),
            );
        }
        Ok(())
    }
}

/// An element of a list for `{{param}}`: texts, and one level of them under `values`.
fn flat_element(fields: &Map<String, Value>) -> Result<Params, Error> {
    let not_text = |name: &str| Error::Generator(format!("the list element's {name} is no string; quote it"));
    let mut params = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("values", Value::Object(values)) => {
                for (name, value) in values {
                    let text = value.as_str().ok_or_else(|| not_text(name))?;
                    params.insert(format!("values.{name}"), text.into());
                }
            }
            (name, Value::String(_)) => {
                params.insert(name.to_owned(), value.clone());
            }
            (name, _) => return Err(not_text(name)),
        }
    }
    Ok(params)
}

/// Parameters as labels, for a selector over what a generator yields: trees with dots.
fn labels(params: &Params) -> BTreeMap<String, String> {
    flatten(&Value::Object(params.clone())).into_iter().collect()
}

/// The leaves of a tree, by paths with dots.
pub(crate) fn flatten(value: &Value) -> Vec<(String, String)> {
    let (mut pending, mut out) = (vec![(String::new(), value)], Vec::new());
    while let Some((path, value)) = pending.pop() {
        let below = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                pending.extend(fields.iter().rev().map(|(name, value)| (below(name), value)));
            }
            Value::Array(items) if !items.is_empty() => {
                let items = items.iter().enumerate().rev();
                pending.extend(items.map(|(index, value)| (below(&index.to_string()), value)));
            }
            Value::String(text) => out.push((path, text.clone())),
            Value::Null => out.push((path, "<nil>".to_owned())),
            Value::Object(_) => out.push((path, "map[]".to_owned())),
            Value::Array(_) => out.push((path, "[]".to_owned())),
            other => out.push((path, other.to_string())),
        }
    }
    out
}

#[cfg(test)]
mod tests;
