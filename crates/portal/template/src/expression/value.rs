//! Values of expressions, with JavaScript's rules for truth, equality and text, because templates are written for them.
//!
//! Clones share what they hold, so that reading a variable costs nothing however large it is.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

/// Up to here a double holds every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was there.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; JavaScript knows one kind.
    Number(f64),
    /// Text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Self]>),
    /// A map, in the order in which it was written.
    Map(Arc<[(Arc<str>, Self)]>),
    /// A regular expression: `r/a+/g` is its source and its flags.
    Pattern(Arc<str>, Arc<str>),
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A list.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(items.into())
    }

    /// A map; of keys that occur twice, the last one counts.
    pub fn map(entries: Vec<(Arc<str>, Self)>) -> Self {
        let mut kept: Vec<(Arc<str>, Self)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match kept.iter_mut().find(|(other, _)| *other == key) {
                Some(entry) => entry.1 = value,
                None => kept.push((key, value)),
            }
        }
        Self::Map(kept.into())
    }

    /// A whole number.
    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers are doubles")]
    pub fn count(count: usize) -> Self {
        Self::Number(count as f64)
    }

    /// What JSON says.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(is) => Self::Bool(*is),
            Json::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            // Keys of JSON are different already.
            Json::Object(fields) => Self::Map(
                fields
                    .iter()
                    .map(|(key, value)| (Arc::from(key.as_str()), Self::from_json(value)))
                    .collect(),
            ),
        }
    }

    /// As JSON; nothing for what is undefined. Within lists that is null, within maps it is left out, as `JSON.stringify` does.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Undefined => return None,
            Self::Null => Json::Null,
            Self::Bool(is) => Json::Bool(*is),
            Self::Number(number) => number_json(*number),
            Self::Text(text) => Json::String(text.to_string()),
            Self::List(items) => items
                .iter()
                .map(|item| item.to_json().unwrap_or(Json::Null))
                .collect(),
            Self::Map(entries) => {
                let mut fields = Map::new();
                for (key, value) in entries.iter() {
                    if let Some(value) = value.to_json() {
                        fields.insert(key.to_string(), value);
                    }
                }
                Json::Object(fields)
            }
            Self::Pattern(..) => Json::Object(Map::new()),
        })
    }

    /// Whether a condition holds: lists and maps are true even if they are empty.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(is) => *is,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::Text(text) => !text.is_empty(),
            Self::List(_) | Self::Map(_) | Self::Pattern(..) => true,
        }
    }

    /// Nothing, or null.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }

    /// A field of a map or a character or item at a place; what has none gives nothing, and so does nothing itself.
    pub fn member(&self, key: &Self) -> Self {
        match (self, key) {
            (Self::Map(entries), _) => {
                let key = key.shown();
                let found = entries.iter().find(|(name, _)| **name == *key);
                found.map_or(Self::Undefined, |(_, value)| value.clone())
            }
            (Self::List(items), Self::Text(name)) if &**name == "length" => Self::count(items.len()),
            (Self::Text(text), Self::Text(name)) if &**name == "length" => Self::count(text.chars().count()),
            (Self::List(items), _) => key
                .index()
                .and_then(|at| items.get(at))
                .cloned()
                .unwrap_or(Self::Undefined),
            (Self::Text(text), _) => key
                .index()
                .and_then(|at| text.chars().nth(at))
                .map_or(Self::Undefined, |found| Self::text(found.to_string())),
            _ => Self::Undefined,
        }
    }

    /// As a place in a list.
    pub fn index(&self) -> Option<usize> {
        let number = self.number();
        let is_place = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole and within bounds"
        )]
        is_place.then_some(number as usize)
    }

    /// `Number(value)`.
    pub fn number(&self) -> f64 {
        match self {
            Self::Undefined | Self::Map(_) | Self::Pattern(..) => f64::NAN,
            Self::Null => 0.0,
            Self::Bool(is) => f64::from(u8::from(*is)),
            Self::Number(number) => *number,
            Self::Text(text) => text_number(text),
            Self::List(items) => match &**items {
                [] => 0.0,
                [only] => only.number(),
                _ => f64::NAN,
            },
        }
    }

    /// `String(value)`.
    pub fn shown(&self) -> Arc<str> {
        match self {
            Self::Undefined => Arc::from("undefined"),
            Self::Null => Arc::from("null"),
            Self::Bool(is) => Arc::from(if *is { "true" } else { "false" }),
            Self::Number(number) => Arc::from(number_text(*number)),
            Self::Text(text) => Arc::clone(text),
            Self::List(items) => {
                let parts: Vec<Arc<str>> = items.iter().map(Self::printed).collect();
                Arc::from(parts.join(","))
            }
            Self::Map(_) => Arc::from("[object Object]"),
            Self::Pattern(source, flags) => Arc::from(format!("/{source}/{flags}")),
        }
    }

    /// What an expression prints: nothing for what is missing.
    pub fn printed(&self) -> Arc<str> {
        match self.is_missing() {
            true => Arc::from(""),
            false => self.shown(),
        }
    }

    /// `==`.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (left, right) if left.is_missing() || right.is_missing() => {
                left.is_missing() && right.is_missing()
            }
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::List(_) | Self::Map(_), Self::List(_) | Self::Map(_)) => self.is_same(other),
            (Self::List(_) | Self::Map(_), Self::Text(text)) => *self.shown() == **text,
            (Self::Text(text), Self::List(_) | Self::Map(_)) => *other.shown() == **text,
            (left, right) => left.number() == right.number(),
        }
    }

    /// `===`; two lists or maps are the same if one was made of the other, which here means that they share what they hold.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(left), Self::List(right)) => Arc::ptr_eq(left, right),
            (Self::Map(left), Self::Map(right)) => Arc::ptr_eq(left, right),
            (left, right) => left == right,
        }
    }

    /// How two values compare; nothing if they do not.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            (left, right) => left.number().partial_cmp(&right.number()),
        }
    }

    /// How much memory it takes, about, were it copied.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text(text) => 16 + text.len(),
            Self::List(items) => 16 + items.iter().map(Self::weight).sum::<usize>(),
            Self::Map(entries) => {
                let each = entries.iter().map(|(key, value)| 16 + key.len() + value.weight());
                16 + each.sum::<usize>()
            }
            _ => 16,
        }
    }
}

