//! Whether an object is of the kind that the URL names, in upstream's words where it is not.

use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::Value;

use super::call::Call;
use crate::registry::{Registry, ResourceDef};
use crate::status::ApiError;

/// Makes sure that the object is of the kind that the URL names, and says so itself.
pub(crate) fn check_kind(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    let def = &call.def;
    let expected = def.api_version();
    if object.is_null() {
        *object = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body of the request must be an object"));
    };
    let given = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
    let (version, kind) = (given("apiVersion"), given("kind"));
    if def.custom().is_none()
        && ((!version.is_empty() && version != expected) || (!kind.is_empty() && kind != def.kind))
    {
        return Err(other_kind(
            &call.kernel.apis.of(call.cluster),
            def,
            &version,
            &kind,
        ));
    }
    if def.custom().is_some() {
        let name = fields
            .get("metadata")
            .and_then(|m| m.get("name"))
            .and_then(Value::as_str)
            .unwrap_or("");
        check_custom_kind(def, &version, &kind, name)?;
    }
    if version.is_empty() || kind.is_empty() {
        let mut complete = serde_json::Map::with_capacity(fields.len() + 2);
        complete.insert("apiVersion".to_owned(), expected.into());
        complete.insert("kind".to_owned(), def.kind.as_str().into());
        for (name, value) in std::mem::take(fields) {
            complete.entry(name).or_insert(value);
        }
        *fields = complete;
    }
    Ok(())
}

/// What upstream's decoder says of an object of another kind.
fn other_kind(registry: &Registry, def: &ResourceDef, version: &str, kind: &str) -> ApiError {
    let own = def.api_version();
    let version = if version.is_empty() { &own } else { version };
    let kind = if kind.is_empty() { &def.kind } else { kind };
    let (group, short) = version.rsplit_once('/').unwrap_or(("", version));
    let known = |kind: &str| {
        registry
            .find_kind(group, short, kind)
            .is_some_and(|found| found.custom().is_none())
    };
    let registered = known(kind)
        || kind
            .strip_suffix("List")
            .is_some_and(|item| item.is_empty() || known(item));
    let why = if registered {
        let package = def
            .group
            .split('.')
            .next()
            .filter(|p| !p.is_empty())
            .unwrap_or("core");
        format!(
            "converting ({short}.{kind}) to ({package}.{}): unknown conversion",
            def.kind
        )
    } else {
        not_registered(kind, version)
    };
    ApiError::bad_request(format!(
        "{kind} in version {short:?} cannot be handled as a {}: {why}",
        def.kind
    ))
}

/// What upstream says of kinds that it does not have, down to the place in its source.
pub(crate) fn not_registered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// Custom objects say what they are.
fn check_custom_kind(def: &ResourceDef, version: &str, kind: &str, name: &str) -> Result<(), ApiError> {
    let expected = def.api_version();
    if !version.is_empty() && version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != def.kind {
        let errors = [FieldError::invalid(
            &Path::new("kind"),
            kind,
            format!("must be {}", def.kind),
        )];
        let about = crate::status::About {
            group: &def.group,
            resource: kind,
            name,
        };
        return Err(ApiError::invalid(about, &errors));
    }
    Ok(())
}
