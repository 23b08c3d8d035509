//! Merging and ordering of lists in a strategic merge patch.
//!
//! The order of the result: items that the patch has follow the patch (or its `$setElementOrder`), items that only the
//! server has keep their order, and the two are interleaved by where the server had them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    DIRECTIVE, ListRule, Merge, Object, SET_ELEMENT_ORDER, bad_request, unknown_directive, without_directives,
};
use crate::patch::PatchError;
use fairway_kernel_schema::shape::ShapeId;

/// What an item is looked up by: its merge key's value, or itself. As text, because values cannot be hashed.
type Identity = String;

impl Merge<'_> {
    /// Merges every list that the patch orders by `$setElementOrder`, and takes both out of the patch.
    pub(super) fn ordered_lists(
        &self,
        original: &mut Object,
        patch: &mut Object,
        shape: Option<ShapeId>,
    ) -> Result<(), PatchError> {
        let directives: Vec<String> = patch
            .keys()
            .filter(|key| key.starts_with(SET_ELEMENT_ORDER))
            .cloned()
            .collect();
        for directive in directives {
            let order = match patch.shift_remove(&directive).unwrap_or_default() {
                Value::Array(order) => order,
                other => return Err(no_list(&other)),
            };
            let key = directive
                .strip_prefix(SET_ELEMENT_ORDER)
                .and_then(|rest| rest.strip_prefix('/'))
                .ok_or_else(|| bad_request("invalid patch format of setElementOrder list"))?;
            let on_server = take_list(original, key)?;
            let in_patch = take_list(patch, key)?;
            let rule = self.list_rule(shape, key)?;
            check_order(in_patch.as_deref().unwrap_or_default(), &order, rule.key)?;
            let (server_items, patch_items) = (
                on_server.as_deref().unwrap_or_default(),
                in_patch.as_deref().unwrap_or_default(),
            );
            let elements = Elements::of(&[server_items, patch_items]);
            let server_order = if rule.merge {
                server_order(server_items, patch_items, rule.key)
            } else {
                server_items.to_vec()
            };
            let merged = match (on_server, in_patch) {
                (Some(on_server), None) => on_server,
                (None, Some(in_patch)) => in_patch.into_iter().filter_map(without_directives).collect(),
                (Some(on_server), Some(in_patch)) => self.list(on_server, in_patch, rule, false)?,
                (None, None) => continue,
            };
            elements?;
            let ordered = in_order(merged, &order, &server_order, rule.key)?;
            original.insert(key.to_owned(), Value::Array(ordered));
        }
        Ok(())
    }

    pub(super) fn list(
        &self,
        original: Vec<Value>,
        patch: Vec<Value>,
        rule: ListRule<'_>,
        is_delete_list: bool,
    ) -> Result<Vec<Value>, PatchError> {
        if !rule.merge && !is_delete_list {
            return Ok(patch);
        }
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        match Elements::of(&[&original, &patch])? {
            Elements::Scalars if is_delete_list => {
                let gone: HashMap<Identity, ()> = patch.iter().map(|value| (value.to_string(), ())).collect();
                Ok(original
                    .into_iter()
                    .filter(|value| !gone.contains_key(&value.to_string()))
                    .collect())
            }
            Elements::Scalars => {
                let mut seen = HashSet::new();
                let merged = original
                    .iter()
                    .chain(&patch)
                    .filter(|v| seen.insert(v.to_string()));
                let merged = merged.cloned().collect();
                in_order(merged, &patch, &original, None)
            }
            Elements::Maps => {
                let key = rule.key.ok_or_else(|| {
                    PatchError::Internal("cannot merge lists without merge key for struct".to_owned())
                })?;
                let (original, patch) = special_elements(original, patch, key)?;
                let (merged, patch) = self.merge_items(original.clone(), patch, key, rule.element)?;
                in_order(merged, &patch, &original, Some(key))
            }
        }
    }

    /// Merges each item of the patch into the first of the original that has its key, or appends it. Returns the patch's
    /// items too, reduced to their keys.
    fn merge_items(
        &self,
        mut original: Vec<Value>,
        patch: Vec<Value>,
        key: &str,
        element: Option<ShapeId>,
    ) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
        let mut at: HashMap<Identity, usize> = HashMap::new();
        for (index, item) in original.iter().enumerate() {
            if let Some(value) = item.get(key) {
                at.entry(value.to_string()).or_insert(index);
            }
        }
        let mut keys = Vec::with_capacity(patch.len());
        for item in patch {
            let Value::Object(fields) = item else { continue };
            let value = fields
                .get(key)
                .cloned()
                .ok_or_else(|| no_merge_key(&fields, key))?;
            let identity = value.to_string();
            keys.push(Value::Object(Object::from_iter([(key.to_owned(), value)])));
            match at
                .get(&identity)
                .and_then(|index| original.get_mut(*index))
                .map(|slot| (slot.take(), slot))
            {
                Some((Value::Object(current), slot)) => {
                    *slot = Value::Object(self.map(current, fields, element)?);
                }
                _ => {
                    at.insert(identity, original.len());
                    original.push(Value::Object(fields));
                }
            }
        }
        Ok((original, keys))
    }
}

