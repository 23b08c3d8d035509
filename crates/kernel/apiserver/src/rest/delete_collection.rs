//! `deletecollection`: every object that a list would have found, one by one.

use bytes::Bytes;
use serde_json::{Value, json};

use super::call::{Answer, Call, meta};
use super::delete::{self, DeleteOptions};
use super::{list, present};
use crate::filter::Filter;
use crate::http::respond;
use crate::query::ListOptions;

/// Deletes what the URL and its selectors name, and answers with what that was.
pub(crate) async fn delete_collection(call: &Call<'_>, body: Bytes) -> Answer {
    let options = ListOptions::read(call.query, false)?;
    let filter = Filter::read(call, &options.label_selector, &options.field_selector)?;
    let delete_options = DeleteOptions::read(call, &body, call.query)?;
    let page = list::page(call, &options, &filter).await?;
    let mut items: Vec<Value> = Vec::with_capacity(page.objects.len());
    for object in page.objects.iter() {
        let value = present::value(&call.def, object)?;
        match delete::delete_named(call, meta(&value, "name"), &delete_options).await {
            Ok(_) => items.push(value),
            // Somebody else deleted it first: that is what was wanted.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "kind": call.def.list_kind, "apiVersion": call.def.api_version(),
        "metadata": {"resourceVersion": page.revision.to_string()}, "items": items,
    });
    Ok(respond::value(200, call.accept.format, &list))
}
