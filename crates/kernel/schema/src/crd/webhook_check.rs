//! `spec.conversion`: the strategy, and where its webhook is.

use serde_json::Value;

use super::{list, present, text};
use crate::field::{FieldError, Path};
use fairway_kernel_scalar::names;

/// Checks the conversion; `recognized` asks for a review version that this server knows.
pub(super) fn check(conversion: &Value, recognized: bool, path: &Path, errors: &mut Vec<FieldError>) {
    let strategy = text(conversion, "strategy");
    let at = path.child("strategy");
    match strategy {
        "" => errors.push(FieldError::required(&at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported_in_order(
            &at,
            other,
            ["None", "Webhook"],
        )),
    }
    let webhook = present(conversion, "webhook").unwrap_or(&Value::Null);
    let config = present(webhook, "clientConfig");
    let config_path = path.child("webhookClientConfig");
    let versions_path = path.child("conversionReviewVersions");
    let versions = list(webhook, "conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&config_path, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, detail));
        }
        return;
    }
    match config {
        None => {
            errors.push(FieldError::required(
                &config_path,
                "required when strategy is set to Webhook",
            ));
        }
        Some(config) => match (present(config, "url"), present(config, "service")) {
            (Some(url), None) => self::url(url.as_str().unwrap_or(""), &config_path.child("url"), errors),
            (None, Some(service)) => self::service(service, &config_path.child("service"), errors),
            _ => {
                let detail = "exactly one of url or service is required";
                errors.push(FieldError::required(&config_path, detail));
            }
        },
    }
    review_versions(versions, recognized, &versions_path, errors);
}

fn url(url: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        errors.push(FieldError::invalid(path, scheme, detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or("");
    let (user, host) = authority
        .rsplit_once('@')
        .map_or((None, authority), |(u, h)| (Some(u), h));
    if host.is_empty() || scheme.is_empty() {
        errors.push(FieldError::invalid(
            path,
            "",
            format!("host must be specified{form}"),
        ));
    }
    if let Some(user) = user {
        errors.push(FieldError::invalid(
            path,
            user,
            "user information is not permitted in the URL",
        ));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(
            path,
            fragment,
            "fragments are not permitted in the URL",
        ));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(
            path,
            query,
            "query parameters are not permitted in the URL",
        ));
    }
}

fn service(service: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for field in ["name", "namespace"] {
        if text(service, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    let url_path = text(service, "path");
    let at = path.child("path");
    if url_path.is_empty() || url_path == "/" {
        return;
    }
    if url_path == "//" {
        errors.push(FieldError::invalid(&at, url_path, "segment[0] may not be empty"));
        return;
    }
    let relative = match url_path.strip_prefix('/') {
        Some(relative) => relative,
        None => {
            errors.push(FieldError::invalid(&at, url_path, "must start with a '/'"));
            let mut chars = url_path.chars();
            chars.next();
            chars.as_str()
        }
    };
    for (i, segment) in relative
        .strip_suffix('/')
        .unwrap_or(relative)
        .split('/')
        .enumerate()
    {
        if segment.is_empty() {
            let detail = format!("segment[{i}] may not be empty");
            errors.push(FieldError::invalid(&at, url_path, detail));
            continue;
        }
        for wrong in names::is_dns1123_subdomain(segment) {
            errors.push(FieldError::invalid(
                &at,
                url_path,
                format!("segment[{i}]: {wrong}"),
            ));
        }
    }
}

fn review_versions(versions: &[Value], recognized: bool, path: &Path, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut known = false;
    for (i, version) in versions.iter().enumerate() {
        let name = version.as_str().unwrap_or("");
        if versions[..i].contains(version) {
            errors.push(FieldError::invalid(&path.index(i), name, "duplicate version"));
            continue;
        }
        for wrong in names::is_dns1035_label(name) {
            errors.push(FieldError::invalid(&path.index(i), name, wrong));
        }
        known |= is_recognized(name);
    }
    if recognized && !known {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, Value::Array(versions.to_vec()), detail));
    }
}

/// Versions of ConversionReview that upstream knows.
pub(super) fn is_recognized(version: &str) -> bool {
    matches!(version, "v1" | "v1beta1")
}
