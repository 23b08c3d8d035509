//! Argo CD's own permissions, for what the engine is asked through the API.
//!
//! Kubernetes' RBAC comes first: it says who may ask at all (`create` on `applications/sync`, ...). Where the control plane has
//! policies (`argocd-rbac-cm`, or `spec.rbac` of an `ArgoCD`), they say what of it is answered; where it has none, Kubernetes
//! alone decides. Tokens of projects' roles are nobody to Kubernetes beyond these requests, so that for them policies decide
//! in any case. Policies that cannot be read permit nothing.

use std::sync::Arc;

use fairway_api::argoproj::{API_VERSION, ARGO_CD, CONTROL_PLANE_EXTRA, PROJECT_ROLES};
use fairway_apiservice::User;
use fairway_controller::{Failure, ObjectKey, Requests, WorkspaceId};
use fairway_gitops_sync::rbac::roles;
use fairway_gitops_sync::rbac::settings::{CONFIG_MAP, KnownUser, RbacSettings};
use fairway_gitops_sync::rbac::{Asker, MatchMode, Policies, Request};
use serde_json::Value;

use crate::engine::Engine;
use crate::settings::{Versioned, remembered};

/// Whom Kubernetes' RBAC does not bind either.
const MASTERS: &str = "system:masters";

/// What was read of installations' policies, until it changes.
#[derive(Default)]
pub(crate) struct Permissions(Versioned<Read>);

/// Settings and their policies, or what is wrong with them.
type Read = Option<Result<(RbacSettings, Policies), String>>;

/// Why something is not answered.
pub(crate) enum NotPermitted {
    /// The policies do not allow it.
    Denied(String),
    /// It could not be found out.
    Failed(Failure),
}

impl From<Failure> for NotPermitted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Engine {
    /// Whether somebody may do something in an installation, whose control plane is the first of these namespaces that has
    /// what is looked for.
    pub(crate) async fn permit(
        &self,
        workspace: &WorkspaceId,
        planes: &[&str],
        user: &User,
        wanted: Request<'_>,
    ) -> Result<(), NotPermitted> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(());
        }
        let denied = || {
            let Request {
                resource,
                action,
                object,
            } = wanted;
            NotPermitted::Denied(format!(
                "permission denied: {resource}, {action}, {object}, sub: {}",
                user.name
            ))
        };
        let requests = Requests::new(self.clients.of(workspace));
        let project_role = match project_role(user, planes) {
            Origin::Elsewhere => return Err(denied()),
            Origin::Here(project, role) => Some((project, role)),
            Origin::Person => None,
        };
        let read = self.policies(&requests, workspace, planes).await?;
        let (groups, mut policies, mode) = match read.as_ref() {
            Some(Ok((settings, policies))) => {
                let extra = |name: &str| extra_of(user, name);
                let known = KnownUser {
                    groups: &user.groups,
                    extra: &extra,
                };
                (settings.groups(known), policies.clone(), settings.mode)
            }
            Some(Err(why)) => return Err(NotPermitted::Denied(format!("permission denied: {why}"))),
            None if project_role.is_none() => return Ok(()),
            None => {
                let none = Policies::read("", "", MatchMode::Glob);
                (Vec::new(), none.unwrap_or_default(), MatchMode::Glob)
            }
        };
        if let Some(name) = wanted.project()
            && let Some(project) = find_project(&requests, planes, name).await?
        {
            // A fault in a project's roles is told where the project is used.
            if let Ok(found) = roles::read(&project) {
                policies.add_roles(name, &found, mode);
            }
        }
        let asker = Asker {
            name: &user.name,
            groups: &groups,
            project_role,
        };
        match policies.permits(asker, wanted) {
            true => Ok(()),
            false => Err(denied()),
        }
    }

    /// The policies of the first control plane that has any. What the operator is told it writes into the ConfigMap, so that
    /// its kind comes first.
    async fn policies(
        &self,
        requests: &Requests,
        workspace: &WorkspaceId,
        planes: &[&str],
    ) -> Result<Arc<Read>, Failure> {
        for namespace in planes {
            let all = format!(
                "/apis/{}/namespaces/{namespace}/{}",
                ARGO_CD.api_version(),
                ARGO_CD.plural
            );
            // Where the kind is not served there is no operator.
            let mut found = match requests.get(&all).await? {
                Some(mut list) => match list["items"].take() {
                    Value::Array(items) => items,
                    _ => Vec::new(),
                },
                None => Vec::new(),
            };
            found.sort_by(|a, b| name_of(a).cmp(name_of(b)));
            for object in &found {
                let key = ObjectKey::new(workspace, namespace, &format!("argocd/{}", name_of(object)));
                let read = remembered(&self.permissions.0, key, object, || {
                    read(RbacSettings::of_operator(object), || {
                        format!("spec.rbac of the ArgoCD {}", name_of(object))
                    })
                });
                if read.is_some() {
                    return Ok(read);
                }
            }
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{CONFIG_MAP}");
            if let Some(config) = requests.get(&path).await? {
                let key = ObjectKey::new(workspace, namespace, CONFIG_MAP);
                let read = remembered(&self.permissions.0, key, &config, || {
                    read(RbacSettings::of_config_map(&config), || CONFIG_MAP.to_owned())
                });
                if read.is_some() {
                    return Ok(read);
                }
            }
        }
        Ok(Arc::new(None))
    }
}

