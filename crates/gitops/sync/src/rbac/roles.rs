//! The roles of a project: policies that concern nothing but the project, and the groups whose members have the role.

use serde::Deserialize;
use serde_json::Value;

use super::{MatchMode, Pattern, Policies, Policy};

/// What the subject of a project's role begins with.
pub const PREFIX: &str = "proj:";
/// What belongs to projects, and may be given by their roles.
pub const RESOURCES: [&str; 6] = [
    "applications",
    "applicationsets",
    "repositories",
    "exec",
    "logs",
    "clusters",
];

/// A role in `spec.roles`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProjectRole {
    /// Its name.
    pub name: String,
    /// Its policies.
    pub policies: Vec<String>,
    /// Whose members have it.
    pub groups: Vec<String>,
}

/// The subject of a role's policies.
pub fn subject(project: &str, role: &str) -> String {
    format!("{PREFIX}{project}:{role}")
}

/// The roles of a project.
///
/// # Errors
/// The field is not in its form.
pub fn read(project: &Value) -> Result<Vec<ProjectRole>, String> {
    match &project["spec"]["roles"] {
        Value::Null => Ok(Vec::new()),
        roles => Vec::deserialize(roles).map_err(|error| format!("roles: {error}")),
    }
}

impl Policies {
    /// Adds the roles of a project. Of roles with a fault nothing is taken but the sentence: what a project's owner writes
    /// must not reach beyond the project.
    pub fn add_roles(&mut self, project: &str, roles: &[ProjectRole], mode: MatchMode) -> Vec<String> {
        let mut faults = Vec::new();
        for role in roles {
            match policies(project, role, mode) {
                Ok(policies) => {
                    for policy in policies {
                        if let Err(fault) = self.check_room(mode) {
                            faults.push(fault);
                            return faults;
                        }
                        self.policies.push(policy);
                    }
                }
                Err(fault) => {
                    faults.push(format!("role {}: {fault}", role.name));
                    continue;
                }
            }
            for group in &role.groups {
                let group = group.trim();
                let bare = group
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'))
                    .unwrap_or(group);
                if bare.is_empty() {
                    faults.push(format!("role {}: a group has no name", role.name));
                    continue;
                }
                self.roles
                    .entry(bare.to_owned())
                    .or_default()
                    .insert(subject(project, &role.name));
            }
        }
        faults
    }
}

fn policies(project: &str, role: &ProjectRole, mode: MatchMode) -> Result<Vec<Policy>, String> {
    if !is_role_name(&role.name) {
        return Err(
            "the name must consist of alphanumeric characters, '-' or '_', and start and end with an alphanumeric one"
                .to_owned(),
        );
    }
    let subject = subject(project, &role.name);
    // Whoever has a role sees its project.
    let mut found = vec![Policy {
        subject: subject.clone(),
        resource: Pattern::Glob("projects".to_owned()),
        action: Pattern::Glob("get".to_owned()),
        object: Pattern::Exact(project.to_owned()),
        denies: false,
    }];
    for text in &role.policies {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let ["p", named, resource, action, object, effect] = fields[..] else {
            return Err(format!(
                "invalid policy rule '{text}': must be of the form: 'p, sub, res, act, obj, eft'"
            ));
        };
        let wrong = |why: String| Err(format!("invalid policy rule '{text}': {why}"));
        if named != subject {
            return wrong(format!("policy subject must be: '{subject}', not '{named}'"));
        }
        if !RESOURCES.contains(&resource) {
            return wrong(format!(
                "project resource must be: '{}', not '{resource}'",
                RESOURCES.join("', '")
            ));
        }
        if !is_action(action) {
            return wrong(format!("invalid action '{action}'"));
        }
        if !is_object(project, object) {
            return wrong(format!(
                "object must be of form '{project}/*', '{project}[/<NAMESPACE>]/<APPNAME>' or '{project}/<APPNAME>', not \
                 '{object}'"
            ));
        }
        let denies = match effect {
            "allow" => false,
            "deny" => true,
            _ => return wrong("effect must be: 'allow' or 'deny'".to_owned()),
        };
        found.push(Policy {
            subject: subject.clone(),
            resource: Pattern::new(resource, mode)?,
            action: Pattern::new(action, mode)?,
            object: Pattern::new(object, mode)?,
            denies,
        });
    }
    Ok(found)
}

fn is_role_name(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ends(name.chars().next()) && ends(name.chars().last()) && name.chars().all(inside)
}

fn is_action(action: &str) -> bool {
    const WHOLE: [&str; 7] = ["get", "create", "update", "delete", "sync", "override", "*"];
    WHOLE.contains(&action)
        || ["action/", "update/", "delete/"]
            .iter()
            .any(|prefix| action.starts_with(prefix))
}

fn is_object(project: &str, object: &str) -> bool {
    let Some(rest) = object
        .strip_prefix(project)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return false;
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "*_-.".contains(c))
    };
    rest.split('/').count() <= 2 && rest.split('/').all(is_part)
}

#[cfg(test)]
mod tests;
