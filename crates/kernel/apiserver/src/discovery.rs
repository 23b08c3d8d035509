//! `/api` and `/apis`: which groups, versions and resources there are, in the old form and the aggregated one.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::api_services::ApiServices;
use crate::http::respond;
use crate::kernel::Kernel;
use crate::registry::{Registry, ResourceDef, api_version};
use crate::rest::call::Answer;
use crate::service::Admitted;
use crate::status::ApiError;

/// Answers a path that names no resource.
pub(crate) fn answer(kernel: &Kernel, path: &str, request: &Admitted<'_>) -> Answer {
    let registry = Arc::clone(&request.registry);
    let services = kernel.api_services.load_full();
    let headers = &request.parts.headers;
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let document = match segments.as_slice() {
        [] => paths(&registry, &services),
        ["api"] if wants_aggregated(headers) => return aggregated(&registry, &services, request, true),
        ["apis"] if wants_aggregated(headers) => return aggregated(&registry, &services, request, false),
        ["api"] => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host(headers)}],
        }),
        ["apis"] => {
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(&registry, &services)})
        }
        ["api", version] => {
            resource_list(&registry, &services, "", version).ok_or_else(ApiError::no_such_path)?
        }
        ["apis", group] => groups(&registry, &services)
            .into_iter()
            .find(|g| g["name"] == *group)
            .map(|mut g| {
                let mut head = json!({"kind": "APIGroup", "apiVersion": "v1"});
                if let (Some(head), Some(rest)) = (head.as_object_mut(), g.as_object_mut()) {
                    head.append(rest);
                }
                head
            })
            .ok_or_else(ApiError::page_not_found)?,
        ["apis", group, version] => {
            resource_list(&registry, &services, group, version).ok_or_else(ApiError::no_such_path)?
        }
        ["api", ..] => return Err(ApiError::no_such_path()),
        _ => return Err(ApiError::page_not_found()),
    };
    Ok(respond::value(200, request.accept.format, &document))
}

fn host(headers: &HeaderMap) -> &str {
    headers
        .get(http::header::HOST)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("127.0.0.1:6443")
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    headers
        .get(http::header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|accept| accept.contains("as=APIGroupDiscoveryList"))
}

/// Groups in discovery order, each with its versions, best first.
pub(crate) fn group_versions(registry: &Registry, services: &ApiServices) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    for def in registry.iter() {
        let at = *place.entry(def.group.clone()).or_insert_with(|| {
            found.push((def.group.clone(), Vec::new()));
            found.len() - 1
        });
        let versions = &mut found[at].1;
        if !versions.contains(&def.version) {
            versions.push(def.version.clone());
        }
    }
    for service in services.iter() {
        let (group, version) = (&service.group, &service.version);
        let at = *place.entry(group.clone()).or_insert_with(|| {
            found.push((group.clone(), Vec::new()));
            found.len() - 1
        });
        if !found[at].1.contains(version) {
            found[at].1.push(version.clone());
        }
    }
    for (_, versions) in &mut found {
        versions.sort_by(|a, b| fairway_kernel_schema::crd::versions::compare(b, a));
    }
    found
}

fn groups(registry: &Registry, services: &ApiServices) -> Vec<Value> {
    group_versions(registry, services)
        .into_iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| {
            let all: Vec<Value> = versions
                .iter()
                .map(|v| json!({"groupVersion": api_version(&group, v), "version": v}))
                .collect();
            json!({"name": group, "versions": all, "preferredVersion": all.first()})
        })
        .collect()
}

fn paths(registry: &Registry, services: &ApiServices) -> Value {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for (group, versions) in group_versions(registry, services)
        .into_iter()
        .filter(|(g, _)| !g.is_empty())
    {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|v| format!("/apis/{group}/{v}")));
    }
    paths.sort();
    json!({ "paths": paths })
}

