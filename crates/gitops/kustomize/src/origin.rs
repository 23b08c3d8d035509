//! Where a resource comes from and what changed it, for `buildMetadata`.

use fairway_text_yaml::{EmitOptions, to_string_with};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::git_url;
use crate::limits::Limits;
use crate::node::text;
use crate::read;
use crate::resource::{ORIGIN, Resource, TRANSFORMATIONS};

/// A file of a repository, or the configuration of a generator or transformer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) path: String,
    repo: String,
    reference: String,
    configured_in: String,
    /// apiVersion, kind, name and namespace.
    configured_by: [String; 4],
}

impl Origin {
    /// The origin of something at a path relative to this.
    pub(crate) fn append(&self, path: &str) -> Self {
        let mut origin = self.clone();
        match git_url::parse(path) {
            Some(repository) => {
                origin.repo = repository.clone_url;
                origin.reference = repository.reference;
                origin.path = clean(&repository.path);
            }
            None => origin.path = join(&self.path, path),
        }
        origin
    }

    /// What a generator or transformer that is built in makes, when a file of this origin configures it.
    pub(crate) fn of_builtin(&self, file: &str, kind: &str) -> Self {
        Self {
            path: String::new(),
            repo: self.repo.clone(),
            reference: self.reference.clone(),
            configured_in: join(&self.path, file),
            configured_by: [
                "builtin".to_owned(),
                kind.to_owned(),
                String::new(),
                String::new(),
            ],
        }
    }

    /// What a generator or transformer makes that this resource configures; none if it has no origin.
    pub(crate) fn of_plugin(config: &Resource, limits: &Limits) -> Option<Self> {
        let written = config.annotation(ORIGIN)?;
        let parsed = read::configuration(written.as_bytes(), limits).ok()?;
        let part = |key: &str| parsed.get(key).map(text).unwrap_or_default().into_owned();
        Some(Self {
            path: String::new(),
            repo: part("repo"),
            reference: part("ref"),
            configured_in: part("path"),
            configured_by: [
                config.api_version().to_owned(),
                config.kind().into_owned(),
                config.name().into_owned(),
                config.namespace().into_owned(),
            ],
        })
    }

    fn value(&self) -> Value {
        let mut fields = Map::new();
        let put = |fields: &mut Map<String, Value>, key: &str, value: &str| {
            if !value.is_empty() {
                fields.insert(key.to_owned(), Value::String(value.to_owned()));
            }
        };
        put(&mut fields, "path", &self.path);
        put(&mut fields, "repo", &self.repo);
        put(&mut fields, "ref", &self.reference);
        put(&mut fields, "configuredIn", &self.configured_in);
        let mut by = Map::new();
        for (key, value) in ["apiVersion", "kind", "name", "namespace"]
            .iter()
            .zip(&self.configured_by)
        {
            put(&mut by, key, value);
        }
        if !by.is_empty() {
            fields.insert("configuredBy".to_owned(), Value::Object(by));
        }
        Value::Object(fields)
    }

    /// The text of the annotation.
    pub(crate) fn text(&self) -> String {
        write(&self.value())
    }

    /// Notes that a transformer of this origin ran, or that it made the resource.
    pub(crate) fn annotate_transformed(&self, resource: &mut Resource) -> Result<()> {
        if resource.annotation(ORIGIN).is_none() {
            return resource.set_annotation(ORIGIN, &self.text());
        }
        let mut all = resource
            .annotation(TRANSFORMATIONS)
            .unwrap_or_default()
            .into_owned();
        all.push_str(&write(&Value::Array(vec![self.value()])));
        resource.set_annotation(TRANSFORMATIONS, &all)
    }
}

fn write(value: &Value) -> String {
    let options = EmitOptions {
        sort_keys: false,
        width: None,
    };
    to_string_with(value, options)
}

fn join(base: &str, path: &str) -> String {
    match base {
        "" => clean(path),
        base => clean(&format!("{base}/{path}")),
    }
}

/// A path without `.` and inner `..`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}
