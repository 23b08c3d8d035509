//! The parts of an OpenAPI operation: parameters, bodies, answers.

use serde_json::{Map, Value, json};

use super::schema_ref;
use super::schemas::{Schemas, gvk_value};
use crate::builtin::table::{Format, Gvk};

/// An operation of a path, with the method it is reached by.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Map<String, Value>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    value: Value,
}

/// Parameters of list and watch requests.
pub(super) const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
/// Parameters of requests that delete.
pub(super) const DELETE: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// Parameters of requests that write.
pub(super) const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

impl Parameter {
    /// A part of the path.
    pub(super) fn path(name: &str, description: &str) -> Self {
        let value = json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string", "uniqueItems": true},
        });
        Self {
            name: name.to_owned(),
            value,
        }
    }

    /// One of the common query parameters.
    pub(super) fn common(name: &str, schemas: &Schemas<'_>) -> Self {
        let format = match name {
            "limit" | "timeoutSeconds" | "gracePeriodSeconds" => Format::Int64,
            "allowWatchBookmarks"
            | "watch"
            | "sendInitialEvents"
            | "orphanDependents"
            | "ignoreStoreReadErrorWithClusterBreakingPotential"
            | "force" => Format::Boolean,
            _ => Format::String,
        };
        Self::query(name, format, "query", schemas)
    }

    /// A query parameter, described under `owner`.
    pub(super) fn query(name: &str, format: Format, owner: &str, schemas: &Schemas<'_>) -> Self {
        let ty = match format {
            Format::Int64 | Format::Int32 => "integer",
            Format::Boolean => "boolean",
            _ => "string",
        };
        let mut value = json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}});
        if let Some(text) = schemas.descriptions.of_field(owner, name) {
            value["description"] = text.into();
        }
        Self {
            name: name.to_owned(),
            value,
        }
    }
}

/// What distinguishes an operation from others.
pub(super) struct Identity<'a> {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: &'a str,
    /// Action and kind; discovery has none.
    pub(super) action: Option<(&'static str, Gvk<'a>)>,
}

/// The answers of an operation: status codes with their meaning, media types, and the schema of what comes.
pub(super) struct Answers<'a> {
    pub(super) codes: &'a [(&'static str, &'static str)],
    pub(super) media: &'a [&'static str],
    pub(super) schema: Value,
}

/// What a request brings: media types, the schema, and whether it must bring it.
pub(super) struct Request<'a> {
    pub(super) media: &'a [&'static str],
    pub(super) type_name: &'a str,
    pub(super) required: bool,
}

/// Puts an operation together.
pub(super) fn operation(
    identity: Identity<'_>,
    request: Option<&Request<'_>>,
    answers: &Answers<'_>,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("tags".into(), json!([identity.tag]));
    body.insert("description".into(), identity.description.into());
    body.insert("operationId".into(), identity.id.into());
    if let Some(request) = request {
        let mut value = json!({"content": content(request.media, &schema_ref(request.type_name))});
        if request.required {
            value["required"] = true.into();
        }
        body.insert("requestBody".into(), value);
    }
    let mut responses: Map<String, Value> = answers
        .codes
        .iter()
        .map(|(code, meaning)| {
            let answer = json!({"description": meaning, "content": content(answers.media, &answers.schema)});
            ((*code).to_owned(), answer)
        })
        .collect();
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    body.insert("responses".into(), responses.into());
    if let Some((action, gvk)) = identity.action {
        body.insert("x-kubernetes-action".into(), action.into());
        body.insert("x-kubernetes-group-version-kind".into(), gvk_value(gvk));
    }
    body
}

fn content(media: &[&str], schema: &Value) -> Map<String, Value> {
    media
        .iter()
        .map(|m| ((*m).to_owned(), json!({"schema": schema})))
        .collect()
}

/// The operations of one path. Parameters that all of them have stand once, beside them.
pub(super) fn path_item(mut operations: Vec<Operation>) -> Value {
    let mut shared: Vec<Parameter> = operations
        .first()
        .map(|o| o.parameters.clone())
        .unwrap_or_default();
    shared.retain(|p| operations.iter().all(|o| o.parameters.contains(p)));
    operations.sort_by_key(|o| o.method);
    let mut item = Map::new();
    for mut operation in operations {
        operation.parameters.retain(|p| !shared.contains(p));
        let parameters = values(operation.parameters);
        if !parameters.is_empty() {
            operation
                .body
                .shift_insert(3, "parameters".into(), parameters.into());
        }
        item.insert(operation.method.to_owned(), operation.body.into());
    }
    let shared = values(shared);
    if !shared.is_empty() {
        item.insert("parameters".into(), shared.into());
    }
    item.into()
}

fn values(mut parameters: Vec<Parameter>) -> Vec<Value> {
    parameters.sort_by(|a, b| a.name.cmp(&b.name));
    parameters.into_iter().map(|p| p.value).collect()
}
