//! Argo CD's own permissions: a CSV of policies (`p`) and groups (`g`).
//!
//! `p, SUBJECT, RESOURCE, ACTION, OBJECT, EFFECT` and `g, SUBJECT, ROLE`. Something is allowed if a policy of the subject
//! or of one of its roles allows it and none denies it. Resources, actions and objects are patterns; what the default role
//! may, everybody may. [`settings`] says where the policies of an installation are written, [`roles`] what those of a
//! project's roles may say, [`token`] how one proves to have such a role.

pub mod roles;
pub mod settings;
pub mod token;

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// How patterns are read (`policy.matchMode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchMode {
    /// As globs.
    #[default]
    Glob,
    /// As regular expressions, which may match a part.
    Regex,
}

/// The policies of an installation.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    policies: Vec<Policy>,
    roles: BTreeMap<String, BTreeSet<String>>,
    default_role: String,
    /// So many of the policies are everybody's.
    built_in: usize,
}

/// How many policies an installation may have.
const MAX_POLICIES: usize = 10_000;
/// How many, if their patterns are regular expressions, which take more memory.
const MAX_EXPRESSIONS: usize = 500;

#[derive(Debug, Clone)]
struct Policy {
    subject: String,
    resource: Pattern,
    action: Pattern,
    object: Pattern,
    denies: bool,
}

#[derive(Debug, Clone)]
enum Pattern {
    Exact(String),
    Glob(String),
    Regex(Regex),
}

/// A line that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.csv, line {line}: {reason}: {text}")]
pub struct BadPolicy {
    /// Where, from one.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
    /// As written.
    pub text: String,
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `applications`, `projects`, `repositories`, ...
    pub resource: &'a str,
    /// `get`, `sync`, `action/apps/Deployment/restart`, ...
    pub action: &'a str,
    /// `PROJECT/NAME`, or a name.
    pub object: &'a str,
}

/// Who wants it.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The user's name; `proj:PROJECT:ROLE` for who has a token of a project's role.
    pub name: &'a str,
    /// The groups, or what else the installation's scopes name. They count only as members of roles.
    pub groups: &'a [&'a str],
    /// The project and the role of the token that he came with, if it was one.
    pub project_role: Option<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    /// The project that something belongs to.
    pub fn project(&self) -> Option<&'a str> {
        match self.resource {
            "projects" => Some(self.object),
            resource if roles::RESOURCES.contains(&resource) => {
                self.object.split_once('/').map(|(project, _)| project)
            }
            _ => None,
        }
    }
}

/// What is true of every installation: `role:readonly` sees everything, `role:admin` may do everything, and the user
/// `admin` is one.
fn built_in() -> String {
    let mut csv = String::new();
    let mut allow = |role: &str, resource: &str, actions: &[&str]| {
        let in_project = ["applications", "applicationsets", "logs", "exec"].contains(&resource);
        let object = if in_project { "*/*" } else { "*" };
        for action in actions {
            csv.push_str(&format!(
                "p, role:{role}, {resource}, {action}, {object}, allow\n"
            ));
        }
    };
    for resource in [
        "applications",
        "applicationsets",
        "certificates",
        "clusters",
        "repositories",
        "write-repositories",
        "projects",
        "accounts",
        "gpgkeys",
        "logs",
    ] {
        allow("readonly", resource, &["get"]);
    }
    allow(
        "admin",
        "applications",
        &[
            "create", "update", "update/*", "delete", "delete/*", "sync", "override", "action/*",
        ],
    );
    allow("admin", "applicationsets", &["get", "create", "update", "delete"]);
    for resource in [
        "certificates",
        "clusters",
        "repositories",
        "write-repositories",
        "projects",
    ] {
        allow("admin", resource, &["create", "update", "delete"]);
    }
    allow("admin", "accounts", &["update"]);
    allow("admin", "gpgkeys", &["create", "delete"]);
    allow("admin", "exec", &["create"]);
    csv.push_str("g, role:admin, role:readonly\ng, admin, role:admin\n");
    csv
}

impl Policies {
    /// Reads the policies of users, beside those that are built in.
    pub fn read(csv: &str, default_role: &str, mode: MatchMode) -> Result<Self, BadPolicy> {
        let mut policies = Self {
            default_role: default_role.to_owned(),
            ..Self::default()
        };
        policies.add(&built_in(), MatchMode::Glob)?;
        policies.built_in = policies.policies.len();
        policies.add(csv, mode)?;
        Ok(policies)
    }

