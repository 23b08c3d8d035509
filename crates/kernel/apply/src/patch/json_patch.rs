//! JSON patch, RFC 6902, with the liberties of the implementation in Kubernetes.
//!
//! `replace` adds a field that is absent, `test` takes an absent field for null, `copy` of an absent field copies null, and
//! a negative index counts from the end of a list. Clients have come to rely on it.

use fairway_kernel_schema::json_type;
use serde_json::Value;

use super::PatchError;

/// Kubernetes' limit.
const MAX_OPERATIONS: usize = 10_000;

/// Kubernetes' limit for the bytes that all copies of a patch may add together.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How deep a patched document may nest: what a request's body may. Operations could otherwise stack value into value
/// until whatever walks the document, even to free it, runs out of stack.
const MAX_DEPTH: usize = 100;

/// Values that are looked at to know how deep the moved ones are, in all operations of a patch together.
const MAX_VISITED: usize = 4_000_000;

const MISSING: &str = "missing value";
const INVALID_INDEX: &str = "invalid index referenced";

/// The document after the operations of the patch.
pub fn json_patch(mut document: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = match patch {
        Value::Null => return Ok(document),
        Value::Array(operations) => operations,
        other => {
            return Err(PatchError::BadRequest(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
                json_type(other)
            )));
        }
    };
    if let Some(other) = operations
        .iter()
        .find(|operation| !operation.is_object() && !operation.is_null())
    {
        return Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            json_type(other)
        )));
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut spent = Spent::default();
    for operation in operations {
        run(&mut document, operation, &mut spent).map_err(|why| {
            if spent.limit_reached {
                PatchError::Beyond(why)
            } else {
                PatchError::Unprocessable(why)
            }
        })?;
    }
    Ok(document)
}

/// What the operations of a patch have used up together.
#[derive(Default)]
struct Spent {
    copied_bytes: usize,
    visited: usize,
    /// Whether a limit of ours, and not a mistake, ended it.
    limit_reached: bool,
}

impl Spent {
    /// Refuses to put a value where it would be too deep.
    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), String> {
        let above = path.bytes().filter(|b| *b == b'/').count();
        let mut left = vec![(value, above)];
        while let Some((value, depth)) = left.pop() {
            self.visited += 1;
            if depth > MAX_DEPTH {
                self.limit_reached = true;
                return Err(format!(
                    "the patched object would nest deeper than {MAX_DEPTH} levels at {path:.80}"
                ));
            }
            if self.visited > MAX_VISITED {
                self.limit_reached = true;
                return Err(format!(
                    "the operations of the patch together move more than {MAX_VISITED} values; split the patch"
                ));
            }
            match value {
                Value::Array(items) => left.extend(items.iter().map(|v| (v, depth + 1))),
                Value::Object(fields) => left.extend(fields.values().map(|v| (v, depth + 1))),
                _ => {}
            }
        }
        Ok(())
    }
}

fn run(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), String> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path = || text("path").ok_or_else(|| format!("{kind} operation failed to decode path: {MISSING}"));
    let from = || text("from").ok_or_else(|| format!("{kind} operation failed to decode from: {MISSING}"));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => {
            let (path, value) = (path()?, value());
            spent.check_depth(path, &value)?;
            let (parent, key) = find(document, path).ok_or_else(|| {
                format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
            })?;
            add(parent, &key, value).map_err(|error| format!("error in add for path: '{path}': {error}"))
        }
        "remove" => {
            let path = path()?;
            let (parent, key) = find(document, path).ok_or_else(|| {
                format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
            })?;
            remove(parent, &key)
                .map(|_| ())
                .map_err(|error| format!("error in remove for path: '{path}': {error}"))
        }
        "replace" => {
            let (path, value) = (path()?, value());
            spent.check_depth(path, &value)?;
            replace(document, path, value)
        }
        "move" => {
            let (from, path) = (from()?, path()?);
            let (parent, key) = find(document, from).ok_or_else(|| {
                format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
            })?;
            let moved =
                remove(parent, &key).map_err(|error| format!("error in move for path: '{key}': {error}"))?;
            spent.check_depth(path, &moved)?;
            let (parent, key) = find(document, path).ok_or_else(|| {
                format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
            })?;
            add(parent, &key, moved).map_err(|error| format!("error in move for path: '{path}': {error}"))
        }
        "test" => test(document, path()?, operation.get("value")),
        "copy" => {
            let (from, path) = (from()?, path()?);
            let (parent, key) = find(document, from).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
            })?;
            let copied = get(parent, &key)
                .map_err(|error| format!("error in copy for from: '{from}': {error}"))?
                .cloned()
                .unwrap_or(Value::Null);
            spent.check_depth(path, &copied)?;
            spent.copied_bytes += if copied.is_null() {
                0
            } else {
                copied.to_string().len()
            };
            if spent.copied_bytes > MAX_COPIED_BYTES {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit \
                     {MAX_COPIED_BYTES}",
                    spent.copied_bytes
                ));
            }
            let (parent, key) = find(document, path).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
            })?;
            add(parent, &key, copied)
                .map_err(|error| format!("error while adding value during copy: {error}"))
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let (parent, key) = find(document, path)
        .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: {MISSING}"))?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
            Ok(())
        }
        Value::Array(items) => {
            let at = existing_index(items.len(), &key).map_err(|_| {
                format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
            })?;
            items[at] = value;
            Ok(())
        }
        _ => Err(format!(
            "replace operation does not apply: doc is missing path: {path}: {MISSING}"
        )),
    }
}

