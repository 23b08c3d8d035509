//! Equality and order of JSON values as structured merge defines them.
//!
//! Two rules differ from `serde_json`: a whole number and a floating-point number are equal if their values are, and
//! there is a total order over all types, because keys of list items are sorted by it. Comparison of objects ignores
//! the order in which their fields were written.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// A number, as Kubernetes reads it: 64-bit signed, or else floating point.
enum Numeric {
    Int(i64),
    Float(f64),
}

fn numeric(number: &Number) -> Numeric {
    match number.as_i64() {
        Some(int) => Numeric::Int(int),
        None => Numeric::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Whether two values mean the same.
pub(crate) fn equals(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => match (numeric(l), numeric(r)) {
            (Numeric::Int(l), Numeric::Int(r)) => l == r,
            (Numeric::Int(l), Numeric::Float(r)) => l as f64 == r,
            (Numeric::Float(l), Numeric::Int(r)) => l == r as f64,
            (Numeric::Float(l), Numeric::Float(r)) => l == r,
        },
        (Value::String(l), Value::String(r)) => l == r,
        (Value::Bool(l), Value::Bool(r)) => l == r,
        (Value::Null, Value::Null) => true,
        (Value::Array(l), Value::Array(r)) => {
            l.len() == r.len() && l.iter().zip(r).all(|(l, r)| equals(l, r))
        }
        (Value::Object(l), Value::Object(r)) => {
            l.len() == r.len() && l.iter().all(|(k, l)| r.get(k).is_some_and(|r| equals(l, r)))
        }
        _ => false,
    }
}

/// Numbers sort before strings, then booleans, lists, maps and null.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// The total order over values.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => {
            let floats = |l: f64, r: f64| l.partial_cmp(&r).unwrap_or(Ordering::Equal);
            match (numeric(l), numeric(r)) {
                (Numeric::Int(l), Numeric::Int(r)) => l.cmp(&r),
                (Numeric::Int(l), Numeric::Float(r)) => floats(l as f64, r),
                (Numeric::Float(l), Numeric::Int(r)) => floats(l, r as f64),
                (Numeric::Float(l), Numeric::Float(r)) => floats(l, r),
            }
        }
        (Value::String(l), Value::String(r)) => l.cmp(r),
        (Value::Bool(l), Value::Bool(r)) => l.cmp(r),
        (Value::Array(l), Value::Array(r)) => compare_lists(l, r),
        (Value::Object(l), Value::Object(r)) => compare_maps(l, r),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_lists(left: &[Value], right: &[Value]) -> Ordering {
    left.iter()
        .zip(right)
        .map(|(l, r)| compare(l, r))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| left.len().cmp(&right.len()))
}

fn compare_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (left_keys, right_keys) = (sorted(left), sorted(right));
    for (l, r) in left_keys.iter().zip(&right_keys) {
        let order = l.cmp(r).then_with(|| match (left.get(l), right.get(r)) {
            (Some(l), Some(r)) => compare(l, r),
            _ => Ordering::Equal,
        });
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_objects_by_content() {
        for (left, right, same) in [
            (json!(1), json!(1.0), true),
            (json!(1), json!("1"), false),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "b": null}), false),
            (json!(null), json!({}), false),
        ] {
            assert_eq!(equals(&left, &right), same, "{left} and {right}");
        }
    }

    #[test]
    fn every_type_has_its_place_in_the_order() {
        let sorted = [
            json!(-1),
            json!(0.5),
            json!(1),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([1]),
            json!([1, 2]),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
            json!(null),
        ];
        for (i, left) in sorted.iter().enumerate() {
            for (j, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left} against {right}");
            }
        }
    }
}
