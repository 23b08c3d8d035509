//! Every pod runs as a service account, which must exist; the account gives it a token and pull secrets.

use std::time::Duration;

use fairway_kernel_kinds::pod::account::{
    DEFAULT_ACCOUNT, choose, equip, forbidden_secret, is_mirror, mirror_fault,
};
use serde_json::Value;

use super::Operation;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix};
use crate::rest::call::{Call, meta};
use crate::status::ApiError;

/// A controller makes the default account of a new namespace; a pod that comes with the namespace waits for it a little.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(150);

/// Completes a new pod by its service account.
pub async fn admit(call: &Call<'_>, operation: Operation, pod: &mut Value) -> Result<(), ApiError> {
    if operation != Operation::Create || !call.def.is("", "pods") || call.subresource().is_some() {
        return Ok(());
    }
    let forbidden = |pod: &Value, why: String| Err(ApiError::forbidden(call.about(meta(pod, "name")), why));
    if is_mirror(pod) {
        return match mirror_fault(pod) {
            Some(why) => forbidden(pod, why.to_owned()),
            None => Ok(()),
        };
    }
    let name = choose(pod);
    let Some(account) = find(call, &name).await? else {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {name:?} not found",
            call.namespace()
        );
        return forbidden(pod, why);
    };
    equip(pod, &account, &call.kernel.random.name_suffix());
    match forbidden_secret(pod, &account) {
        Some(why) => forbidden(pod, why),
        None => Ok(()),
    }
}

async fn find(call: &Call<'_>, name: &str) -> Result<Option<Value>, ApiError> {
    let prefix = KindPrefix::new("", "serviceaccounts", BUILTIN_IDENTITY);
    let accounts = call.kernel.storage.cache.kind(prefix.as_str());
    let suffix = ObjectSuffix::new(call.cluster, call.namespace(), name);
    let tries = if name == DEFAULT_ACCOUNT { TRIES } else { 1 };
    for attempt in 0..tries {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        // Another replica may have written it: look at what the store has by now.
        call.kernel.storage.cache.fresh().await?;
        if let Some(account) = accounts.get(suffix.as_str()) {
            return account.value().map(Some);
        }
    }
    Ok(None)
}
