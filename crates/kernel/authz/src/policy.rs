//! The index over one workspace's roles and bindings.
//!
//! A request must be decided in a few microseconds however many bindings there are, so bindings are found through
//! their subjects: for the user's name and for each of their groups, the bindings that name them, cluster-wide and
//! in the request's namespace. Only the rules of those bindings' roles are looked at. Where there are few bindings, as in
//! most workspaces, all of them are looked at, and no index takes room.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fairway_text_gotext::strings::quoted;
use serde_json::Value;

use crate::aggregation::{ClusterRole, PendingAggregation, pending_aggregations};
use crate::attributes::{Attributes, Decision, UserInfo};
use crate::binding::{Binding, RoleRef, Subject, SubjectKey, describe_grant};
use crate::rule::PolicyRule;
use crate::sorted::Sorted;
use crate::{Kind, PRIVILEGED_GROUP};

/// The roles and bindings of one workspace. The caller holds one for each workspace, and feeds it every change.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<String, ClusterRole>,
    cluster_bindings: BindingIndex,
    /// Boxed, since most workspaces have nothing of it.
    namespaced: Option<Box<Namespaced>>,
    /// What holds here besides, without being an object here.
    inherited: Option<Arc<Policy>>,
}

/// What is in namespaces, by namespace.
#[derive(Debug, Clone, Default)]
struct Namespaced {
    roles: HashMap<String, HashMap<String, Vec<PolicyRule>>>,
    bindings: HashMap<String, BindingIndex>,
}

/// The bindings of one scope, and who they name.
#[derive(Debug, Clone, Default)]
struct BindingIndex {
    bindings: Sorted<Box<Binding>>,
    /// From [`FEW`] bindings on.
    subjects: Option<Box<Subjects>>,
}

/// So many bindings are looked through faster than found.
const FEW: usize = 8;

/// Subject name to the names of the bindings that have it.
#[derive(Debug, Clone, Default)]
struct Subjects {
    by_user: HashMap<String, Sorted<()>>,
    by_group: HashMap<String, Sorted<()>>,
}

impl Subjects {
    fn index(&mut self, key: SubjectKey) -> (&mut HashMap<String, Sorted<()>>, String) {
        match key {
            SubjectKey::User(user) => (&mut self.by_user, user),
            SubjectKey::Group(group) => (&mut self.by_group, group),
        }
    }

    fn add(&mut self, namespace: &str, name: &str, binding: &Binding) {
        for key in binding.subjects.iter().filter_map(|it| it.key(namespace)) {
            let (index, key) = self.index(key);
            index.entry(key).or_default().add(name, ());
        }
    }

    fn remove(&mut self, namespace: &str, name: &str, binding: &Binding) {
        for key in binding.subjects.iter().filter_map(|it| it.key(namespace)) {
            let (index, key) = self.index(key);
            if let Some(names) = index.get_mut(&key) {
                names.remove(name);
                if names.is_empty() {
                    index.remove(&key);
                }
            }
        }
    }
}

/// A role that a binding refers to and that does not exist, or that no role can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoleNotFound {
    /// There is no such role.
    #[error("{resource}.rbac.authorization.k8s.io {} not found", quoted(name))]
    Missing {
        /// `role` or `clusterrole`.
        resource: &'static str,
        /// The name that was looked for.
        name: String,
    },
    /// The reference names neither a Role nor a ClusterRole.
    #[error("unsupported role reference kind: {}", quoted(kind))]
    UnsupportedKind {
        /// The kind in the reference.
        kind: String,
    },
}

/// Everything that a user may do in a namespace, as a rules review reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectiveRules {
    /// Rules on API resources.
    pub resource_rules: Vec<ResourceRule>,
    /// Rules on paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether there may be more rules than those listed.
    pub incomplete: bool,
    /// What could not be resolved.
    pub evaluation_error: Option<String>,
}

