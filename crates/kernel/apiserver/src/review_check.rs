//! What is wrong with a question about rights, before it is answered.

use fairway_kernel_kinds::at::{At, Errors};
use fairway_kernel_kinds::validation;
use fairway_kernel_schema::field::FieldError;
use serde_json::{Value, json};

use crate::status::ApiError;

/// The faults of an access review, in upstream's order; none for questions of other kinds.
pub(crate) fn faults(resource: &str, review: &Value, namespace: &str) -> Vec<FieldError> {
    if !resource.ends_with("subjectaccessreviews") {
        return Vec::new();
    }
    let mut errors = Errors::new();
    let (spec, at) = (&review["spec"], At::new("spec"));
    let (resources, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    match (resources.is_object(), other.is_object()) {
        (true, true) => errors.invalid(
            &at.field("nonResourceAttributes"),
            go_non_resource(other),
            "cannot be specified in combination with resourceAttributes",
        ),
        (false, false) => errors.invalid(
            &at.field("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        _ => {}
    }
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    if resource != "selfsubjectaccessreviews"
        && spec["user"].as_str().unwrap_or("").is_empty()
        && is_empty(&spec["groups"])
    {
        errors.invalid(
            &at.field("user"),
            "",
            "at least one of user or group must be specified",
        );
    }
    if resources.is_object() {
        selectors(&mut errors, &at.field("resourceAttributes"), resources);
    }
    let named = |key: &str| {
        let metadata = &review["metadata"];
        !metadata[key].as_str().unwrap_or("").is_empty()
    };
    let local = resource == "localsubjectaccessreviews";
    if ["name", "generateName"].iter().any(|key| named(key)) || (!local && named("namespace")) {
        errors.invalid(&At::new("metadata"), review["metadata"].clone(), "must be empty");
    }
    if local {
        if resources.is_object() && resources["namespace"].as_str().unwrap_or("") != namespace {
            errors.invalid(
                &at.field("resourceAttributes").field("namespace"),
                resources["namespace"].as_str().unwrap_or(""),
                "must match metadata.namespace",
            );
        }
        if other.is_object() {
            errors.invalid(
                &at.field("nonResourceAttributes"),
                go_non_resource(other),
                "disallowed on this kind of request",
            );
        }
    }
    errors.into_vec()
}

fn go_non_resource(value: &Value) -> Value {
    let text = |field: &str| value[field].as_str().unwrap_or("").to_owned();
    json!({"Path": text("path"), "Verb": text("verb")})
}

fn selectors(errors: &mut Errors, at: &At<'_>, attributes: &Value) {
    for (name, labels) in [("fieldSelector", false), ("labelSelector", true)] {
        let selector = &attributes[name];
        if !selector.is_object() {
            continue;
        }
        let at = at.field(name);
        let raw = selector["rawSelector"].as_str().unwrap_or("");
        let requirements = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
        match (raw.is_empty(), requirements.is_empty()) {
            (false, false) => errors.invalid(
                &at.field("rawSelector"),
                raw,
                "may not specified at the same time as requirements",
            ),
            (true, true) => errors.required(
                &at.field("requirements"),
                format!(
                    "when {} is specified, requirements or rawSelector is required",
                    at.path()
                ),
            ),
            _ => {}
        }
        for (i, requirement) in requirements.iter().enumerate() {
            one_requirement(errors, &at.field("requirements").index(i), requirement, labels);
        }
    }
}

fn one_requirement(errors: &mut Errors, at: &At<'_>, requirement: &Value, labels: bool) {
    let text = |field: &str| requirement[field].as_str().unwrap_or("");
    let key = text("key");
    if !labels && key.is_empty() {
        errors.required(&at.field("key"), "must be specified");
    }
    let count = requirement["values"].as_array().map_or(0, Vec::len);
    match text("operator") {
        "In" | "NotIn" if count == 0 => errors.required(
            &at.field("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if count > 0 => errors.forbidden(
            &at.field("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        // Upstream lets unknown operators pass in labels, for versions to come.
        _ if labels => {}
        other => errors.invalid(&at.field("operator"), other, "not a valid selector operator"),
    }
    if labels {
        errors.all_invalid(&at.field("key"), key, validation::is_qualified_name(key));
        for (i, value) in requirement["values"].as_array().into_iter().flatten().enumerate() {
            let value = value.as_str().unwrap_or("");
            errors.all_invalid(
                &at.field("values").index(i),
                value,
                validation::is_label_value(value),
            );
        }
    }
}

/// What other questions cannot do without.
pub(crate) fn missing(resource: &str, spec: &Value) -> Result<(), ApiError> {
    let absent = |field: &str| spec[field].as_str().unwrap_or("").is_empty();
    match resource {
        "selfsubjectrulesreviews" if absent("namespace") => {
            Err(ApiError::bad_request("no namespace on request"))
        }
        "tokenreviews" if absent("token") => Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        )),
        _ => Ok(()),
    }
}
