//! Admission webhooks and policies, and whether their expressions compile.

use fairway_text_cel::Type;
use serde_json::{Value, json};

use self::expressions::Expressions;
use crate::at::{At, Errors};
use crate::read::{self, each_mut, filled, has, list, part, part_mut, text, texts};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{meta, selector, validation};

mod expressions;
mod rules;
mod webhook;

const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_CONDITIONS_MAX: usize = 64;
const AUDIT_ANNOTATIONS_MAX: usize = 20;

static WEBHOOKS: Profile = Profile {
    generation: &["webhooks"],
    unconditional_update: false,
    ..Profile::CLUSTER
};
static POLICY: Profile = Profile {
    status: true,
    generation: &["spec"],
    unconditional_update: false,
    ..Profile::CLUSTER
};
static PLAIN_POLICY: Profile = Profile {
    generation: &["spec"],
    unconditional_update: false,
    ..Profile::CLUSTER
};

/// ValidatingWebhookConfiguration and MutatingWebhookConfiguration.
pub(crate) struct WebhookConfiguration {
    pub(crate) mutating: bool,
}

impl Strategy for WebhookConfiguration {
    fn profile(&self) -> &'static Profile {
        &WEBHOOKS
    }

    fn default(&self, obj: &mut Value) {
        for hook in each_mut(obj, "webhooks") {
            webhook::default(hook, self.mutating);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let at = At::new("webhooks");
        let hooks = list(obj, "webhooks");
        for (i, hook) in hooks.iter().enumerate() {
            let at = at.index(i);
            webhook::validate(errs, &at, hook, self.mutating);
            let name = text(hook, "name");
            if !name.is_empty() && hooks[..i].iter().any(|h| text(h, "name") == name) {
                errs.duplicate(&at.field("name"), name);
            }
        }
    }
}

fn default_match(resources: &mut Value) {
    read::set_default(resources, "matchPolicy", "Equivalent");
    read::set_default(resources, "namespaceSelector", json!({}));
    read::set_default(resources, "objectSelector", json!({}));
    for key in ["resourceRules", "excludeResourceRules"] {
        each_mut(resources, key).for_each(rules::default);
    }
}

/// Match conditions of webhooks and policies.
fn validate_match_conditions(
    errs: &mut Errors,
    at: &At<'_>,
    conditions: &[Value],
    expressions: &Expressions,
) {
    if conditions.len() > MATCH_CONDITIONS_MAX {
        errs.too_many(at, conditions.len(), MATCH_CONDITIONS_MAX);
    }
    for (i, condition) in conditions.iter().enumerate() {
        let at = at.index(i);
        let expression = text(condition, "expression");
        if expression.trim().is_empty() {
            errs.required(&at.field("expression"), "");
        } else {
            expressions.check(errs, &at.field("expression"), expression, &[Type::Bool]);
        }
        let name = text(condition, "name");
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        } else {
            errs.all_invalid(&at.field("name"), name, validation::is_qualified_name(name));
            if conditions[..i].iter().any(|c| text(c, "name") == name) {
                errs.duplicate(&at.field("name"), name);
            }
        }
    }
}

fn validate_match_resources(errs: &mut Errors, at: &At<'_>, resources: &Value) {
    errs.required_one_of(
        &at.field("matchPolicy"),
        text(resources, "matchPolicy"),
        &["Equivalent", "Exact"],
    );
    for key in ["namespaceSelector", "objectSelector"] {
        selector::validate(errs, &at.field(key), part(resources, key));
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let at = at.field(key);
        for (i, rule) in list(resources, key).iter().enumerate() {
            let at = at.index(i);
            let names_at = at.field("resourceNames");
            let names: Vec<&str> = texts(rule, "resourceNames").collect();
            for (i, name) in names.iter().enumerate() {
                errs.all_invalid(&names_at.index(i), name, validation::is_path_segment_name(name));
                if names[..i].contains(name) {
                    errs.duplicate(&names_at.index(i), *name);
                }
            }
            rules::validate(errs, &at, rule);
        }
    }
}

