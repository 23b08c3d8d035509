//! Which requests leave which trace: the audit policy, read from a file of kind `Policy` (`audit.k8s.io/v1`).
//!
//! The first rule that matches decides; a request that no rule matches leaves none. Deciding is a function of the policy
//! and the request alone.

use fairway_kernel_authz::UserInfo;
use fairway_kernel_scalar::names::is_dns1123_subdomain;
use fairway_kernel_schema::field::FieldError;

use crate::request::{RequestInfo, ResourcePath};
use crate::strict::{self, Errors, Node};

/// How much of a request is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, and the answer's code.
    Metadata,
    /// And what was sent.
    Request,
    /// And what was answered.
    RequestResponse,
}

/// When a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request has been understood, and nothing else has been done.
    RequestReceived,
    /// The head of the answer to a watch has been sent.
    ResponseStarted,
    /// The answer has been sent.
    ResponseComplete,
    /// The server failed on the request.
    Panic,
}

const LEVELS: [Level; 4] = [
    Level::None,
    Level::Metadata,
    Level::Request,
    Level::RequestResponse,
];
const STAGES: [Stage; 4] = [
    Stage::RequestReceived,
    Stage::ResponseStarted,
    Stage::ResponseComplete,
    Stage::Panic,
];

impl Level {
    /// Its name in files and lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

impl Stage {
    /// Its name in files and lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// Stages that leave no line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted(u8);

impl Omitted {
    fn with(self, stage: Stage) -> Self {
        Self(self.0 | 1 << stage as u8)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }
}

/// What the policy says of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How much is kept.
    pub level: Level,
    omitted: Omitted,
    /// Whether objects are kept without `managedFields`.
    pub omit_managed_fields: bool,
}

impl Verdict {
    /// Whether this stage leaves a line.
    pub fn wants(self, stage: Stage) -> bool {
        self.level > Level::None && !self.omitted.has(stage)
    }
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
    omitted: Omitted,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    omitted: Omitted,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// What is kept when nobody has said anything: one line per request, two per watch, never a body, and nothing of probes.
    pub fn standard() -> Self {
        Self {
            rules: vec![
                Rule {
                    level: Level::None,
                    non_resource_urls: ["/livez*", "/readyz*", "/healthz*"].map(str::to_owned).to_vec(),
                    ..Rule::default()
                },
                Rule {
                    level: Level::Metadata,
                    ..Rule::default()
                },
            ],
            omitted: Omitted::default().with(Stage::RequestReceived),
            omit_managed_fields: false,
        }
    }

    /// Reads a file's content.
    pub fn parse(content: &[u8]) -> Result<Self, String> {
        let value = strict::parse(content)?;
        let errors = &mut Errors::default();
        let known = ["rules", "omitStages", "omitManagedFields"];
        let root = strict::document(&value, "Policy", &["audit.k8s.io/v1"], &known, errors);
        let policy = Self {
            omitted: omit_stages(&root, errors),
            omit_managed_fields: root.flag("omitManagedFields", errors).unwrap_or(false),
            rules: root
                .nodes("rules", &RULE_FIELDS, errors)
                .iter()
                .map(|node| Rule::read(node, errors))
                .collect(),
        };
        if policy.rules.is_empty() {
            errors.push("a policy without rules would keep nothing; for that, use --no-audit");
        }
        std::mem::take(errors).into_result()?;
        Ok(policy)
    }

