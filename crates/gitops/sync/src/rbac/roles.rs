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
mod tests {
    use serde_json::json;

    use super::super::{Asker, Request};
    use super::*;

    fn shop(policies: &[&str], groups: &[&str]) -> ProjectRole {
        ProjectRole {
            name: "ci".to_owned(),
            policies: policies.iter().map(|&it| it.to_owned()).collect(),
            groups: groups.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    #[test]
    fn roles_stay_within_their_project() {
        for (policy, complaint) in [
            ("p, proj:shop:ci, applications, sync, shop/*, allow", ""),
            ("p, proj:shop:ci, applications, sync, shop/team-a/web, allow", ""),
            (
                "p,proj:shop:ci,applications,action/apps/Deployment/restart,shop/*,deny",
                "",
            ),
            (
                "p, proj:shop:ci, applications, sync, */*, allow",
                "object must be of form",
            ),
            (
                "p, proj:shop:ci, applications, sync, bank/web, allow",
                "object must be of form",
            ),
            (
                "p, proj:shop:ci, applications, sync, shop, allow",
                "object must be of form",
            ),
            (
                "p, proj:shop:ci, applications, sync, shopping/web, allow",
                "object must be of form",
            ),
            (
                "p, proj:shop:ci, applications, sync, shop/a/b/c, allow",
                "object must be of form",
            ),
            (
                "p, proj:bank:ci, applications, sync, shop/*, allow",
                "policy subject must be",
            ),
            (
                "p, role:admin, applications, sync, shop/*, allow",
                "policy subject must be",
            ),
            (
                "p, proj:shop:ci, projects, update, shop/*, allow",
                "project resource must be",
            ),
            (
                "p, proj:shop:ci, applications, fly, shop/*, allow",
                "invalid action 'fly'",
            ),
            (
                "p, proj:shop:ci, applications, sync, shop/*, maybe",
                "effect must be",
            ),
            ("g, bob, role:admin", "must be of the form"),
        ] {
            let mut all = Policies::default();
            let faults = all.add_roles("shop", &[shop(&[policy], &["red"])], MatchMode::Glob);
            match complaint {
                "" => assert!(faults.is_empty(), "{faults:?}"),
                words => {
                    assert!(faults[0].contains(words), "{faults:?}");
                    let asker = Asker {
                        name: "bob",
                        groups: &["red"],
                        project_role: None,
                    };
                    let request = Request {
                        resource: "projects",
                        action: "get",
                        object: "shop",
                    };
                    assert!(!all.permits(asker, request), "nothing of it is taken");
                }
            }
        }
        for name in ["", "-a", "a-", "a b", "a:b", "ä"] {
            let role = ProjectRole {
                name: name.to_owned(),
                ..ProjectRole::default()
            };
            assert_eq!(
                Policies::default()
                    .add_roles("shop", &[role], MatchMode::Glob)
                    .len(),
                1,
                "{name}"
            );
        }
    }

    #[test]
    fn who_has_a_role() {
        let policies = [
            "p, proj:shop:ci, applications, sync, shop/*, allow",
            "p, proj:shop:ci, applications, sync, shop/bank, deny",
        ];
        let mut all = Policies::read(
            "p, painters, applications, get, */*, allow\ng, blue, role:readonly",
            "",
            MatchMode::Glob,
        )
        .unwrap();
        assert!(
            all.add_roles(
                "shop",
                &[shop(&policies, &["red", "\"dark, red\""])],
                MatchMode::Glob
            )
            .is_empty()
        );
        type Case<'a> = (
            &'a str,
            &'a str,
            &'a [&'a str],
            Option<(&'a str, &'a str)>,
            (&'a str, &'a str, &'a str),
            bool,
        );
        let cases: &[Case<'_>] = &[
            (
                "a member",
                "bob",
                &["red"],
                None,
                ("applications", "sync", "shop/web"),
                true,
            ),
            (
                "a group with a comma",
                "bob",
                &["dark, red"],
                None,
                ("applications", "sync", "shop/web"),
                true,
            ),
            (
                "what is denied",
                "bob",
                &["red"],
                None,
                ("applications", "sync", "shop/bank"),
                false,
            ),
            (
                "a stranger",
                "bob",
                &["green"],
                None,
                ("applications", "sync", "shop/web"),
                false,
            ),
            (
                "sees the project",
                "bob",
                &["red"],
                None,
                ("projects", "get", "shop"),
                true,
            ),
            (
                "does not change the project",
                "bob",
                &["red"],
                None,
                ("projects", "update", "shop"),
                false,
            ),
            (
                "a token",
                "proj:shop:ci",
                &[],
                Some(("shop", "ci")),
                ("applications", "sync", "shop/web"),
                true,
            ),
            (
                "a token elsewhere",
                "proj:shop:ci",
                &[],
                Some(("shop", "ci")),
                ("applications", "get", "bank/web"),
                false,
            ),
            (
                "a token of another role",
                "proj:shop:dev",
                &[],
                Some(("shop", "dev")),
                ("applications", "sync", "shop/web"),
                false,
            ),
            (
                "a token has no groups",
                "proj:shop:dev",
                &["red"],
                Some(("shop", "dev")),
                ("applications", "sync", "shop/web"),
                false,
            ),
            (
                "a user who is only called so",
                "proj:shop:ci",
                &[],
                None,
                ("applications", "sync", "shop/web"),
                false,
            ),
            (
                "groups count as members of roles",
                "bob",
                &["blue"],
                None,
                ("applications", "get", "shop/web"),
                true,
            ),
            (
                "a group is no subject of policies",
                "bob",
                &["painters"],
                None,
                ("applications", "get", "shop/web"),
                false,
            ),
            (
                "a name is",
                "painters",
                &[],
                None,
                ("applications", "get", "shop/web"),
                true,
            ),
        ];
        for (reason, name, groups, project_role, (resource, action, object), expected) in cases {
            let asker = Asker {
                name,
                groups,
                project_role: *project_role,
            };
            let request = Request {
                resource,
                action,
                object,
            };
            assert_eq!(all.permits(asker, request), *expected, "{reason}");
        }
    }

    #[test]
    fn roles_are_read() {
        let object = json!({"spec": {"roles": [{"name": "ci", "description": "x", "policies": ["p"], "jwtTokens": [{"iat": 1}]}]}});
        assert_eq!(read(&object).unwrap(), [shop(&["p"], &[])]);
        assert!(read(&json!({"spec": {}})).unwrap().is_empty());
        assert!(read(&json!({"spec": {"roles": "x"}})).is_err());
    }
}