/// Mutations cannot follow a deletion.
fn validate_mutating_operations(errs: &mut Errors, at: &At<'_>, resources: &Value) {
    let at = at.field("resourceRules");
    let at = at.field("operations");
    for operation in list(resources, "resourceRules")
        .iter()
        .flat_map(|rule| texts(rule, "operations"))
    {
        errs.one_of(&at, operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}

fn validate_param_kind(errs: &mut Errors, at: &At<'_>, kind: &Value) {
    let api_version = text(kind, "apiVersion");
    let version_at = at.field("apiVersion");
    if api_version.is_empty() {
        errs.required(&version_at, "");
    } else if api_version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {api_version}");
        errs.invalid(&version_at, api_version, detail);
    } else {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let group_faults = if group.is_empty() {
            Vec::new()
        } else {
            validation::is_dns1123_subdomain(group)
        };
        if !group_faults.is_empty() {
            errs.invalid(&version_at, group, group_faults.join(","));
        }
        let faults = validation::is_dns1035_label(version);
        if version.is_empty() {
            errs.invalid(&version_at, api_version, "version must be specified");
        } else if !faults.is_empty() {
            errs.invalid(&version_at, version, faults.join(","));
        }
    }
    let name = text(kind, "kind");
    let faults = validation::is_dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        errs.required(&at.field("kind"), "");
    } else if !faults.is_empty() {
        let detail = format!(
            "may have mixed case, but should otherwise match: {}",
            faults.join(",")
        );
        errs.invalid(&at.field("kind"), name, detail);
    }
}

/// ValidatingAdmissionPolicy and MutatingAdmissionPolicy.
pub(crate) struct AdmissionPolicy {
    pub(crate) mutating: bool,
}

impl Strategy for AdmissionPolicy {
    fn profile(&self) -> &'static Profile {
        if self.mutating { &PLAIN_POLICY } else { &POLICY }
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default(spec, "failurePolicy", "Fail");
        if let Some(resources) = spec.get_mut("matchConstraints") {
            default_match(resources);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        let policy = text(spec, "failurePolicy");
        errs.required_one_of(&at.field("failurePolicy"), policy, FAILURE_POLICIES);
        if has(spec, "paramKind") {
            validate_param_kind(errs, &at.field("paramKind"), part(spec, "paramKind"));
        }
        let match_at = at.field("matchConstraints");
        if has(spec, "matchConstraints") {
            let resources = part(spec, "matchConstraints");
            validate_match_resources(errs, &match_at, resources);
            if self.mutating {
                validate_mutating_operations(errs, &match_at, resources);
            }
            if !filled(resources, "resourceRules") {
                errs.required(&match_at.field("resourceRules"), "");
            }
        } else {
            errs.required(&match_at, "");
        }
        let mut expressions = Expressions::new(has(spec, "paramKind"));
        validate_match_conditions(
            errs,
            &at.field("matchConditions"),
            list(spec, "matchConditions"),
            &expressions,
        );
        let variables = at.field("variables");
        for (i, variable) in list(spec, "variables").iter().enumerate() {
            let at = variables.index(i);
            let name = text(variable, "name");
            if name.trim().is_empty() {
                errs.required(&at.field("name"), "name is not specified");
            } else if !validation::is_c_identifier(name).is_empty() {
                errs.invalid(&at.field("name"), name, "must be a valid CEL identifier");
            }
            let expression = text(variable, "expression");
            if expression.trim().is_empty() {
                errs.required(&at.field("expression"), "expression is not specified");
            } else if self.mutating {
                // Expressions of mutating policies may make objects, which ours cannot; they are not judged.
            } else if let Some(found) = expressions.check(errs, &at.field("expression"), expression, &[]) {
                expressions.add_variable(name, &found);
            }
        }
        if self.mutating {
            validate_mutations(errs, &at, spec);
        } else {
            validate_validations(errs, &at, spec, meta::name(obj), &expressions);
        }
    }
}

fn validate_mutations(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    errs.required_one_of(
        &at.field("reinvocationPolicy"),
        text(spec, "reinvocationPolicy"),
        &["IfNeeded", "Never"],
    );
    let at = at.field("mutations");
    if !filled(spec, "mutations") {
        errs.required(&at, "mutations must contain at least one item");
    }
    for (i, mutation) in list(spec, "mutations").iter().enumerate() {
        let at = at.index(i);
        let (used, other) = match text(mutation, "patchType") {
            "" => {
                errs.required(&at.field("patchType"), "");
                continue;
            }
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            kind => {
                errs.not_supported(&at.field("patchType"), kind, &["ApplyConfiguration", "JSONPatch"]);
                continue;
            }
        };
        let kind = text(mutation, "patchType");
        if !has(mutation, used) {
            errs.required(
                &at.field(used),
                format!("must be specified when patchType is {kind}"),
            );
        } else if text(part(mutation, used), "expression").trim().is_empty() {
            let used_at = at.field(used);
            errs.required(&used_at.field("expression"), "expression is not specified");
        }
        if has(mutation, other) {
            errs.invalid(
                &at.field(other),
                format!("{{{other}}}"),
                format!("must not be specified when patchType is {kind}"),
            );
        }
    }
}

