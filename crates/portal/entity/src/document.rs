//! A file of entities: YAML documents, within bounds.

use fairway_text_yaml::{Limits, Resolution, documents_with};
use serde_json::Value;

/// The largest file.
pub const MAX_FILE: usize = 1024 * 1024;
/// The most entities of one file.
const MAX_DOCUMENTS: usize = 1000;
const LIMITS: Limits = Limits {
    bytes: MAX_FILE,
    depth: 64,
    aliased: 10_000,
};

/// The documents of a file, empty ones left out. `place` is named in errors.
pub fn read(place: &str, text: &[u8]) -> Result<Vec<Value>, String> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(format!("YAML error at {place}, the file is not UTF-8"));
    };
    // YAML 1.2, as upstream's library reads it: `on: push` is no boolean.
    let found = documents_with(text, LIMITS, Resolution::Yaml12)
        .map_err(|error| format!("YAML error at {place}, {error}"))?;
    let found: Vec<Value> = found
        .into_iter()
        .map(|document| document.value)
        .filter(|value| !value.is_null())
        .collect();
    if found.len() > MAX_DOCUMENTS {
        return Err(format!(
            "{place} has {} documents, more than the limit of {MAX_DOCUMENTS}",
            found.len()
        ));
    }
    if let Some(other) = found.iter().find(|value| !value.is_object()) {
        let kind = match other {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "boolean",
        };
        return Err(format!("{place}: Expected object at root, got {kind}"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_have_documents() {
        for (text, expected) in [
            ("a: 1\n---\nb: 2\n", Ok(2)),
            ("---\n---\na: 1\n---\n", Ok(1)),
            ("", Ok(0)),
            ("[1]", Err("Expected object at root, got array")),
            ("just text", Err("Expected object at root, got string")),
            ("a: [", Err("YAML error at x")),
        ] {
            match (read("x", text.as_bytes()), expected) {
                (Ok(found), Ok(count)) => assert_eq!(found.len(), count, "{text}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert!(read("x", &[0xff]).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn bombs_are_refused() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = level - 1;
            let list = vec![format!("*a{before}"); 10].join(", ");
            laughs += &format!("a{level}: &a{level} [{list}]\n");
        }
        assert!(read("x", laughs.as_bytes()).is_err());
        assert!(read("x", "a: ".repeat(1000).as_bytes()).is_err());
        assert!(read("x", "[".repeat(100).as_bytes()).is_err());
        assert!(read("x", &vec![b' '; MAX_FILE + 1]).is_err());
        assert!(read("x", "---\na: 1\n".repeat(MAX_DOCUMENTS + 1).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn nothing_breaks_the_reader(text in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read("x", &text);
        }
    }
}
