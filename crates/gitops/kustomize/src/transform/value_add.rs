//! Adds a value to fields, or inserts it into the paths that they hold.

use serde_json::{Map, Value};

use super::Context;
use super::namespace::{Namespace, Subjects};
use crate::decode::Fields;
use crate::error::{Error, Result};
use crate::node::{set_plain, split_path, text, wrong_kind};
use crate::resmap::ResMap;
use crate::selector::Selector;

/// A value and its targets.
#[derive(Debug)]
pub(crate) struct ValueAdd {
    pub(crate) value: String,
    pub(crate) targets: Vec<Target>,
}

/// Where a value goes.
#[derive(Debug)]
pub(crate) struct Target {
    selector: Option<Selector>,
    path: String,
    position: usize,
}

impl Target {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let position = fields.integer("filePathPosition")?;
        let path = fields.string("fieldPath")?;
        if path.is_empty() {
            return Err(Error::new("fieldPath cannot be empty"));
        }
        let position = usize::try_from(position).map_err(|_| {
            Error::new(format!(
                "value of FilePathPosition ({position}) cannot be negative"
            ))
        })?;
        Ok(Self {
            selector: fields.decoded("selector", Selector::decode)?,
            path,
            position,
        })
    }
}

impl ValueAdd {
    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                None => (0..resources.len()).collect(),
                Some(selector) => resources.select(selector, context.api, context.limits.regex_bytes)?,
            };
            for at in selected {
                let resource = &mut resources.list_mut()[at];
                if target.path == "metadata/namespace" {
                    let namespace = Namespace {
                        namespace: self.value.clone(),
                        specs: Vec::new(),
                        unset_only: false,
                        subjects: Subjects::Default,
                    };
                    namespace.set(resource, context.api)?;
                } else {
                    self.add(&mut resource.value, target)?;
                }
            }
        }
        Ok(())
    }

    fn add(&self, object: &mut Value, target: &Target) -> Result<()> {
        let mut field = object;
        for part in split_path(&target.path, '/') {
            if field.is_null() {
                *field = Value::Object(Map::new());
            }
            field = match field {
                Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
                other => return Err(wrong_kind("MappingNode", other)),
            };
        }
        if field.is_object() || field.is_array() {
            return Err(wrong_kind("ScalarNode", field));
        }
        let new = match target.position {
            0 => self.value.clone(),
            position => insert_part(&text(field), position - 1, &self.value),
        };
        set_plain(field, &new);
        Ok(())
    }
}

/// The path with a part more at a position, or at its end.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}