fn text_number(text: &str) -> f64 {
    let text = text.trim();
    match text {
        "" => 0.0,
        "Infinity" | "+Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        // Rust reads words for infinity and NaN that JavaScript does not.
        _ if text.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) => f64::NAN,
        _ => text.parse().unwrap_or(f64::NAN),
    }
}

/// A number as JavaScript prints it.
fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let size = number.abs();
    match !(1e-6..1e21).contains(&size) {
        false => format!("{number}"),
        true => {
            let text = format!("{number:e}");
            match text.contains("e-") {
                true => text,
                false => text.replace('e', "e+"),
            }
        }
    }
}

fn number_json(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and within bounds")]
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_printed_as_javascript_does() {
        for (number, text) in [
            (1.0, "1"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (123_456_789_012.0, "123456789012"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }

    #[test]
    fn equality_and_truth_are_javascripts() {
        let of = |json: Json| Value::from_json(&json);
        for (left, right, alike) in [
            (json!(1), json!("1"), true),
            (json!(null), json!(0), false),
            (json!(true), json!(1), true),
            (json!("true"), json!(true), false),
            (json!(""), json!(0), true),
            (json!("a"), json!("a"), true),
            (json!([]), json!([]), false),
        ] {
            assert_eq!(
                of(left.clone()).is_like(&of(right.clone())),
                alike,
                "{left} == {right}"
            );
        }
        assert!(Value::Undefined.is_like(&Value::Null) && !Value::Undefined.is_same(&Value::Null));
        for (value, truth) in [
            (json!([]), true),
            (json!({}), true),
            (json!(0), false),
            (json!(""), false),
            (json!("false"), true),
        ] {
            assert_eq!(of(value.clone()).is_true(), truth, "{value}");
        }
    }

    #[test]
    fn json_comes_back_as_it_went_in() {
        let json = json!({"b": [1, 2.5, "x", null, true], "a": {"n": -7}});
        assert_eq!(Value::from_json(&json).to_json(), Some(json));
        let with_gaps = Value::list(vec![Value::Undefined, Value::Number(f64::NAN)]);
        assert_eq!(with_gaps.to_json(), Some(json!([null, null])));
    }
}
