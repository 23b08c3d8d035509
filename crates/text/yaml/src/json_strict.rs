//! A JSON reader that reports repeated fields, for the body of every write.
//!
//! Finding a repetition costs nothing: inserting into a map tells of the value it replaces. The path to it is needed
//! only then, so it lives on the stack as a chain of borrowed names and is spelled out when something is found.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::go_number::json_number;

/// How many repeated fields are reported at most; the rest says nothing new.
pub const MAX_REPORTED: usize = 100;

/// A field that occurs more than once in its object. The last value counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateField {
    /// The path, such as `spec.containers[0].name`.
    pub path: String,
}

impl fmt::Display for DuplicateField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate field {:?}", self.path)
    }
}

/// JSON that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON, or something follows the value.
    #[error("{0}")]
    Syntax(serde_json::Error),
    /// Arrays and objects are nested too deeply.
    #[error("exceeded max depth of {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
}

/// Reads one JSON value and the fields that are repeated in it. `max_depth` bounds the nesting of arrays and objects;
/// above 127 the bound is 127.
pub fn parse_json(text: &[u8], max_depth: usize) -> Result<(Value, Vec<DuplicateField>), JsonError> {
    let mut findings = Findings {
        duplicates: Vec::new(),
        too_deep: false,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Seed {
        path: &Path::Root,
        depth: max_depth,
        findings: &mut findings,
    };
    let value = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(value) => Ok((value, findings.duplicates)),
        Err(_) if findings.too_deep => Err(JsonError::TooDeep { limit: max_depth }),
        Err(error) => Err(JsonError::Syntax(error)),
    }
}

struct Findings {
    duplicates: Vec<DuplicateField>,
    too_deep: bool,
}

impl Findings {
    #[cold]
    fn report(&mut self, path: &Path<'_>) {
        let mut text = String::new();
        path.write(&mut text);
        let duplicate = DuplicateField { path: text };
        if self.duplicates.len() < MAX_REPORTED && !self.duplicates.contains(&duplicate) {
            self.duplicates.push(duplicate);
        }
    }
}

enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Self::Root => {}
            Self::Field(parent, name) => {
                parent.write(out);
                if !matches!(parent, Self::Root) {
                    out.push('.');
                }
                out.push_str(name);
            }
            Self::Index(parent, index) => {
                parent.write(out);
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }
}

struct Seed<'a> {
    path: &'a Path<'a>,
    /// How many levels may still be opened.
    depth: usize,
    findings: &'a mut Findings,
}

impl Seed<'_> {
    fn open<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(depth),
            None => {
                self.findings.too_deep = true;
                Err(E::custom("nested too deeply"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        json_number(value).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = self.open()?;
        let mut items = Vec::new();
        loop {
            let path = Path::Index(self.path, items.len());
            let seed = Seed {
                path: &path,
                depth,
                findings: self.findings,
            };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = self.open()?;
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            let value = access.next_value_seed(Seed {
                path: &path,
                depth,
                findings: self.findings,
            })?;
            match fields.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(value)),
                Entry::Occupied(mut entry) => {
                    self.findings.report(&Path::Field(self.path, entry.key()));
                    entry.insert(value);
                }
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests;
