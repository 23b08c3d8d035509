//! `list`: a consistent set of objects at one revision, whole or in pages.

mod body;
mod continuation;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value, json};

pub(crate) use continuation::Continuation;

use super::call::{Answer, Call};
use super::present::{self, Table};
use crate::cache::{Listing, Scope, Sheet};
use crate::filter::Filter;
use crate::http::negotiate::{Form, Format, takes_gzip};
use crate::http::respond;
use crate::key::scope_prefix;
use crate::object::Object;
use crate::query::{ListOptions, VersionMatch, number_fault};
use crate::registry::api_version;
use crate::status::ApiError;
use crate::workspaces::EVERY_CLUSTER;

/// A page, and what its `ListMeta` says.
pub(crate) struct Page {
    /// The objects.
    pub objects: Arc<Sheet>,
    /// Their revision.
    pub revision: u64,
    /// Where the next page begins.
    pub next: Option<Continuation>,
    /// How many follow, where that is known.
    pub remaining: Option<usize>,
}

/// Answers with the objects that the URL and its selectors name.
pub(crate) async fn list(call: &Call<'_>) -> Answer {
    let options = ListOptions::read(call.query, false)?;
    let filter = Filter::read(call, &options.label_selector, &options.field_selector)?;
    let page = page(call, &options, &filter).await?;
    answer(call, page)
}

/// The scope of a list or watch: everything below the workspace or namespace, or the one object that a
/// `metadata.name` selector leaves.
pub(crate) fn scope(call: &Call<'_>, filter: &Filter) -> Scope {
    let namespace = match (&call.path.namespace, call.def.namespaced) {
        (_, false) => Some(""),
        (Some(namespace), true) => Some(namespace.as_str()),
        (None, true) => filter.fields().namespace(),
    };
    match (filter.only_name(call), namespace) {
        // Over all workspaces several objects may have the name.
        (Some(name), Some(namespace)) if call.cluster != EVERY_CLUSTER => {
            Scope::One(format!("{}/{namespace}/{name}", call.cluster).into_boxed_str())
        }
        _ => Scope::Within(scope_prefix(call.cluster, namespace).into_boxed_str()),
    }
}

/// Finds a page.
pub(crate) async fn page(call: &Call<'_>, options: &ListOptions, filter: &Filter) -> Result<Page, ApiError> {
    let scope = scope(call, filter);
    let kind = call.kernel.storage.kind(&call.def);
    let cache = &call.kernel.storage.cache;
    let (exact, after) = position(call, options).await?;
    if options.limit == 0 && exact.is_none() && after.is_none() {
        let (objects, revision) = kind.snapshot(&scope, cache.applied());
        return Ok(Page {
            objects: filter.select(&call.def, objects),
            revision,
            next: None,
            remaining: None,
        });
    }
    // With a selector, matches may be thin: read everything and cut afterwards.
    let limit = if filter.is_empty() { options.limit } else { 0 };
    let (listing, more) = match exact {
        Some(revision) => cache
            .list_at(&kind, &scope, after.as_deref(), limit, revision)
            .await
            .map_err(|error| way_on(error, after))?,
        None => {
            let (listing, more) = kind.list(&scope, after.as_deref(), limit, cache.applied());
            let more = match listing.objects.last() {
                Some((last, _)) if more => cache.count_after(&kind, &scope, last, listing.revision).await?,
                _ => 0,
            };
            (listing, more)
        }
    };
    Ok(cut(call, options, filter, listing, more))
}

/// A page whose revision is gone offers to continue with what is there now; a list that never began has nowhere to go.
fn way_on(error: ApiError, after: Option<Box<str>>) -> ApiError {
    if error.reason != "Expired" {
        return error;
    }
    let Some(after) = after else {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    };
    ApiError {
        continue_token: Some(
            Continuation {
                revision: None,
                after,
            }
            .encode(),
        ),
        ..ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of \
             the results. Continuing with the provided token results in an inconsistent list: objects that were \
             created, modified or deleted since the first page may or may not show up.",
        )
    }
}

fn cut(call: &Call<'_>, options: &ListOptions, filter: &Filter, listing: Listing, more: usize) -> Page {
    let Listing {
        mut objects,
        revision,
    } = listing;
    let mut more_matches = more > 0;
    if !filter.is_empty() {
        // Nothing behind the first object of the next page is looked at: a list of ten thousand objects in pages would look
        // at each of them many times.
        let enough = if options.limit > 0 {
            options.limit + 1
        } else {
            usize::MAX
        };
        objects = objects
            .into_iter()
            .filter(|(suffix, object)| filter.matches_key(&call.def, suffix, object))
            .take(enough)
            .collect();
        if objects.len() == enough {
            objects.truncate(options.limit);
            more_matches = true;
        }
    }
    let next = match objects.last() {
        Some((suffix, _)) if more_matches => Some(Continuation {
            revision: Some(revision),
            after: suffix.clone(),
        }),
        _ => None,
    };
    let remaining = (next.is_some() && filter.is_empty()).then_some(more);
    Page {
        objects: Arc::new(objects.into_iter().map(|(_, object)| object).collect()),
        revision,
        next,
        remaining,
    }
}

