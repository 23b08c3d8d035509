//! Which questions of a page are secret, and marks of secrets where nothing would heed them.
//!
//! A secret is an answer that is taken from among the values and handed to steps as `secrets.NAME`. An answer within another one has no name
//! of its own, so that it would be kept, shown and logged with the rest: a page that marks such a one is refused.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

/// How many parts of a page are looked at.
const MAX_WORK: usize = 50_000;

/// What was found in a page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Questions whose answers are secret.
    pub(crate) names: BTreeSet<String>,
    /// What is wrong with marks that nothing would heed, each with its place.
    pub(crate) problems: Vec<String>,
}

/// What a part of a page says something of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of<'s> {
    /// All answers to the page.
    Page,
    /// The answer to one of its questions.
    Question(&'s str),
    /// A part of an answer, or an answer whose name nobody knows before.
    Inner,
}

/// Keywords whose value speaks of the same answer: a schema, a list of schemas or a map of them. Those that only judge (`if`, `not`) ask nothing.
const SAME: [&str; 7] = [
    "allOf",
    "anyOf",
    "oneOf",
    "then",
    "else",
    "dependencies",
    "dependentSchemas",
];
/// Keywords whose value speaks of parts of an answer.
const PARTS: [&str; 7] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
];
/// Of these each field is a schema.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependencies",
    "dependentSchemas",
];

struct Part<'s> {
    schema: &'s Value,
    of: Of<'s>,
    at: String,
}

/// Looks a page through. A part is looked at once for each thing that it speaks of, however often references lead to it.
pub(crate) fn find(page: &Value, at: &str) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let mut rest = vec![Part {
        schema: page,
        of: Of::Page,
        at: at.to_owned(),
    }];
    while let Some(Part {
        schema,
        of,
        at: place,
    }) = rest.pop()
    {
        if !seen.insert((std::ptr::from_ref(schema), of)) {
            continue;
        }
        if seen.len() > MAX_WORK {
            found.problems.push(format!(
                "{at}: the page has more parts than can be looked through for secrets"
            ));
            return found;
        }
        match of {
            Of::Question(name) if is_marked(schema) => {
                // The whole answer is one, whatever is in it.
                found.names.insert(name.to_owned());
                continue;
            }
            Of::Inner if is_marked(schema) => found.problems.push(format!(
                "{place}: only a whole answer to a question of the page can be a secret, and this is a part of one, which would be kept in \
                 the clear; ask for it by a question of its own"
            )),
            _ => {}
        }
        if let Some(pointer) = schema.get("$ref").and_then(Value::as_str)
            && let Some(pointer) = pointer.strip_prefix('#')
            && let Some(schema) = page.pointer(pointer)
        {
            let at = format!("{at}{}", pointer.replace('/', "."));
            rest.push(Part { schema, of, at });
        }
        let same = match of {
            Of::Page => Of::Page,
            Of::Question(_) | Of::Inner => Of::Inner,
        };
        for keyword in SAME {
            for (_, schema, at) in schemas(schema, keyword, &place) {
                rest.push(Part { schema, of: same, at });
            }
        }
        for keyword in PARTS {
            for (name, schema, at) in schemas(schema, keyword, &place) {
                let of = match (of, keyword) {
                    (Of::Page, "properties") => Of::Question(name),
                    _ => Of::Inner,
                };
                rest.push(Part { schema, of, at });
            }
        }
    }
    found.problems.sort();
    found
}

/// The schemas that a keyword holds, with their names and places.
fn schemas<'s>(schema: &'s Value, keyword: &str, place: &str) -> Vec<(&'s str, &'s Value, String)> {
    let all = match schema.get(keyword) {
        Some(Value::Object(fields)) if NAMED.contains(&keyword) => fields
            .iter()
            .map(|(name, inner)| (name.as_str(), inner, format!("{place}.{keyword}.{name}")))
            .collect(),
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            let place = |index| format!("{place}.{keyword}[{index}]");
            items.map(|(index, inner)| ("", inner, place(index))).collect()
        }
        Some(inner) => vec![("", inner, format!("{place}.{keyword}"))],
        None => Vec::new(),
    };
    all.into_iter()
        .filter(|(_, inner, _)| inner.is_object())
        .collect()
}