fn resource_list(registry: &Registry, services: &ApiServices, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for def in registry
        .iter()
        .filter(|d| d.group == group && d.version == version)
    {
        let mut entry = json!({
            "name": registry.name_of(def), "singularName": def.singular, "namespaced": def.namespaced,
            "kind": def.kind, "verbs": def.verbs,
        });
        set_list(&mut entry, "shortNames", &def.short_names);
        set_list(&mut entry, "categories", &def.categories);
        if let Some(hash) = storage_hash(def) {
            entry["storageVersionHash"] = hash.into();
        }
        resources.push(entry);
        for sub in &def.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", registry.name_of(def), sub.name), "singularName": "",
                "namespaced": def.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group.as_str(), sub.version.as_str()) != (group, version) {
                entry["group"] = sub.group.as_str().into();
                entry["version"] = sub.version.as_str().into();
            }
            resources.push(entry);
        }
    }
    resources.extend(services.legacy(group, version));
    if resources.is_empty() {
        return None;
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": api_version(group, version), "resources": resources,
    }))
}

fn storage_hash(def: &ResourceDef) -> Option<String> {
    match &def.nature {
        crate::registry::Nature::BuiltIn { info, .. } => {
            Some(info.storage_version_hash.to_owned()).filter(|h| !h.is_empty())
        }
        crate::registry::Nature::Custom(custom) => Some(custom.storage_hash.clone()),
    }
}

fn set_list(entry: &mut Value, field: &str, list: &[String]) {
    if !list.is_empty() {
        entry[field] = json!(list);
    }
}

fn aggregated(registry: &Registry, services: &ApiServices, request: &Admitted<'_>, core: bool) -> Answer {
    let items: Vec<Value> = group_versions(registry, services)
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|v| version_discovery(registry, services, &group, v))
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    let (_, body) = respond::encode(request.accept.format, &document);
    let etag = format!("\"{}\"", crate::openapi::hash(&body));
    let known = request
        .parts
        .headers
        .get(http::header::IF_NONE_MATCH)
        .and_then(|v| v.to_str().ok());
    let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut response = if known == Some(etag.as_str()) {
        respond::bytes(
            304,
            http::HeaderValue::from_static(content_type),
            bytes::Bytes::new(),
        )
    } else {
        respond::bytes(200, http::HeaderValue::from_static(content_type), body)
    };
    if let Ok(etag) = etag.parse() {
        response.headers_mut().insert(http::header::ETAG, etag);
    }
    response
        .headers_mut()
        .insert(http::header::VARY, http::HeaderValue::from_static("Accept"));
    Ok(response)
}

fn version_discovery(registry: &Registry, services: &ApiServices, group: &str, version: &str) -> Value {
    let mut resources: Vec<Value> = registry
        .iter()
        .filter(|d| d.group == group && d.version == version)
        .map(|def| {
            let mut entry = Map::new();
            entry.insert("resource".to_owned(), registry.name_of(def).into());
            entry.insert(
                "responseKind".to_owned(),
                json!({"group": def.group, "version": def.version, "kind": def.kind}),
            );
            entry.insert(
                "scope".to_owned(),
                if def.namespaced { "Namespaced" } else { "Cluster" }.into(),
            );
            entry.insert("singularResource".to_owned(), def.singular.as_str().into());
            entry.insert("verbs".to_owned(), json!(def.verbs));
            let mut entry = Value::Object(entry);
            set_list(&mut entry, "shortNames", &def.short_names);
            set_list(&mut entry, "categories", &def.categories);
            if !def.subresources.is_empty() {
                entry["subresources"] = def
                    .subresources
                    .iter()
                    .map(|s| {
                        json!({
                            "subresource": s.name, "verbs": s.verbs,
                            "responseKind": {"group": s.group, "version": s.version, "kind": s.kind},
                        })
                    })
                    .collect();
            }
            entry
        })
        .collect();
    services.aggregate(group, version, &mut resources);
    json!({"version": version, "freshness": "Current", "resources": resources})
}
