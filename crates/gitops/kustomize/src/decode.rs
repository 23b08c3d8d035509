//! Reads typed fields from a JSON object as Go's decoder does: names match regardless of case, null is absence, and in
//! strict mode a name that nobody asked for is an error. Errors name the file's field by its path.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::node::text;

/// The fields of one object.
pub(crate) struct Fields<'v> {
    map: Option<&'v Map<String, Value>>,
    /// The path of the object, with a dot at its end; empty at the top.
    at: String,
    strict: bool,
    asked: RefCell<Vec<&'static str>>,
}

impl<'v> Fields<'v> {
    /// The fields of a value, which must be an object or null.
    pub(crate) fn of(value: &'v Value, strict: bool) -> Result<Self> {
        Self::at(value, String::new(), strict)
    }

    fn at(value: &'v Value, at: String, strict: bool) -> Result<Self> {
        let map = match value {
            Value::Object(map) => Some(map),
            Value::Null => None,
            other => return Err(wrong(at.trim_end_matches('.'), "an object", other)),
        };
        Ok(Self {
            map,
            at,
            strict,
            asked: RefCell::default(),
        })
    }

    /// The value of a field; none for null.
    pub(crate) fn get(&self, name: &'static str) -> Option<&'v Value> {
        self.asked.borrow_mut().push(name);
        let map = self.map?;
        // Of several spellings, the one that sorts last counts: Go reads them in that order.
        let spelled = map.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let (_, found) = spelled.max_by_key(|(key, _)| *key)?;
        Some(found).filter(|value| !value.is_null())
    }

    /// Whether a field is written at all.
    pub(crate) fn has(&self, name: &'static str) -> bool {
        self.get(name).is_some()
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    pub(crate) fn optional_string(&self, name: &'static str) -> Result<Option<String>> {
        self.get(name)
            .map(|value| self.text(value, || self.path(name)))
            .transpose()
    }

    /// A string. Where fields are not strict, numbers and booleans will do.
    fn text(&self, value: &Value, path: impl Fn() -> String) -> Result<String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Bool(_) | Value::Number(_) if !self.strict => Ok(text(value).into_owned()),
            other => Err(wrong(&path(), "a string", other)),
        }
    }

    pub(crate) fn string(&self, name: &'static str) -> Result<String> {
        Ok(self.optional_string(name)?.unwrap_or_default())
    }

    pub(crate) fn bool(&self, name: &'static str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(wrong(&self.path(name), "true or false", other)),
        }
    }

    pub(crate) fn integer(&self, name: &'static str) -> Result<i64> {
        match self.get(name) {
            None => Ok(0),
            Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64().unwrap_or_default()),
            Some(other) => Err(wrong(&self.path(name), "an integer", other)),
        }
    }

    pub(crate) fn strings(&self, name: &'static str) -> Result<Vec<String>> {
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(wrong(&self.path(name), "a list of strings", other)),
        };
        let mut strings = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            strings.push(match item {
                Value::Null => String::new(),
                item => self.text(item, || format!("{}[{index}]", self.path(name)))?,
            });
        }
        Ok(strings)
    }

    pub(crate) fn string_map(&self, name: &'static str) -> Result<BTreeMap<String, String>> {
        let fields = match self.get(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(fields)) => fields,
            Some(other) => return Err(wrong(&self.path(name), "a map of strings", other)),
        };
        let mut strings = BTreeMap::new();
        for (key, value) in fields {
            let text = match value {
                Value::Null => String::new(),
                value => self.text(value, || format!("{}.{key}", self.path(name)))?,
            };
            strings.insert(key.clone(), text);
        }
        Ok(strings)
    }

    /// An object within this one.
    pub(crate) fn object(&self, name: &'static str) -> Result<Option<Fields<'v>>> {
        let path = format!("{}.", self.path(name));
        self.get(name)
            .map(|value| Fields::at(value, path, self.strict))
            .transpose()
    }

    /// Decodes an object within this one; none if it is absent.
    pub(crate) fn decoded<T>(
        &self,
        name: &'static str,
        decode: impl FnOnce(&Fields<'v>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(fields) = self.object(name)? else {
            return Ok(None);
        };
        let decoded = decode(&fields)?;
        fields.finish()?;
        Ok(Some(decoded))
    }

    /// Decodes each object of a list.
    pub(crate) fn list<T>(
        &self,
        name: &'static str,
        mut decode: impl FnMut(&Fields<'v>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(wrong(&self.path(name), "a list", other)),
        };
        let mut decoded = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let fields = Fields::at(item, format!("{}[{index}].", self.path(name)), self.strict)?;
            decoded.push(decode(&fields)?);
            fields.finish()?;
        }
        Ok(decoded)
    }

    /// In strict mode, refuses fields that nobody asked for.
    pub(crate) fn finish(&self) -> Result<()> {
        let (true, Some(map)) = (self.strict, self.map) else {
            return Ok(());
        };
        let asked = self.asked.borrow();
        match map
            .keys()
            .find(|key| !asked.iter().any(|name| name.eq_ignore_ascii_case(key)))
        {
            Some(unknown) => Err(Error::new(format!("unknown field \"{}{unknown}\"", self.at))),
            None => Ok(()),
        }
    }
}

fn wrong(path: &str, wanted: &str, found: &Value) -> Error {
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    match path {
        "" => Error::new(format!("expected {wanted}, found {kind}")),
        path => Error::new(format!("field \"{path}\" must be {wanted}, not {kind}")),
    }
}
