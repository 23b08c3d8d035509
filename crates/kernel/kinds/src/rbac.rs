//! RBAC: roles, cluster roles and their bindings. Names are free as far as URLs allow; a binding keeps its role.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::meta::NameRule;
use crate::read::{self, each_mut, filled, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext};
use crate::{selector, validation};

const GROUP: &str = "rbac.authorization.k8s.io";

static NAMESPACED: Profile = Profile {
    name: NameRule::PathSegment,
    create_on_update: true,
    ..Profile::NAMESPACED
};
static CLUSTER: Profile = Profile {
    name: NameRule::PathSegment,
    create_on_update: true,
    ..Profile::CLUSTER
};

/// Role and ClusterRole.
pub(crate) struct Role {
    pub(crate) namespaced: bool,
}

impl Strategy for Role {
    fn profile(&self) -> &'static Profile {
        if self.namespaced { &NAMESPACED } else { &CLUSTER }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let rules = At::new("rules");
        for (i, rule) in list(obj, "rules").iter().enumerate() {
            validate_rule(errs, &rules.index(i), rule, self.namespaced);
        }
        if let Some(aggregation) = obj.get("aggregationRule").filter(|_| !self.namespaced) {
            let at = At::new("aggregationRule.clusterRoleSelectors");
            let selectors = list(aggregation, "clusterRoleSelectors");
            if selectors.is_empty() {
                errs.required(
                    &at,
                    "at least one clusterRoleSelector required if aggregationRule is non-nil",
                );
            }
            for (i, chosen) in selectors.iter().enumerate() {
                selector::validate(errs, &at.index(i), chosen);
                if !selector::is_usable(chosen) {
                    errs.invalid(&at.index(i), Value::Null, "invalid label selector.");
                }
            }
        }
    }
}

fn validate_rule(errs: &mut Errors, at: &At<'_>, rule: &Value, namespaced: bool) {
    if !filled(rule, "verbs") {
        errs.required(&at.field("verbs"), "verbs must contain at least one value");
    }
    if filled(rule, "nonResourceURLs") {
        let urls = part(rule, "nonResourceURLs");
        let at = at.field("nonResourceURLs");
        if namespaced {
            errs.invalid(
                &at,
                urls.clone(),
                "namespaced rules cannot apply to non-resource URLs",
            );
        }
        if filled(rule, "apiGroups") || filled(rule, "resources") || filled(rule, "resourceNames") {
            errs.invalid(
                &at,
                urls.clone(),
                "rules cannot apply to both regular resources and non-resource URLs",
            );
        }
        return;
    }
    if !filled(rule, "apiGroups") {
        errs.required(
            &at.field("apiGroups"),
            "resource rules must supply at least one api group",
        );
    }
    if !filled(rule, "resources") {
        errs.required(
            &at.field("resources"),
            "resource rules must supply at least one resource",
        );
    }
}

/// RoleBinding and ClusterRoleBinding.
pub(crate) struct Binding {
    pub(crate) namespaced: bool,
}

impl Strategy for Binding {
    fn profile(&self) -> &'static Profile {
        if self.namespaced { &NAMESPACED } else { &CLUSTER }
    }

    fn default(&self, obj: &mut Value) {
        read::set_default_text(part_mut(obj, "roleRef"), "apiGroup", GROUP);
        for subject in each_mut(obj, "subjects") {
            if matches!(text(subject, "kind"), "User" | "Group") {
                read::set_default_text(subject, "apiGroup", GROUP);
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, _old: Option<&Value>, errs: &mut Errors) {
        let role = part(obj, "roleRef");
        let at = At::new("roleRef");
        errs.one_of(&at.field("apiGroup"), text(role, "apiGroup"), &[GROUP]);
        let kinds: &[&str] = if self.namespaced {
            &["Role", "ClusterRole"]
        } else {
            &["ClusterRole"]
        };
        errs.one_of(&at.field("kind"), text(role, "kind"), kinds);
        let name = text(role, "name");
        if name.is_empty() {
            errs.required(&at.field("name"), "");
        }
        errs.all_invalid(&at.field("name"), name, validation::is_path_segment_name(name));
        let subjects = At::new("subjects");
        for (i, subject) in list(obj, "subjects").iter().enumerate() {
            validate_subject(errs, &subjects.index(i), subject, self.namespaced);
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        if !read::same(obj.get("roleRef"), old.get("roleRef")) {
            let role = part(obj, "roleRef");
            let shown = json!({
                "APIGroup": text(role, "apiGroup"), "Kind": text(role, "kind"), "Name": text(role, "name"),
            });
            errs.invalid(&At::new("roleRef"), shown, "cannot change roleRef");
        }
    }
}

fn validate_subject(errs: &mut Errors, at: &At<'_>, subject: &Value, namespaced: bool) {
    let name = text(subject, "name");
    if name.is_empty() {
        errs.required(&at.field("name"), "");
    }
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                errs.all_invalid(&at.field("name"), name, validation::is_dns1123_subdomain(name));
            }
            errs.one_of(&at.field("apiGroup"), group, &[""]);
            if !namespaced && text(subject, "namespace").is_empty() {
                errs.required(&at.field("namespace"), "");
            }
        }
        "User" | "Group" => errs.one_of(&at.field("apiGroup"), group, &[GROUP]),
        other => errs.not_supported(&at.field("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}