/// A rule on API resources.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    missing_docs,
    reason = "the fields are those of the review that they are sent in"
)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// A rule on paths.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[allow(
    missing_docs,
    reason = "the fields are those of the review that they are sent in"
)]
pub struct NonResourceRule {
    pub verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl BindingIndex {
    fn insert(&mut self, namespace: &str, name: &str, binding: Binding) {
        self.remove(namespace, name);
        if let Some(subjects) = &mut self.subjects {
            subjects.add(namespace, name, &binding);
        }
        self.bindings.add(name, Box::new(binding));
        if self.subjects.is_none() && self.bindings.len() > FEW {
            let mut subjects = Box::<Subjects>::default();
            for (name, binding) in self.bindings.iter() {
                subjects.add(namespace, name, binding);
            }
            self.subjects = Some(subjects);
        }
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(binding) = self.bindings.remove(name)
            && let Some(subjects) = &mut self.subjects
        {
            subjects.remove(namespace, name, &binding);
        }
    }

    /// The names of the bindings that name `user`: first by the user's name, then by each group. One may come twice.
    fn naming<'a>(&'a self, user: &UserInfo, namespace: &str) -> Vec<&'a str> {
        let mut found = Vec::new();
        if let Some(subjects) = &self.subjects {
            let by_name = subjects.by_user.get(&user.name);
            let by_group = user.groups.iter().filter_map(|it| subjects.by_group.get(it));
            found.extend(by_name.into_iter().chain(by_group).flat_map(Sorted::names));
            return found;
        }
        let mut look = |applies: &dyn Fn(&Subject) -> bool| {
            let naming = self
                .bindings
                .iter()
                .filter(|(_, it)| it.subjects.iter().any(applies));
            found.extend(naming.map(|(name, _)| name));
        };
        look(&|subject| subject.is_user(&user.name, namespace));
        for group in &user.groups {
            look(&|subject| subject.is_group(group));
        }
        found
    }
}

impl Policy {
    /// A policy without roles and bindings: only the privileged group may do anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// A policy in which the roles and bindings of another hold too. A binding of its own finds
    /// a role of its own before an inherited one of the same name.
    pub fn inheriting(inherited: Arc<Self>) -> Self {
        Self {
            inherited: Some(inherited),
            ..Self::default()
        }
    }

    /// Whether it has no role and no binding of its own.
    pub fn is_empty(&self) -> bool {
        self.cluster_roles.is_empty()
            && self.cluster_bindings.bindings.is_empty()
            && self.namespaced.is_none()
    }

    /// Takes up a new or changed object. `namespace` is empty for cluster-scoped kinds.
    pub fn upsert(&mut self, kind: Kind, namespace: &str, name: &str, object: &Value) {
        match kind {
            Kind::ClusterRole => {
                self.cluster_roles
                    .insert(name.to_owned(), ClusterRole::from_object(object));
            }
            Kind::Role => {
                let rules = PolicyRule::list_from(object.get("rules"));
                let roles = &mut self.namespaced.get_or_insert_default().roles;
                let here = roles.entry(namespace.to_owned()).or_default();
                here.insert(name.to_owned(), rules);
            }
            Kind::ClusterRoleBinding | Kind::RoleBinding => match Binding::from_object(object) {
                Some(binding) if kind == Kind::ClusterRoleBinding => {
                    self.cluster_bindings.insert("", name, binding);
                }
                Some(binding) => {
                    let bindings = &mut self.namespaced.get_or_insert_default().bindings;
                    let index = bindings.entry(namespace.to_owned()).or_default();
                    index.insert(namespace, name, binding);
                }
                None => self.remove(kind, namespace, name),
            },
        }
    }

