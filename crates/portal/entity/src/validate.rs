//! Whether an entity may enter the catalog: envelope, formats of fields, the kind's own rules, in upstream's order and words.

use serde_json::Value;

use crate::model::{missing, model_of, spec_problem, wrong_type};
use crate::names::Form;
use crate::reference::EntityRef;
use crate::relations;

const MORE: &str = "To learn more about catalog file format, visit: https://github.com/backstage/backstage/blob/master/docs/architecture-decisions/adr002-default-catalog-file-format.md";
/// The largest entity, as JSON. Objects of the API have a limit of 1.5 MB, and metadata need room.
pub const MAX_ENTITY: usize = 1_000_000;
const ROOT_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// Why an entity is refused: the name of upstream's error and its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// `InputError`, `TypeError` or `Error`.
    pub name: &'static str,
    /// What is wrong.
    pub message: String,
}

fn refuse<T>(name: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    let message = message.into();
    Err(Refusal { name, message })
}

/// Whether a document is an entity at all.
pub fn envelope(entity: &Value) -> Result<EntityRef, Refusal> {
    let problem = envelope_problem(entity);
    if let Some(problem) = problem {
        return refuse("TypeError", format!("Malformed envelope, {problem}"));
    }
    match EntityRef::of(entity) {
        Some(reference) => Ok(reference),
        None => refuse("TypeError", "Malformed envelope"),
    }
}

fn envelope_problem(entity: &Value) -> Option<String> {
    let Some(fields) = entity.as_object() else {
        return Some(wrong_type("<root>", "object"));
    };
    for name in ["apiVersion", "kind", "metadata"] {
        match fields.get(name) {
            None => return Some(missing("<root>", name)),
            Some(Value::String(text)) if name != "metadata" => {
                if text.is_empty() {
                    return Some(format!(
                        "/{name} must NOT have fewer than 1 characters - limit: 1"
                    ));
                }
            }
            Some(Value::Object(metadata)) if name == "metadata" => {
                return metadata_problem(metadata);
            }
            Some(_) if name == "metadata" => return Some(wrong_type("/metadata", "object")),
            Some(_) => return Some(wrong_type(&format!("/{name}"), "string")),
        }
    }
    None
}

fn metadata_problem(metadata: &serde_json::Map<String, Value>) -> Option<String> {
    if !metadata.contains_key("name") {
        return Some(missing("/metadata", "name"));
    }
    for name in ["name", "namespace", "title", "description"] {
        let may_be_empty = name == "description";
        match metadata.get(name) {
            Some(Value::String(text)) if text.is_empty() && !may_be_empty => {
                return Some(format!(
                    "/metadata/{name} must NOT have fewer than 1 characters - limit: 1"
                ));
            }
            None | Some(Value::String(_)) => {}
            Some(_) => return Some(wrong_type(&format!("/metadata/{name}"), "string")),
        }
    }
    for name in ["labels", "annotations"] {
        match metadata.get(name) {
            None => {}
            Some(Value::Object(map)) => {
                if let Some((key, _)) = map.iter().find(|(_, value)| !value.is_string()) {
                    // As a JSON pointer, in which slashes are escaped.
                    let key = key.replace('~', "~0").replace('/', "~1");
                    return Some(wrong_type(&format!("/metadata/{name}/{key}"), "string"));
                }
            }
            Some(_) => return Some(wrong_type(&format!("/metadata/{name}"), "object")),
        }
    }
    for name in ["tags", "links"] {
        if metadata.get(name).is_some_and(|value| !value.is_array()) {
            return Some(wrong_type(&format!("/metadata/{name}"), "array"));
        }
    }
    None
}

