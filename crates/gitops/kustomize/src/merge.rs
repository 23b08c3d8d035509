//! Strategic merge patches, as kustomize applies them.
//!
//! This is not the algorithm of the API server: lists are merged by another one, nulls in new maps are dropped, and
//! even what a patch does not mention is walked through. Its steps are kept, odd ones included, because people's
//! manifests are what came out of them.

mod list;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::node::{text, wrong_kind};
use crate::openapi::{OpenApi, Schema};
use crate::read::{Blank, at_mut};

const DIRECTIVE: &str = "$patch";

/// Stands for a null that was written as nothing while a merge is under way. No file can have it: NUL is not allowed in
/// YAML, and in escapes nobody writes this.
const BLANK: &str = "\0fairway: null, written as nothing";

/// Where new items of a list go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewItems {
    /// In front of those that are there.
    First,
    /// Behind them.
    Last,
}

/// Merges a patch into a value; none is left of a value that the patch deletes.
pub(crate) fn merge(
    patch: &Value,
    mut target: Value,
    new_items: NewItems,
    api: Option<&OpenApi>,
) -> Result<Option<Value>> {
    let walk = Walk { new_items, api };
    let outcome = walk.value(Some(&mut target), Patch::Other(Some(patch)), None)?;
    Ok(match outcome {
        Outcome::Gone => None,
        Outcome::Kept => Some(target),
        Outcome::New(value) => Some(value),
    })
}

/// As [`merge`] for a resource, in which some nulls were written as nothing: those are dropped wherever the merge comes by.
pub(crate) fn merge_resource(
    patch: &Value,
    mut target: Value,
    blanks: &[Blank],
    api: &OpenApi,
) -> Result<Option<Value>> {
    let mut marked = false;
    for blank in blanks.iter().filter(|blank| blank.text.is_empty()) {
        if let Some(slot @ Value::Null) = at_mut(&mut target, &blank.path) {
            *slot = Value::String(BLANK.to_owned());
            marked = true;
        }
    }
    let mut merged = merge(patch, target, NewItems::First, Some(api))?;
    if let Some(merged) = merged.as_mut().filter(|_| marked) {
        unmark(merged);
    }
    Ok(merged)
}

fn unmark(value: &mut Value) {
    match value {
        Value::String(text) if text == BLANK => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(fields) => fields.values_mut().for_each(unmark),
        _ => {}
    }
}

struct Walk<'a> {
    new_items: NewItems,
    api: Option<&'a OpenApi>,
}

/// The patch for a value.
#[derive(Clone, Copy)]
enum Patch<'p> {
    Other(Option<&'p Value>),
    /// The value is itself what the patch says: something new, in which only directives are left to be followed.
    Same,
}

/// What became of a value.
enum Outcome {
    Gone,
    /// It was changed in place.
    Kept,
    New(Value),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive_of(word: &str) -> Result<Directive> {
    match word {
        "merge" => Ok(Directive::Merge),
        "replace" => Ok(Directive::Replace),
        "delete" => Ok(Directive::Delete),
        other => Err(Error::new(format!("unknown patch strategy '{other}'"))),
    }
}

fn map_directive(fields: &Map<String, Value>) -> Result<Directive> {
    fields
        .get(DIRECTIVE)
        .map_or(Ok(Directive::Merge), |word| directive_of(&text(word)))
}

impl Walk<'_> {
    fn value(&self, dest: Option<&mut Value>, patch: Patch<'_>, schema: Option<Schema>) -> Result<Outcome> {
        let mut dest = dest;
        if let Some(slot) = dest.as_deref_mut().filter(|slot| *slot == BLANK) {
            *slot = Value::Null;
            if matches!(patch, Patch::Other(None)) {
                return Ok(Outcome::Gone);
            }
        }
        let (dest, patch) = match (dest, patch) {
            // Nulls that nothing is said about stay, unless they were written as nothing.
            (Some(Value::Null) | None, Patch::Other(None)) => return Ok(Outcome::Kept),
            // Something new: what the patch says, with the directives in it followed.
            (None, Patch::Other(Some(new))) => return self.new_value(new, schema),
            (Some(dest), Patch::Other(Some(new))) if dest.is_null() => {
                return match new.is_null() {
                    true => Ok(Outcome::Gone),
                    false => self.new_value(new, schema),
                };
            }
            (None, Patch::Same) => return Ok(Outcome::Gone),
            (Some(dest), patch) => (dest, patch),
        };
        if let Patch::Other(Some(Value::Null)) = patch {
            return Ok(Outcome::Gone);
        }
        let schema = schema.or_else(|| self.schema_of(dest, patch));
        match dest {
            Value::Null => Ok(Outcome::Gone),
            Value::Object(_) => self.map(dest, patch, schema.as_ref()),
            Value::Array(items) => {
                if let Patch::Other(Some(other)) = patch
                    && !other.is_array()
                {
                    return Err(wrong_kind("SequenceNode", other));
                }
                match schema.filter(Schema::merges) {
                    Some(schema) => self.list(items, patch, &schema),
                    None => Ok(match patch {
                        Patch::Other(Some(other)) => Outcome::New(other.clone()),
                        _ => Outcome::Kept,
                    }),
                }
            }
            _ => match patch {
                Patch::Other(Some(other @ (Value::Object(_) | Value::Array(_)))) => {
                    Err(wrong_kind("ScalarNode", other))
                }
                Patch::Other(Some(other)) => Ok(Outcome::New(other.clone())),
                _ => Ok(Outcome::Kept),
            },
        }
    }