/// What the elements of lists are. All must be of one type.
enum Elements {
    Scalars,
    Maps,
}

impl Elements {
    fn of(lists: &[&[Value]]) -> Result<Self, PatchError> {
        let rank = |value: &Value| match value {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(n) if n.is_i64() => 2,
            Value::Number(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        };
        let mut values = lists.iter().copied().flatten();
        let Some(first) = values.next() else {
            return Err(PatchError::Internal(
                "no elements in any of the given slices".to_owned(),
            ));
        };
        if first.is_array() {
            return Err(PatchError::Unprocessable(
                "lists of lists are not supported".to_owned(),
            ));
        }
        if first.is_null() || values.any(|value| rank(value) != rank(first)) {
            return Err(PatchError::Internal(
                "list element types are not identical".to_owned(),
            ));
        }
        Ok(if first.is_object() {
            Self::Maps
        } else {
            Self::Scalars
        })
    }
}

/// Carries out the `$patch` directives among the items, and takes them out.
fn special_elements(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted: HashSet<Identity> = HashSet::new();
    let mut replace = false;
    for item in patch {
        let Some(fields) = item.as_object() else { continue };
        match fields.get(DIRECTIVE) {
            None => plain.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let value = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
                    deleted.insert(value.to_string());
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    let message = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Internal(message.to_owned()));
                }
                _ => return Err(unknown_directive(directive, fields)),
            },
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    if !deleted.is_empty() {
        original.retain(|item| {
            item.get(key)
                .is_none_or(|value| !deleted.contains(&value.to_string()))
        });
    }
    Ok((original, plain))
}

fn take_list(object: &mut Object, key: &str) -> Result<Option<Vec<Value>>, PatchError> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::Array(_)) => Ok(object.shift_remove(key).and_then(|list| match list {
            Value::Array(items) => Some(items),
            _ => None,
        })),
        Some(other) => Err(no_list(other)),
    }
}

/// Upstream names the Go types that it expected and found.
fn no_list(found: &Value) -> PatchError {
    let found = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    PatchError::Internal(format!("expected a []interface {{}}, but received a {found}"))
}

/// The items of the patch must be in the order that it sets, and all be in it.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let directive = |item: &Value| {
        item.get(DIRECTIVE)
            .map(|directive| directive.as_str() == Some("delete"))
    };
    if key.is_some() && patch.iter().any(|item| !item.is_object()) {
        return Err(PatchError::Internal(
            "expected a map in a list with a merge key".to_owned(),
        ));
    }
    let mut items = patch
        .iter()
        .filter(|item| key.is_none() || directive(item) != Some(true))
        .peekable();
    let mut wanted = order.iter();
    while let Some(item) = items.peek() {
        let Some(candidate) = wanted.as_slice().first() else {
            return Err(PatchError::Internal(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
                Value::from(patch),
                Value::from(order)
            )));
        };
        if directive(item).is_some() {
            items.next();
            continue;
        }
        if identity(item, key)? == identity(candidate, key)? {
            items.next();
        }
        wanted.next();
    }
    Ok(())
}

