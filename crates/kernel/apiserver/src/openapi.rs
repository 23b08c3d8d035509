//! `/openapi/v3`: the index with its hashes, and one document per group-version, made when somebody asks.
//!
//! Documents of built-in groups never change while the server runs; their hashes are kept, the documents are not. A
//! custom group's hash comes from its CRDs' revisions, so the index costs no document either.

pub(crate) mod v2;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG, VARY};
use serde_json::{Map, Value, json};

use crate::api_services::ApiServices;
use crate::discovery::group_versions;
use crate::http::respond;
use crate::kernel::Kernel;
use crate::registry::{Nature, Registry};
use crate::rest::call::Answer;
use crate::service::Admitted;
use crate::status::ApiError;

/// A short hash, as it stands in URLs and tags.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .take(16)
        .map(|b| format!("{b:02X}"))
        .collect()
}

/// Answers a path below `/openapi/v3`.
pub(crate) fn answer(kernel: &Kernel, path: &str, request: &Admitted<'_>) -> Answer {
    let registry = Arc::clone(&request.registry);
    let services = kernel.api_services.load_full();
    let Some(name) = path.strip_prefix("/openapi/v3/") else {
        let mut paths = Map::new();
        for (group, versions) in group_versions(&registry, &services) {
            for version in versions {
                let name = document_name(&group, &version);
                let hash = document_hash(&registry, &services, &group, &version);
                paths.insert(
                    name.clone(),
                    json!({"serverRelativeURL": format!("/openapi/v3/{name}?hash={hash}")}),
                );
            }
        }
        return Ok(respond::value(
            200,
            request.accept.format,
            &json!({ "paths": paths }),
        ));
    };
    let (group, version) = match name.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => (String::new(), (*version).to_owned()),
        ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return Err(ApiError::page_not_found()),
    };
    if !registry.serves(&group, &version) && services.of(&group, &version).next().is_none() {
        return Err(ApiError::page_not_found());
    }
    let current = document_hash(&registry, &services, &group, &version);
    let etag = format!("\"{current}\"");
    let headers = &request.parts.headers;
    if headers
        .get(http::header::IF_NONE_MATCH)
        .and_then(|v| v.to_str().ok())
        == Some(etag.as_str())
    {
        return Ok(respond::json_bytes(304, Bytes::new()));
    }
    let body = document(kernel, &registry, &services, &group, &version)?;
    let mut response = respond::json_bytes(200, body);
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    if request.query.get("hash") == Some(current.as_str()) {
        // Under its hash a document never changes.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    Ok(response)
}

fn document_name(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn is_builtin(registry: &Registry, group: &str, version: &str) -> bool {
    registry
        .iter()
        .any(|d| d.group == group && d.version == version && matches!(d.nature, Nature::BuiltIn { .. }))
}

fn document_hash(registry: &Registry, services: &ApiServices, group: &str, version: &str) -> String {
    let name = document_name(group, version);
    let served = services.state(group, version);
    if is_builtin(registry, group, version) {
        // The built-in documents are a function of this program.
        let built_in = fairway_kernel_schema::openapi::v3_hash(group, version);
        return if served.is_empty() {
            built_in
        } else {
            hash(format!("{built_in}{served}").as_bytes())
        };
    }
    let mut state = name + &served;
    for def in registry
        .iter()
        .filter(|d| d.group == group && d.version == version)
    {
        if let Nature::Custom(custom) = &def.nature {
            state.push_str(&format!(";{}@{:x}", def.resource, custom.fingerprint));
        }
    }
    hash(state.as_bytes())
}

fn document(
    kernel: &Kernel,
    registry: &Registry,
    services: &ApiServices,
    group: &str,
    version: &str,
) -> Result<Bytes, ApiError> {
    let served = services.of(group, version).next().is_some();
    let mut document: Value = if is_builtin(registry, group, version) {
        let built_in =
            fairway_kernel_schema::openapi::v3_document(group, version).ok_or_else(ApiError::no_such_path)?;
        if !served {
            return Ok(Bytes::from(built_in));
        }
        serde_json::from_slice(&built_in).map_err(ApiError::internal)?
    } else if registry.serves(group, version) {
        let custom = crate::custom::openapi_document(kernel, registry, group, version)?;
        if !served {
            return Ok(Bytes::from(custom));
        }
        serde_json::from_slice(&custom).map_err(ApiError::internal)?
    } else {
        let (title, version) = ("Kubernetes", crate::version::GIT_VERSION);
        json!({"openapi": "3.0.0", "info": {"title": title, "version": version}, "paths": {}})
    };
    services.add_openapi(group, version, &mut document);
    Ok(respond::encode(crate::http::negotiate::Format::Json, &document).1)
}
