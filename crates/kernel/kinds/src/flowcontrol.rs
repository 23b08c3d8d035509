//! FlowSchema and PriorityLevelConfiguration.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::read::{self, filled, flag, has, int, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_new};
use crate::{go_dump, meta, validation};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS: f64 = 60.0;
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

static PROFILE: Profile = Profile {
    status: true,
    generation: &["spec"],
    ..Profile::CLUSTER
};

fn validate_conditions(errs: &mut Errors, obj: &Value) {
    let at = At::new("status.conditions");
    let conditions = list(part(obj, "status"), "conditions");
    for (i, condition) in conditions.iter().enumerate() {
        let kind = text(condition, "type");
        let at = at.index(i);
        if conditions[..i].iter().any(|c| text(c, "type") == kind) {
            errs.duplicate(&at.field("type"), kind);
        }
        errs.require_text(&at, condition, "type");
    }
}

pub(crate) struct FlowSchema;

impl Strategy for FlowSchema {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        read::set_default_number(part_mut(obj, "spec"), "matchingPrecedence", 1000);
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(obj, "status", json!({}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let precedence = int(spec, "matchingPrecedence").unwrap_or(0);
        let precedence_at = at.field("matchingPrecedence");
        if precedence <= 0 {
            errs.invalid(&precedence_at, precedence, "must be a positive value");
        }
        if precedence > PRECEDENCE_MAX {
            errs.invalid(
                &precedence_at,
                precedence,
                format!("must not be greater than {PRECEDENCE_MAX}"),
            );
        }
        if precedence == 1 && meta::name(obj) != "exempt" {
            errs.invalid(
                &precedence_at,
                precedence,
                "only the schema named 'exempt' may have matchingPrecedence 1",
            );
        }
        if let Some(method) = spec.get("distinguisherMethod")
            && !matches!(text(method, "type"), "ByNamespace" | "ByUser")
        {
            let at = at.field("distinguisherMethod");
            errs.not_supported(
                &at.field("type"),
                read::internal(method),
                &["ByNamespace", "ByUser"],
            );
        }
        let level_at = at.field("priorityLevelConfiguration");
        match text(part(spec, "priorityLevelConfiguration"), "name") {
            "" => errs.required(&level_at.field("name"), "must reference a priority level"),
            name => errs.all_invalid(
                &level_at.field("name"),
                name,
                validation::is_dns1123_subdomain(name),
            ),
        }
        let rules = at.field("rules");
        for (i, rule) in list(spec, "rules").iter().enumerate() {
            validate_rule(errs, &rules.index(i), rule);
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        validate_conditions(errs, obj);
    }
}

fn validate_rule(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    let subjects_at = at.field("subjects");
    if !filled(rule, "subjects") {
        errs.required(&subjects_at, "subjects must contain at least one value");
    }
    for (i, subject) in list(rule, "subjects").iter().enumerate() {
        validate_subject(errs, &subjects_at.index(i), subject);
    }
    if !filled(rule, "resourceRules") && !filled(rule, "nonResourceRules") {
        errs.required(
            at,
            "at least one of resourceRules and nonResourceRules has to be non-empty",
        );
    }
    let rules_at = at.field("resourceRules");
    for (i, rule) in list(rule, "resourceRules").iter().enumerate() {
        let at = rules_at.index(i);
        validate_verbs(errs, &at, rule);
        wildcard(
            errs,
            &at,
            rule,
            "apiGroups",
            "resource rules must supply at least one api group",
            "api groups",
        );
        wildcard(
            errs,
            &at,
            rule,
            "resources",
            "resource rules must supply at least one resource",
            "resources",
        );
        let namespaces_at = at.field("namespaces");
        let all = texts(rule, "namespaces").any(|n| n == "*");
        if !filled(rule, "namespaces") {
            if !flag(rule, "clusterScope") {
                errs.required(
                    &namespaces_at,
                    "resource rules that are not cluster scoped must supply at least one namespace",
                );
            }
        } else if all && list(rule, "namespaces").len() > 1 {
            errs.invalid(
                &namespaces_at,
                part(rule, "namespaces").clone(),
                "if '*' is present, must not specify other namespaces",
            );
        } else if !all {
            for (i, name) in texts(rule, "namespaces").enumerate() {
                for fault in validation::is_dns1123_label(name) {
                    let detail = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                    errs.invalid(&namespaces_at.index(i), name, detail);
                }
            }
        }
    }
    let rules_at = at.field("nonResourceRules");
    for (i, rule) in list(rule, "nonResourceRules").iter().enumerate() {
        let at = rules_at.index(i);
        validate_verbs(errs, &at, rule);
        let need = "nonResourceURLs must contain at least one value";
        wildcard(errs, &at, rule, "nonResourceURLs", need, "non-resource URLs");
        let at = at.field("nonResourceURLs");
        for (i, path) in texts(rule, "nonResourceURLs")
            .enumerate()
            .filter(|(_, p)| *p != "*")
        {
            validate_path(errs, &at.index(i), path);
        }
    }
}

fn validate_path(errs: &mut Errors, at: &At<'_>, path: &str) {
    if path.is_empty() {
        errs.invalid(at, path, "must not be empty");
    } else if !path.starts_with('/') {
        errs.invalid(at, path, "must start with slash");
    } else if path.contains(' ') {
        errs.invalid(at, path, "must not contain white-space");
    } else if path.contains("//") {
        errs.invalid(at, path, "must not contain double slash");
    } else if path.strip_suffix("/*").unwrap_or(path).contains('*') {
        errs.invalid(at, path, "wildcard can only do suffix matching");
    }
}

fn wildcard(errs: &mut Errors, at: &At<'_>, rule: &Value, key: &str, need: &str, what: &str) {
    let at = at.field(key);
    if !filled(rule, key) {
        errs.required(&at, need);
    } else if list(rule, key).len() > 1 && texts(rule, key).any(|v| v == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errs.invalid(&at, part(rule, key).clone(), detail);
    }
}

fn validate_verbs(errs: &mut Errors, at: &At<'_>, rule: &Value) {
    wildcard(
        errs,
        at,
        rule,
        "verbs",
        "verbs must contain at least one value",
        "verbs",
    );
    if !texts(rule, "verbs").any(|v| v == "*") && texts(rule, "verbs").any(|v| !VERBS.contains(&v)) {
        errs.not_supported(&at.field("verbs"), part(rule, "verbs").clone(), VERBS);
    }
}

fn validate_subject(errs: &mut Errors, at: &At<'_>, subject: &Value) {
    let kinds = [
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
        ("Group", "group"),
    ];
    let kind = text(subject, "kind");
    let Some((_, own)) = kinds.iter().find(|(name, _)| *name == kind) else {
        errs.not_supported(&at.field("kind"), kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    for (name, key) in kinds.iter().filter(|(_, key)| key != own && has(subject, key)) {
        let detail = format!("{key} is forbidden when subject kind is not '{name}'");
        errs.forbidden(&at.field(key), detail);
    }
    let own_at = at.field(own);
    let Some(named) = subject.get(*own) else {
        errs.required(
            &own_at,
            format!("{own} is required when subject kind is '{kind}'"),
        );
        return;
    };
    errs.require_text(&own_at, named, "name");
    if *own == "serviceAccount" {
        let name = text(named, "name");
        if !name.is_empty() && name != "*" {
            errs.all_invalid(
                &own_at.field("name"),
                name,
                validation::is_dns1123_subdomain(name),
            );
        }
        match text(named, "namespace") {
            "" => errs.required(
                &own_at.field("namespace"),
                "must specify namespace for service account",
            ),
            name => errs.all_invalid(
                &own_at.field("namespace"),
                name,
                validation::is_dns1123_label(name),
            ),
        }
    }
}

pub(crate) struct PriorityLevel;

impl Strategy for PriorityLevel {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        if let Some(exempt) = spec.get_mut("exempt") {
            read::set_default(exempt, "nominalConcurrencyShares", 0);
            read::set_default(exempt, "lendablePercent", 0);
        }
        if let Some(limited) = spec.get_mut("limited") {
            read::set_default(limited, "nominalConcurrencyShares", 30);
            read::set_default(limited, "lendablePercent", 0);
            if let Some(queuing) = limited
                .get_mut("limitResponse")
                .and_then(|r| r.get_mut("queuing"))
            {
                read::set_default_number(queuing, "handSize", 8);
                read::set_default_number(queuing, "queues", 64);
                read::set_default_number(queuing, "queueLengthLimit", 50);
            }
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        prepare_new(&PROFILE, obj);
        read::set(obj, "status", json!({}));
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let kind = text(spec, "type");
        validate_mandatory(errs, &at, meta::name(obj), spec);
        if (meta::name(obj) == "exempt") != (kind == "Exempt") {
            errs.invalid(
                &at.field("type"),
                kind,
                "must be 'Exempt' if and only if `name` is 'exempt'",
            );
        }
        match kind {
            "Exempt" => {
                if has(spec, "limited") {
                    errs.forbidden(&at.field("limited"), "must be nil if the type is not Limited");
                }
                validate_shares(errs, &at.field("exempt"), part(spec, "exempt"));
            }
            "Limited" => {
                if has(spec, "exempt") {
                    errs.forbidden(&at.field("exempt"), "must be nil if the type is Limited");
                }
                match spec.get("limited") {
                    None => errs.required(&at.field("limited"), "must not be empty when type is Limited"),
                    Some(limited) => validate_limited(errs, &at.field("limited"), limited),
                }
            }
            _ => errs.required_one_of(&at.field("type"), kind, &["Exempt", "Limited"]),
        }
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: &Value, errs: &mut Errors) {
        validate_conditions(errs, obj);
    }
}

fn validate_shares(errs: &mut Errors, at: &At<'_>, level: &Value) {
    if let Some(shares) = int(level, "nominalConcurrencyShares").filter(|s| *s < 0) {
        errs.invalid(
            &at.field("nominalConcurrencyShares"),
            shares,
            "must be a non-negative integer",
        );
    }
    if let Some(percent) = int(level, "lendablePercent").filter(|p| !(0..=100).contains(p)) {
        errs.invalid(
            &at.field("lendablePercent"),
            percent,
            validation::in_range(0, 100),
        );
    }
}

fn validate_limited(errs: &mut Errors, at: &At<'_>, limited: &Value) {
    validate_shares(errs, at, limited);
    if let Some(percent) = int(limited, "borrowingLimitPercent").filter(|p| *p < 0) {
        errs.invalid(
            &at.field("borrowingLimitPercent"),
            percent,
            "if specified, must be a non-negative integer",
        );
    }
    let response = part(limited, "limitResponse");
    let at = at.field("limitResponse");
    let queuing_at = at.field("queuing");
    match (text(response, "type"), response.get("queuing")) {
        ("Reject", Some(_)) => {
            errs.forbidden(
                &queuing_at,
                "must be nil if limited.limitResponse.type is not Limited",
            );
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            errs.required(
                &queuing_at,
                "must not be empty if limited.limitResponse.type is Limited",
            );
        }
        ("Queue", Some(queuing)) => validate_queuing(errs, &queuing_at, queuing),
        (kind, _) => errs.required_one_of(&at.field("type"), kind, &["Queue", "Reject"]),
    }
}

fn validate_queuing(errs: &mut Errors, at: &At<'_>, queuing: &Value) {
    let of = |key: &str| int(queuing, key).unwrap_or(0);
    for key in ["queueLengthLimit", "queues", "handSize"] {
        if of(key) <= 0 {
            errs.invalid(&at.field(key), of(key), "must be positive");
        }
    }
    let (queues, hand) = (of("queues"), of("handSize"));
    if queues > QUEUES_MAX {
        errs.invalid(
            &at.field("queues"),
            queues,
            format!("must not be greater than {QUEUES_MAX}"),
        );
    }
    if hand > 0 && hand > queues {
        errs.invalid(
            &at.field("handSize"),
            hand,
            format!("should not be greater than queues ({queues})"),
        );
    } else if hand > 0 {
        // Dealing a hand of distinct queues takes as many bits as there are hands. The sum passes the limit after at
        // most sixty terms of a bit each.
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        let bits: f64 = (0..hand.min(QUEUES_MAX))
            .map(|dealt| ((queues - dealt).max(1) as f64).log2())
            .scan(0.0, |sum, bit| {
                (*sum <= HASH_BITS).then(|| {
                    *sum += bit;
                    *sum
                })
            })
            .last()
            .unwrap_or(0.0);
        if bits.ceil() > HASH_BITS {
            errs.invalid(
                &at.field("handSize"),
                hand,
                format!(
                    "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
                ),
            );
        }
    }
}

/// The two levels that every server has stay as they are; only the shares of `exempt` may be set.
fn validate_mandatory(errs: &mut Errors, at: &At<'_>, name: &str, spec: &Value) {
    let mut have = spec.clone();
    let (fixed, but) = match name {
        "exempt" => {
            read::unset(&mut have, "exempt");
            (json!({"type": "Exempt"}), " except the 'spec.exempt' field")
        }
        "catch-all" => {
            let limited = json!({
                "nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0,
            });
            (json!({"type": "Limited", "limited": limited}), "")
        }
        _ => return,
    };
    if !read::same(Some(&have), Some(&fixed)) {
        errs.invalid(
            at,
            go_dump::dump("PriorityLevelConfigurationSpec", spec),
            format!("spec of '{name}'{but} must equal the fixed value"),
        );
    }
}
