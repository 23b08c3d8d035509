//! `update`: the object in the body replaces the one that is there.

use bytes::Bytes;

use super::call::{Answer, Call, meta, metadata_mut};
use super::write::{self, Update};
use crate::authorize;
use crate::behaviour;
use crate::query::WriteOptions;
use crate::status::ApiError;

/// Replaces the object that the URL names.
pub(crate) async fn update(call: &Call<'_>, body: Bytes) -> Answer {
    let options = WriteOptions::read("UpdateOptions", call.query)?;
    let parsed = call.parse_body(&body)?;
    let mut object = write::decode(call, parsed, options.field_validation)?;
    let name = call.path.name.as_str();
    if meta(&object, "name").is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if call.current(name).await?.is_none()
        && call.subresource().is_none()
        && behaviour::allows_create_on_update(&call.def)
    {
        // PUT may create here, but only for who may create.
        authorize::require(call, "create")?;
        if meta(&object, "name") != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                meta(&object, "name")
            )));
        }
        metadata_mut(&mut object).shift_remove("resourceVersion");
        return write::create(call, object, &options, false).await?.answer(call);
    }
    let change = Update {
        name,
        change: &mut |_| Ok(object.clone()),
        owned: false,
        conditional: true,
    };
    write::update(call, &options, change).await?.answer(call)
}