fn validate_validations(errs: &mut Errors, at: &At<'_>, spec: &Value, name: &str, expressions: &Expressions) {
    let (checks_at, audit_at) = (at.field("validations"), at.field("auditAnnotations"));
    if !filled(spec, "validations") && !filled(spec, "auditAnnotations") {
        let why = "validations or auditAnnotations must contain at least one item";
        errs.required(&checks_at, why);
        errs.required(&audit_at, why);
    }
    for (i, check) in list(spec, "validations").iter().enumerate() {
        let at = checks_at.index(i);
        let expression = text(check, "expression");
        if expression.trim().is_empty() {
            errs.required(&at.field("expression"), "expression is not specified");
        } else {
            expressions.check(errs, &at.field("expression"), expression, &[Type::Bool]);
        }
        let told = text(check, "messageExpression");
        if !told.trim().is_empty() {
            expressions.check_message(errs, &at.field("messageExpression"), told);
        }
        for key in ["messageExpression", "message"] {
            let value = text(check, key);
            if !value.is_empty() && value.trim().is_empty() {
                errs.invalid(&at.field(key), value, "must be non-empty if specified");
            } else if key == "message" && value.trim().contains(['\n', '\r']) {
                errs.invalid(&at.field(key), value, "must not contain line breaks");
            }
        }
        if has(check, "reason") {
            errs.one_of(
                &at.field("reason"),
                text(check, "reason"),
                &["Forbidden", "Invalid", "RequestEntityTooLarge"],
            );
        }
    }
    let audits = list(spec, "auditAnnotations");
    if audits.len() > AUDIT_ANNOTATIONS_MAX {
        errs.invalid(
            &audit_at,
            Value::from(audits),
            format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations"),
        );
    }
    for (i, audit) in audits.iter().enumerate() {
        let at = audit_at.index(i);
        let key = text(audit, "key");
        let full = format!("{name}/{key}");
        errs.all_invalid(&at.field("key"), &full, validation::is_qualified_name(&full));
        if audits[..i].iter().any(|a| text(a, "key") == key) {
            errs.duplicate(&at.field("key"), key);
        }
        let value = text(audit, "valueExpression");
        if value.trim().is_empty() {
            errs.required(&at.field("valueExpression"), "valueExpression is not specified");
        } else {
            let results = [Type::String, Type::Null];
            expressions.check(errs, &at.field("valueExpression"), value, &results);
        }
    }
}

/// The bindings of both kinds of policy.
pub(crate) struct PolicyBinding {
    pub(crate) mutating: bool,
}

impl Strategy for PolicyBinding {
    fn profile(&self) -> &'static Profile {
        &PLAIN_POLICY
    }

    fn default(&self, obj: &mut Value) {
        if let Some(resources) = obj.get_mut("spec").and_then(|s| s.get_mut("matchResources")) {
            default_match(resources);
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        match text(spec, "policyName") {
            "" => errs.required(&at.field("policyName"), ""),
            name => errs.all_invalid(
                &at.field("policyName"),
                name,
                validation::is_dns1123_subdomain(name),
            ),
        }
        if let Some(params) = spec.get("paramRef") {
            let at = at.field("paramRef");
            match (!text(params, "name").is_empty(), has(params, "selector")) {
                (true, true) => {
                    for key in ["name", "selector"] {
                        errs.forbidden(&at.field(key), "name and selector are mutually exclusive");
                    }
                }
                (false, false) => errs.required(&at, "one of name or selector must be specified"),
                _ => {}
            }
            selector::validate(errs, &at.field("selector"), part(params, "selector"));
            let action = text(params, "parameterNotFoundAction");
            errs.required_one_of(&at.field("parameterNotFoundAction"), action, &["Deny", "Allow"]);
        }
        if has(spec, "matchResources") {
            validate_match_resources(errs, &at.field("matchResources"), part(spec, "matchResources"));
        }
        if self.mutating {
            validate_mutating_operations(errs, &at.field("matchResources"), part(spec, "matchResources"));
            return;
        }
        let actions: Vec<&str> = texts(spec, "validationActions").collect();
        let at = at.field("validationActions");
        for (i, action) in actions.iter().enumerate() {
            errs.one_of(&at.index(i), action, &["Audit", "Deny", "Warn"]);
            if actions[..i].contains(action) {
                errs.duplicate(&at.index(i), *action);
            }
        }
        if actions.contains(&"Deny") && actions.contains(&"Warn") {
            errs.invalid(
                &at,
                part(spec, "validationActions").clone(),
                "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
            );
        }
        if actions.is_empty() {
            errs.required(&at, "at least one validation action is required");
        }
    }
}
