//! Who asks, in which workspace, and what he may: the kernel judges the token and the rights, for each request anew.

use fairway_controller::access;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;

/// The longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish<'a> {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub namespace: Option<&'a str>,
    pub name: Option<&'a str>,
}

/// The token of a request.
pub(crate) fn token(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim();
    let is_good = scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() && rest.len() <= MAX_TOKEN;
    is_good.then(|| rest.to_owned())
}

/// Who a token belongs to, none if it is not good in the client's workspace.
pub(crate) async fn review(client: Client, token: &str) -> Result<Option<UserInfo>, kube::Error> {
    access::review(client, token, None).await
}

/// Somebody whom another part of the process has found out to be who he is.
pub(crate) fn known(user: &fairway_apiservice::User) -> UserInfo {
    UserInfo {
        username: Some(user.name.clone()),
        uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
    }
}

/// Whether somebody may do something in the client's workspace.
pub(crate) async fn may(client: Client, user: &UserInfo, wish: Wish<'_>) -> Result<bool, kube::Error> {
    let wish = ResourceAttributes {
        group: Some(wish.group.to_owned()),
        resource: Some(wish.resource.to_owned()),
        verb: Some(wish.verb.to_owned()),
        namespace: wish.namespace.map(str::to_owned),
        name: wish.name.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    access::may(client, user.clone(), wish).await
}
