//! The values that variables have during one evaluation.

use serde_json::Value as Json;

use crate::decl::DeclType;
use crate::error::Error;
use crate::value::Value;

/// Variables by name. Few, so a list is fastest.
#[derive(Clone, Debug, Default)]
pub struct Activation<'a> {
    bindings: Vec<(&'a str, Result<Value<'a>, Error>)>,
}

impl<'a> Activation<'a> {
    /// No variables.
    pub fn new() -> Activation<'a> {
        Activation {
            bindings: Vec::with_capacity(2),
        }
    }

    /// Gives a variable a value.
    pub fn bind(mut self, name: &'a str, value: Value<'a>) -> Activation<'a> {
        self.bindings.push((name, Ok(value)));
        self
    }

    /// Gives a variable a JSON document, read without a schema.
    pub fn bind_json(mut self, name: &'a str, value: &'a Json) -> Activation<'a> {
        self.bindings.push((name, Value::from_json(value, None)));
        self
    }

    /// Gives a variable a JSON document, read lazily through its schema. Where the two do not match, expressions that
    /// reach the place fail.
    pub fn bind_schema_value(mut self, name: &'a str, value: &'a Json, decl: &'a DeclType) -> Activation<'a> {
        self.bindings.push((name, Value::from_json(value, Some(decl))));
        self
    }

    /// Gives a variable an optional: the document, or nothing.
    pub fn bind_optional(
        mut self,
        name: &'a str,
        value: Option<&'a Json>,
        decl: &'a DeclType,
    ) -> Activation<'a> {
        let value = match value {
            Some(value) => Value::from_json(value, Some(decl)).map(Value::some),
            None => Ok(Value::none()),
        };
        self.bindings.push((name, value));
        self
    }

    /// Gives a variable what its own evaluation came to; an error is the error of every expression that reads it.
    pub fn bind_result(mut self, name: &'a str, value: Result<Value<'a>, Error>) -> Activation<'a> {
        self.bindings.push((name, value));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Result<Value<'a>, Error> {
        match self.bindings.iter().rev().find(|(bound, _)| *bound == name) {
            Some((_, value)) => value.clone(),
            None => Err(Error::NoSuchAttribute(name.into())),
        }
    }
}
