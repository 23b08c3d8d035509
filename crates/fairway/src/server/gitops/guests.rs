//! Tokens of projects' roles at the door of the API: a user of their own, known in their workspace alone.

use std::collections::BTreeMap;

use fairway_api::argoproj::{CONTROL_PLANE_EXTRA, PROJECT_ROLES};
use fairway_gitops_engine::ProjectTokens;
use fairway_kernel_apiserver::authn::{Guests, UserInfo};
use fairway_kernel_tenancy::names::extra;
use futures::future::BoxFuture;

/// Whoever comes with such a token.
pub(super) struct ProjectRoles(pub(super) ProjectTokens);

impl Guests for ProjectRoles {
    fn authenticate<'a>(
        &'a self,
        cluster: &'a str,
        token: &'a str,
    ) -> BoxFuture<'a, Option<Result<UserInfo, String>>> {
        Box::pin(async move {
            let found = self.0.authenticate(cluster, token).await?;
            Some(found.map(|bearer| {
                let mut user = UserInfo::new(&bearer.name, [PROJECT_ROLES]);
                user.extra = BTreeMap::from([
                    (extra::CLUSTER_NAME.to_owned(), vec![cluster.to_owned()]),
                    (extra::SCOPES.to_owned(), vec![format!("cluster:{cluster}")]),
                    (CONTROL_PLANE_EXTRA.to_owned(), vec![bearer.control_plane]),
                ]);
                user
            }))
        })
    }
}