    /// What is kept of a request. `user` is who sent it, before impersonation; `None` if that is not known.
    pub fn decide(&self, user: Option<&UserInfo>, info: &RequestInfo) -> Verdict {
        match self.rules.iter().find(|rule| rule.matches(user, info)) {
            None => Verdict::default(),
            Some(rule) => Verdict {
                level: rule.level,
                omitted: self.omitted.and(rule.omitted),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            },
        }
    }
}

const RULE_FIELDS: [&str; 9] = [
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];

impl Rule {
    fn read(node: &Node<'_>, errors: &mut Errors) -> Self {
        let rule = Self {
            level: level(node, errors),
            users: node.texts("users", errors),
            user_groups: node.texts("userGroups", errors),
            verbs: node.texts("verbs", errors),
            resources: node
                .nodes("resources", &["group", "resources", "resourceNames"], errors)
                .iter()
                .map(|node| GroupResources::read(node, errors))
                .collect(),
            namespaces: node.texts("namespaces", errors),
            non_resource_urls: node.texts("nonResourceURLs", errors),
            omitted: omit_stages(node, errors),
            omit_managed_fields: node.flag("omitManagedFields", errors),
        };
        let at = node.at("nonResourceURLs");
        for (index, url) in rule.non_resource_urls.iter().enumerate() {
            if url == "*" {
                continue;
            }
            let mut wrong = |why| errors.push(FieldError::invalid(&at.index(index), url.as_str(), why));
            if !url.starts_with('/') {
                wrong("non-resource URL rules must begin with a '/' character");
            }
            if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
                wrong("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if of_resources && !rule.non_resource_urls.is_empty() {
            errors.push(FieldError::invalid(
                &at,
                rule.non_resource_urls.clone(),
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
        rule
    }

    fn matches(&self, user: Option<&UserInfo>, info: &RequestInfo) -> bool {
        let among = |list: &[String], one: &str| list.iter().any(|item| item == one);
        if !self.users.is_empty() && !user.is_some_and(|u| among(&self.users, &u.name)) {
            return false;
        }
        let in_group = |u: &UserInfo| u.groups.iter().any(|group| among(&self.user_groups, group));
        if !self.user_groups.is_empty() && !user.is_some_and(in_group) {
            return false;
        }
        if !self.verbs.is_empty() && !among(&self.verbs, info.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.resource.as_ref().is_some_and(|resource| {
                let namespace = resource.namespace.as_deref().unwrap_or("");
                (self.namespaces.is_empty() || among(&self.namespaces, namespace))
                    && (self.resources.is_empty() || self.resources.iter().any(|r| r.matches(resource)))
            });
        }
        if !self.non_resource_urls.is_empty() {
            return info.resource.is_none()
                && self
                    .non_resource_urls
                    .iter()
                    .any(|pattern| path_matches(pattern, &info.path));
        }
        true
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

impl GroupResources {
    fn read(node: &Node<'_>, errors: &mut Errors) -> Self {
        let read = Self {
            group: node.text("group", errors),
            resources: node.texts("resources", errors),
            resource_names: node.texts("resourceNames", errors),
        };
        if !read.group.is_empty() && read.group != "*" {
            let wrong = is_dns1123_subdomain(&read.group);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(
                    &node.at("group"),
                    read.group.as_str(),
                    wrong.join(","),
                ));
            }
        }
        if !read.resource_names.is_empty() && read.resources.is_empty() {
            errors.push(FieldError::invalid(
                &node.at("resourceNames"),
                read.resource_names.clone(),
                "using resourceNames requires at least one resource",
            ));
        }
        read
    }

    fn matches(&self, path: &ResourcePath) -> bool {
        if self.group != "*" && self.group != path.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.resource_names.is_empty() && !self.resource_names.contains(&path.name) {
            return false;
        }
        self.resources
            .iter()
            .any(|wanted| resource_matches(wanted, &path.resource, &path.subresource))
    }
}

/// `pods`, `pods/log`, `pods/*`, `*/status` or `*`; a resource alone does not stand for its subresources.
fn resource_matches(wanted: &str, resource: &str, subresource: &str) -> bool {
    if wanted == "*" {
        return true;
    }
    match wanted.split_once('/') {
        None => subresource.is_empty() && wanted == resource,
        Some((of, "*")) if of == resource => true,
        Some(("*", below)) => !subresource.is_empty() && below == subresource,
        Some((of, below)) => of == resource && !subresource.is_empty() && below == subresource,
    }
}

fn level(node: &Node<'_>, errors: &mut Errors) -> Level {
    let text = node.text("level", errors);
    if let Some(level) = LEVELS.into_iter().find(|level| level.as_str() == text) {
        return level;
    }
    if text.is_empty() {
        errors.push(FieldError::required(&node.at("level"), ""));
    } else {
        let names = LEVELS.map(Level::as_str);
        errors.push(FieldError::not_supported(&node.at("level"), text, &names));
    }
    Level::None
}

fn omit_stages(node: &Node<'_>, errors: &mut Errors) -> Omitted {
    let mut omitted = Omitted::default();
    for (index, text) in node.texts("omitStages", errors).into_iter().enumerate() {
        match STAGES.into_iter().find(|stage| stage.as_str() == text) {
            Some(stage) => omitted = omitted.with(stage),
            None => {
                let allowed = format!("allowed stages are {}", STAGES.map(Stage::as_str).join(","));
                errors.push(FieldError::invalid(
                    &node.at("omitStages").index(index),
                    text,
                    allowed,
                ));
            }
        }
    }
    omitted
}

#[cfg(test)]
mod tests;
