//! Names and amounts of resources: which names exist where, and what amounts they may have.

use serde_json::Value;

use crate::at::{At, Errors, NOT_NEGATIVE};
use crate::quantity::{FORMAT_ERROR, Quantity};
use crate::read::{self, entries};
use crate::validation;

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";
const KUBERNETES_DOMAIN: &str = "kubernetes.io/";

const CONTAINER: &[&str] = &["cpu", "memory", "ephemeral-storage"];
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const QUOTA: &[&str] = &[
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Huge pages of some size.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

/// A resource that Kubernetes itself knows.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(KUBERNETES_DOMAIN)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS)
        && validation::is_qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Any resource name.
pub(crate) fn validate_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    let before = errs.len();
    errs.all_invalid(at, name, validation::is_qualified_name(name));
    if errs.len() != before || name.contains('/') {
        return;
    }
    let standard = CONTAINER.contains(&name)
        || COUNTED.contains(&name)
        || QUOTA.contains(&name)
        || name == "storage"
        || is_quota_huge_page(name);
    if !standard {
        errs.invalid(at, name, "must be a standard resource type or fully qualified");
    }
}

/// The name of a resource that a container can ask for.
pub(crate) fn validate_container_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    validate_name(errs, at, name);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_page(name) {
            errs.invalid(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errs.invalid(at, name, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource that a quota can limit.
pub(crate) fn validate_quota_name(errs: &mut Errors, at: &At<'_>, name: &str) {
    validate_name(errs, at, name);
    let standard = CONTAINER.contains(&name)
        || COUNTED.contains(&name)
        || QUOTA.contains(&name)
        || is_quota_huge_page(name);
    if !name.contains('/') && !standard {
        errs.invalid(at, name, "must be a standard resource for quota");
    }
}

/// An amount that must not be negative, and whole where the resource is counted.
pub(crate) fn validate_amount(errs: &mut Errors, at: &At<'_>, name: &str, value: &Value) -> Option<Quantity> {
    let Some(quantity) = Quantity::from_value(value) else {
        errs.invalid(at, value.clone(), FORMAT_ERROR);
        return None;
    };
    if quantity.sign() < 0 {
        errs.invalid(at, quantity.canonical(), NOT_NEGATIVE);
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !quantity.is_whole() {
        errs.invalid(at, quantity.canonical(), "must be an integer");
    }
    Some(quantity)
}

/// A quantity that must not be negative.
pub(crate) fn validate_non_negative(errs: &mut Errors, at: &At<'_>, value: &Value) -> Option<Quantity> {
    let quantity = Quantity::from_value(value);
    match quantity {
        None => errs.invalid(at, value.clone(), FORMAT_ERROR),
        Some(q) if q.sign() < 0 => errs.invalid(at, q.canonical(), NOT_NEGATIVE),
        Some(_) => {}
    }
    quantity
}

/// A map of resource names to amounts, with a rule for the names.
pub(crate) fn validate_list(
    errs: &mut Errors,
    at: &At<'_>,
    obj: &Value,
    key: &str,
    name_rule: fn(&mut Errors, &At<'_>, &str),
) {
    let at = at.field(key);
    for (name, value) in entries(obj, key) {
        name_rule(errs, &at.key(name), name);
        validate_amount(errs, &at.key(name), name, value);
    }
}

/// Which names may stand in `resources` of a container or of a whole pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Container,
    Pod,
}

fn validate_level_name(errs: &mut Errors, at: &At<'_>, name: &str, level: Level) {
    match level {
        Level::Container => validate_container_name(errs, at, name),
        Level::Pod => {
            let before = errs.len();
            validate_name(errs, at, name);
            if errs.len() == before && !matches!(name, "cpu" | "memory") && !is_huge_page(name) {
                errs.not_supported(at, name, &["cpu", "hugepages-", "memory"]);
            }
        }
    }
}

fn validate_huge_page(errs: &mut Errors, at: &At<'_>, name: &str, quantity: Quantity) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else {
        return;
    };
    let divisible = Quantity::parse(size)
        .is_some_and(|page| page.sign() > 0 && page.is_whole() && quantity.is_multiple_of(page));
    if !divisible {
        let shown = quantity.canonical();
        errs.invalid(
            at,
            shown.as_str(),
            format!("{shown} is not positive integer multiple of {name}"),
        );
    }
}

/// `limits`, `requests` and `claims` of a container or pod; `claims` are the names that the pod declares.
pub(crate) fn validate_requirements(
    errs: &mut Errors,
    at: &At<'_>,
    resources: &Value,
    level: Level,
    claims: &[&str],
) {
    let (limits_at, requests_at) = (at.field("limits"), at.field("requests"));
    let (mut computes, mut huge) = (false, false);
    for (name, value) in entries(resources, "limits") {
        let at = limits_at.key(name);
        validate_level_name(errs, &at, name, level);
        if let Some(quantity) = validate_amount(errs, &at, name, value) {
            validate_huge_page(errs, &at, name, quantity);
        }
        computes |= matches!(name, "cpu" | "memory");
        huge |= is_huge_page(name);
    }
    let limits = read::part(resources, "limits");
    for (name, value) in entries(resources, "requests") {
        let at = requests_at.key(name);
        validate_level_name(errs, &at, name, level);
        let quantity = validate_amount(errs, &at, name, value);
        computes |= matches!(name, "cpu" | "memory");
        huge |= is_huge_page(name);
        let Some(quantity) = quantity else { continue };
        match limits.get(name).and_then(Quantity::from_value) {
            Some(limit) if quantity != limit && !is_overcommit_allowed(name) => errs.invalid(
                &requests_at,
                quantity.canonical(),
                format!("must be equal to {name} limit of {}", limit.canonical()),
            ),
            Some(limit) if quantity > limit => errs.invalid(
                &requests_at,
                quantity.canonical(),
                format!(
                    "must be less than or equal to {name} limit of {}",
                    limit.canonical()
                ),
            ),
            None if !is_overcommit_allowed(name) => {
                errs.required(&limits_at, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
        validate_huge_page(errs, &at, name, quantity);
    }
    if huge && !computes {
        errs.forbidden(at, "HugePages require cpu or memory");
    }
    validate_claims(errs, &at.field("claims"), read::list(resources, "claims"), claims);
}

fn validate_claims(errs: &mut Errors, at: &At<'_>, used: &[Value], declared: &[&str]) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (i, claim) in used.iter().enumerate() {
        let at = at.index(i);
        let (name, request) = (read::text(claim, "name"), read::text(claim, "request"));
        if name.is_empty() {
            errs.required(&at, "");
            continue;
        }
        if !request.is_empty() {
            errs.all_invalid(
                &at.field("request"),
                request,
                validation::is_dns1123_label(request),
            );
        }
        let clash = seen
            .iter()
            .any(|(n, r)| *n == name && (*r == request || r.is_empty() || request.is_empty()));
        if clash {
            errs.duplicate(
                &at,
                if request.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name}/{request}")
                },
            );
        }
        seen.push((name, request));
        if !declared.contains(&name) {
            let mut known = declared.to_vec();
            known.sort_unstable();
            known.dedup();
            let rest = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.join(", "))
            };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            errs.not_found_because(&at, name, detail);
        }
    }
}
