//! What can be searched for in an entity: a row for every leaf, under its dotted path, in lower case.
//!
//! ```text
//! spec.type          service
//! metadata.tags      java          and  metadata.tags.java  true
//! metadata.annotations.backstage.io/kubernetes-id   web
//! ```
//!
//! Text in a list gives two rows, so that a filter can ask for several of them at once.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::{DEFAULT_NAMESPACE, lower};

/// Longer keys have no row, longer values a row without a value: nobody types them, and definitions of APIs are long.
const MAX_KEY: usize = 200;
const MAX_VALUE: usize = 200;
/// The most rows of one entity; a stranger could write a list without end.
const MAX_ROWS: usize = 2000;

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The path in lower case.
    pub key: Arc<str>,
    /// The value in lower case; none if it is null or too long.
    pub value: Option<Box<str>>,
    /// The value as it was written, where that differs.
    pub original: Option<Box<str>>,
}

impl Row {
    /// The value as it was written.
    pub fn written(&self) -> Option<&str> {
        self.original.as_deref().or(self.value.as_deref())
    }
}

/// Keys are the same for most entities: one copy of each is enough.
#[derive(Debug, Default)]
pub struct Keys(HashSet<Arc<str>>);

impl Keys {
    /// The shared copy of a key.
    fn shared(&mut self, key: &str) -> Arc<str> {
        if let Some(known) = self.0.get(key) {
            return Arc::clone(known);
        }
        // Annotations and tags are free: what is not used any more is forgotten now and then.
        if self.0.len() >= 4096 && self.0.len().is_power_of_two() {
            self.0.retain(|key| Arc::strong_count(key) > 1);
        }
        let new: Arc<str> = Arc::from(key);
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// The rows of an entity without its relations. `uid` is the one that the catalog gave it.
pub fn of(entity: &Value, uid: &str, keys: &mut Keys) -> Vec<Row> {
    let mut rows = Rows {
        keys,
        found: Vec::new(),
        seen: HashSet::new(),
    };
    rows.visit(&mut String::new(), entity);
    let metadata = &entity["metadata"];
    rows.add("metadata.name", metadata["name"].as_str());
    rows.add(
        "metadata.namespace",
        Some(metadata["namespace"].as_str().unwrap_or(DEFAULT_NAMESPACE)),
    );
    rows.add("metadata.uid", Some(uid));
    rows.found
}

struct Rows<'k> {
    keys: &'k mut Keys,
    found: Vec<Row>,
    seen: HashSet<(Arc<str>, Option<Box<str>>)>,
}

impl Rows<'_> {
    fn visit(&mut self, path: &mut String, value: &Value) {
        // What the catalog writes itself has rows of its own.
        let is_special = matches!(
            path.as_str(),
            "relations"
                | "status"
                | "metadata.name"
                | "metadata.namespace"
                | "metadata.uid"
                | "metadata.etag"
        );
        if is_special || self.found.len() >= MAX_ROWS || path.len() > MAX_KEY {
            return;
        }
        let length = path.len();
        match value {
            Value::Null => self.leaf(path, None),
            Value::Bool(truth) => self.leaf(path, Some(if *truth { "true" } else { "false" })),
            Value::Number(number) => self.leaf(path, Some(&number.to_string())),
            Value::String(text) => self.leaf(path, Some(text)),
            Value::Array(items) => {
                for item in items {
                    self.visit(path, item);
                    if let Value::String(text) = item
                        && text.len() <= MAX_KEY
                    {
                        path.push('.');
                        path.push_str(text);
                        self.leaf(path, Some("true"));
                        path.truncate(length);
                    }
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(key);
                    self.visit(path, value);
                    path.truncate(length);
                }
            }
        }
    }

    fn leaf(&mut self, path: &str, value: Option<&str>) {
        if path.len() <= MAX_KEY && self.found.len() < MAX_ROWS {
            self.add(path, value);
        }
    }

    fn add(&mut self, path: &str, value: Option<&str>) {
        let key = self.keys.shared(&lower(path));
        let value = value.filter(|value| value.len() <= MAX_VALUE);
        let low: Option<Box<str>> = value.map(|value| lower(value).into());
        if !self.seen.insert((Arc::clone(&key), low.clone())) {
            return;
        }
        let original = value
            .filter(|value| low.as_deref() != Some(value))
            .map(Into::into);
        self.found.push(Row {
            key,
            value: low,
            original,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_have_rows() {
        let entity = json!({
            "kind": "Component",
            "metadata": {"name": "Web", "annotations": {"a.io/B": "C"}, "tags": ["java", "java", "x"]},
            "spec": {"n": 1, "no": null, "deep": [{"k": true}], "long": "x".repeat(300)},
            "relations": [{"type": "ownedBy"}],
        });
        let rows = of(&entity, "u-1", &mut Keys::default());
        let shown: Vec<String> = rows
            .iter()
            .map(|row| format!("{}={}", row.key, row.written().unwrap_or("-")))
            .collect();
        assert_eq!(
            shown,
            [
                "kind=Component",
                "metadata.annotations.a.io/b=C",
                "metadata.tags=java",
                "metadata.tags.java=true",
                "metadata.tags=x",
                "metadata.tags.x=true",
                "spec.n=1",
                "spec.no=-",
                "spec.deep.k=true",
                "spec.long=-",
                "metadata.name=Web",
                "metadata.namespace=default",
                "metadata.uid=u-1",
            ]
        );
        let name = rows.iter().find(|row| &*row.key == "metadata.name").unwrap();
        assert_eq!(name.value.as_deref(), Some("web"));
    }

    #[test]
    fn rows_are_bounded() {
        let many: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        let rows = of(&json!({"spec": {"many": many}}), "u", &mut Keys::default());
        assert!(rows.len() <= MAX_ROWS + 3);
        assert!(rows.iter().any(|row| &*row.key == "metadata.uid"));
    }
}
