//! What clients see of an object: in the version they asked for, whole, as a table row, or only its metadata.

mod table;

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

pub(crate) use table::Table;

use super::call::{Answer, Call};
use crate::convert;
use crate::http::body::ResponseBody;
use crate::http::negotiate::{Form, Format};
use crate::http::respond;
use crate::object::Object;
use crate::registry::ResourceDef;
use crate::status::ApiError;

/// Whether the stored bytes are what clients of this version read.
pub(crate) fn is_ready(def: &ResourceDef, object: &Object) -> bool {
    def.is_storage_version() && !def.custom().is_some_and(|c| c.predates_schema(object.revision()))
}

/// The same of many objects, which are looked at only if the answer depends on them.
pub(crate) fn are_ready(def: &ResourceDef, objects: &[Arc<Object>]) -> bool {
    def.is_storage_version()
        && def
            .custom()
            .is_none_or(|c| !objects.iter().any(|o| c.predates_schema(o.revision())))
}

/// The object in the version of the request.
pub(crate) fn value(def: &ResourceDef, object: &Object) -> Result<Value, ApiError> {
    let mut value = object.value()?;
    if !is_ready(def, object) {
        convert::to_request(def, &mut value);
    }
    Ok(value)
}

/// The object's JSON in the version of the request.
pub(crate) fn bytes(def: &ResourceDef, object: &Object) -> Result<Bytes, ApiError> {
    if is_ready(def, object) {
        return Ok(object.bytes().clone());
    }
    Ok(respond::encode(Format::Json, &value(def, object)?).1)
}

/// Only `metadata`, as metadata-only clients read it.
pub(crate) fn metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

/// Answers with a stored object.
pub(crate) fn answer(call: &Call<'_>, code: u16, object: &Arc<Object>) -> Answer {
    if call.accept.form == Form::Object && call.accept.format == Format::Json {
        return Ok(respond::json_bytes(code, bytes(&call.def, object)?));
    }
    answer_value(call, code, &value(&call.def, object)?)
}

/// Answers with an object that need not be stored (dry runs, subresources).
pub(crate) fn answer_value(call: &Call<'_>, code: u16, object: &Value) -> Answer {
    let shown = match call.accept.form {
        Form::Object => return Ok(respond::value(code, call.accept.format, object)),
        Form::Metadata => metadata(object),
        Form::Table => {
            let mut table = Table::new(call)?;
            table.add(object);
            let version = object["metadata"]["resourceVersion"].as_str().unwrap_or("");
            table.finish(&json!({ "resourceVersion": version }))
        }
    };
    Ok(respond::value(code, call.accept.format, &shown))
}

/// Answers with something that is not an object of the resource (a `Status`, a review).
pub(crate) fn answer_other(call: &Call<'_>, code: u16, value: &Value) -> Response<ResponseBody> {
    respond::value(code, call.accept.format, value)
}
