//! What a node writes must be its own: upstream's NodeRestriction, for what nodes do here.

use fairway_kernel_authz::node;
use serde_json::Value;

use crate::authorize::nodes::Seen;
use crate::rest::call::{Call, meta};
use crate::status::ApiError;

/// Refuses what a node must not write, although it may write objects of the kind.
pub fn confirm(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let Some(name) = node::name_of(call.user) else {
        return Ok(());
    };
    let seen = Seen {
        kernel: call.kernel,
        cluster: call.cluster,
    };
    node::check_write(name, (&call.def.group, &call.def.resource), object, old, &seen)
        .map_err(|why| ApiError::forbidden(call.about(meta(object, "name")), why))
}
