//! `get`: one object, every acknowledged write included.

use super::call::{Answer, Call};
use super::present;
use crate::query::number_fault;
use crate::status::ApiError;

/// Answers with the object that the URL names.
pub(crate) async fn get(call: &Call<'_>) -> Answer {
    let wanted = call.query.get("resourceVersion").unwrap_or("");
    if !wanted.is_empty() && wanted != "0" {
        let revision = wanted.parse().map_err(|_| {
            ApiError::unforeseen(format!(
                "resourceVersion: Invalid value: {wanted:?}: {}",
                number_fault("ParseUint", wanted)
            ))
        })?;
        call.kernel.storage.cache.wait_for(revision).await?;
    }
    let object = call.existing(&call.path.name).await?;
    present::answer(call, 200, &object)
}
