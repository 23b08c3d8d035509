//! From the text of a file to resources.

use fairway_text_yaml::{Document, Problem, Resolution, Spelling, Step, from_str_with};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::node::{is_empty, text};
use crate::resource::Resource;
use crate::timestamp::canonical;

/// A null that was not written as `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blank {
    pub(crate) path: Vec<Step>,
    /// What was written: mostly nothing.
    pub(crate) text: String,
}

/// The resources in a text, and those in lists among them.
pub(crate) fn resources(bytes: &[u8], limits: &Limits) -> Result<Vec<Resource>> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Error::of(
            ErrorKind::MalformedYaml,
            "MalformedYAMLError: the text is not valid UTF-8",
        )
    })?;
    let unix;
    let text = match text.contains("\r\n") {
        true => {
            unix = text.replace("\r\n", "\n");
            unix.as_str()
        }
        false => text,
    };
    let chunks = split_documents(text)?;
    let only = chunks.len() == 1;
    let mut objects = Vec::new();
    for chunk in chunks {
        let document = document(chunk, limits)?;
        if document.value.is_null() {
            continue;
        }
        if let Some(duplicate) = document.duplicates.first() {
            return Err(Error::new(format!(
                "yaml: line {}: mapping key \"{}\" already defined",
                duplicate.line, duplicate.key
            )));
        }
        let kind = document.value.get("kind").map(text_of).unwrap_or_default();
        let wraps = only
            && (kind == "List" || kind == "ResourceList")
            && (document.value.get("items").is_some() || document.value.get("functionConfig").is_some());
        if wraps {
            objects.extend(list_items(document));
        } else {
            objects.push(finish(document));
        }
    }
    let mut good = Vec::with_capacity(objects.len());
    for object in objects {
        keep_if_good(object, &mut good)?;
    }
    expand_lists(good)?
        .into_iter()
        .map(|(value, blanks)| {
            let mut resource = Resource::new(value)?;
            resource.blanks = blanks;
            Ok(resource)
        })
        .collect()
}

fn text_of(value: &Value) -> String {
    text(value).into_owned()
}

/// An object with the nulls in it that were not written as such.
type Object = (Value, Vec<Blank>);

/// One YAML document by the rules for resources.
pub(crate) fn document(text: &str, limits: &Limits) -> Result<Document> {
    from_str_with(text, limits.yaml, Resolution::Yaml12)
        .map_err(|error| Error::of(kind_of(&error.problem), format!("MalformedYAMLError: {error}")))
}

fn kind_of(problem: &Problem) -> ErrorKind {
    match problem {
        Problem::TooLarge { .. } | Problem::TooDeep { .. } | Problem::ExcessiveAliasing => ErrorKind::Limit,
        _ => ErrorKind::MalformedYaml,
    }
}

/// A YAML file that configures the build, by the older rules that apply to those.
pub(crate) fn configuration(bytes: &[u8], limits: &Limits) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new("the file is not valid UTF-8"))?;
    from_str_with(text, limits.yaml, Resolution::Yaml11)
        .map(|document| document.value)
        .map_err(|error| Error::of(kind_of(&error.problem), error.to_string()))
}

/// Documents end where a line begins with three dashes; a comment may follow those, nothing else.
fn split_documents(text: &str) -> Result<Vec<&str>> {
    let mut chunks = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = text[from..].find("\n---") {
        let separator = from + found;
        let Some(length) = text[separator + 1..].find('\n') else {
            break;
        };
        let end = separator + 1 + length;
        let after = text[separator + 4..end].trim();
        if !after.is_empty() && !after.starts_with('#') {
            return Err(Error::new(format!(
                "invalid document separator: {}",
                text[separator..end].trim()
            )));
        }
        // The break before the dashes belongs to the document, so that block text keeps its end.
        chunks.push(&text[start..=separator]);
        start = end + 1;
        // Two separators in a row share the break between them, and the second is then no separator.
        from = start;
    }
    chunks.push(&text[start..]);
    Ok(chunks)
}

