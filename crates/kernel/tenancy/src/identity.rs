//! Who a user is in which workspace.
//!
//! A ServiceAccount belongs to one workspace, and other users may be confined to some. Outside, such a user is a stranger:
//! nobody by name, known to have authenticated, and a member of the group of where he comes from. A warrant is a further
//! identity that somebody trusted has attached to a user; a virtual workspace lets a provider in that way.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterId;
use crate::names::{extra, group};

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
const MASTERS: &str = "system:masters";

/// How many identities a user may have, warrants of warrants included.
const MAX_IDENTITIES: usize = 16;

/// A user, as authentication found him.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// His name.
    #[serde(rename = "user")]
    pub name: String,
    /// His UID.
    pub uid: String,
    /// His groups.
    pub groups: Vec<String>,
    /// What else is known of him.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether he is a ServiceAccount.
    pub fn is_service_account(&self) -> bool {
        self.name.starts_with(SERVICE_ACCOUNT_PREFIX)
    }

    fn values(&self, key: &str) -> &[String] {
        self.extra.get(key).map_or(&[], Vec::as_slice)
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Whether he is himself in a workspace. Scopes within one value are alternatives; several values must all allow.
    pub fn is_in_scope(&self, cluster: &ClusterId) -> bool {
        let homes = self.values(extra::CLUSTER_NAME);
        if self.is_service_account() && !homes.is_empty() && !homes.iter().any(|it| it == cluster.as_str()) {
            return false;
        }
        self.values(extra::SCOPES).iter().all(|value| {
            value
                .split(',')
                .any(|scope| scope.strip_prefix("cluster:") == Some(cluster.as_str()))
        })
    }

    /// What is left of him where he is a stranger.
    fn stranger(&self) -> Self {
        let mut groups = vec![
            if self.is_in(AUTHENTICATED) {
                AUTHENTICATED
            } else {
                UNAUTHENTICATED
            }
            .to_owned(),
        ];
        if self.is_in(AUTHENTICATED) {
            groups.extend(self.homes().map(|it| format!("system:cluster:{it}")));
        }
        Self {
            name: ANONYMOUS.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// The workspaces that he comes from: the ServiceAccount's own, or the only ones that he is confined to.
    fn homes(&self) -> impl Iterator<Item = &str> {
        let own = self.values(extra::CLUSTER_NAME).iter().map(String::as_str);
        let scopes = self.values(extra::SCOPES);
        let scope = match scopes {
            [one] => one.strip_prefix("cluster:").filter(|it| !it.contains(',')),
            _ => None,
        };
        let scope = scope.filter(|it| !self.values(extra::CLUSTER_NAME).iter().any(|own| own == it));
        own.chain(scope)
    }

    /// The name under which a ServiceAccount is known in other workspaces.
    fn global_name(&self) -> Option<String> {
        let rest = self.name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?;
        match self.values(extra::CLUSTER_NAME) {
            [home] => Some(format!("system:kcp:serviceaccount:{home}:{rest}")),
            _ => None,
        }
    }

    /// Everybody that he is in a workspace. A request is allowed if one of them may make it.
    pub fn identities(&self, cluster: &ClusterId) -> Vec<Self> {
        let mut found = Vec::new();
        self.collect(cluster, &mut found, 0);
        found
    }

    fn collect(&self, cluster: &ClusterId, found: &mut Vec<Self>, depth: usize) {
        if found.len() >= MAX_IDENTITIES || depth > 4 {
            return;
        }
        if self.is_in_scope(cluster) {
            let mut own = self.clone();
            own.extra.remove(extra::WARRANT);
            found.push(own);
        } else {
            found.push(self.stranger());
            if let Some(name) = self.global_name().filter(|_| self.is_in(AUTHENTICATED)) {
                found.push(Self {
                    name,
                    groups: vec![AUTHENTICATED.to_owned()],
                    ..Self::default()
                });
            }
        }
        for warrant in self.values(extra::WARRANT) {
            let Ok(warrant) = serde_json::from_str::<Self>(warrant) else {
                continue;
            };
            // A ServiceAccount is somebody only within its workspace, so a warrant for one has to name that.
            if warrant.is_service_account() && warrant.values(extra::CLUSTER_NAME).is_empty() {
                continue;
            }
            warrant.collect(cluster, found, depth + 1);
        }
    }

    /// The groups that count in a workspace, of all his identities.
    pub fn effective_groups(&self, cluster: &ClusterId) -> BTreeSet<String> {
        self.identities(cluster)
            .into_iter()
            .flat_map(|identity| identity.groups)
            .collect()
    }

    /// Himself with a prefix before name and groups, as an export's maximal permission policy knows him.
    pub fn prefixed(&self, prefix: &str) -> Self {
        let name = if self.is_service_account() {
            match self.global_name() {
                Some(name) => name,
                // Whose ServiceAccount it is nobody can say.
                None => return self.stranger().prefixed(prefix),
            }
        } else {
            self.name.clone()
        };
        let mut extra_values = self.extra.clone();
        let warrants: Vec<String> = self
            .values(extra::WARRANT)
            .iter()
            .filter_map(|it| serde_json::from_str::<Self>(it).ok())
            .filter_map(|it| serde_json::to_string(&it.prefixed(prefix)).ok())
            .take(MAX_IDENTITIES)
            .collect();
        extra_values.remove(extra::WARRANT);
        if !warrants.is_empty() {
            extra_values.insert(extra::WARRANT.to_owned(), warrants);
        }
        Self {
            name: format!("{prefix}{name}"),
            uid: self.uid.clone(),
            groups: self.groups.iter().map(|it| format!("{prefix}{it}")).collect(),
            extra: extra_values,
        }
    }

    /// Himself, confined to a workspace: after impersonation there, or when the workspace's own issuer vouched for him.
    #[must_use]
    pub fn confined_to(mut self, cluster: &ClusterId) -> Self {
        self.extra
            .entry(extra::SCOPES.to_owned())
            .or_default()
            .push(format!("cluster:{cluster}"));
        self
    }
}

/// Whether a member of `held` may impersonate somebody with the groups `wanted`, before RBAC is asked. Groups with powers
/// over workspaces cannot be had by impersonation, except by those who have them.
pub fn may_impersonate(held: &[String], wanted: &[String]) -> bool {
    let has = |name: &str| held.iter().any(|it| it == name);
    let special = [
        MASTERS,
        AUTHENTICATED,
        group::ADMIN,
        group::LOGICAL_CLUSTER_ADMIN,
        group::EXTERNAL_LOGICAL_CLUSTER_ADMIN,
        group::WORKSPACE_BOOTSTRAPPER,
    ];
    has(MASTERS) || wanted.iter().all(|it| !special.contains(&it.as_str()) || has(it))
}

/// Why a user that a workspace's own issuer vouched for is refused; else the user as the workspace may see him: without
/// groups and extra values that the system gives meaning to, and confined to that workspace.
pub fn from_workspace_issuer(user: &User, cluster: &ClusterId) -> Result<User, &'static str> {
    if user.name.starts_with("system:") {
        return Err("system usernames are not admitted");
    }
    let mut groups: Vec<String> = user
        .groups
        .iter()
        .filter(|it| !it.starts_with("system:"))
        .cloned()
        .collect();
    groups.push(AUTHENTICATED.to_owned());
    let extra_values = user
        .extra
        .iter()
        .filter(|(key, _)| !key.contains("kcp.io"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut user = User {
        name: user.name.clone(),
        uid: user.uid.clone(),
        groups,
        extra: extra_values,
    }
    .confined_to(cluster);
    user.extra
        .insert(extra::CLUSTER_NAME.to_owned(), vec![cluster.to_string()]);
    Ok(user)
}

#[cfg(test)]
mod tests;