/// At which revision, and after which key, a list begins.
async fn position(
    call: &Call<'_>,
    options: &ListOptions,
) -> Result<(Option<u64>, Option<Box<str>>), ApiError> {
    let cache = &call.kernel.storage.cache;
    if !options.continue_token.is_empty() {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let from = Continuation::decode(&options.continue_token)?;
        if from.revision.is_none() {
            cache.fresh().await?;
        }
        return Ok((from.revision, Some(from.after)));
    }
    let version = options.resource_version.as_str();
    if version.is_empty() {
        cache.fresh().await?;
        return Ok((None, None));
    }
    let revision: u64 = version.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {version:?}: {}",
            number_fault("ParseUint", version)
        ))
    })?;
    // A page of a list at a revision, without a match rule, has always meant exactly that revision.
    let exact = options.version_match == Some(VersionMatch::Exact)
        || (options.version_match.is_none() && options.limit > 0 && revision > 0);
    cache.wait_for(revision).await?;
    Ok((exact.then_some(revision), None))
}

fn list_meta(page: &Page) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("resourceVersion".to_owned(), page.revision.to_string().into());
    if let Some(next) = &page.next {
        meta.insert("continue".to_owned(), next.encode().into());
        if let Some(remaining) = page.remaining.filter(|r| *r > 0) {
            meta.insert("remainingItemCount".to_owned(), remaining.into());
        }
    }
    meta
}

/// Answers with a page in the form that the client asked for.
pub(crate) fn answer(call: &Call<'_>, page: Page) -> Answer {
    let def = &call.def;
    let meta = Value::Object(list_meta(&page));
    match call.accept.form {
        Form::Object if call.accept.format == Format::Json => {
            let head = format!(
                "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{meta},\"items\":[",
                Value::from(def.list_kind.as_str()),
                Value::from(def.api_version())
            );
            let items = items(call, page.objects)?;
            let gzip = takes_gzip(call.headers).then_some(&call.kernel.gzip);
            Ok(body::response(Bytes::from(head), items, gzip))
        }
        Form::Object => {
            let mut items = values(call, &page.objects)?;
            if def.custom().is_none() {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    item.shift_remove("kind");
                    item.shift_remove("apiVersion");
                }
            }
            let list = json!({
                "kind": def.list_kind, "apiVersion": def.api_version(), "metadata": meta, "items": items,
            });
            Ok(respond::value(200, call.accept.format, &list))
        }
        Form::Metadata if call.accept.format == Format::Json => {
            let head = format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{meta},\"items\":["
            );
            let items = page
                .objects
                .iter()
                .map(|object| object.partial_metadata())
                .collect();
            let gzip = takes_gzip(call.headers).then_some(&call.kernel.gzip);
            Ok(body::response(Bytes::from(head), body::Items::Own(items), gzip))
        }
        Form::Metadata => {
            let items: Vec<Value> = values(call, &page.objects)?
                .iter()
                .map(present::metadata)
                .collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": api_version("meta.k8s.io", "v1"),
                "metadata": meta, "items": items,
            });
            Ok(respond::value(200, call.accept.format, &list))
        }
        Form::Table => {
            let mut table = Table::new(call)?;
            for object in values(call, &page.objects)? {
                table.add(&object);
            }
            Ok(respond::value(200, call.accept.format, &table.finish(&meta)))
        }
    }
}

fn values(call: &Call<'_>, objects: &[Arc<Object>]) -> Result<Vec<Value>, ApiError> {
    objects
        .iter()
        .map(|object| present::value(&call.def, object))
        .collect()
}

fn items(call: &Call<'_>, objects: Arc<Sheet>) -> Result<body::Items, ApiError> {
    if present::are_ready(&call.def, &objects) {
        return Ok(body::Items::Shared {
            objects,
            untyped: call.def.custom().is_none(),
        });
    }
    let converted: Result<Vec<Bytes>, ApiError> = objects
        .iter()
        .map(|object| present::bytes(&call.def, object))
        .collect();
    Ok(body::Items::Own(converted?))
}

/// The content type of JSON.
pub(super) fn json_type() -> (http::HeaderName, HeaderValue) {
    (CONTENT_TYPE, HeaderValue::from_static("application/json"))
}
