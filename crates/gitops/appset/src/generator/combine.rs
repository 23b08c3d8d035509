//! Generators of generators: each with each (`matrix`), or one over the other (`merge`).

use serde_json::{Map, Value};

use super::Generation;
use crate::{Error, MAX_PARAMS, Params};

impl Generation<'_> {
    pub(super) fn matrix(
        &self,
        generator: &Value,
        given: Option<&Params>,
        depth: usize,
    ) -> Result<Vec<Params>, Error> {
        let (first, second) = match children(generator) {
            [first, second] => (first, second),
            [] | [_] => {
                return Err(Error::Generator(
                    "found less than two generators, Matrix support only two".to_owned(),
                ));
            }
            _ => {
                return Err(Error::Generator(
                    "found more than two generators, Matrix support only two".to_owned(),
                ));
            }
        };
        let mut all = Vec::new();
        for outer in self.params(first, given, depth + 1)? {
            for inner in self.params(second, Some(&outer), depth + 1)? {
                all.push(match self.renderer.go {
                    true => merged(inner, &outer),
                    false => combined(&outer, &inner)?,
                });
                if all.len() > MAX_PARAMS {
                    return Err(Error::TooMany(MAX_PARAMS));
                }
            }
        }
        Ok(all)
    }

    pub(super) fn merge(
        &self,
        generator: &Value,
        given: Option<&Params>,
        depth: usize,
    ) -> Result<Vec<Params>, Error> {
        let [first, others @ ..] = children(generator) else {
            return Err(Error::Generator(
                "found less than two generators, Merge requires two or more".to_owned(),
            ));
        };
        let keys: Vec<&str> = generator["mergeKeys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if others.is_empty() {
            return Err(Error::Generator(
                "found less than two generators, Merge requires two or more".to_owned(),
            ));
        }
        if keys.is_empty() {
            return Err(Error::Generator(
                "no merge keys were specified, Merge requires at least one".to_owned(),
            ));
        }
        // In the order of the first generator; Argo CD's is that of chance.
        let mut base = by_key(&keys, self.params(first, given, depth + 1)?)?;
        for other in others {
            let over = by_key(&keys, self.params(other, given, depth + 1)?)?;
            for (key, params) in &mut base {
                let Some((_, over)) = over.iter().find(|(other, _)| other == key) else {
                    continue;
                };
                match self.renderer.go {
                    true => *params = merged(std::mem::take(params), over),
                    false => params.extend(over.clone()),
                }
            }
        }
        Ok(base.into_iter().map(|(_, params)| params).collect())
    }
}

fn children(generator: &Value) -> &[Value] {
    generator["generators"].as_array().map_or(&[], Vec::as_slice)
}

fn by_key(keys: &[&str], all: Vec<Params>) -> Result<Vec<(Vec<Value>, Params)>, Error> {
    let mut seen = std::collections::HashSet::new();
    let mut out = Vec::with_capacity(all.len());
    for params in all {
        let key: Vec<Value> = keys
            .iter()
            .map(|key| params.get(*key).cloned().unwrap_or(Value::Null))
            .collect();
        let shown = Value::Array(key.clone()).to_string();
        if !seen.insert(shown.clone()) {
            return Err(Error::Generator(format!(
                "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets to be \
                 unique. Duplicate key was {shown}"
            )));
        }
        out.push((key, params));
    }
    Ok(out)
}

/// Trees, one over the other.
fn merged(mut base: Params, over: &Params) -> Params {
    for (name, value) in over {
        match (base.get_mut(name), value) {
            (Some(Value::Object(own)), Value::Object(value)) => {
                let merged = merged(std::mem::take(own), value);
                base.insert(name.clone(), Value::Object(merged));
            }
            // What is empty does not replace what is not.
            (Some(own), value) if is_empty(value) && !is_empty(own) => {}
            _ => {
                base.insert(name.clone(), value.clone());
            }
        }
    }
    base
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Flat parameters of two generators, which must not contradict each other.
fn combined(first: &Params, second: &Params) -> Result<Params, Error> {
    let mut all: Map<String, Value> = first.clone();
    for (name, value) in second {
        match all.get(name) {
            Some(own) if own != value => {
                return Err(Error::Generator(format!(
                    "found duplicate key {name} with different value, a: {own} ,b: {value}"
                )));
            }
            _ => {
                all.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(all)
}
