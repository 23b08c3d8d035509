//! Reading configuration files in upstream's forms strictly: whatever is not understood is told, with its path.
//!
//! A reader collects everything that is wrong instead of stopping at the first error, so that a file is corrected in one go.

use std::fmt::Display;

use fairway_kernel_schema::field::Path;
use serde_json::{Map, Value};

/// Largest configuration file that is read.
pub(crate) const MAX_FILE: usize = 1024 * 1024;

/// A file's errors, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<String>);

impl Errors {
    /// One more.
    pub(crate) fn push(&mut self, error: impl Display) {
        self.0.push(error.to_string());
    }

    /// `Err` with all of them if there are any.
    pub(crate) fn into_result(self) -> Result<(), String> {
        match self.0.as_slice() {
            [] => Ok(()),
            [only] => Err(only.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}

/// An object of the file, and where it stands.
pub(crate) struct Node<'a> {
    fields: Option<&'a Map<String, Value>>,
    path: Path,
}

/// Reads the whole document; `apiVersion` must be one of these.
pub(crate) fn document<'a>(
    value: &'a Value,
    kind: &str,
    versions: &[&str],
    known: &[&str],
    errors: &mut Errors,
) -> Node<'a> {
    let mut all = vec!["apiVersion", "kind", "metadata"];
    all.extend_from_slice(known);
    let node = Node::new(Some(value), Path::root(), &all, errors);
    let (found, version) = (node.text("kind", errors), node.text("apiVersion", errors));
    if found != kind || !versions.contains(&version.as_str()) {
        errors.push(format!(
            "no kind {found:?} is known in version {version:?}; expected {kind} of {}",
            versions.join(" or ")
        ));
    }
    node
}

impl<'a> Node<'a> {
    fn new(value: Option<&'a Value>, path: Path, known: &[&str], errors: &mut Errors) -> Self {
        let fields = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(_) => {
                let name = if path.as_str().is_empty() {
                    "the document"
                } else {
                    path.as_str()
                };
                errors.push(format!("{name}: must be an object"));
                None
            }
        };
        for field in fields.into_iter().flat_map(Map::keys) {
            if !known.contains(&field.as_str()) {
                errors.push(format!("unknown field \"{}\"", path.child(field)));
            }
        }
        Self { fields, path }
    }

    /// The path of a field.
    pub(crate) fn at(&self, field: &str) -> Path {
        self.path.child(field)
    }

    /// Where it stands itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields?.get(field).filter(|v| !v.is_null())
    }

    /// An object below.
    pub(crate) fn node(&self, field: &str, known: &[&str], errors: &mut Errors) -> Node<'a> {
        Node::new(self.get(field), self.at(field), known, errors)
    }

    /// A text; empty if it is not there.
    pub(crate) fn text(&self, field: &str, errors: &mut Errors) -> String {
        self.optional_text(field, errors).unwrap_or_default()
    }

    /// A text, if it is there.
    pub(crate) fn optional_text(&self, field: &str, errors: &mut Errors) -> Option<String> {
        match self.get(field)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                errors.push(format!("{}: must be a string", self.at(field)));
                None
            }
        }
    }

    /// Whether something holds, if it is said.
    pub(crate) fn flag(&self, field: &str, errors: &mut Errors) -> Option<bool> {
        match self.get(field)? {
            Value::Bool(flag) => Some(*flag),
            _ => {
                errors.push(format!("{}: must be true or false", self.at(field)));
                None
            }
        }
    }

    fn items(&self, field: &str, errors: &mut Errors) -> &'a [Value] {
        match self.get(field) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                errors.push(format!("{}: must be a list", self.at(field)));
                &[]
            }
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self, field: &str, errors: &mut Errors) -> Vec<String> {
        let at = self.at(field);
        let mut texts = Vec::new();
        for (index, item) in self.items(field, errors).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                _ => errors.push(format!("{}: must be a string", at.index(index))),
            }
        }
        texts
    }

    /// A list of objects.
    pub(crate) fn nodes(&self, field: &str, known: &[&str], errors: &mut Errors) -> Vec<Node<'a>> {
        let at = self.at(field);
        let items = self.items(field, errors);
        items
            .iter()
            .enumerate()
            .map(|(index, item)| Node::new(Some(item), at.index(index), known, errors))
            .collect()
    }
}

/// Parses YAML or JSON, of a bounded size.
pub(crate) fn parse(content: &[u8]) -> Result<Value, String> {
    if content.len() > MAX_FILE {
        return Err(format!("it is larger than {MAX_FILE} bytes"));
    }
    fairway_text_yaml::from_slice(content, fairway_text_yaml::Limits::default()).map_err(|e| e.to_string())
}