/// Judges a whole entity.
pub fn validate(entity: &Value) -> Result<EntityRef, Refusal> {
    let reference = envelope(entity)?;
    policies(entity, &reference)?;
    let Some(model) = model_of(entity) else {
        return refuse(
            "InputError",
            format!(
                "No processor recognized the entity {reference} as valid, possibly caused by a foreign kind or apiVersion"
            ),
        );
    };
    if let Some(problem) = spec_problem(model, entity) {
        return refuse(
            "InputError",
            format!(
                "Processor BuiltinKindsEntityProcessor threw an error while validating the entity {reference}; caused by \
                 TypeError: {problem}"
            ),
        );
    }
    if let Err(error) = relations::emitted(entity) {
        return refuse(
            "InputError",
            format!(
                "Processor BuiltinKindsEntityProcessor threw an error while postprocessing; caused by Error: {error}"
            ),
        );
    }
    let size = entity.to_string().len();
    if size > MAX_ENTITY {
        return refuse(
            "InputError",
            format!("The entity {reference} has {size} bytes, more than the limit of {MAX_ENTITY}"),
        );
    }
    Ok(reference)
}

fn policies(entity: &Value, reference: &EntityRef) -> Result<(), Refusal> {
    let problem = foreign_field(entity).or_else(|| format_problem(entity));
    match problem {
        None => Ok(()),
        Some(problem) => refuse(
            "InputError",
            format!("Policy check failed for {reference}; caused by Error: {problem}"),
        ),
    }
}

fn foreign_field(entity: &Value) -> Option<String> {
    let mut fields = entity.as_object()?.keys();
    let foreign = fields.find(|field| !ROOT_FIELDS.contains(&field.as_str()))?;
    Some(format!("Unknown field {foreign}"))
}

