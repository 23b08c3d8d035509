//! Paths into objects as the sync agent's rules write them: `spec.ports.0.name`, `spec.users.#.secret`.
//!
//! Names are joined by dots; a number picks from a list, `#` means every element of one, and a backslash takes a dot into
//! a name. Queries and modifiers of the original's library are refused.

use serde_json::{Map, Value};

const MAX_SEGMENTS: usize = 32;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dotted(Vec<String>);

impl Dotted {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut segments = vec![String::new()];
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            let last = segments.len() - 1;
            match c {
                '\\' => segments[last].extend(characters.next()),
                '.' => segments.push(String::new()),
                '*' | '?' | '|' | '@' | '(' => {
                    return Err(format!(
                        "{c:?} cannot be used in path {text:?}: join names, numbers and # by dots"
                    ));
                }
                c => segments[last].push(c),
            }
        }
        if segments.len() > MAX_SEGMENTS {
            return Err(format!("path {text:?} has more than {MAX_SEGMENTS} parts"));
        }
        if segments.iter().any(String::is_empty) {
            return Err(format!("path {text:?} has an empty part"));
        }
        Ok(Self(segments))
    }

    /// What is at the path; with `#`, the list of what is there.
    pub(crate) fn get(&self, value: &Value) -> Option<Value> {
        pick(value, &self.0)
    }

    /// Puts a value at the path. What is missing on the way is made.
    pub(crate) fn set(&self, value: &mut Value, new: Value) -> Result<(), String> {
        let mut at = value;
        for segment in &self.0 {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            at = match at {
                Value::Object(map) => map.entry(segment.clone()).or_insert(Value::Null),
                Value::Array(list) => {
                    let index = if segment == "-1" {
                        Ok(list.len())
                    } else {
                        segment.parse::<usize>()
                    };
                    match index {
                        Ok(index) if index == list.len() => {
                            list.push(Value::Null);
                            &mut list[index]
                        }
                        Ok(index) if index < list.len() => &mut list[index],
                        _ => return Err(format!("{segment:?} is no place in a list of {}", list.len())),
                    }
                }
                _ => {
                    return Err(format!(
                        "{segment:?} cannot be set: what holds it is neither an object nor a list"
                    ));
                }
            };
        }
        *at = new;
        Ok(())
    }

    /// Takes away what is at the path.
    pub(crate) fn remove(&self, value: &mut Value) {
        let Some((last, way)) = self.0.split_last() else {
            return;
        };
        let mut at = value;
        for segment in way {
            let next = match at {
                Value::Object(map) => map.get_mut(segment),
                Value::Array(list) => segment
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| list.get_mut(index)),
                _ => None,
            };
            let Some(next) = next else {
                return;
            };
            at = next;
        }
        match at {
            Value::Object(map) => {
                map.shift_remove(last);
            }
            Value::Array(list) => {
                if let Some(index) = last.parse::<usize>().ok().filter(|index| *index < list.len()) {
                    list.remove(index);
                }
            }
            _ => {}
        }
    }
}

fn pick(value: &Value, segments: &[String]) -> Option<Value> {
    let Some((first, rest)) = segments.split_first() else {
        return Some(value.clone());
    };
    match value {
        Value::Object(map) => pick(map.get(first)?, rest),
        Value::Array(list) if first == "#" => {
            Some(list.iter().filter_map(|element| pick(element, rest)).collect())
        }
        Value::Array(list) => pick(list.get(first.parse::<usize>().ok()?)?, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reading() {
        let object = json!({"spec": {"a.b": 1, "list": [{"n": "x"}, {"n": "y"}, {}], "t": "v"}});
        for (path, expected) in [
            ("spec.t", Some(json!("v"))),
            ("spec.a\\.b", Some(json!(1))),
            ("spec.list.1.n", Some(json!("y"))),
            ("spec.list.#.n", Some(json!(["x", "y"]))),
            ("spec.list.9.n", None),
            ("spec.t.deeper", None),
            ("status", None),
        ] {
            assert_eq!(Dotted::parse(path).unwrap().get(&object), expected, "{path}");
        }
        for bad in ["", "a..b", "a.", "a.#(b==1)", "a.*", "@this"] {
            assert!(Dotted::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Dotted::parse(&vec!["a"; 40].join(".")).is_err());
    }

    #[test]
    fn writing() {
        for (before, path, after) in [
            (json!({}), "a.b", Ok(json!({"a": {"b": 1}}))),
            (json!({"a": [0]}), "a.0", Ok(json!({"a": [1]}))),
            (json!({"a": [0]}), "a.1", Ok(json!({"a": [0, 1]}))),
            (json!({"a": [0]}), "a.-1", Ok(json!({"a": [0, 1]}))),
            (json!({"a": [0]}), "a.7", Err("\"7\" is no place in a list of 1")),
            (
                json!({"a": "text"}),
                "a.b",
                Err("\"b\" cannot be set: what holds it is neither an object nor a list"),
            ),
        ] {
            let mut object = before.clone();
            let done = Dotted::parse(path)
                .unwrap()
                .set(&mut object, json!(1))
                .map(|()| object);
            assert_eq!(done, after.map_err(str::to_owned), "{path} in {before}");
        }
        for (before, path, after) in [
            (json!({"a": {"b": 1, "c": 2}}), "a.b", json!({"a": {"c": 2}})),
            (json!({"a": [1, 2]}), "a.0", json!({"a": [2]})),
            (json!({"a": 1}), "x.y", json!({"a": 1})),
            (json!({"a": [1]}), "a.4", json!({"a": [1]})),
        ] {
            let mut object = before.clone();
            Dotted::parse(path).unwrap().remove(&mut object);
            assert_eq!(object, after, "{path} in {before}");
        }
    }
}