    /// Adds more policies, such as those of a project's roles.
    pub fn add(&mut self, csv: &str, mode: MatchMode) -> Result<(), BadPolicy> {
        for (index, text) in csv.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            self.add_line(text, mode).map_err(|reason| BadPolicy {
                line: index + 1,
                reason,
                text: text.to_owned(),
            })?;
        }
        Ok(())
    }

    /// Whether there is room for one more.
    fn check_room(&self, mode: MatchMode) -> Result<(), String> {
        let most = match mode {
            MatchMode::Glob => MAX_POLICIES,
            MatchMode::Regex => MAX_EXPRESSIONS,
        };
        match self.policies.len() < most + self.built_in {
            true => Ok(()),
            false => Err(format!("there are more than {most} policies")),
        }
    }

    fn add_line(&mut self, text: &str, mode: MatchMode) -> Result<(), String> {
        let fields = fields(text)?;
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        match fields.as_slice() {
            ["p", subject, resource, action, object, effect] => {
                self.check_room(mode)?;
                let denies = match *effect {
                    "allow" => false,
                    "deny" => true,
                    _ => return Err("the effect is neither allow nor deny".to_owned()),
                };
                self.policies.push(Policy {
                    subject: (*subject).to_owned(),
                    resource: Pattern::new(resource, mode)?,
                    action: Pattern::new(action, mode)?,
                    object: Pattern::new(object, mode)?,
                    denies,
                });
                Ok(())
            }
            ["g", subject, role] => {
                self.roles
                    .entry((*subject).to_owned())
                    .or_default()
                    .insert((*role).to_owned());
                Ok(())
            }
            ["p", ..] => Err("expected p, SUBJECT, RESOURCE, ACTION, OBJECT, EFFECT".to_owned()),
            ["g", ..] => Err("expected g, SUBJECT, ROLE".to_owned()),
            _ => Err("a policy begins with p or g".to_owned()),
        }
    }

    /// Whether any of these subjects (a user and the groups it is in) may do something. Each is asked for itself: what one
    /// group is denied, another may allow.
    pub fn allows(&self, subjects: &[&str], request: Request<'_>) -> bool {
        let default = Some(self.default_role.as_str()).filter(|role| !role.is_empty());
        default
            .into_iter()
            .chain(subjects.iter().copied())
            .any(|subject| self.allows_one(subject, request))
    }

    /// Whether somebody may do something. These must be the policies with those of the roles of the project that it belongs
    /// to. A token of a project's role is good for its own project alone.
    pub fn permits(&self, asker: Asker<'_>, request: Request<'_>) -> bool {
        if let Some((project, role)) = asker.project_role {
            let subject = roles::subject(project, role);
            return request.project() == Some(project) && self.allows(&[&subject], request);
        }
        // Nobody gets a role of a project by being called so.
        let name = Some(asker.name).filter(|name| !name.starts_with(roles::PREFIX));
        let members = asker
            .groups
            .iter()
            .copied()
            .filter(|group| self.roles.contains_key(*group));
        let subjects: Vec<&str> = name.into_iter().chain(members).collect();
        self.allows(&subjects, request)
    }

    fn allows_one(&self, subject: &str, request: Request<'_>) -> bool {
        let roles = self.roles_of(subject);
        let mut allowed = false;
        for policy in self
            .policies
            .iter()
            .filter(|policy| roles.contains(policy.subject.as_str()))
        {
            let matched = policy.resource.matches(request.resource)
                && policy.action.matches(request.action)
                && policy.object.matches(request.object);
            match (matched, policy.denies) {
                (true, true) => return false,
                (true, false) => allowed = true,
                (false, _) => {}
            }
        }
        allowed
    }

    /// A subject and all roles that it has, through roles of roles, too.
    fn roles_of<'a>(&'a self, subject: &'a str) -> BTreeSet<&'a str> {
        let (mut all, mut pending) = (BTreeSet::new(), vec![subject]);
        while let Some(role) = pending.pop() {
            if all.insert(role) {
                pending.extend(self.roles.get(role).into_iter().flatten().map(String::as_str));
            }
        }
        all
    }
}

impl Pattern {
    fn new(text: &str, mode: MatchMode) -> Result<Self, String> {
        match mode {
            MatchMode::Glob => Ok(Self::Glob(text.to_owned())),
            MatchMode::Regex => regex::RegexBuilder::new(text)
                .size_limit(1 << 15)
                .build()
                .map(Self::Regex)
                .map_err(|error| error.to_string()),
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(name) => name == text,
            Self::Glob(pattern) => fairway_text_glob::matches(pattern, text),
            Self::Regex(expression) => expression.is_match(text),
        }
    }
}

/// The fields of a line; those in quotes may hold commas.
fn fields(text: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut chars) = (Vec::new(), text.chars().peekable());
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut field = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next() {
                    None => return Err("a quote is not closed".to_owned()),
                    Some('"') if chars.next_if_eq(&'"').is_some() => field.push('"'),
                    Some('"') => break,
                    Some(c) => field.push(c),
                }
            }
        }
        while let Some(c) = chars.next_if(|c| *c != ',') {
            field.push(c);
        }
        fields.push(field.trim().to_owned());
        if chars.next().is_none() {
            return Ok(fields);
        }
    }
}

#[cfg(test)]
mod tests;
