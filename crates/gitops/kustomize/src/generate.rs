//! Generators of ConfigMaps and Secrets.

use std::collections::BTreeMap;

use base64::Engine;
use serde_json::{Map, Value};

use crate::decode::Fields;
use crate::error::{Error, Result, Within};
use crate::loader::Loader;
use crate::resource::Resource;

/// What is generated, and from what.
#[derive(Debug, Clone, Default)]
pub(crate) struct GeneratorArgs {
    pub(crate) name: String,
    pub(crate) namespace: String,
    behavior: String,
    literals: Vec<String>,
    files: Vec<String>,
    envs: Vec<String>,
    /// The older form with one file.
    env: String,
    options: Option<GeneratorOptions>,
    /// Of a Secret.
    secret_type: String,
}

/// What generated resources have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct GeneratorOptions {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    disable_name_suffix_hash: bool,
    immutable: bool,
}

/// What a generator makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

impl GeneratorArgs {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            name: fields.string("name")?,
            namespace: fields.string("namespace")?,
            behavior: fields.string("behavior")?,
            literals: fields.strings("literals")?,
            files: fields.strings("files")?,
            envs: fields.strings("envs")?,
            env: fields.string("env")?,
            options: fields.decoded("options", GeneratorOptions::decode)?,
            secret_type: fields.string("type")?,
        })
    }

    /// Makes the older form of env files the newer one.
    pub(crate) fn fold_env(&mut self) {
        if !self.env.is_empty() {
            self.envs.push(std::mem::take(&mut self.env));
        }
    }

    /// With the options of the kustomization, where it has none of its own.
    pub(crate) fn with_globals(&self, globals: Option<&GeneratorOptions>) -> Self {
        let mut args = self.clone();
        if let Some(globals) = globals {
            args.options.get_or_insert_default().add_globals(globals);
        }
        args
    }

    /// Generates the resource.
    pub(crate) fn generate(&self, kind: Kind, loader: &Loader<'_>) -> Result<Resource> {
        if self.name.is_empty() {
            return Err(Error::new("a configmap must have a name"));
        }
        let pairs = self
            .pairs(loader)
            .within(|| format!("loading KV pairs of generator '{}'", self.name))?;
        let text = |text: &str| Value::String(text.to_owned());
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), text(&self.name));
        if !self.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), text(&self.namespace));
        }
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), text("v1"));
        match kind {
            Kind::ConfigMap => {
                object.insert("kind".to_owned(), text("ConfigMap"));
                config_map_data(&mut object, &pairs);
            }
            Kind::Secret => {
                object.insert("kind".to_owned(), text("Secret"));
                let secret_type = match self.secret_type.as_str() {
                    "" => "Opaque",
                    other => other,
                };
                object.insert("type".to_owned(), text(secret_type));
                let data = pairs
                    .iter()
                    .map(|(key, value)| (key.clone(), Value::String(base64_lines(value))));
                object.insert("data".to_owned(), Value::Object(data.collect()));
            }
        }
        let options = self.options.clone().unwrap_or_default();
        for (field, entries) in [("labels", &options.labels), ("annotations", &options.annotations)] {
            if !entries.is_empty() {
                let entries = entries.iter().map(|(key, value)| (key.clone(), text(value)));
                metadata.insert(field.to_owned(), Value::Object(entries.collect()));
            }
        }
        object.insert("metadata".to_owned(), Value::Object(metadata));
        if options.immutable {
            object.insert("immutable".to_owned(), Value::Bool(true));
        }
        let mut resource = Resource::new(Value::Object(object))?;
        resource.needs_hash = !options.disable_name_suffix_hash;
        resource.behavior = Some(match self.behavior.as_str() {
            known @ ("create" | "merge" | "replace") => known.to_owned(),
            _ => "unspecified".to_owned(),
        });
        Ok(resource)
    }

    /// Keys and their content, sorted by key.
    fn pairs(&self, loader: &Loader<'_>) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut pairs = BTreeMap::new();
        let mut add = |key: String, value: Vec<u8>| match pairs.insert(key.clone(), value) {
            None => Ok(()),
            Some(_) => Err(Error::new(format!(
                "configmap {} illegally repeats the key `{key}`",
                self.name
            ))),
        };
        for path in &self.envs {
            let content = loader
                .load(path)
                .within(|| format!("env source files: [{}]", self.envs.join(" ")))?;
            for (key, value) in env_lines(&content).within(|| format!("env source file '{path}'"))? {
                add(key, value)?;
            }
        }
        for literal in &self.literals {
            let (key, value) = literal
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| Error::new(format!("invalid literal source {literal}, expected key=value")))?;
            add(key.to_owned(), unquote(value).as_bytes().to_vec())?;
        }
        for source in &self.files {
            let (key, path) = file_source(source)?;
            let content = loader
                .load(path)
                .within(|| format!("file sources: [{}]", self.files.join(" ")))?;
            add(key.to_owned(), content.to_vec())?;
        }
        Ok(pairs)
    }
}