fn format_problem(entity: &Value) -> Option<String> {
    let metadata = &entity["metadata"];
    let one = |field: &str, value: &Value, form: Form| {
        if form.fits(value) {
            return None;
        }
        let found = match value {
            Value::String(text) => text.chars().take(200).collect(),
            other => other.to_string(),
        };
        let expected = form.expected();
        Some(format!(
            "\"{field}\" is not valid; expected {expected} but found \"{found}\". {MORE}"
        ))
    };
    let given = |field: &str, value: &Value, form: Form| match value {
        Value::Null => None,
        value => one(field, value, form),
    };
    one("apiVersion", &entity["apiVersion"], Form::ApiVersion)
        .or_else(|| one("kind", &entity["kind"], Form::Kind))
        .or_else(|| one("metadata.name", &metadata["name"], Form::ObjectName))
        .or_else(|| given("metadata.namespace", &metadata["namespace"], Form::Namespace))
        .or_else(|| {
            map(&metadata["labels"]).find_map(|(key, value)| {
                let field = format!("labels.{key}");
                one(&field, &Value::from(key.as_str()), Form::Key)
                    .or_else(|| one(&field, value, Form::LabelValue))
            })
        })
        .or_else(|| {
            map(&metadata["annotations"]).find_map(|(key, value)| {
                let field = format!("annotations.{key}");
                one(&field, &Value::from(key.as_str()), Form::Key).or_else(|| one(&field, value, Form::Text))
            })
        })
        .or_else(|| list(&metadata["tags"]).find_map(|(at, tag)| one(&format!("tags.{at}"), tag, Form::Tag)))
        .or_else(|| {
            list(&metadata["links"]).find_map(|(at, link)| {
                one(&format!("links.{at}.url"), &link["url"], Form::Url)
                    .or_else(|| given(&format!("links.{at}.title"), &link["title"], Form::NonEmpty))
                    .or_else(|| given(&format!("links.{at}.icon"), &link["icon"], Form::ObjectName))
            })
        })
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn list(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn component() -> Value {
        json!({
            "apiVersion": "backstage.io/v1alpha1", "kind": "Component",
            "metadata": {
                "name": "Web_1", "labels": {"team": "a"}, "annotations": {"a.io/b": "c d"}, "tags": ["java"],
                "links": [{"url": "https://example.com", "title": "x", "icon": "docs"}],
            },
            "spec": {"type": "service", "lifecycle": "production", "owner": "team", "dependsOn": ["resource:db"]},
        })
    }

    #[test]
    fn entities_are_judged_as_upstream_does() {
        assert_eq!(
            validate(&component()).map(|r| r.to_string()),
            Ok("component:default/web_1".to_owned())
        );
        // A change to the good one, and a part of the message that follows.
        let cases: [(&str, Value, &str); 20] = [
            (
                "/metadata/name",
                json!("a b"),
                "\"metadata.name\" is not valid; expected a string that is sequences of [a-zA-Z0-9]",
            ),
            (
                "/metadata/name",
                json!(""),
                "Malformed envelope, /metadata/name must NOT have fewer than 1 characters",
            ),
            (
                "/metadata/name",
                json!(7),
                "Malformed envelope, /metadata/name must be string - type: string",
            ),
            (
                "/metadata/namespace",
                json!("Team"),
                "\"metadata.namespace\" is not valid; expected a string that is sequences of [a-z0-9]",
            ),
            (
                "/metadata/labels",
                json!({"a b": "c"}),
                "\"labels.a b\" is not valid; expected a valid prefix and/or suffix",
            ),
            (
                "/metadata/labels",
                json!({"a": "c d"}),
                "\"labels.a\" is not valid",
            ),
            (
                "/metadata/labels",
                json!({"a/b": 1}),
                "/metadata/labels/a~1b must be string",
            ),
            (
                "/metadata/annotations",
                json!({"a": true}),
                "/metadata/annotations/a must be string",
            ),
            (
                "/metadata/annotations",
                json!([]),
                "/metadata/annotations must be object",
            ),
            ("/metadata/tags", json!(["Java"]), "\"tags.0\" is not valid"),
            ("/metadata/tags", json!("x"), "/metadata/tags must be array"),
            (
                "/metadata/links",
                json!([{"title": "x"}]),
                "\"links.0.url\" is not valid",
            ),
            (
                "/metadata/links",
                json!([{"url": "https://a.b", "icon": "a b"}]),
                "\"links.0.icon\" is not valid",
            ),
            ("/metadata", json!("x"), "/metadata must be object"),
            ("/kind", json!("Comp onent"), "\"kind\" is not valid"),
            (
                "/kind",
                json!("Pod"),
                "No processor recognized the entity pod:default/web_1 as valid",
            ),
            ("/apiVersion", json!("backstage.io/v9"), "No processor recognized"),
            (
                "/spec/owner",
                json!([]),
                "caused by TypeError: /spec/owner must be string",
            ),
            (
                "/spec/dependsOn",
                json!(["db"]),
                "Entity reference \"db\" had missing or empty kind",
            ),
            (
                "/status",
                json!({}),
                "Policy check failed for component:default/web_1; caused by Error: Unknown field status",
            ),
        ];
        for (pointer, value, expected) in cases {
            let mut entity = component();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            entity.pointer_mut(parent).unwrap()[field] = value;
            let refusal = validate(&entity).expect_err(pointer);
            assert!(refusal.message.contains(expected), "{pointer}: {refusal}");
        }
    }

    #[test]
    fn what_is_no_entity_is_told() {
        for (value, expected) in [
            (json!("x"), "<root> must be object"),
            (json!({}), "<root> must have required property 'apiVersion'"),
            (
                json!({"apiVersion": "a"}),
                "<root> must have required property 'kind'",
            ),
            (
                json!({"apiVersion": "a", "kind": "b"}),
                "<root> must have required property 'metadata'",
            ),
            (
                json!({"apiVersion": "a", "kind": "b", "metadata": {}}),
                "/metadata must have required property 'name'",
            ),
        ] {
            let refusal = envelope(&value).unwrap_err();
            assert!(refusal.message.contains(expected), "{value}: {refusal}");
        }
    }

    #[test]
    fn large_entities_are_refused() {
        let mut entity = component();
        entity["spec"]["more"] = json!("x".repeat(MAX_ENTITY));
        assert!(
            validate(&entity)
                .unwrap_err()
                .message
                .contains("more than the limit")
        );
    }
}