/// The order of the server's items, for a patch with `$setElementOrder`.
///
/// Items that the patch adds count as the server's last ones, as far as they take the places of those it deletes:
/// upstream appends them in the same memory. It decides where a container goes that replaces another.
fn server_order(on_server: &[Value], in_patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let Some(key) = key else {
        return on_server.to_vec();
    };
    let has_directive =
        |item: &Value, wanted: &str| item.get(DIRECTIVE).and_then(Value::as_str) == Some(wanted);
    let key_of = |item: &Value| item.get(key).map(Value::to_string);
    let deleted: HashSet<Identity> = in_patch
        .iter()
        .filter(|item| has_directive(item, "delete"))
        .filter_map(key_of)
        .collect();
    let replaced = in_patch.iter().any(|item| has_directive(item, "replace"));
    if deleted.is_empty() || replaced {
        return on_server.to_vec();
    }
    let mut order: Vec<Value> = on_server
        .iter()
        .filter(|item| key_of(item).is_none_or(|key| !deleted.contains(&key)))
        .cloned()
        .collect();
    let mut known: HashSet<Identity> = order.iter().filter_map(key_of).collect();
    for item in in_patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if order.len() == on_server.len() {
            break;
        }
        if key_of(item).is_some_and(|key| known.insert(key)) {
            order.push(item.clone());
        }
    }
    order
}

fn identity(item: &Value, key: Option<&str>) -> Result<Identity, PatchError> {
    match (key, item) {
        (None, item) => Ok(item.to_string()),
        (Some(key), Value::Object(fields)) => fields
            .get(key)
            .map(Value::to_string)
            .ok_or_else(|| no_merge_key(fields, key)),
        (Some(_), _) => Err(PatchError::Internal(
            "expected a map in a list with a merge key".to_owned(),
        )),
    }
}

/// Sorts the merged items: those in `patch_order` by it, the others as the server had them, interleaved by where the
/// server had both.
fn in_order(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let places = |list: &[Value]| -> Result<HashMap<Identity, usize>, PatchError> {
        let mut places = HashMap::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            places.entry(identity(item, key)?).or_insert(index);
        }
        Ok(places)
    };
    let (by_patch, by_server) = (places(patch_order)?, places(server_order)?);
    let mut from_patch = Vec::new();
    let mut from_server = Vec::new();
    for item in merged {
        let identity = identity(&item, key)?;
        let server_place = by_server.get(&identity).copied();
        match by_patch.get(&identity) {
            Some(place) => from_patch.push((*place, server_place, item)),
            None => from_server.push((server_place.unwrap_or(usize::MAX), server_place, item)),
        }
    }
    from_patch.sort_by_key(|(place, ..)| *place);
    from_server.sort_by_key(|(place, ..)| *place);

    let mut all = Vec::with_capacity(from_patch.len() + from_server.len());
    let (mut server, mut patch) = (
        from_server.into_iter().peekable(),
        from_patch.into_iter().peekable(),
    );
    loop {
        let server_first = match (server.peek(), patch.peek()) {
            (None, None) => return Ok(all),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, l, _)), Some((_, r, _))) => matches!((l, r), (Some(l), Some(r)) if l < r),
        };
        let next = if server_first { server.next() } else { patch.next() };
        all.extend(next.map(|(_, _, item)| item));
    }
}

fn no_merge_key(fields: &Object, key: &str) -> PatchError {
    PatchError::Internal(format!(
        "map: {} does not contain declared merge key: {key}",
        crate::patch::go_text(&Value::Object(fields.clone()))
    ))
}
