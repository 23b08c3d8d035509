//! Values: those of the user, those of the charts, and how they meet.

mod coalesce;

use fairway_text_gotemplate::formats::yaml_fault;
use fairway_text_yaml as yaml;
use serde_json::{Map, Number, Value as Json};

use crate::error::Error;
use crate::strvals;

pub(crate) use coalesce::{coalesce_tables, coalesce_values};

pub(crate) type Table = Map<String, Json>;

/// Turns every number into a float, which is what Go makes of numbers in YAML and JSON.
pub(crate) fn floats(mut table: Table) -> Table {
    table.values_mut().for_each(float_in_place);
    table
}

/// Turns the numbers of a value into floats.
pub(crate) fn float(mut value: Json) -> Json {
    float_in_place(&mut value);
    value
}

fn float_in_place(value: &mut Json) {
    match value {
        Json::Number(number) if !number.is_f64() => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(float_in_place),
        Json::Object(fields) => fields.values_mut().for_each(float_in_place),
        _ => {}
    }
}

/// Merges what a user gives on the command line: files first, then `--set-json`, `--set`, `--set-string`, `--set-file`
/// and `--set-literal`, whatever their order. Call it in that order to do as Helm does.
#[derive(Debug, Clone, Default)]
pub struct ValuesBuilder {
    values: Table,
}

impl ValuesBuilder {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges the text of a values file over what is there. `name` is for the error.
    pub fn file(&mut self, name: &str, text: &[u8]) -> Result<&mut Self, Error> {
        let limits = yaml::Limits {
            bytes: 32 * 1024 * 1024,
            ..yaml::Limits::default()
        };
        let fault = |reason: String| Error::Values(format!("failed to parse {name}: {reason}"));
        let document = yaml::from_slice(text, limits)
            .map_err(|error| fault(format!("error converting YAML to JSON: {}", yaml_fault(&error))))?;
        merge(&mut self.values, floats(as_table(document).map_err(fault)?));
        Ok(self)
    }

    /// Merges values that were read elsewhere.
    pub fn table(&mut self, table: Table) -> &mut Self {
        merge(&mut self.values, floats(table));
        self
    }

    /// `--set`
    pub fn set(&mut self, line: &str) -> Result<&mut Self, Error> {
        strvals::parse_into(line, &mut self.values)
            .map_err(|error| Error::Values(format!("failed parsing --set data: {error}")))?;
        Ok(self)
    }

    /// `--set-string`
    pub fn set_string(&mut self, line: &str) -> Result<&mut Self, Error> {
        strvals::parse_string_into(line, &mut self.values)
            .map_err(|error| Error::Values(format!("failed parsing --set-string data: {error}")))?;
        Ok(self)
    }

    /// `--set-json`
    pub fn set_json(&mut self, line: &str) -> Result<&mut Self, Error> {
        strvals::parse_json_into(line, &mut self.values)
            .map_err(|error| Error::Values(format!("failed parsing --set-json data {line}: {error}")))?;
        Ok(self)
    }

    /// `--set-literal`
    pub fn set_literal(&mut self, line: &str) -> Result<&mut Self, Error> {
        strvals::parse_literal_into(line, &mut self.values)
            .map_err(|error| Error::Values(format!("failed parsing --set-literal data: {error}")))?;
        Ok(self)
    }

    /// `--set-file`; `read` gives the text of a file.
    pub fn set_file(
        &mut self,
        line: &str,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<&mut Self, Error> {
        strvals::parse_file_into(line, &mut self.values, read)
            .map_err(|error| Error::Values(format!("failed parsing --set-file data: {error}")))?;
        Ok(self)
    }

    /// The merged values.
    pub fn build(self) -> Table {
        self.values
    }
}

/// A document of values as a table: nothing at all is an empty one.
pub(crate) fn as_table(document: Json) -> Result<Table, String> {
    let found = match document {
        Json::Object(table) => return Ok(table),
        Json::Null => return Ok(Table::new()),
        Json::Array(_) => "array",
        Json::String(_) => "string",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
    };
    Err(format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    ))
}

/// Tables are merged, everything else is replaced.
fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Json::Object(own)), Json::Object(other)) => merge(own, other),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// The table at a path of names with dots between them.
pub(crate) fn table_at<'a>(table: &'a Table, path: &str) -> Option<&'a Table> {
    let mut at = table;
    for name in path.split('.') {
        at = at.get(name)?.as_object()?;
    }
    Some(at)
}

/// The value at a path of names with dots between them, if it is no table.
pub(crate) fn value_at<'a>(table: &'a Table, path: &str) -> Option<&'a Json> {
    let (parent, name) = match path.rsplit_once('.') {
        Some((parent, name)) => (table_at(table, parent)?, name),
        None => (table, path),
    };
    parent.get(name).filter(|value| !value.is_object())
}