fn test(document: &mut Value, path: &str, expected: Option<&Value>) -> Result<(), String> {
    let failed = || format!("testing value {path} failed: test failed");
    if path.is_empty() {
        return if Some(&*document) == expected {
            Ok(())
        } else {
            Err(failed())
        };
    }
    let (parent, key) = find(document, path)
        .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
    let found = get(parent, &key).map_err(|error| format!("error in test for path: '{path}': {error}"))?;
    let expected = expected.unwrap_or(&Value::Null);
    if found.unwrap_or(&Value::Null) == expected {
        Ok(())
    } else {
        Err(failed())
    }
}

/// The object or list that a pointer's last part is in, and that part.
fn find<'d>(document: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    // What precedes the first slash is ignored.
    let (_, rest) = path.split_once('/')?;
    let (parents, last) = match rest.rsplit_once('/') {
        Some((parents, last)) => (Some(parents), last),
        None => (None, rest),
    };
    let mut current = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let key = unescape(part);
        current = match current {
            Value::Object(fields) => fields.get_mut(&key)?,
            Value::Array(items) => {
                let at = existing_index(items.len(), &key).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    (current.is_object() || current.is_array()).then(|| (current, unescape(last)))
}

/// One pass from the left, so that `~01` is `~1`.
fn unescape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (replacement, len) = match escape.as_bytes().get(1) {
            Some(b'1') => ('/', 2),
            Some(b'0') => ('~', 2),
            _ => ('~', 1),
        };
        out.push(replacement);
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn get<'d>(parent: &'d Value, key: &str) -> Result<Option<&'d Value>, String> {
    match parent {
        Value::Object(fields) => Ok(fields.get(key)),
        Value::Array(items) => existing_index(items.len(), key).map(|at| items.get(at)),
        _ => Ok(None),
    }
}

fn add(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(fields) => {
            fields.insert(key.to_owned(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = parse_index(key)
                .map_err(|error| format!("value was not a proper array index: '{key}': {error}"))?;
            let at = resolve_index(items.len() + 1, index)?;
            items.insert(at, value);
        }
        _ => return Err(MISSING.to_owned()),
    }
    Ok(())
}

fn remove(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(fields) => fields
            .shift_remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
        Value::Array(items) => existing_index(items.len(), key).map(|at| items.remove(at)),
        _ => Err(MISSING.to_owned()),
    }
}

fn parse_index(key: &str) -> Result<i64, String> {
    key.parse::<i64>()
        .map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))
}

fn existing_index(len: usize, key: &str) -> Result<usize, String> {
    resolve_index(len, parse_index(key)?)
}

fn resolve_index(len: usize, index: i64) -> Result<usize, String> {
    let resolved = if index < 0 {
        index
            .checked_neg()
            .and_then(|back| usize::try_from(back).ok())
            .and_then(|back| len.checked_sub(back))
    } else {
        usize::try_from(index).ok().filter(|at| *at < len)
    };
    resolved.ok_or_else(|| format!("Unable to access invalid index: {index}: {INVALID_INDEX}"))
}

#[cfg(test)]
mod tests;
