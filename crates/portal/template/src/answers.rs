//! Answers to the questions of a Template: completed with defaults, judged page by page, and secrets kept apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::asking;
use crate::pages;
use crate::schema::{self, Complaint, resolved};
use crate::secret_fields;
use crate::template::Template;

/// The most that all answers may come to, as JSON.
const MAX_SIZE: usize = 256 << 10;
/// How deeply questions are followed.
const MAX_DEPTH: usize = 20;
/// How many parts of a page are looked at: references may lead to the same again and again.
const MAX_WORK: usize = 20_000;

/// Answers that are complete and good.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// What expressions see as `parameters`.
    pub values: Map<String, Value>,
    /// Answers to questions whose field is `Secret`: they are `secrets.NAME` and never among the values.
    pub secrets: BTreeMap<String, String>,
    /// Questions of pages that are not asked: whatever was given to them counts for nothing.
    pub left_out: BTreeSet<String>,
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
    let asked = pages::asked(template, given).map_err(|complaint| vec![complaint])?;
    let mut values = asked.values;
    let all = Value::Object(values.clone());
    let mut complaints: Vec<Complaint> = Vec::new();
    let shown = template.pages.iter().zip(&asked.is_shown);
    for (page, _) in shown.filter(|(_, is_shown)| **is_shown) {
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
    Ok(Answers {
        values,
        secrets,
        left_out: asked.left_out,
    })
}

/// Puts defaults where a page has no answers.
pub(crate) fn complete_page(page: &Value, values: &mut Map<String, Value>) {
    complete(page, page, values, MAX_DEPTH, &mut MAX_WORK.clone());
}

/// Names of the questions of a page, also of those that only some answers lead to.
pub(crate) fn names_of(page: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_property(page, &mut |name, _| {
        found.insert(name.to_owned());
    });
    found
}

/// Names of questions whose answers are secret, on whatever page.
pub fn secret_questions(template: &Template) -> BTreeSet<String> {
    let pages = template.pages.iter();
    pages
        .flat_map(|page| secret_fields::find(&page.schema, "").names)
        .collect()
}

/// Names of all questions, also of those that only some answers lead to.
pub fn questions(template: &Template) -> BTreeSet<String> {
    template
        .pages
        .iter()
        .flat_map(|page| names_of(&page.schema))
        .collect()
}

/// The schema of a question that says of which type an answer is, on whatever page.
pub fn question<'t>(template: &'t Template, name: &str) -> Option<&'t Value> {
    let mut found: Option<&Value> = None;
    for page in &template.pages {
        each_property(&page.schema, &mut |known, schema| {
            let says = |schema: &Value| schema.get("type").is_some();
            if known == name && found.is_none_or(|found| !says(found) && says(schema)) {
                found = Some(schema);
            }
        });
    }
    found
}

/// The questions of the first level, wherever in a page they are; what a `$ref` leads to in its place.
fn each_property<'s>(page: &'s Value, each: &mut dyn FnMut(&str, &'s Value)) {
    visit(page, page, MAX_DEPTH, &mut MAX_WORK.clone(), each);
}

fn visit<'s>(
    root: &'s Value,
    schema: &'s Value,
    depth: usize,
    work: &mut usize,
    each: &mut dyn FnMut(&str, &'s Value),
) {
    let Some(schema) = resolved(root, schema).filter(|_| depth > 0 && *work > 0) else {
        return;
    };
    *work -= 1;
    let map = |keyword: &str| {
        schema
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    for (name, property) in map("properties") {
        each(name, property);
        // What stands beside a reference says something of the question, too.
        if let Some(found) = resolved(root, property).filter(|_| property.get("$ref").is_some()) {
            each(name, found);
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let inner = schema.get(keyword).and_then(Value::as_array);
        for inner in inner.into_iter().flatten() {
            visit(root, inner, depth - 1, work, each);
        }
    }
    for keyword in ["then", "else"] {
        if let Some(inner) = schema.get(keyword) {
            visit(root, inner, depth - 1, work, each);
        }
    }
    for keyword in ["dependencies", "dependentSchemas"] {
        for (_, inner) in map(keyword) {
            visit(root, inner, depth - 1, work, each);
        }
    }
}

/// Puts defaults where nothing was answered; also those of questions that an answer leads to.
fn complete(root: &Value, schema: &Value, values: &mut Map<String, Value>, depth: usize, work: &mut usize) {
    if depth == 0 {
        return;
    }
    let Some(schema) = resolved(root, schema).filter(|_| *work > 0) else {
        return;
    };
    *work -= 1;
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let Some(property) = resolved(root, property) else {
            continue;
        };
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
            complete(root, property, &mut inner, depth - 1, work);
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
        complete(root, inner, values, depth - 1, work);
    }
    if let Some(condition) = schema.get("if") {
        let holds = schema::check_within(root, condition, &Value::Object(values.clone())).is_empty();
        if let Some(inner) = schema.get(if holds { "then" } else { "else" }) {
            complete(root, inner, values, depth - 1, work);
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
                complete(root, inner, values, depth - 1, work);
            }
        }
    }
    for keyword in ["oneOf", "anyOf"] {
        let options = schema.get(keyword).and_then(Value::as_array);
        if let Some(option) = asking::chosen(root, options.map_or(&[], Vec::as_slice), values) {
            complete(root, option, values, depth - 1, work);
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

    #[test]
    fn a_secret_within_an_answer_is_refused_since_it_would_be_kept_with_the_others() {
        let secret = json!({"type": "string", "ui:field": "Secret"});
        for (question, place) in [
            (
                json!({"type": "object", "properties": {"password": secret}}),
                "spec.parameters[1].properties.db.properties.password: only a whole answer",
            ),
            (
                json!({"type": "array", "items": {"properties": {"key": secret}}}),
                "spec.parameters[1].properties.db.items.properties.key: only a whole answer",
            ),
        ] {
            let object = json!({
                "apiVersion": crate::template::API_VERSION, "kind": "Template", "metadata": {"name": "t"},
                "spec": {"parameters": [{}, {"properties": {"db": question}}], "steps": [{"action": "debug:log"}]},
            });
            let problems = Template::read(&object).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].starts_with(place), "{problems:?}");
        }
    }
}
