//! Strategic merge patch: a merge that knows which lists are merged, and by which key.
//!
//! Directives in the patch say what plain data cannot: `$patch` replaces or deletes, `$deleteFromPrimitiveList/<field>`
//! takes values out of a list, `$setElementOrder/<field>` orders one, `$retainKeys` drops the fields that it does not
//! list. Only built-in kinds have the strategies that this needs.

mod lists;

use std::collections::HashSet;

use fairway_kernel_schema::shape::{List, PatchStrategy, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::PatchError;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVES: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// The original with the patch merged into it, by the strategies of its type.
pub fn strategic_merge_patch(
    shapes: &Shapes,
    shape: ShapeId,
    original: Value,
    patch: Value,
) -> Result<Value, PatchError> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(bad_request("invalid JSON document"));
    };
    Merge { shapes }
        .map(original, patch, Some(shape))
        .map(Value::Object)
}

struct Merge<'a> {
    shapes: &'a Shapes,
}

/// How a list is merged.
#[derive(Clone, Copy, Default)]
struct ListRule<'a> {
    element: Option<ShapeId>,
    merge: bool,
    key: Option<&'a str>,
}

impl<'a> Merge<'a> {
    fn map(
        &self,
        mut original: Object,
        mut patch: Object,
        shape: Option<ShapeId>,
    ) -> Result<Object, PatchError> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => {
                    patch.shift_remove(DIRECTIVE);
                    Ok(patch)
                }
                Some("delete") => Ok(Object::new()),
                _ => Err(unknown_directive(directive, &patch)),
            };
        }
        retain_keys(&mut original, &mut patch)?;
        self.ordered_lists(&mut original, &mut patch, shape)?;
        for (key, value) in patch {
            let (key, is_delete_list) = match key.strip_prefix(DELETE_FROM_PRIMITIVES) {
                Some(rest) => {
                    let field = rest.strip_prefix('/');
                    (
                        field
                            .ok_or_else(|| bad_request("invalid patch format of primitive list"))?
                            .to_owned(),
                        true,
                    )
                }
                None => (key, false),
            };
            if value.is_null() {
                original.shift_remove(&key);
                continue;
            }
            let current = original.get_mut(&key).map(Value::take);
            let merged = match (current, value) {
                (Some(Value::Object(current)), Value::Object(value)) => {
                    let child = self.field_of_struct(shape, &key)?;
                    Some(Value::Object(self.map(current, value, Some(child))?))
                }
                (Some(Value::Array(current)), Value::Array(value)) => {
                    let rule = self.list_rule(shape, &key)?;
                    Some(Value::Array(self.list(current, value, rule, is_delete_list)?))
                }
                // Nothing to delete from.
                (current, _) if is_delete_list => current,
                (_, mut value) => {
                    drop_nulls(&mut value);
                    without_directives(value)
                }
            };
            match merged {
                Some(merged) => {
                    original.insert(key, merged);
                }
                None => {
                    original.shift_remove(&key);
                }
            }
        }
        Ok(original)
    }

    /// The type of a struct's field that is an object on both sides.
    fn field_of_struct(&self, shape: Option<ShapeId>, key: &str) -> Result<ShapeId, PatchError> {
        let map = shape.and_then(|shape| self.shapes.get(shape).map.as_ref());
        match map.and_then(|map| map.field(key)) {
            Some(field) => Ok(field.shape),
            None if map.is_some_and(|map| map.fields.is_empty() && map.element.is_some()) => {
                Err(PatchError::Internal(
                    "merging an object in json but data type is not struct, instead is: map".to_owned(),
                ))
            }
            None => Err(unknown_field(key)),
        }
    }

    fn list_rule(&self, shape: Option<ShapeId>, key: &str) -> Result<ListRule<'a>, PatchError> {
        let child = self.field_of_struct(shape, key)?;
        let list: &List = self.shapes.get(child).list.as_ref().ok_or_else(|| {
            PatchError::Internal(format!("expected slice or array type for the json field {key:?}"))
        })?;
        let PatchStrategy { merge, merge_key, .. } = &list.patch;
        Ok(ListRule {
            element: Some(list.element),
            merge: *merge,
            key: merge_key.as_deref(),
        })
    }
}

/// Drops what the patch's `$retainKeys` does not list.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let malformed = || bad_request("invalid patch format of retainKeys");
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let retained: HashSet<&str> = retained
        .as_array()
        .ok_or_else(malformed)?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let is_listed = |(key, value): (&String, &Value)| {
        value.is_null()
            || key.starts_with(DELETE_FROM_PRIMITIVES)
            || key.starts_with(SET_ELEMENT_ORDER)
            || retained.contains(key.as_str())
    };
    if !patch.iter().all(is_listed) {
        return Err(malformed());
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// What a patch adds must not say how to patch; `None` if it says nothing else.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => Some(
            fields
                .into_iter()
                .filter_map(|(key, value)| Some((key, without_directives(value)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        scalar => Some(scalar),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn bad_request(message: &str) -> PatchError {
    PatchError::BadRequest(message.to_owned())
}

fn unknown_field(key: &str) -> PatchError {
    PatchError::Internal(format!(
        "unable to find api field in struct for the json field {key:?}"
    ))
}

fn unknown_directive(directive: &Value, patch: &Object) -> PatchError {
    PatchError::Internal(format!(
        "unknown patch type: {} in map: {}",
        go_string(directive),
        super::go_text(&Value::Object(patch.clone()))
    ))
}

/// A value as Go prints it where it expects text.
fn go_string(value: &Value) -> String {
    super::go_print(value, &|scalar| match scalar {
        Value::String(text) => text.clone(),
        Value::Null => super::go_type(scalar).to_owned(),
        other => format!("%!s({}={other})", super::go_type(other)),
    })
}

#[cfg(test)]
mod tests;
