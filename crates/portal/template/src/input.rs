//! The input of a step: JSON whose texts hold expressions.

use serde_json::{Map, Value};

use crate::expression::{Limits, Syntax, Template, Variables};

/// How deeply JSON may be nested.
const MAX_DEPTH: usize = 64;

/// Why an input has no value: where, and what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct InputError {
    /// `input.values.name`.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
}

/// Works out every text of a value. A text that is one expression becomes what the expression is, also a number or a list; what is
/// undefined is left out of maps and null in lists, as `JSON.stringify` does.
pub fn resolve(value: &Value, variables: &Variables, at: &str) -> Result<Option<Value>, InputError> {
    walk(value, at, MAX_DEPTH, &mut |text, path| {
        let wrong = |why: String| InputError {
            path: path.to_owned(),
            why,
        };
        let template = Template::read(text, Syntax::default()).map_err(|error| wrong(error.to_string()))?;
        if template.is_plain() {
            return template
                .print(variables, Limits::default())
                .map(|text| Some(Value::String(text)))
                .map_err(|error| wrong(error.to_string()));
        }
        let value = template
            .value(variables, Limits::default())
            .map_err(|error| wrong(error.to_string()))?;
        Ok(value.to_json())
    })
}

/// Looks at every text of a value, so that what cannot be read is known before a run begins.
pub fn check(value: &Value, at: &str) -> Result<(), InputError> {
    walk(value, at, MAX_DEPTH, &mut |text, path| {
        Template::read(text, Syntax::default())
            .map(|_| None)
            .map_err(|error| InputError {
                path: path.to_owned(),
                why: error.to_string(),
            })
    })
    .map(drop)
}

/// What becomes of a text at a path.
type Each<'e> = dyn FnMut(&str, &str) -> Result<Option<Value>, InputError> + 'e;

fn walk(value: &Value, path: &str, depth: usize, each: &mut Each<'_>) -> Result<Option<Value>, InputError> {
    if depth == 0 {
        return Err(InputError {
            path: path.to_owned(),
            why: format!("it is nested more than {MAX_DEPTH} deep"),
        });
    }
    match value {
        Value::String(text) => each(text, path),
        Value::Array(items) => {
            let mut made = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                let item = walk(item, &format!("{path}[{at}]"), depth - 1, each)?;
                made.push(item.unwrap_or(Value::Null));
            }
            Ok(Some(Value::Array(made)))
        }
        Value::Object(fields) => {
            let mut made = Map::new();
            for (key, field) in fields {
                let path = format!("{path}.{key}");
                let key = match each(key, &path)? {
                    Some(Value::String(key)) => key,
                    Some(other) => other.to_string(),
                    None => key.clone(),
                };
                if let Some(field) = walk(field, &path, depth - 1, each)? {
                    made.insert(key, field);
                }
            }
            Ok(Some(Value::Object(made)))
        }
        other => Ok(Some(other.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inputs_are_worked_out() {
        let variables = Variables::default().with("parameters", &json!({"n": 2, "list": [1], "name": "web"}));
        let input = json!({
            "count": "${{ parameters.n }}", "text": "n=${{ parameters.n }}", "gone": "${{ parameters.x }}",
            "deep": [{"${{ parameters.name }}-key": "${{ parameters.list }}"}, "${{ parameters.x }}"], "plain": 7,
        });
        let expected = json!({"count": 2, "text": "n=2", "deep": [{"web-key": [1]}, null], "plain": 7});
        assert_eq!(resolve(&input, &variables, "input").unwrap(), Some(expected));
    }

    #[test]
    fn answers_are_values_and_not_templates() {
        // What a user answers is never read as an expression: it is put in, not worked out again.
        let variables = Variables::default().with("parameters", &json!({"name": "${{ secrets.token }}"}));
        let made = resolve(&json!("x ${{ parameters.name }}"), &variables, "input").unwrap();
        assert_eq!(made, Some(json!("x ${{ secrets.token }}")));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = check(&json!({"a": [{"b": "${{ x"}]}), "input").unwrap_err();
        assert_eq!(error.path, "input.a[0].b");
        let mut deep = json!(1);
        for _ in 0..80 {
            deep = json!([deep]);
        }
        assert!(check(&deep, "input").unwrap_err().why.contains("nested"));
    }
}
