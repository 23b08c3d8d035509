//! `scale`: the number of replicas, read and written without knowing the kind.

use fairway_kernel_kinds::scale as workload;
use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::{Value, json};

use super::other;
use crate::behaviour;
use crate::http::body::{self, BodyFormat};
use crate::query::WriteOptions;
use crate::rest::call::{Answer, Call, meta};
use crate::rest::present;
use crate::rest::{apply_error, apply_manager, patch_error, write_update};
use crate::status::ApiError;

/// The scale of an object.
pub(crate) fn view(call: &Call<'_>, object: &Value) -> Result<Value, ApiError> {
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
    check_scale(call, &wanted)?;
    change(call, &mut |_| Ok(wanted.clone())).await
}

/// A whole `Scale` must be one, and of this object.
fn check_scale(call: &Call<'_>, scale: &Value) -> Result<(), ApiError> {
    let kind = scale["kind"]
        .as_str()
        .filter(|k| !k.is_empty())
        .unwrap_or("Scale");
    if kind != "Scale" {
        let version = scale["apiVersion"].as_str().unwrap_or("v1");
        let version = version.rsplit_once('/').map_or(version, |(_, version)| version);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Scale: converting ({version}.{kind}) to \
             (autoscaling.Scale): unknown conversion"
        )));
    }
    let (given, name) = (meta(scale, "name"), call.path.name.as_str());
    if !given.is_empty() && given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Sets the number of replicas by a patch of the `Scale`.
pub(super) async fn patch(call: &Call<'_>, body: &[u8]) -> Answer {
    let kind = body::media_type(call.headers).to_owned();
    if kind == "application/apply-patch+yaml" {
        return apply(call, &body::parse(body, BodyFormat::Yaml)?.value).await;
    }
    let patch = body::parse(body, BodyFormat::Json)?.value;
    change(call, &mut |scale| {
        let scale = scale.clone();
        match kind.as_str() {
            "application/json-patch+json" => fairway_kernel_apply::patch::json_patch(scale, &patch),
            // A Scale has neither lists nor directives, so both merging kinds do the same to it.
            _ => fairway_kernel_apply::patch::merge_patch(scale, patch.clone()),
        }
        .map_err(patch_error)
    })
    .await
}

async fn change(call: &Call<'_>, wish: &mut (dyn FnMut(&Value) -> Result<Value, ApiError> + Send)) -> Answer {
    let options = WriteOptions::read("UpdateOptions", call.query)?;
    let mut run = |old: &Value| {
        let scale = wish(&view(call, old)?)?;
        let mut new = old.clone();
        set_replicas(call, &mut new, replicas(call, &scale)?.unwrap_or(0))?;
        let wanted = meta(&scale, "resourceVersion");
        if !wanted.is_empty() {
            new["metadata"]["resourceVersion"] = json!(wanted);
        }
        Ok(new)
    };
    let written = write_update(call, &options, &call.path.name, &mut run, false).await?;
    other(call, 200, &view(call, &written)?)
}

/// Server-side apply: who applies a Scale owns the replicas of the object behind it, and nothing else of it.
async fn apply(call: &Call<'_>, scale: &Value) -> Answer {
    let options = WriteOptions::read("PatchOptions", call.query)?;
    let manager = apply_manager(&options)?;
    if scale["kind"] != "Scale" || scale["apiVersion"] != "autoscaling/v1" {
        return Err(ApiError::bad_request(
            "an applied Scale must have apiVersion autoscaling/v1 and kind Scale",
        ));
    }
    let wanted = replicas(call, scale)?;
    let mut run = |old: &Value| {
        let mut config = json!({
            "apiVersion": call.def.api_version(), "kind": call.def.kind,
            "metadata": {"name": call.path.name},
        });
        if let Some(replicas) = wanted {
            set_replicas(call, &mut config, replicas)?;
        }
        let mut new = behaviour::own_apply(call, Some(old), &config, manager, options.force.unwrap_or(false))
            .map_err(apply_error)?;
        behaviour::default(&call.def, &mut new);
        Ok(new)
    };
    let written = write_update(call, &options, &call.path.name, &mut run, true).await?;
    other(call, 200, &view(call, &written)?)
}

/// The replicas that a `Scale` asks for, if they are a number that can be.
fn replicas(call: &Call<'_>, scale: &Value) -> Result<Option<i64>, ApiError> {
    if !matches!(scale["spec"], Value::Null | Value::Object(_)) {
        return Err(ApiError::bad_request("spec of a Scale must be an object"));
    }
    let given = &scale["spec"]["replicas"];
    if given.is_null() {
        return Ok(None);
    }
    let replicas = given
        .as_i64()
        .filter(|n| i32::try_from(*n).is_ok())
        .ok_or_else(|| ApiError::bad_request("spec.replicas of a Scale must be a whole number of 32 bits"))?;
    if replicas < 0 && call.def.custom().is_none() {
        let path = Path::new("spec").child("replicas");
        let error = FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
        let about = crate::status::About {
            group: "autoscaling",
            resource: "Scale",
            name: &call.path.name,
        };
        return Err(ApiError::invalid(about, &[error]));
    }
    Ok(Some(replicas))
}

fn set_replicas(call: &Call<'_>, object: &mut Value, replicas: i64) -> Result<(), ApiError> {
    match call.def.custom() {
        Some(custom) => custom.set_replicas(object, replicas),
        None => {
            object["spec"]["replicas"] = replicas.into();
            Ok(())
        }
    }
}
