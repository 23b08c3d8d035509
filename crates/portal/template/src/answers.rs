//! Answers to the questions of a Template: completed with defaults, judged page by page, and secrets kept apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::schema::{self, Complaint};
use crate::template::Template;

/// The most that all answers may come to, as JSON.
const MAX_SIZE: usize = 256 << 10;
/// How deeply questions are followed.
const MAX_DEPTH: usize = 20;

/// Answers that are complete and good.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// What expressions see as `parameters`.
    pub values: Map<String, Value>,
    /// Answers to questions whose field is `Secret`: they are `secrets.NAME` and never among the values.
    pub secrets: BTreeMap<String, String>,
}

/// Completes and judges answers.
pub fn judge(template: &Template, given: &Map<String, Value>) -> Result<Answers, Vec<Complaint>> {
    let whole = |message: String| {
        vec![Complaint {
            path: String::new(),
            message,
        }]
    };
    if Value::Object(given.clone()).to_string().len() > MAX_SIZE {
        return Err(whole(format!(
            "the answers are larger than {} KiB",
            MAX_SIZE >> 10
        )));
    }
    let mut values = given.clone();
    complete_all(template, &mut values);
    let all = Value::Object(values.clone());
    let mut complaints: Vec<Complaint> = Vec::new();
    for page in &template.pages {
        for complaint in schema::check(&page.schema, &all) {
            // A question on two pages is complained about once.
            if !complaints.contains(&complaint) {
                complaints.push(complaint);
            }
        }
    }
    if !complaints.is_empty() {
        return Err(complaints);
    }
    let mut secrets = BTreeMap::new();
    for name in secret_questions(template) {
        match values.shift_remove(&name) {
            Some(Value::String(text)) => {
                secrets.insert(name, text);
            }
            Some(other) => {
                secrets.insert(name, other.to_string());
            }
            None => {}
        }
    }
    Ok(Answers { values, secrets })
}

/// Completes answers with defaults, without judging them.
pub fn complete_all(template: &Template, values: &mut Map<String, Value>) {
    for page in &template.pages {
        complete(&page.schema, &page.schema, values, MAX_DEPTH);
    }
}

/// Names of questions whose answers are secret.
pub fn secret_questions(template: &Template) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for page in &template.pages {
        each_property(&page.schema, MAX_DEPTH, &mut |name, schema| {
            let is_secret = |key: &str, word: &str| {
                let value = schema.get(key).and_then(Value::as_str);
                value.is_some_and(|value| value.eq_ignore_ascii_case(word))
            };
            if is_secret("ui:field", "Secret") || is_secret("ui:widget", "password") {
                found.insert(name.to_owned());
            }
        });
    }
    found
}

/// Names of all questions, also of those that only some answers lead to.
pub fn questions(template: &Template) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for page in &template.pages {
        each_property(&page.schema, MAX_DEPTH, &mut |name, _| {
            found.insert(name.to_owned());
        });
    }
    found
}

/// The questions of the first level, wherever in a schema they are.
fn each_property(schema: &Value, depth: usize, each: &mut dyn FnMut(&str, &Value)) {
    if depth == 0 {
        return;
    }
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        each(name, property);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for inner in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            each_property(inner, depth - 1, each);
        }
    }
    for keyword in ["then", "else"] {
        if let Some(inner) = schema.get(keyword) {
            each_property(inner, depth - 1, each);
        }
    }
    for keyword in ["dependencies", "dependentSchemas"] {
        for (_, inner) in schema
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            each_property(inner, depth - 1, each);
        }
    }
}

