//! `create`: a new object under its own or a generated name.

use bytes::Bytes;

use super::call::{Answer, Call};
use super::write;
use crate::query::WriteOptions;

/// Stores the object in the body.
pub(crate) async fn create(call: &Call<'_>, body: Bytes) -> Answer {
    let options = WriteOptions::read("CreateOptions", call.query)?;
    let parsed = call.parse_body(&body)?;
    let object = write::decode(call, parsed, options.field_validation)?;
    write::create(call, object, &options, false).await?.answer(call)
}
