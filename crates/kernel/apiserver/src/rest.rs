//! The verbs of a resource, each in its own file, all on the same [`call::Call`].

pub mod call;
pub mod create;
pub mod delete;
pub mod delete_collection;
pub mod get;
pub mod list;
pub mod patch;
pub mod present;
pub mod update;
pub mod watch;
mod write;

use serde_json::Value;

pub(crate) use patch::patch_error;
pub(crate) use write::check_kind;

use crate::query::WriteOptions;
use crate::status::ApiError;
use call::Call;

/// Changes an object on behalf of a subresource, and returns it as it is afterwards.
pub(crate) async fn write_update(
    call: &Call<'_>,
    options: &WriteOptions,
    name: &str,
    change: &mut (dyn FnMut(&Value) -> Result<Value, ApiError> + Send),
) -> Result<Value, ApiError> {
    let update = write::Update { name, change, owned: false, conditional: false };
    match write::update(call, options, update).await? {
        write::Written::Created(object) | write::Written::Updated(object) | write::Written::Deleted(object) => {
            present::value(&call.def, &object)
        }
        write::Written::DryRun { object, .. } => Ok(object),
    }
}
