//! One admission webhook: name, rules, client, side effects.

use fairway_kernel_schema::field::quoted;
use serde_json::{Value, json};

use super::expressions::Expressions;
use super::{FAILURE_POLICIES, rules, validate_match_conditions};
use crate::at::{At, Errors};
use crate::read::{self, has, int, list, part, text, texts};
use crate::{selector, validation};

const REVIEW_VERSIONS: &str = "v1, v1beta1";

pub(super) fn default(hook: &mut Value, mutating: bool) {
    read::set_default(hook, "failurePolicy", "Fail");
    read::set_default(hook, "matchPolicy", "Equivalent");
    read::set_default(hook, "namespaceSelector", json!({}));
    read::set_default(hook, "objectSelector", json!({}));
    read::set_default(hook, "timeoutSeconds", 10);
    if mutating {
        read::set_default(hook, "reinvocationPolicy", "Never");
    }
    read::each_mut(hook, "rules").for_each(rules::default);
    if let Some(service) = hook.get_mut("clientConfig").and_then(|c| c.get_mut("service")) {
        read::set_default(service, "port", 443);
    }
}

pub(super) fn validate(errs: &mut Errors, at: &At<'_>, hook: &Value, mutating: bool) {
    validate_name(errs, &at.field("name"), text(hook, "name"));
    let rules_at = at.field("rules");
    for (i, rule) in list(hook, "rules").iter().enumerate() {
        rules::validate(errs, &rules_at.index(i), rule);
    }
    errs.one_of(
        &at.field("failurePolicy"),
        text(hook, "failurePolicy"),
        FAILURE_POLICIES,
    );
    errs.one_of(
        &at.field("matchPolicy"),
        text(hook, "matchPolicy"),
        &["Equivalent", "Exact"],
    );
    let effects = &["None", "NoneOnDryRun"];
    if has(hook, "sideEffects") {
        errs.one_of(&at.field("sideEffects"), text(hook, "sideEffects"), effects);
    } else {
        errs.required(
            &at.field("sideEffects"),
            format!("must specify one of {}", effects.join(", ")),
        );
    }
    if let Some(seconds) = int(hook, "timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        errs.invalid(
            &at.field("timeoutSeconds"),
            seconds,
            "the timeout value must be between 1 and 30 seconds",
        );
    }
    for key in ["namespaceSelector", "objectSelector"] {
        selector::validate(errs, &at.field(key), part(hook, key));
    }
    if mutating {
        let policy = text(hook, "reinvocationPolicy");
        errs.one_of(&at.field("reinvocationPolicy"), policy, &["IfNeeded", "Never"]);
    }
    let client = part(hook, "clientConfig");
    let client_at = at.field("clientConfig");
    match (has(client, "url"), has(client, "service")) {
        (true, false) => validate_url(errs, &client_at.field("url"), text(client, "url")),
        (false, true) => validate_service(errs, &client_at.field("service"), part(client, "service")),
        _ => errs.required(&client_at, "exactly one of url or service is required"),
    }
    validate_match_conditions(
        errs,
        &at.field("matchConditions"),
        list(hook, "matchConditions"),
        &Expressions::new(false),
    );
    validate_review_versions(errs, &at.field("admissionReviewVersions"), hook);
}

/// A domain of at least three segments.
fn validate_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    let faults = validation::is_dns1123_subdomain(name);
    if name.is_empty() {
        errs.required(at, "");
    } else if !faults.is_empty() {
        errs.invalid(at, name, faults.join(","));
    } else if name.split('.').count() < 3 {
        errs.invalid(
            at,
            name,
            "should be a domain with at least three segments separated by dots",
        );
    }
}

/// An https URL without user, query or fragment.
fn validate_url(errs: &mut Errors, at: &At<'_>, url: &str) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = match url.split_once(':') {
        Some(("", _)) => {
            let why = format!(
                "url must be a valid URL: parse {}: missing protocol scheme{FORM}",
                quoted(url)
            );
            errs.required(at, why);
            return;
        }
        Some((scheme, rest)) => (scheme, rest.strip_prefix("//").unwrap_or("")),
        None => ("", ""),
    };
    if scheme != "https" {
        errs.invalid(
            at,
            scheme,
            format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    if host.is_empty() {
        errs.invalid(at, host, format!("host must be specified{FORM}"));
    }
    if let Some((user, _)) = authority.rsplit_once('@') {
        errs.invalid(at, user, "user information is not permitted in the URL");
    }
    let (address, fragment) = url.split_once('#').unwrap_or((url, ""));
    if !fragment.is_empty() {
        errs.invalid(at, fragment, "fragments are not permitted in the URL");
    }
    if let Some((_, query)) = address.split_once('?')
        && !query.is_empty()
    {
        errs.invalid(at, query, "query parameters are not permitted in the URL");
    }
}

fn validate_service(errs: &mut Errors, at: &At<'_>, service: &Value) {
    errs.require_text(at, service, "name");
    errs.require_text(at, service, "namespace");
    let port = int(service, "port").unwrap_or(443);
    for fault in validation::is_valid_port_num(port) {
        errs.invalid(&at.field("port"), port, format!("port is not valid: {fault}"));
    }
    let Some(path) = service.get("path").and_then(Value::as_str) else {
        return;
    };
    if path.is_empty() || path == "/" {
        return;
    }
    let at = at.field("path");
    if !path.starts_with('/') {
        errs.invalid(&at, path, "must start with a '/'");
    }
    // Upstream drops the first character whatever it is.
    let mut characters = path.chars();
    characters.next();
    let steps = characters.as_str();
    for (i, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errs.invalid(&at, path, format!("segment[{i}] may not be empty"));
        } else {
            for fault in validation::is_dns1123_subdomain(step) {
                errs.invalid(&at, path, format!("segment[{i}]: {fault}"));
            }
        }
    }
}

fn validate_review_versions(errs: &mut Errors, at: &At<'_>, hook: &Value) {
    let versions: Vec<&str> = texts(hook, "admissionReviewVersions").collect();
    if versions.is_empty() {
        errs.required(at, format!("must specify one of {REVIEW_VERSIONS}"));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        if versions[..i].contains(version) {
            errs.invalid(&at.index(i), *version, "duplicate version");
        } else {
            errs.all_invalid(&at.index(i), version, validation::is_dns1035_label(version));
        }
    }
    if !versions.iter().any(|v| matches!(*v, "v1" | "v1beta1")) {
        let shown = part(hook, "admissionReviewVersions").clone();
        errs.invalid(
            at,
            shown,
            format!("must include at least one of {REVIEW_VERSIONS}"),
        );
    }
}