/// Whether a form would hide what is typed here; options of a form can be written in two ways.
fn is_marked(schema: &Value) -> bool {
    let is = |pointer: &str, word: &str| {
        let value = schema.pointer(pointer).and_then(Value::as_str);
        value.is_some_and(|value| value.eq_ignore_ascii_case(word))
    };
    is("/ui:field", "Secret")
        || is("/ui:widget", "password")
        || is("/ui:options/field", "Secret")
        || is("/ui:options/widget", "password")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(page: &Value) -> (Vec<String>, Vec<String>) {
        let found = find(page, "page");
        let place = |problem: &String| problem.split(": ").next().unwrap_or_default().to_owned();
        (
            found.names.into_iter().collect(),
            found.problems.iter().map(place).collect(),
        )
    }

    #[test]
    fn secrets_of_the_page_are_known_by_name_and_others_by_their_place() {
        let secret = json!({"type": "string", "ui:field": "Secret"});
        let cases: [(&str, Value, &[&str], &[&str]); 14] = [
            (
                "questions, wherever in the page they are",
                json!({
                    "properties": {"a": secret, "b": {"ui:widget": "password"}, "open": {"type": "string"}},
                    "allOf": [{"properties": {"c": secret}}, {"if": {}, "then": {"properties": {"d": secret}}}],
                    "dependencies": {"a": {"oneOf": [{"properties": {"e": secret}}]}, "b": ["a"]},
                    "dependentSchemas": {"a": {"properties": {"f": secret}}},
                }),
                &["a", "b", "c", "d", "e", "f"],
                &[],
            ),
            (
                "options of a form in their other place",
                json!({"properties": {"a": {"ui:options": {"widget": "password"}}, "b": {"ui:options": {"field": "Secret"}}}}),
                &["a", "b"],
                &[],
            ),
            (
                "what references lead to, also by a way",
                json!({
                    "definitions": {"s": secret, "by": {"$ref": "#/definitions/s"}, "marked": {"$ref": "#/definitions/t", "ui:field": "Secret"},
                        "t": {"type": "string"}},
                    "properties": {"a": {"$ref": "#/definitions/by"}, "b": {"$ref": "#/definitions/t", "ui:field": "Secret"},
                        "c": {"$ref": "#/definitions/marked"}, "d": {"$ref": "#/definitions/t"}},
                }),
                &["a", "b", "c"],
                &[],
            ),
            (
                "an object",
                json!({"properties": {"db": {"type": "object", "properties": {"password": secret, "user": {}}}}}),
                &[],
                &["page.properties.db.properties.password"],
            ),
            (
                "an object in an object",
                json!({"properties": {"a": {"properties": {"b": {"properties": {"c": secret}}}}}}),
                &[],
                &["page.properties.a.properties.b.properties.c"],
            ),
            (
                "a list, and a list of several kinds",
                json!({"properties": {"a": {"items": secret}, "b": {"items": [{}, secret], "additionalItems": secret},
                    "c": {"items": {"properties": {"token": secret}}}}}),
                &[],
                &[
                    "page.properties.a.items",
                    "page.properties.b.additionalItems",
                    "page.properties.b.items[1]",
                    "page.properties.c.items.properties.token",
                ],
            ),
            (
                "an answer without a name of its own",
                json!({"patternProperties": {"^x": secret}, "additionalProperties": secret}),
                &[],
                &["page.additionalProperties", "page.patternProperties.^x"],
            ),
            (
                "a branch of a question",
                json!({"properties": {"a": {"oneOf": [{"type": "null"}, secret]}}}),
                &[],
                &["page.properties.a.oneOf[1]"],
            ),
            (
                "what an answer within an object leads to",
                json!({"properties": {"a": {"properties": {"b": {}}, "dependencies": {"b": {"properties": {"c": secret}}}}}}),
                &[],
                &["page.properties.a.dependencies.b.properties.c"],
            ),
            (
                "one definition, once a question and once a part",
                json!({"definitions": {"s": secret}, "properties": {"a": {"$ref": "#/definitions/s"}, "b": {"items": {"$ref": "#/definitions/s"}}}}),
                &["a"],
                &["page.definitions.s"],
            ),
            (
                "an object that is a secret as a whole",
                json!({"properties": {"a": {"ui:field": "Secret", "properties": {"b": secret}}}}),
                &["a"],
                &[],
            ),
            (
                "definitions that nothing uses, and what only judges",
                json!({"definitions": {"s": {"properties": {"a": secret}}}, "if": {"properties": {"a": secret}}, "not": {"items": secret}}),
                &[],
                &[],
            ),
            (
                "a tree that refers to itself",
                json!({"definitions": {"node": {"properties": {"key": secret, "more": {"items": {"$ref": "#/definitions/node"}}}}},
                    "properties": {"tree": {"$ref": "#/definitions/node"}}}),
                &[],
                &["page.definitions.node.properties.key"],
            ),
            (
                "a question that has the name of a keyword",
                json!({"properties": {"items": secret, "properties": {"type": "string"}, "ui:field": {"type": "string"}}}),
                &["items"],
                &[],
            ),
        ];
        for (what, page, names, places) in cases {
            let found = found(&page);
            assert_eq!(found.0, names, "{what}");
            assert_eq!(found.1, places, "{what}");
        }
    }

    #[test]
    fn a_page_without_end_is_refused() {
        let questions = (0..300).map(|n| (n.to_string(), json!({"$ref": "#/definitions/0"})));
        let chain = (0..300).map(|n| {
            let next = json!({"$ref": format!("#/definitions/{}", n + 1)});
            (n.to_string(), next)
        });
        let page = json!({
            "properties": questions.collect::<serde_json::Map<_, _>>(), "definitions": chain.collect::<serde_json::Map<_, _>>(),
        });
        let (_, problems) = found(&page);
        assert_eq!(problems, ["page"]);
    }
}
