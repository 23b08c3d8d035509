//! `/openapi/v2`: one document for everything, as JSON or as protocol buffers.
//!
//! It is made when somebody asks and then forgotten. Clients keep it by its tag, which follows from this program's version
//! and the revisions of the CRDs, so asking whether it is still the same costs no document.

use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_schema::openapi::{V2Form, v2_hash};
use http::header::{ACCEPT, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use crate::http::gzip;
use crate::http::negotiate::takes_gzip;
use crate::http::respond;
use crate::kernel::Kernel;
use crate::registry::{Nature, Registry};
use crate::rest::call::Answer;
use crate::service::Admitted;
use crate::status::ApiError;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name that clients still ask by; `@` should not be in a media type.
const PROTOBUF_BEFORE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// A document takes megabytes and tens of milliseconds while it is made; one at a time is enough, however many ask.
static MAKING: Semaphore = Semaphore::const_new(1);

/// Answers `/openapi/v2`.
pub(crate) async fn answer(kernel: &Arc<Kernel>, request: &Admitted<'_>) -> Answer {
    let headers = &request.parts.headers;
    let (form, content_type) =
        accepted(headers).ok_or_else(|| ApiError::not_acceptable(&[JSON, PROTOBUF].join(", ")))?;
    let registry = Arc::clone(&request.registry);
    let services = kernel.api_services.load_full();
    let state = state(&registry) + &services.whole_state();
    let etag = format!("\"{}\"", v2_hash(&state));
    let content_type = HeaderValue::from_static(content_type);
    if is_known(headers, &etag) {
        return Ok(tagged(respond::bytes(304, content_type, Bytes::new()), &etag));
    }
    let compressed = takes_gzip(headers);
    let _turn = MAKING.acquire().await.map_err(ApiError::internal)?;
    let making = Arc::clone(kernel);
    let body = tokio::task::spawn_blocking(move || {
        let document = crate::custom::openapi_v2_document(&making, &registry, form)?;
        Ok::<_, ApiError>(if compressed {
            gzip::once(&document)
        } else {
            document
        })
    })
    .await
    .map_err(ApiError::internal)??;
    let mut response = respond::bytes(200, content_type, Bytes::from(body));
    if compressed {
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(tagged(response, &etag))
}

fn tagged<B>(mut response: http::Response<B>, etag: &str) -> http::Response<B> {
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, etag);
    }
    response
}

/// The CRDs that the document shows, and their revisions.
fn state(registry: &Registry) -> String {
    let mut state = String::new();
    for def in registry.iter() {
        if let Nature::Custom(custom) = &def.nature {
            let (group, version, resource) = (&def.group, &def.version, &def.resource);
            state.push_str(&format!("{group}/{version}/{resource}@{};", custom.schema_since));
        }
    }
    state
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    known
        .split(',')
        .any(|tag| tag.trim().trim_start_matches("W/") == etag)
}

/// The first form that the client takes, and how it is named.
fn accepted(headers: &HeaderMap) -> Option<(V2Form, &'static str)> {
    let accept = match headers.get(ACCEPT) {
        Some(value) => value.to_str().ok()?,
        None => "*/*",
    };
    let mut clauses: Vec<(&str, f32)> = accept.split(',').map(clause).collect();
    // The sort is stable: among equals, what stands first is preferred.
    clauses.sort_by(|a, b| b.1.total_cmp(&a.1));
    clauses.into_iter().find_map(|(media, quality)| match media {
        _ if quality <= 0.0 => None,
        "*/*" | "application/*" | JSON => Some((V2Form::Json, JSON)),
        PROTOBUF | PROTOBUF_BEFORE => Some((V2Form::Protobuf, PROTOBUF)),
        _ => None,
    })
}

fn clause(text: &str) -> (&str, f32) {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let quality = parts
        .find_map(|p| p.strip_prefix("q="))
        .and_then(|q| q.parse().ok());
    (media, quality.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: Option<&str>) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(ACCEPT, accept.parse().unwrap());
        }
        accepted(&headers).map(|(_, content_type)| content_type)
    }

    #[test]
    fn the_best_form_that_the_client_takes() {
        assert_eq!(check(None), Some(JSON));
        assert_eq!(check(Some("*/*")), Some(JSON));
        assert_eq!(check(Some(PROTOBUF_BEFORE)), Some(PROTOBUF));
        assert_eq!(check(Some(PROTOBUF)), Some(PROTOBUF));
        assert_eq!(
            check(Some(
                "application/json;q=0.5, application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            )),
            Some(PROTOBUF)
        );
        assert_eq!(check(Some("image/png, application/json")), Some(JSON));
        assert_eq!(check(Some("application/json;q=0")), None);
        assert_eq!(check(Some("image/png")), None);
    }

    #[test]
    fn a_client_that_has_the_document_need_not_get_it_again() {
        let check = |header: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, header.parse().unwrap());
            is_known(&headers, "\"AB\"")
        };
        assert!(check("\"AB\"") && check("W/\"AB\"") && check("\"CD\", \"AB\""));
        assert!(!check("\"CD\"") && !check("AB") && !is_known(&HeaderMap::new(), "\"AB\""));
    }
}
