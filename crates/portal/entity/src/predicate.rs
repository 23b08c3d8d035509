//! The query of `POST /entities/by-query`: maps from keys to values, `$all`, `$any`, `$not`, `$exists`, `$in`, `$hasPrefix`.

use serde_json::Value;

use crate::filter::Searchable;
use crate::{InputError, lower};

/// How deep conditions may be within each other, and how many there may be.
const MAX_DEPTH: usize = 20;
const MAX_PARTS: usize = 500;

/// A condition on entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// All of them hold.
    All(Vec<Self>),
    /// One of them holds.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// There is, or is not, something under a key.
    Exists(String, bool),
    /// One of these values is under a key.
    In(String, Vec<String>),
    /// A value under a key begins so.
    Prefix(String, String),
}

impl Predicate {
    /// Reads a condition as it is written in JSON.
    pub fn parse(value: &Value) -> Result<Self, InputError> {
        let mut parts = 0;
        parse(value, 0, &mut parts)
    }

    /// Whether an entity is meant.
    pub fn matches(&self, entity: &dyn Searchable) -> bool {
        match self {
            Self::All(all) => all.iter().all(|one| one.matches(entity)),
            Self::Any(any) => any.iter().any(|one| one.matches(entity)),
            Self::Not(inner) => !inner.matches(entity),
            Self::Exists(key, wanted) => entity.values(key).next().is_some() == *wanted,
            Self::In(key, values) => entity
                .values(key)
                .flatten()
                .any(|value| values.iter().any(|wanted| wanted == value)),
            Self::Prefix(key, prefix) => entity
                .values(key)
                .flatten()
                .any(|value| value.starts_with(prefix.as_str())),
        }
    }
}

fn parse(value: &Value, depth: usize, parts: &mut usize) -> Result<Predicate, InputError> {
    let refuse = |why: &str| Err(InputError(format!("Invalid query: {why}")));
    *parts += 1;
    if depth > MAX_DEPTH || *parts > MAX_PARTS {
        return refuse("it has too many conditions, or they are nested too deeply");
    }
    let Some(map) = value.as_object() else {
        return match depth {
            0 => Err(InputError("Query must be an object".to_owned())),
            _ => refuse("a condition must be an object, such as {\"kind\": \"component\"}"),
        };
    };
    let mut list = |value: &Value| match value.as_array() {
        Some(items) => items
            .iter()
            .map(|item| parse(item, depth + 1, parts))
            .collect::<Result<Vec<_>, _>>(),
        None => Err(InputError("Invalid query: $all and $any take lists".to_owned())),
    };
    if let (Some((operator, inner)), 1) = (map.iter().next(), map.len()) {
        match operator.as_str() {
            "$all" => return list(inner).map(Predicate::All),
            "$any" => return list(inner).map(Predicate::Any),
            "$not" => return Ok(Predicate::Not(Box::new(parse(inner, depth + 1, parts)?))),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for (key, value) in map {
        *parts += 1;
        if *parts > MAX_PARTS {
            return refuse("it has too many conditions");
        }
        if key.starts_with('$') {
            return refuse(&format!(
                "{key} must stand alone, and is one of $all, $any and $not"
            ));
        }
        all.push(field(key, value)?);
    }
    Ok(Predicate::All(all))
}

fn field(key: &str, value: &Value) -> Result<Predicate, InputError> {
    let low = lower(key);
    if let Some(text) = primitive(value) {
        return Ok(Predicate::In(low, vec![text]));
    }
    let operator = value
        .as_object()
        .filter(|map| map.len() == 1)
        .and_then(|map| map.iter().next());
    let read = match operator {
        Some((name, Value::Bool(wanted))) if name == "$exists" => Some(Predicate::Exists(low, *wanted)),
        Some((name, Value::Array(items))) if name == "$in" && items.len() <= MAX_PARTS => {
            let values: Option<Vec<String>> = items.iter().map(primitive).collect();
            values.map(|values| Predicate::In(low, values))
        }
        Some((name, Value::String(prefix))) if name == "$hasPrefix" => {
            Some(Predicate::Prefix(low, lower(prefix)))
        }
        _ => None,
    };
    read.ok_or_else(|| {
        InputError(format!(
            "Invalid filter predicate value for field \"{key}\": expected a primitive value, $exists, $in, or $hasPrefix \
             operator, but got {value}"
        ))
    })
}

/// A scalar as rows have it.
fn primitive(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(lower(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Rows(&'static [(&'static str, Option<&'static str>)]);

    impl Searchable for Rows {
        fn values<'s>(&'s self, key: &str) -> Box<dyn Iterator<Item = Option<&'s str>> + 's> {
            let key = key.to_owned();
            Box::new(self.0.iter().filter(move |row| row.0 == key).map(|row| row.1))
        }
    }

    #[test]
    fn conditions() {
        let rows = Rows(&[
            ("kind", Some("component")),
            ("spec.type", Some("service")),
            ("spec.null", None),
        ]);
        for (query, matches) in [
            (json!({"kind": "Component"}), true),
            (json!({"kind": "Component", "spec.type": "website"}), false),
            (json!({"$not": {"kind": "component"}}), false),
            (
                json!({"$any": [{"kind": "api"}, {"Spec.Type": {"$in": ["service", 1]}}]}),
                true,
            ),
            (
                json!({"$all": [{"kind": "api"}, {"spec.type": "service"}]}),
                false,
            ),
            (json!({"spec.null": {"$exists": true}}), true),
            (json!({"spec.none": {"$exists": false}}), true),
            (json!({"spec.type": {"$hasPrefix": "Ser"}}), true),
            (json!({}), true),
        ] {
            let predicate = Predicate::parse(&query).unwrap();
            assert_eq!(predicate.matches(&rows), matches, "{query}");
        }
        let mut deep = json!({"kind": "a"});
        for _ in 0..30 {
            deep = json!({"$not": deep});
        }
        let wide: Vec<Value> = (0..MAX_PARTS).map(|n| json!({"a": n})).collect();
        for (query, part) in [
            (json!("x"), "Query must be an object"),
            (json!({"$any": 1}), "take lists"),
            (json!({"$any": ["x"]}), "must be an object"),
            (
                json!({"kind": {"$near": 1}}),
                "Invalid filter predicate value for field \"kind\"",
            ),
            (json!({"kind": ["a"]}), "expected a primitive value"),
            (json!({"$any": [], "kind": "a"}), "must stand alone"),
            (deep, "nested too deeply"),
            (json!({"$any": wide}), "too many conditions"),
        ] {
            let error = Predicate::parse(&query).unwrap_err();
            assert!(error.0.contains(part), "{error}");
        }
    }
}
