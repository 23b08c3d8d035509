//! Rules: which operations on which resources a webhook or policy looks at.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::read::{self, has, list, part, text, texts};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn default(rule: &mut Value) {
    read::set_default(rule, "scope", "*");
}

fn wildcard_alone(errs: &mut Errors, at: &At<'_>, rule: &Value, key: &str, what: &str) {
    let at = at.field(key);
    if list(rule, key).is_empty() {
        errs.required(&at, "");
    } else if list(rule, key).len() > 1 && texts(rule, key).any(|v| v == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errs.invalid(&at, part(rule, key).clone(), detail);
    }
}

pub(super) fn validate(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    wildcard_alone(errs, at, rule, "operations", "operations");
    let operations = at.field("operations");
    for (i, operation) in texts(rule, "operations").enumerate() {
        errs.one_of(&operations.index(i), operation, OPERATIONS);
    }
    wildcard_alone(errs, at, rule, "apiGroups", "API groups");
    wildcard_alone(errs, at, rule, "apiVersions", "API versions");
    let versions = at.field("apiVersions");
    for (i, _) in texts(rule, "apiVersions")
        .enumerate()
        .filter(|(_, v)| v.is_empty())
    {
        errs.required(&versions.index(i), "");
    }
    validate_resources(errs, &at.field("resources"), rule);
    if has(rule, "scope") {
        errs.one_of(
            &at.field("scope"),
            text(rule, "scope"),
            &["*", "Cluster", "Namespaced"],
        );
    }
}

fn validate_resources(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    let resources: Vec<&str> = texts(rule, "resources").collect();
    if resources.is_empty() {
        errs.required(at, "");
    }
    let (mut all_subs_of, mut everywhere) = (Vec::new(), Vec::new());
    for (i, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            errs.required(&at.index(i), "");
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            continue;
        };
        if all_subs_of.contains(&name) {
            let detail = format!("if '{name}/*' is present, must not specify {resource}");
            errs.invalid(&at.index(i), *resource, detail);
        }
        if everywhere.contains(&sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {resource}");
            errs.invalid(&at.index(i), *resource, detail);
        }
        if sub == "*" {
            all_subs_of.push(name);
        }
        if name == "*" {
            everywhere.push(sub);
        }
    }
    let shown = || part(rule, "resources").clone();
    if resources.len() > 1 && resources.contains(&"*/*") {
        errs.invalid(
            at,
            shown(),
            "if '*/*' is present, must not specify other resources",
        );
    }
    // Of those without a subresource, upstream remembers the last one only.
    let plain = resources
        .iter()
        .rfind(|r| !r.contains('/'))
        .is_some_and(|r| *r != "*");
    if resources.contains(&"*") && plain {
        errs.invalid(
            at,
            shown(),
            "if '*' is present, must not specify other resources without subresources",
        );
    }
}