    fn new_value(&self, new: &Value, schema: Option<Schema>) -> Result<Outcome> {
        if new.is_null() {
            return Ok(Outcome::Gone);
        }
        let mut new = new.clone();
        if let Value::Array(items) = &mut new {
            // What says how to treat the whole list is not followed where there was none.
            return match schema.filter(Schema::merges) {
                Some(schema) => self.new_list(items, &schema),
                None => Ok(Outcome::New(new)),
            };
        }
        Ok(match self.value(Some(&mut new), Patch::Same, schema)? {
            Outcome::Kept => Outcome::New(new),
            other => other,
        })
    }

    /// The schema of what says itself what it is.
    fn schema_of(&self, dest: &Value, patch: Patch<'_>) -> Option<Schema> {
        let api = self.api?;
        let patch = match patch {
            Patch::Other(other) => other,
            Patch::Same => None,
        };
        [Some(dest), patch].into_iter().flatten().find_map(|value| {
            let kind = text(value.get("kind")?);
            let api_version = text(value.get("apiVersion")?);
            api.schema(&api_version, &kind)
        })
    }

    fn map(&self, dest: &mut Value, patch: Patch<'_>, schema: Option<&Schema>) -> Result<Outcome> {
        let same;
        let (patch, replaced) = match patch {
            Patch::Other(None) => (Patch::Other(None), false),
            Patch::Other(Some(other)) => {
                let Value::Object(fields) = other else {
                    return Err(wrong_kind("MappingNode", other));
                };
                match map_directive(fields)? {
                    Directive::Delete => return Ok(Outcome::Gone),
                    Directive::Merge => (patch, false),
                    Directive::Replace => {
                        *dest = other.clone();
                        same = Patch::Same;
                        (same, true)
                    }
                }
            }
            Patch::Same => {
                let Value::Object(fields) = &*dest else {
                    return Ok(Outcome::Kept);
                };
                if map_directive(fields)? == Directive::Delete {
                    return Ok(Outcome::Gone);
                }
                (Patch::Same, false)
            }
        };
        let Value::Object(fields) = &mut *dest else {
            return Err(wrong_kind("MappingNode", dest));
        };
        if matches!(patch, Patch::Same) {
            fields.shift_remove(DIRECTIVE);
        }
        self.fields(fields, patch, schema)?;
        Ok(match replaced {
            // What a list holds in this place is another value from now on.
            true => Outcome::New(dest.take()),
            false => Outcome::Kept,
        })
    }

    fn fields(
        &self,
        fields: &mut Map<String, Value>,
        patch: Patch<'_>,
        schema: Option<&Schema>,
    ) -> Result<()> {
        let mut gone: Vec<String> = Vec::new();
        for (key, value) in fields.iter_mut() {
            let patch = match patch {
                Patch::Other(other) => Patch::Other(other.and_then(|other| other.get(key))),
                Patch::Same => Patch::Same,
            };
            let schema = schema.and_then(|schema| schema.field(key));
            let outcome = self
                .value(Some(value), patch, schema)
                .map_err(|error| error.within(key))?;
            match outcome {
                Outcome::Gone => gone.push(key.clone()),
                Outcome::Kept => {}
                Outcome::New(new) => *value = new,
            }
        }
        for key in gone {
            fields.shift_remove(&key);
        }
        let Patch::Other(Some(Value::Object(added))) = patch else {
            return Ok(());
        };
        for (key, new) in added {
            if key == DIRECTIVE || fields.contains_key(key) {
                continue;
            }
            let schema = schema.and_then(|schema| schema.field(key));
            let outcome = self.new_value(new, schema).map_err(|error| error.within(key))?;
            if let Outcome::New(new) = outcome {
                fields.insert(key.clone(), new);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
