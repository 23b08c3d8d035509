//! `fields=kind,metadata.name`: the parts of entities that an answer shall have.

use serde_json::{Map, Value};

use crate::InputError;

const MAX_FIELDS: usize = 200;

/// Paths with dots, as they were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Vec<String>);

impl Fields {
    /// Reads the `fields` parameters of a request; none if there is nothing in them.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Option<Self>, InputError> {
        let parts = texts.into_iter().flat_map(|text| text.split(','));
        let fields: Vec<String> = parts
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        if fields.iter().any(|field| field.contains('[')) {
            return Err(InputError(
                "invalid fields, array type fields are not supported".to_owned(),
            ));
        }
        if fields.len() > MAX_FIELDS {
            return Err(InputError(format!("invalid fields, more than {MAX_FIELDS}")));
        }
        Ok((!fields.is_empty()).then_some(Self(fields)))
    }

    /// The parts of an entity.
    pub fn project(&self, entity: &Value) -> Value {
        let mut shown = Map::new();
        for field in &self.0 {
            if let Some((path, value)) = find(entity, field) {
                put(&mut shown, &path, value);
            }
        }
        Value::Object(shown)
    }
}

/// What a path leads to: keys may have dots themselves, and the shortest that is there is taken.
fn find<'e>(entity: &'e Value, field: &str) -> Option<(Vec<String>, &'e Value)> {
    let mut path = Vec::new();
    let mut at = entity;
    let mut key = String::new();
    for part in field.split('.') {
        if !key.is_empty() {
            key.push('.');
        }
        key.push_str(part);
        if let Some(inner) = at.as_object().and_then(|map| map.get(&key)) {
            at = inner;
            path.push(std::mem::take(&mut key));
        }
    }
    (key.is_empty() && !path.is_empty()).then_some((path, at))
}

fn put(shown: &mut Map<String, Value>, path: &[String], value: &Value) {
    match path {
        [] => {}
        [last] => {
            shown.insert(last.clone(), value.clone());
        }
        [first, rest @ ..] => {
            let inner = shown
                .entry(first.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_shown() {
        let entity = json!({
            "kind": "Component",
            "metadata": {"name": "a", "annotations": {"backstage.io/kubernetes-id": "x", "b": "y"}},
            "spec": {"list": [1, 2]},
        });
        for (fields, expected) in [
            (vec!["kind"], json!({"kind": "Component"})),
            (
                vec!["metadata.name, kind"],
                json!({"metadata": {"name": "a"}, "kind": "Component"}),
            ),
            (
                vec!["metadata.annotations.backstage.io/kubernetes-id"],
                json!({"metadata": {"annotations": {"backstage.io/kubernetes-id": "x"}}}),
            ),
            (vec!["spec.list"], json!({"spec": {"list": [1, 2]}})),
            (vec!["spec.none", "none"], json!({})),
            (
                vec!["metadata", "metadata.name"],
                json!({"metadata": entity["metadata"]}),
            ),
        ] {
            let parsed = Fields::parse(fields.iter().copied()).unwrap().unwrap();
            assert_eq!(parsed.project(&entity), expected, "{fields:?}");
        }
        assert_eq!(Fields::parse([" , "]), Ok(None));
        assert!(Fields::parse(["a[0]"]).is_err());
    }
}
