//! What strict clients are told of fields that occur twice or that nobody knows, in the order of the document.

use std::collections::HashMap;

use serde_json::Value;

/// The complaint about an unknown field.
fn unknown_field(path: &str) -> String {
    format!("unknown field {path:?}")
}

/// The complaint about a field that occurs twice.
fn duplicate_field(path: &str) -> String {
    format!("duplicate field {path:?}")
}

/// All complaints. Kinds that upstream decodes into Go types have theirs in the order of the document; custom ones, of which
/// there is no `document`, are first read and then pruned.
pub(crate) fn complaints(
    document: Option<&Value>,
    duplicates: Vec<String>,
    unknown: &[String],
) -> Vec<String> {
    let mut all = duplicates;
    let in_order = document.filter(|_| !all.is_empty() && !unknown.is_empty());
    all.extend(unknown.iter().map(|path| unknown_field(path)));
    if let Some(document) = in_order {
        let mut ranks: HashMap<String, usize> = all.iter().map(|text| (text.clone(), usize::MAX)).collect();
        let mut next = 0;
        visit(document, &mut String::new(), &mut |path| {
            next += 1;
            for text in [unknown_field(path), duplicate_field(path)] {
                if let Some(rank) = ranks.get_mut(&text) {
                    *rank = next;
                }
            }
        });
        all.sort_by_key(|text| ranks.get(text).copied().unwrap_or(usize::MAX));
    }
    all
}

/// Calls `seen` with the path of every field. Parsing has bounded the depth.
fn visit(value: &Value, path: &mut String, seen: &mut impl FnMut(&str)) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                seen(path);
                visit(value, path, seen);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                visit(item, path, seen);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{complaints, duplicate_field};

    #[test]
    fn complaints_come_in_the_order_of_the_document() {
        let document = json!({"spec": {"unknown": 1, "replicas": 3, "list": [{"a": 1}, {"b": 2, "c": 3}]}});
        let duplicates = vec![
            duplicate_field("spec.replicas"),
            duplicate_field("spec.list[1].c"),
        ];
        let unknown = ["spec.unknown".to_owned(), "spec.list[1].b".to_owned()];
        assert_eq!(
            complaints(Some(&document), duplicates.clone(), &unknown),
            [
                "unknown field \"spec.unknown\"",
                "duplicate field \"spec.replicas\"",
                "unknown field \"spec.list[1].b\"",
                "duplicate field \"spec.list[1].c\"",
            ]
        );
        assert_eq!(
            complaints(None, duplicates, &unknown)[..2],
            [
                "duplicate field \"spec.replicas\"",
                "duplicate field \"spec.list[1].c\""
            ]
        );
    }
}
