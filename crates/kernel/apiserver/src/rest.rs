//! The verbs of a resource, each in its own file, all on the same [`call::Call`].

pub(crate) mod call;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod get;
mod kind_check;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod present;
mod strict;
pub(crate) mod update;
pub(crate) mod watch;
mod write;

use serde_json::Value;

pub(crate) use kind_check::check_kind;
pub(crate) use patch::{apply_error, apply_manager, patch_error};

use crate::query::WriteOptions;
use crate::status::ApiError;
use call::Call;

/// Changes an object on behalf of a subresource, and returns it as it is afterwards. `owned`: the change has recorded
/// who owns what itself.
pub(crate) async fn write_update(
    call: &Call<'_>,
    options: &WriteOptions,
    name: &str,
    change: &mut (dyn FnMut(&Value) -> Result<Value, ApiError> + Send),
    owned: bool,
) -> Result<Value, ApiError> {
    let update = write::Update {
        name,
        change,
        owned,
        conditional: false,
    };
    match write::update(call, options, update).await? {
        write::Written::Created(object)
        | write::Written::Updated(object)
        | write::Written::Deleted(object) => present::value(&call.def, &object),
        write::Written::DryRun { object, .. } => Ok(object),
    }
}
