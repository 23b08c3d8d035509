//! `$text`, `$json` and `$yaml`: parts of an entity that are in files beside it.
//!
//! Finding and replacing are apart, so that somebody else can read the files between.

use serde_json::Value;

use crate::document::MAX_FILE;

/// The most files that one entity may be made of.
const MAX_PLACEHOLDERS: usize = 32;
/// How deep is looked for them.
const MAX_DEPTH: usize = 64;

/// How a file becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// As it is.
    Text,
    /// Parsed.
    Json,
    /// Parsed; it must have one document.
    Yaml,
}

/// A place in an entity that stands for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Where it is, as a JSON pointer.
    pub pointer: String,
    /// How the file is read.
    pub reader: Reader,
    /// The file, as it is written.
    pub target: String,
}

/// The placeholders of an entity. What has a `$` and is no placeholder of upstream's stays as it is.
pub fn find(entity: &Value) -> Result<Vec<Placeholder>, String> {
    let mut found = Vec::new();
    walk(entity, &mut String::new(), 0, &mut found)?;
    match found.len() {
        0..=MAX_PLACEHOLDERS => Ok(found),
        many => Err(format!(
            "the entity has {many} placeholders, more than {MAX_PLACEHOLDERS}"
        )),
    }
}

fn walk(
    value: &Value,
    pointer: &mut String,
    depth: usize,
    found: &mut Vec<Placeholder>,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let length = pointer.len();
    match value {
        Value::Object(map) => {
            if let Some((reader, target)) = placeholder(map) {
                let Some(target) = target.as_str() else {
                    return Err(format!(
                        "the placeholder at {pointer} must be a string, the path of a file"
                    ));
                };
                found.push(Placeholder {
                    pointer: pointer.clone(),
                    reader,
                    target: target.to_owned(),
                });
                return Ok(());
            }
            for (key, value) in map {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                walk(value, pointer, depth + 1, found)?;
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                walk(value, pointer, depth + 1, found)?;
                pointer.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}

fn placeholder(map: &serde_json::Map<String, Value>) -> Option<(Reader, &Value)> {
    let (key, value) = map.iter().next().filter(|_| map.len() == 1)?;
    let reader = match key.as_str() {
        "$text" => Reader::Text,
        "$json" => Reader::Json,
        "$yaml" => Reader::Yaml,
        _ => return None,
    };
    Some((reader, value))
}

/// Puts what a file says in the place of a placeholder.
pub fn replace(entity: &mut Value, placeholder: &Placeholder, content: &[u8]) -> Result<(), String> {
    let target = &placeholder.target;
    if content.len() > MAX_FILE {
        return Err(format!("{target} has more than {MAX_FILE} bytes"));
    }
    let text = std::str::from_utf8(content).map_err(|_| format!("{target} is not UTF-8"))?;
    let value = match placeholder.reader {
        Reader::Text => Value::from(text),
        Reader::Json => {
            serde_json::from_str(text).map_err(|error| format!("{target} is not JSON: {error}"))?
        }
        Reader::Yaml => {
            let mut all = fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default())
                .map_err(|error| format!("{target} is not YAML: {error}"))?;
            match all.len() {
                1 => all.remove(0),
                many => return Err(format!("{target} has {many} documents; $yaml takes one")),
            }
        }
    };
    if let Some(place) = entity.pointer_mut(&placeholder.pointer) {
        *place = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_found_and_replaced() {
        let mut entity = json!({
            "metadata": {"annotations": {"a/b": {"$text": "./note"}}},
            "spec": {
                "definition": {"$text": "./openapi.yaml"},
                "list": [{"$json": "a.json"}, {"$yaml": "b.yaml"}],
                "schema": {"$ref": "#/x"}, "two": {"$text": "a", "b": 1},
            },
        });
        let found = find(&entity).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(
            names,
            [
                "/metadata/annotations/a~1b",
                "/spec/definition",
                "/spec/list/0",
                "/spec/list/1"
            ]
        );
        for (one, content) in found.iter().zip(["note", "openapi: 3", "[1]", "k: v"]) {
            replace(&mut entity, one, content.as_bytes()).unwrap();
        }
        assert_eq!(entity["metadata"]["annotations"]["a/b"], "note");
        assert_eq!(entity["spec"]["definition"], "openapi: 3");
        assert_eq!(entity["spec"]["list"], json!([[1], {"k": "v"}]));
        assert_eq!(entity["spec"]["schema"]["$ref"], "#/x");
        assert!(
            replace(&mut entity, &found[2], b"{")
                .unwrap_err()
                .contains("is not JSON")
        );
        assert!(replace(&mut entity, &found[3], b"a: 1\n---\nb: 1\n").is_err());
    }

    #[test]
    fn placeholders_are_bounded() {
        assert!(find(&json!({"a": {"$text": 1}})).is_err());
        let many: Vec<Value> = (0..=MAX_PLACEHOLDERS).map(|_| json!({"$text": "x"})).collect();
        assert!(find(&json!(many)).is_err());
    }
}
