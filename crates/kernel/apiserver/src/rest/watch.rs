//! `watch`: what there is and what changes, as a stream of lines.
//!
//! A watch begins with the objects there are (no or zero `resourceVersion`, or `sendInitialEvents`), or with the changes
//! since a revision. Selectors turn changes into what the watcher would have seen: an object that begins to match is
//! ADDED, one that ceases to match is DELETED. A watcher that does not keep up is closed and resumes where it was.

mod stream;

use http::Response;
use http::header::{CACHE_CONTROL, HeaderValue};
use http_body_util::{BodyExt, StreamBody};

use super::call::{Answer, Call};
use super::list::{json_type, scope};
use crate::filter::Filter;
use crate::http::body::ResponseBody;
use crate::query::{ListOptions, number_fault};
use crate::selector::FieldSelector;
use crate::status::ApiError;
use stream::{Events, Source};

/// Answers with the stream of changes that the URL and its selectors name.
pub(crate) async fn watch(call: &Call<'_>) -> Answer {
    let options = ListOptions::read(call.query, true)?;
    let filter = Filter::read(call, &options.label_selector, &options.field_selector)?;
    let fields = FieldSelector::parse(&options.field_selector)?;
    if !call.path.name.is_empty() && fields.name().is_some_and(|name| name != call.path.name) {
        return Err(ApiError::bad_request(
            "fieldSelector metadata.name doesn't match requested name",
        ));
    }
    let scope = scope(call, &filter);
    let storage = &call.kernel.storage;
    let kind = storage.kind(&call.def);
    let version = options.resource_version.as_str();
    let from: u64 = if version.is_empty() {
        0
    } else {
        version.parse().map_err(|_| {
            ApiError::unforeseen(format!(
                "resourceVersion: Invalid value: {version:?}: {}",
                number_fault("ParseUint", version)
            ))
        })?
    };
    let begin_with_state = options.send_initial_events.unwrap_or(from == 0);
    let mut events = Events::new(call, filter, &options);
    if begin_with_state {
        match from {
            0 if version.is_empty() => {
                storage.cache.fresh().await?;
            }
            from => storage.cache.wait_for(from).await?,
        }
        let (listing, live) = kind.list_and_subscribe(scope, storage.cache.applied());
        events.begin_with(listing, options.send_initial_events == Some(true));
        return Ok(respond(events, Source::Live(live)));
    }
    let from = if from == 0 {
        storage.cache.fresh().await?
    } else {
        from
    };
    events.after(from);
    if let Some(subscription) = kind.subscribe(scope.clone(), from) {
        events.replay(subscription.replay);
        return Ok(respond(events, Source::Live(subscription.live)));
    }
    match storage.cache.follow_history(&kind, scope, from).await {
        Ok(history) => Ok(respond(events, Source::History(history))),
        Err(error) => {
            events.fail(&stream::watch_error(&error));
            Ok(respond(events, Source::Ended))
        }
    }
}

fn respond(events: Events, source: Source) -> Response<ResponseBody> {
    let mut response = Response::new(StreamBody::new(events.frames(source)).boxed_unsync());
    let headers = response.headers_mut();
    let (name, value) = json_type();
    headers.insert(name, value);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