/// Takes what was written into account where the original does.
fn finish(document: Document) -> Object {
    let Document {
        mut value, spellings, ..
    } = document;
    let blanks = settle_spellings(&mut value, spellings);
    (value, blanks)
}

/// Annotations are text, as they were written. Times elsewhere are written in full. Nulls that were not written as such
/// are returned.
fn settle_spellings(value: &mut Value, spellings: Vec<Spelling>) -> Vec<Blank> {
    let mut blanks = Vec::new();
    for Spelling { path, text } in spellings {
        let in_annotations = matches!(
            &path[..],
            [Step::Key(first), Step::Key(second), Step::Key(_)] if first == "metadata" && second == "annotations"
        );
        let Some(slot) = at_mut(value, &path) else {
            continue;
        };
        match slot {
            Value::Null => blanks.push(Blank { path, text }),
            Value::Number(_) if in_annotations => *slot = Value::String(text),
            Value::String(current) if !in_annotations && *current == text => {
                if let Some(full) = canonical(&text) {
                    *slot = Value::String(full);
                }
            }
            _ => {}
        }
    }
    blanks
}

/// The value at the end of some steps.
pub(crate) fn at_mut<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Item(index) => value.get_mut(index),
    })
}

fn list_items(document: Document) -> Vec<Object> {
    let (mut value, blanks) = finish(document);
    let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) else {
        return Vec::new();
    };
    let mut objects: Vec<Object> = items.into_iter().map(|item| (item, Vec::new())).collect();
    for mut blank in blanks {
        if let [Step::Key(key), Step::Item(at), ..] = &blank.path[..]
            && key == "items"
            && let Some(object) = objects.get_mut(*at)
        {
            blank.path.drain(..2);
            object.1.push(blank);
        }
    }
    objects
}

fn keep_if_good(object: Object, good: &mut Vec<Object>) -> Result<()> {
    if is_empty(&object.0) {
        return Ok(());
    }
    check_metadata(&object.0)?;
    good.push(object);
    Ok(())
}

fn check_metadata(value: &Value) -> Result<()> {
    let field = |map: Option<&Value>, key: &str| {
        let found = map.and_then(|map| map.get(key)).filter(|value| !is_empty(value));
        found.map(text_of).unwrap_or_default()
    };
    let kind = field(Some(value), "kind");
    let metadata = value.get("metadata");
    let name = field(metadata, "name");
    let has_metadata = metadata.is_some_and(|metadata| !is_empty(metadata));
    if !value.is_object() || kind.is_empty() && field(Some(value), "apiVersion").is_empty() && !has_metadata {
        return Err(Error::new("missing Resource metadata"));
    }
    if kind.is_empty() {
        return Err(Error::new(format!("missing kind in object {}", describe(value))));
    }
    if name.is_empty() && !kind.ends_with("List") {
        return Err(Error::new(format!(
            "missing metadata.name in object {}",
            describe(value)
        )));
    }
    Ok(())
}

fn describe(value: &Value) -> String {
    let kind = value.get("kind").map(text_of).unwrap_or_default();
    let api_version = value.get("apiVersion").map(text_of).unwrap_or_default();
    let name = value.pointer("/metadata/name").map(text_of).unwrap_or_default();
    format!("{{{api_version} {kind} {name:?}}}")
}

/// Puts the items of lists in the place of the lists, at the end of the others.
fn expand_lists(objects: Vec<Object>) -> Result<Vec<Object>> {
    let mut queue: std::collections::VecDeque<Object> = objects.into();
    let mut result = Vec::with_capacity(queue.len());
    while let Some((mut value, blanks)) = queue.pop_front() {
        let kind = value.get("kind").map(text_of).unwrap_or_default();
        if !kind.ends_with("List") {
            result.push((value, blanks));
            continue;
        }
        match value
            .as_object_mut()
            .and_then(|fields| fields.shift_remove("items"))
        {
            None => result.push((value, blanks)),
            Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let mut good = Vec::new();
                for item in items {
                    keep_if_good((item, Vec::new()), &mut good)?;
                }
                queue.extend(good);
            }
            Some(_) => return Err(Error::new(format!("expected array in {kind}/items"))),
        }
    }
    Ok(result)
}
