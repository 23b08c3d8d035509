//! How Go writes the fields of the API types, out of their struct tags.
//!
//! OpenAPI does not tell a pointer from a value, nor what is left out when it is empty; both decide what a stored object
//! looks like. The sources are formatted by gofmt, one field per line, so that reading them by line is safe.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::upstream;

/// A field of a Go struct.
#[derive(Clone, Debug)]
pub(crate) struct GoField {
    json: String,
    go_type: String,
    omit_empty: bool,
    omit_zero: bool,
    inline: bool,
    number: Option<u32>,
}

/// The structs of all packages that were asked for.
#[derive(Default)]
pub(crate) struct GoTypes {
    packages: HashMap<PathBuf, HashMap<String, Vec<GoField>>>,
    modules: HashMap<String, PathBuf>,
}

impl GoField {
    /// The name in JSON; empty where there is none.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// The struct is embedded: its fields appear beside those around it.
    pub(crate) fn inline(&self) -> bool {
        self.inline
    }

    /// The number of the field in protocol buffers.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number
    }

    /// The value is behind a pointer, so that its zero value is kept.
    pub(crate) fn pointer(&self) -> bool {
        self.go_type.starts_with('*')
    }

    /// Empty values are left out (which has no effect on structs).
    pub(crate) fn omit_empty(&self) -> bool {
        self.omit_empty
    }

    /// Zero values are left out, of structs too.
    pub(crate) fn omit_zero(&self) -> bool {
        self.omit_zero
    }
}

impl GoTypes {
    /// The fields of a struct such as `io.k8s.api.core.v1.Pod`, in the order of the source; `None` for what is no struct.
    pub(crate) fn fields(&mut self, type_name: &str) -> Result<Option<&[GoField]>> {
        let (directory, name) = self.place(type_name)?;
        Ok(self.package(&directory)?.get(name).map(Vec::as_slice))
    }

    /// The directory of a type's package, and its name there.
    fn place<'t>(&mut self, type_name: &'t str) -> Result<(PathBuf, &'t str)> {
        let (package, name) = type_name.rsplit_once('.').context("a type has a package")?;
        let mut words = package.trim_start_matches("io.k8s.").split('.');
        let module = words.next().unwrap_or_default().to_owned();
        Ok((self.module(&module)?.join(words.collect::<PathBuf>()), name))
    }

    fn package(&mut self, directory: &Path) -> Result<&HashMap<String, Vec<GoField>>> {
        if !self.packages.contains_key(directory) {
            self.packages
                .insert(directory.to_owned(), read_package(directory)?);
        }
        Ok(&self.packages[directory])
    }

    /// A field by its JSON name, of a type such as `io.k8s.api.core.v1.Pod`.
    pub(crate) fn field(&mut self, type_name: &str, json: &str) -> Result<GoField> {
        let (directory, name) = self.place(type_name)?;
        let found = self.find(&directory, name, json, 0)?;
        found.with_context(|| format!("{type_name} has no field {json} in {}", directory.display()))
    }

    fn module(&mut self, name: &str) -> Result<PathBuf> {
        if let Some(directory) = self.modules.get(name) {
            return Ok(directory.clone());
        }
        let version = upstream::KUBERNETES.replacen("v1", "v0", 1);
        let directory = upstream::go_module(&format!("k8s.io/{name}@{version}"))?;
        self.modules.insert(name.to_owned(), directory.clone());
        Ok(directory)
    }

    /// Fields of embedded structs count as the struct's own.
    fn find(&mut self, directory: &Path, name: &str, json: &str, depth: usize) -> Result<Option<GoField>> {
        if depth > 8 {
            bail!("{name} embeds itself");
        }
        let fields = self.package(directory)?.get(name).cloned().unwrap_or_default();
        if let Some(field) = fields.iter().find(|f| !f.inline && f.json == json) {
            return Ok(Some(field.clone()));
        }
        for embedded in fields.iter().filter(|f| f.inline) {
            let (directory, name) = match embedded.go_type.split_once('.') {
                None => (directory.to_owned(), embedded.go_type.as_str()),
                Some(("metav1" | "v1", name)) => {
                    (self.module("apimachinery")?.join("pkg/apis/meta/v1"), name)
                }
                Some(_) => bail!("{name} embeds {}", embedded.go_type),
            };
            if let Some(field) = self.find(&directory, name, json, depth + 1)? {
                return Ok(Some(field));
            }
        }
        Ok(None)
    }
}

fn read_package(directory: &Path) -> Result<HashMap<String, Vec<GoField>>> {
    let mut structs = HashMap::new();
    for entry in fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            read_source(&fs::read_to_string(&path)?, &mut structs);
        }
    }
    Ok(structs)
}

fn read_source(source: &str, structs: &mut HashMap<String, Vec<GoField>>) {
    let mut current: Option<(&str, Vec<GoField>)> = None;
    for line in source.lines() {
        if let Some(name) = line
            .strip_prefix("type ")
            .and_then(|l| l.strip_suffix(" struct {"))
        {
            current = Some((name, Vec::new()));
        } else if let Some(name) = line
            .strip_prefix("type ")
            .and_then(|l| l.strip_suffix(" struct{}"))
        {
            structs.insert(name.to_owned(), Vec::new());
        } else if line == "}" {
            if let Some((name, fields)) = current.take() {
                structs.insert(name.to_owned(), fields);
            }
        } else if let Some((_, fields)) = &mut current {
            fields.extend(read_field(line));
        }
    }
}

/// ``Name Type `json:"name,omitempty" ...` ``, or a type alone where it is embedded.
fn read_field(line: &str) -> Option<GoField> {
    let line = line.trim();
    let (declaration, tags) = line.split_once('`')?;
    if declaration.starts_with("//") {
        return None;
    }
    // `bytes,1,opt,name=metadata`
    let number = tags
        .split_once("protobuf:\"")
        .and_then(|(_, tag)| tag.split(['"', ',']).nth(1)?.parse().ok());
    let tag = match tags.split_once("json:\"") {
        Some((_, tag)) => tag.split('"').next()?,
        None => number.map(|_: u32| "")?,
    };
    let mut options = tag.split(',');
    let json = options.next()?.to_owned();
    let options: Vec<&str> = options.collect();
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let go_type = words
        .get(1..)
        .filter(|w| !w.is_empty())
        .unwrap_or(&words)
        .join(" ");
    Some(GoField {
        inline: options.contains(&"inline") || (json.is_empty() && words.len() == 1),
        number,
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        json,
        go_type,
    })
}