impl GeneratorOptions {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            labels: fields.string_map("labels")?,
            annotations: fields.string_map("annotations")?,
            disable_name_suffix_hash: fields.bool("disableNameSuffixHash")?,
            immutable: fields.bool("immutable")?,
        })
    }

    fn add_globals(&mut self, globals: &Self) {
        for (own, global) in [
            (&mut self.labels, &globals.labels),
            (&mut self.annotations, &globals.annotations),
        ] {
            for (key, value) in global {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self.disable_name_suffix_hash |= globals.disable_name_suffix_hash;
        self.immutable |= globals.immutable;
    }
}

fn config_map_data(object: &mut Map<String, Value>, pairs: &BTreeMap<String, Vec<u8>>) {
    let (mut data, mut binary) = (Map::new(), Map::new());
    for (key, value) in pairs {
        match std::str::from_utf8(value) {
            Ok(text) => data.insert(key.clone(), Value::String(text.to_owned())),
            Err(_) => binary.insert(key.clone(), Value::String(base64_lines(value))),
        };
    }
    for (field, entries) in [("data", data), ("binaryData", binary)] {
        if !entries.is_empty() {
            object.insert(field.to_owned(), Value::Object(entries));
        }
    }
}

/// Base64 in lines of seventy characters, if it takes more than one.
fn base64_lines(bytes: &[u8]) -> String {
    const LINE: usize = 70;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    if encoded.len() < LINE {
        return encoded;
    }
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

fn env_lines(content: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pairs = Vec::new();
    for (at, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line)
            .map_err(|_| Error::new(format!("line {} has invalid utf8 bytes", at + 1)))?;
        let text = match at {
            0 => text.strip_prefix('\u{feff}').unwrap_or(text),
            _ => text,
        };
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if !key.is_empty() {
            pairs.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    Ok(pairs)
}

/// The key and path of a file source, `[key=]path`.
fn file_source(source: &str) -> Result<(&str, &str)> {
    let refuse = |why: &str| Err(Error::new(format!("{why} in source {source:?}")));
    match source.split_once('=') {
        None => Ok((
            source.trim_end_matches('/').rsplit('/').next().unwrap_or(source),
            source,
        )),
        Some(("", _)) => refuse("missing key name for file path"),
        Some((_, "")) => refuse("missing file path for key name"),
        Some((_, path)) if path.contains('=') => refuse("key name or file path contains '='"),
        Some((key, path)) => Ok((key, path)),
    }
}

/// Without one pair of quotes around it.
fn unquote(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{base64_lines, env_lines, file_source, unquote};

    #[test]
    fn env_files() {
        let read = env_lines("\u{feff}A=1\r\n  # no\n\n B = 2=3\nC\n".as_bytes()).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(key, value)| (key.as_str(), std::str::from_utf8(value).unwrap()))
            .collect();
        assert_eq!(read, [("A", "1"), ("B ", " 2=3"), ("C", "")]);
        assert!(env_lines(b"A=\xff").is_err());
    }

    #[test]
    fn file_sources() {
        assert_eq!(file_source("a/b.txt").unwrap(), ("b.txt", "a/b.txt"));
        assert_eq!(file_source("k=a/b.txt").unwrap(), ("k", "a/b.txt"));
        for wrong in ["=a", "k=", "k=a=b"] {
            assert!(file_source(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn literals_lose_one_pair_of_quotes() {
        assert_eq!(unquote("\"a\""), "a");
        assert_eq!(unquote("'a'"), "a");
        assert_eq!(unquote("\"a'"), "\"a'");
        assert_eq!(unquote("\""), "\"");
    }

    #[test]
    fn long_base64_has_lines() {
        assert_eq!(base64_lines(b"x"), "eA==");
        let long = base64_lines(&[0; 60]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [70, 10]);
        assert!(long.ends_with('\n'));
    }
}
