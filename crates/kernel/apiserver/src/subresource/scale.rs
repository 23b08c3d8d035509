//! `scale`: the number of replicas, read and written without knowing the kind.

use fairway_kernel_kinds::scale as workload;
use serde_json::{Value, json};

use super::other;
use crate::http::body::{self, BodyFormat};
use crate::query::WriteOptions;
use crate::rest::call::{Answer, Call, meta};
use crate::rest::present;
use crate::rest::{patch_error, write_update};
use crate::status::ApiError;

fn view(call: &Call<'_>, object: &Value) -> Result<Value, ApiError> {
    match call.def.custom() {
        Some(custom) => custom.scale(object),
        None => Ok(workload::get(&call.def.resource, object)),
    }
}

/// The scale of the object that the URL names.
pub(super) async fn get(call: &Call<'_>) -> Answer {
    let object = call.existing(&call.path.name).await?;
    let object = present::value(&call.def, &object)?;
    other(call, 200, &view(call, &object)?)
}

/// Sets the number of replicas from a whole `Scale`.
pub(super) async fn update(call: &Call<'_>, body: &[u8]) -> Answer {
    let wanted = call.parse_body(body)?.value;
    change(call, &mut |_| Ok(wanted.clone())).await
}

/// Sets the number of replicas by a patch of the `Scale`.
pub(super) async fn patch(call: &Call<'_>, body: &[u8]) -> Answer {
    let kind = body::media_type(call.headers).to_owned();
    let format = if kind == "application/apply-patch+yaml" {
        BodyFormat::Yaml
    } else {
        BodyFormat::Json
    };
    let patch = body::parse(body, format)?.value;
    change(call, &mut |scale| {
        let scale = scale.clone();
        match kind.as_str() {
            "application/json-patch+json" => fairway_kernel_apply::patch::json_patch(scale, &patch),
            // A Scale has neither lists nor directives, so the three merging kinds do the same to it.
            _ => fairway_kernel_apply::patch::merge_patch(scale, patch.clone()),
        }
        .map_err(patch_error)
    })
    .await
}

async fn change(call: &Call<'_>, wish: &mut (dyn FnMut(&Value) -> Result<Value, ApiError> + Send)) -> Answer {
    let options = WriteOptions::read(call.query)?;
    let mut apply = |old: &Value| {
        let before = view(call, old)?;
        let scale = wish(&before)?;
        if !matches!(scale["spec"], Value::Null | Value::Object(_)) {
            return Err(ApiError::bad_request("spec of a Scale must be an object"));
        }
        let replicas = &scale["spec"]["replicas"];
        let replicas = match replicas {
            Value::Null => 0,
            number => number
                .as_i64()
                .filter(|n| i32::try_from(*n).is_ok())
                .ok_or_else(|| {
                    ApiError::bad_request("spec.replicas of a Scale must be a whole number of 32 bits")
                })?,
        };
        if replicas < 0 {
            return Err(ApiError::invalid(
                call.about_kind(meta(old, "name")),
                &[fairway_kernel_schema::field::FieldError::invalid(
                    &fairway_kernel_schema::field::Path::new("spec").child("replicas"),
                    replicas,
                    "must be greater than or equal to 0",
                )],
            ));
        }
        let mut new = old.clone();
        match call.def.custom() {
            Some(custom) => custom.set_replicas(&mut new, replicas)?,
            None => new["spec"]["replicas"] = replicas.into(),
        }
        let wanted = meta(&scale, "resourceVersion");
        if !wanted.is_empty() {
            new["metadata"]["resourceVersion"] = json!(wanted);
        }
        Ok(new)
    };
    let written = write_update(call, &options, &call.path.name, &mut apply).await?;
    other(call, 200, &view(call, &written)?)
}