fn read(settings: Option<RbacSettings>, place: impl Fn() -> String) -> Read {
    let settings = settings?;
    let policies = settings.policies();
    Some(match policies {
        Ok(policies) => Ok((settings, policies)),
        Err(why) => Err(format!("{} cannot be used: {why}", place())),
    })
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// A project of the first of these namespaces that has it.
pub(crate) async fn find_project(
    requests: &Requests,
    planes: &[&str],
    name: &str,
) -> Result<Option<Value>, Failure> {
    for namespace in planes {
        let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/appprojects/{name}");
        if let Some(project) = requests.get(&path).await? {
            return Ok(Some(project));
        }
    }
    Ok(None)
}

/// What is known of a user by a name, or by one that ends in it after a slash.
fn extra_of<'a>(user: &'a User, name: &str) -> Vec<&'a str> {
    let is_meant = |key: &str| key == name || key.rsplit_once('/').is_some_and(|(_, last)| last == name);
    let meant = user.extra.iter().filter(|(key, _)| is_meant(key));
    meant
        .flat_map(|(_, values)| values.iter().map(String::as_str))
        .collect()
}

/// Whether somebody came with the token of a project's role, and of which control plane.
enum Origin<'a> {
    Person,
    Here(&'a str, &'a str),
    Elsewhere,
}

fn project_role<'a>(user: &'a User, planes: &[&str]) -> Origin<'a> {
    if !user.groups.iter().any(|group| group == PROJECT_ROLES) {
        return Origin::Person;
    }
    let of = user
        .extra
        .get(CONTROL_PLANE_EXTRA)
        .and_then(|values| values.first());
    let role = user
        .name
        .strip_prefix(roles::PREFIX)
        .and_then(|rest| rest.split_once(':'));
    match (of, role) {
        (Some(of), Some((project, role))) if planes.contains(&of.as_str()) => Origin::Here(project, role),
        _ => Origin::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str], extra: &[(&str, &str)]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|&it| it.to_owned()).collect(),
            extra: extra
                .iter()
                .map(|&(key, value)| (key.to_owned(), vec![value.to_owned()]))
                .collect(),
            ..User::default()
        }
    }

    #[test]
    fn who_came_with_a_project_s_token() {
        let plane = [(CONTROL_PLANE_EXTRA, "argocd")];
        let cases = [
            ("a person", user("bob", &["red"], &[]), "person"),
            (
                "who is only called so",
                user("proj:shop:ci", &[], &plane),
                "person",
            ),
            (
                "a role",
                user("proj:shop:ci", &[PROJECT_ROLES], &plane),
                "shop/ci",
            ),
            (
                "of another control plane",
                user(
                    "proj:shop:ci",
                    &[PROJECT_ROLES],
                    &[(CONTROL_PLANE_EXTRA, "openshift-gitops")],
                ),
                "elsewhere",
            ),
            (
                "of none",
                user("proj:shop:ci", &[PROJECT_ROLES], &[]),
                "elsewhere",
            ),
            ("no role", user("bob", &[PROJECT_ROLES], &plane), "elsewhere"),
        ];
        for (reason, user, expected) in cases {
            let found = match project_role(&user, &["argocd"]) {
                Origin::Person => "person".to_owned(),
                Origin::Elsewhere => "elsewhere".to_owned(),
                Origin::Here(project, role) => format!("{project}/{role}"),
            };
            assert_eq!(found, expected, "{reason}");
        }
    }

    #[test]
    fn what_else_is_known_of_a_user() {
        let user = user(
            "bob",
            &[],
            &[
                ("example.com/email", "b@example.com"),
                ("email", "c@example.com"),
                ("x/mail", "d"),
            ],
        );
        assert_eq!(extra_of(&user, "email"), ["c@example.com", "b@example.com"]);
        assert!(extra_of(&user, "phone").is_empty());
    }
}
