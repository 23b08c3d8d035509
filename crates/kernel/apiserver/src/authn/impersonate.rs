//! Acting as somebody else: `Impersonate-*` headers, each part of which must be allowed.

use fairway_kernel_authz::{Attributes, PRIVILEGED_GROUP, ResourceAttributes, UserInfo};
use fairway_kernel_schema::field::quoted;
use http::HeaderMap;

use super::{AUTHENTICATED, UNAUTHENTICATED};
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::status::ApiError;
use fairway_kernel_tenancy::names::extra;

const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The user that the request wants to act as, if it wants to and may.
pub fn impersonate(
    kernel: &Kernel,
    cluster: &str,
    requestor: &UserInfo,
    headers: &HeaderMap,
) -> Result<Option<UserInfo>, ApiError> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("")
            .to_owned()
    };
    let (name, uid) = (text("impersonate-user"), text("impersonate-uid"));
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .map(str::to_owned)
        .collect();
    let extra: Vec<(String, String)> = headers
        .iter()
        .filter_map(|(header, value)| {
            let key = header.as_str().strip_prefix(EXTRA_PREFIX)?;
            Some((decode(key), value.to_str().ok()?.to_owned()))
        })
        .collect();
    if name.is_empty() {
        if !groups.is_empty() || !uid.is_empty() || !extra.is_empty() {
            return Err(ApiError::bad_request(format!(
                "requested {} without impersonating a user name",
                go_user(&uid, &groups, &extra)
            )));
        }
        return Ok(None);
    }
    let check = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let attributes = Attributes {
            user: requestor,
            verb: "impersonate",
            resource: Some(ResourceAttributes {
                group,
                version: "v1",
                resource,
                subresource,
                namespace,
                name,
                ..ResourceAttributes::default()
            }),
            path: "",
        };
        kernel.authorize(cluster, &attributes).map(|_| ())
    };
    let mut user = UserInfo::new(name.clone(), Vec::<String>::new());
    if let Some((namespace, account)) = service_account(&name) {
        check("", "serviceaccounts", "", namespace, account)?;
        if groups.is_empty() {
            user.groups = vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ];
        }
    } else {
        check("", "users", "", "", &name)?;
    }
    for group in &groups {
        check("", "groups", "", "", group)?;
        // Who rules a workspace may be anybody in it, but not the platform.
        if cluster != ROOT_CLUSTER && is_of_the_platform(group) && !requestor.in_group(group) {
            return Err(ApiError::forbidden_text(format!(
                "group {group:?} cannot be impersonated in a workspace"
            )));
        }
    }
    if !uid.is_empty() {
        check("authentication.k8s.io", "uids", "", "", &uid)?;
        user.uid = uid;
    }
    for (key, value) in extra {
        check("authentication.k8s.io", "userextras", &key, "", &value)?;
        user.extra.entry(key).or_default().push(value);
    }
    user.groups.extend(groups);
    if cluster != ROOT_CLUSTER {
        user.extra
            .retain(|key, _| !key.contains("kcp.io/") && key != extra::HOME);
        user.extra
            .insert(extra::SCOPES.to_owned(), vec![format!("cluster:{cluster}")]);
    }
    // Who acts as somebody gets nothing that outlives himself.
    if let Some(bond) = kernel.guests.bond(requestor) {
        user.extra.insert(extra::REQUESTED_BY.to_owned(), vec![bond]);
    }
    let anonymous = name == "system:anonymous";
    let implied = if anonymous { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(implied.to_owned());
    }
    Ok(Some(user))
}

fn is_of_the_platform(group: &str) -> bool {
    group == PRIVILEGED_GROUP || group.starts_with("system:kcp:")
}

/// Namespace and name of a service account's user name.
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?
        .split_once(':')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
}

fn decode(key: &str) -> String {
    form_urlencoded::parse(format!("k={}", key.replace('+', "%2B")).as_bytes())
        .next()
        .map_or_else(|| key.to_owned(), |(_, value)| value.to_lowercase())
}
/// The user as upstream prints it in its refusal.
fn go_user(uid: &str, groups: &[String], extra: &[(String, String)]) -> String {
    let list = |items: Vec<String>| {
        if items.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            format!("[]string{{{}}}", items.join(", "))
        }
    };
    let mut by_key: std::collections::BTreeMap<&str, Vec<String>> = std::collections::BTreeMap::new();
    for (key, value) in extra {
        by_key.entry(key).or_default().push(quoted(value));
    }
    let extra = if by_key.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> = by_key
            .into_iter()
            .map(|(key, values)| format!("{}:{}", quoted(key), list(values)))
            .collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:{extra}}}",
        quoted(uid),
        list(groups.iter().map(|g| quoted(g)).collect())
    )
}