/// Puts defaults where nothing was answered; also those of questions that an answer leads to.
fn complete(root: &Value, schema: &Value, values: &mut Map<String, Value>, depth: usize) {
    if depth == 0 {
        return;
    }
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        None => schema,
        Some(reference) => match reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer))
        {
            Some(found) => return complete(root, found, values, depth - 1),
            None => return,
        },
    };
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if let (Some(default), false) = (property.get("default"), values.contains_key(name)) {
            values.insert(name.clone(), default.clone());
        }
        if property.get("properties").is_some() {
            let is_required = schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(|one| one == name));
            let mut inner = match values.get(name) {
                Some(Value::Object(inner)) => inner.clone(),
                None => Map::new(),
                Some(_) => continue,
            };
            let was_there = values.contains_key(name);
            complete(root, property, &mut inner, depth - 1);
            if was_there || is_required || !inner.is_empty() {
                values.insert(name.clone(), Value::Object(inner));
            }
        }
    }
    for inner in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        complete(root, inner, values, depth - 1);
    }
    if let Some(condition) = schema.get("if") {
        let holds = schema::check(condition, &Value::Object(values.clone())).is_empty();
        if let Some(inner) = schema.get(if holds { "then" } else { "else" }) {
            complete(root, inner, values, depth - 1);
        }
    }
    for keyword in ["dependencies", "dependentSchemas"] {
        for (name, inner) in schema
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if values.contains_key(name) && inner.is_object() {
                complete(root, inner, values, depth - 1);
            }
        }
    }
    for keyword in ["oneOf", "anyOf"] {
        let options = schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        // The one whose fixed answers are given; its own defaults must not decide about it.
        for option in options {
            let fixed = option
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            // A choice within the option that nobody has made yet has a default, and does not speak against it.
            let mut fixed = fixed
                .filter(|(_, schema)| schema.get("const").is_some() || schema.get("enum").is_some())
                .filter(|(name, schema)| schema.get("const").is_some() || values.contains_key(*name))
                .peekable();
            let applies = fixed.peek().is_some()
                && fixed.all(|(name, schema)| {
                    values
                        .get(name)
                        .is_some_and(|value| schema::check(schema, value).is_empty())
                });
            if applies {
                complete(root, option, values, depth - 1);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template() -> Template {
        let object = json!({
            "apiVersion": crate::template::API_VERSION, "kind": "Template", "metadata": {"name": "t"},
            "spec": {
                "parameters": [
                    {"required": ["name"], "properties": {
                        "name": {"type": "string", "pattern": "^[a-z]+$"}, "size": {"type": "string", "default": "small", "enum": ["small", "large"]},
                        "token": {"type": "string", "ui:field": "Secret"},
                    }},
                    {"properties": {"public": {"type": "boolean", "default": false}}, "dependencies": {"public": {"oneOf": [
                        {"properties": {"public": {"const": false}}},
                        {"properties": {"public": {"const": true}, "host": {"type": "string"}, "auth": {"enum": ["key", "oidc"], "default": "key"}, "limit": {"type": "integer", "default": 10}},
                         "required": ["host"]},
                    ]}}},
                ],
                "steps": [{"action": "debug:log"}],
            },
        });
        Template::read(&object).unwrap()
    }

    fn judged(given: Value) -> Result<Answers, String> {
        let Value::Object(given) = given else {
            panic!("an object")
        };
        judge(&template(), &given)
            .map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn answers_are_completed() {
        let answers = judged(json!({"name": "web"})).unwrap();
        assert_eq!(
            Value::Object(answers.values),
            json!({"name": "web", "size": "small", "public": false})
        );
        let answers = judged(json!({"name": "web", "public": true, "host": "h"})).unwrap();
        assert_eq!(
            (&answers.values["limit"], &answers.values["auth"]),
            (&json!(10), &json!("key"))
        );
    }

    #[test]
    fn answers_are_judged() {
        for (given, expected) in [
            (json!({}), "name: an answer is required"),
            (json!({"name": "WEB"}), "name: it must match ^[a-z]+$"),
            (
                json!({"name": "web", "size": "huge"}),
                "size: it must be one of small, large",
            ),
            (
                json!({"name": "web", "public": true}),
                "host: an answer is required",
            ),
            (
                json!({"name": "x".repeat(300_000)}),
                "the answers are larger than 256 KiB",
            ),
        ] {
            assert_eq!(judged(given).unwrap_err(), expected);
        }
    }

    #[test]
    fn secrets_are_kept_apart() {
        let answers = judged(json!({"name": "web", "token": "s3cret"})).unwrap();
        assert_eq!(answers.secrets.get("token").map(String::as_str), Some("s3cret"));
        assert!(!Value::Object(answers.values).to_string().contains("s3cret"));
        assert_eq!(questions(&template()).len(), 7);
    }
}