    /// Forgets an object that was deleted.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        match kind {
            Kind::ClusterRole => drop(self.cluster_roles.remove(name)),
            Kind::ClusterRoleBinding => self.cluster_bindings.remove("", name),
            Kind::Role | Kind::RoleBinding => {
                let Some(namespaced) = &mut self.namespaced else {
                    return;
                };
                namespaced.remove(kind, namespace, name);
                if namespaced.roles.is_empty() && namespaced.bindings.is_empty() {
                    self.namespaced = None;
                }
            }
        }
    }

    /// Decides a request.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let namespace = attributes.resource.as_ref().map_or("", |target| target.namespace);
        let mut errors = Vec::new();
        for (policy, index, namespace) in self.scopes(namespace) {
            for name in index.naming(attributes.user, namespace) {
                let Some(binding) = index.bindings.get(name) else {
                    continue;
                };
                match policy.resolve(&binding.role_ref, namespace) {
                    Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                        let mut subjects = binding.subjects.iter();
                        let subject = subjects.find(|it| it.applies_to(attributes.user, namespace));
                        let reason = describe_grant(namespace, name, binding, subject);
                        return Decision::Allow {
                            reason: Cow::Owned(reason),
                        };
                    }
                    Ok(_) => {}
                    Err(missing) => errors.push(missing),
                }
            }
        }
        if attributes.user.in_group(PRIVILEGED_GROUP) {
            return Decision::Allow {
                reason: Cow::Borrowed("allowed for members of Group \"system:masters\""),
            };
        }
        match aggregate_message(&errors) {
            Some(message) => Decision::NoOpinion {
                reason: Cow::Owned(format!("RBAC: {message}")),
            },
            None => Decision::NoOpinion {
                reason: Cow::Borrowed(""),
            },
        }
    }

    /// The rules of the role that a binding of `namespace` (empty for cluster scope) refers to.
    pub fn resolve(&self, role_ref: &RoleRef, namespace: &str) -> Result<&[PolicyRule], RoleNotFound> {
        let resource = match role_ref.kind.as_str() {
            "Role" => "role",
            "ClusterRole" => "clusterrole",
            _ => {
                return Err(RoleNotFound::UnsupportedKind {
                    kind: role_ref.kind.clone(),
                });
            }
        };
        let inherited = self.inherited.as_deref();
        let found = self.own_rules(role_ref, namespace);
        found
            .or_else(|| inherited?.own_rules(role_ref, namespace))
            .ok_or_else(|| RoleNotFound::Missing {
                resource,
                name: role_ref.name.clone(),
            })
    }

    fn own_rules(&self, role_ref: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        if role_ref.kind == "Role" {
            let roles = self.namespaced.as_ref()?.roles.get(namespace)?;
            return roles.get(&role_ref.name).map(Vec::as_slice);
        }
        let role = self.cluster_roles.get(&role_ref.name)?;
        Some(&role.rules)
    }

    /// What a user may do in a namespace (empty: cluster-wide only), for SelfSubjectRulesReview.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> EffectiveRules {
        let (rules, errors) = self.policy_rules_for(user, namespace);
        let mut effective = EffectiveRules {
            evaluation_error: aggregate_message(&errors),
            ..Default::default()
        };
        for rule in rules {
            if !rule.resources.is_empty() {
                effective.resource_rules.push(ResourceRule {
                    verbs: rule.verbs.clone(),
                    api_groups: rule.api_groups.clone(),
                    resources: rule.resources.clone(),
                    resource_names: rule.resource_names.clone(),
                });
            }
            if !rule.non_resource_urls.is_empty() {
                effective.non_resource_rules.push(NonResourceRule {
                    verbs: rule.verbs.clone(),
                    non_resource_urls: rule.non_resource_urls.clone(),
                });
            }
        }
        effective
    }

    /// The rules that apply to a user in a namespace, in the order of the bindings' names, and the roles that are
    /// missing.
    pub(crate) fn policy_rules_for(
        &self,
        user: &UserInfo,
        namespace: &str,
    ) -> (Vec<&PolicyRule>, Vec<RoleNotFound>) {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (policy, index, namespace) in self.scopes(namespace) {
            let names: BTreeSet<&str> = index.naming(user, namespace).into_iter().collect();
            for binding in names.into_iter().filter_map(|name| index.bindings.get(name)) {
                match policy.resolve(&binding.role_ref, namespace) {
                    Ok(granted) => rules.extend(granted),
                    Err(missing) => errors.push(missing),
                }
            }
        }
        (rules, errors)
    }

    /// The aggregated cluster roles whose rules are not what their selectors now gather. Writing them may make
    /// others pending, since an aggregated role may itself be gathered.
    pub fn pending_aggregations(&self) -> Vec<PendingAggregation> {
        pending_aggregations(&self.cluster_roles)
    }

    /// The bindings that may count in a namespace, the workspace's own first, each with the policy in which its role is
    /// looked for. An inherited binding means an inherited role: whoever could put another in its place would grant
    /// it to everybody whom the defaults name.
    fn scopes<'a, 'n>(
        &'a self,
        namespace: &'n str,
    ) -> impl Iterator<Item = (&'a Self, &'a BindingIndex, &'n str)> {
        let policies = std::iter::once(self).chain(self.inherited.as_deref());
        policies.flat_map(move |policy| {
            let namespaced = policy.namespaced.as_ref().filter(|_| !namespace.is_empty());
            let local = namespaced.and_then(|it| it.bindings.get(namespace));
            std::iter::once((policy, &policy.cluster_bindings, ""))
                .chain(local.map(|index| (policy, index, namespace)))
        })
    }
}

impl Namespaced {
    fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        if kind == Kind::Role {
            if let Some(roles) = self.roles.get_mut(namespace) {
                roles.remove(name);
                if roles.is_empty() {
                    self.roles.remove(namespace);
                }
            }
        } else if let Some(index) = self.bindings.get_mut(namespace) {
            index.remove(namespace, name);
            if index.bindings.is_empty() {
                self.bindings.remove(namespace);
            }
        }
    }
}

/// Several errors as Go's aggregate prints them: one plainly, more in brackets, repetitions once.
pub(crate) fn aggregate_message(errors: &[RoleNotFound]) -> Option<String> {
    let mut messages: Vec<String> = Vec::new();
    for message in errors.iter().map(ToString::to_string) {
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    match messages.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests;
