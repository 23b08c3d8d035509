//! What is asked (who, which verb, on what), the answer, and the message that a refused client reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairway_text_gotext::strings::push_quoted;

/// Who asks, as authentication found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The user's name, unique among users.
    pub name: String,
    /// An identifier that outlives renaming; often empty.
    pub uid: String,
    /// The groups that the user belongs to.
    pub groups: Vec<String>,
    /// What the authenticator added.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user with a name and groups, without the rest.
    pub fn new<N, G>(name: N, groups: impl IntoIterator<Item = G>) -> Self
    where
        N: Into<String>,
        G: Into<String>,
    {
        Self {
            name: name.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Whether the user is a member of `group`.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|member| member == group)
    }
}

/// One request, as an authorizer sees it.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// `get`, `list`, `create`, ...; for paths outside the API the HTTP method in lower case.
    pub verb: &'a str,
    /// The object or collection that is asked for; none for paths outside the API.
    pub resource: Option<ResourceAttributes<'a>>,
    /// The path, which decides only when `resource` is none.
    pub path: &'a str,
}

/// The object or collection that a request is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceAttributes<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version, or `*`.
    pub version: &'a str,
    /// Plural name.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty for cluster scope and for all namespaces.
    pub namespace: &'a str,
    /// Object name, or empty for a collection.
    pub name: &'a str,
    /// The request's field selector. RBAC ignores it; other authorizers may not.
    pub field_selector: Option<&'a str>,
    /// The request's label selector. RBAC ignores it; other authorizers may not.
    pub label_selector: Option<&'a str>,
}

/// The answer to a request. RBAC only ever allows or has no opinion; the server refuses what nobody allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Allowed; nobody else is asked.
    Allow {
        /// Which rule allowed it.
        reason: Cow<'static, str>,
    },
    /// Refused; nobody else is asked.
    Deny {
        /// Why.
        reason: Cow<'static, str>,
    },
    /// Neither allowed nor refused.
    NoOpinion {
        /// What stood in the way of an answer, for example a role that is missing; often empty.
        reason: Cow<'static, str>,
    },
}

impl Decision {
    /// Whether the request may go on.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// The reason, whatever the answer.
    pub fn reason(&self) -> &str {
        match self {
            Self::Allow { reason } | Self::Deny { reason } | Self::NoOpinion { reason } => reason,
        }
    }
}

/// The message of the `Forbidden` status that answers a refused request; `reason` is the decision's.
pub fn forbidden_message(attributes: &Attributes<'_>, reason: &str) -> String {
    let mut out = String::with_capacity(160);
    match &attributes.resource {
        Some(target) if !target.resource.is_empty() => {
            out.push_str(target.resource);
            if !target.group.is_empty() {
                out.push('.');
                out.push_str(target.group);
            }
            if !target.name.is_empty() {
                out.push(' ');
                push_quoted(&mut out, target.name);
            }
            out.push_str(" is forbidden: ");
        }
        _ => out.push_str("forbidden: "),
    }
    push_escaped_for_html(&mut out, &what_the_user_cannot_do(attributes));
    if !reason.is_empty() {
        out.push_str(": ");
        out.push_str(reason);
    }
    out
}

fn what_the_user_cannot_do(attributes: &Attributes<'_>) -> String {
    let mut out = String::from("User ");
    push_quoted(&mut out, &attributes.user.name);
    out.push_str(" cannot ");
    out.push_str(attributes.verb);
    let Some(target) = &attributes.resource else {
        out.push_str(" path ");
        push_quoted(&mut out, attributes.path);
        return out;
    };
    out.push_str(" resource ");
    if target.subresource.is_empty() {
        push_quoted(&mut out, target.resource);
    } else {
        push_quoted(&mut out, &format!("{}/{}", target.resource, target.subresource));
    }
    out.push_str(" in API group ");
    push_quoted(&mut out, target.group);
    if target.namespace.is_empty() {
        out.push_str(" at the cluster scope");
    } else {
        out.push_str(" in the namespace ");
        push_quoted(&mut out, target.namespace);
    }
    out
}

/// A browser may render the message of a refused request whose path an attacker chose.
fn push_escaped_for_html(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Attributes, ResourceAttributes, UserInfo, forbidden_message};

    fn check(resource: Option<ResourceAttributes<'_>>, verb: &str, path: &str, reason: &str, want: &str) {
        let user = UserInfo::new("u", ["g"]);
        let attributes = Attributes {
            user: &user,
            verb,
            resource,
            path,
        };
        assert_eq!(forbidden_message(&attributes, reason), want);
    }

    #[test]
    fn message_names_object_user_and_scope() {
        let configmap = ResourceAttributes {
            resource: "configmaps",
            namespace: "default",
            name: "x",
            ..ResourceAttributes::default()
        };
        check(
            Some(configmap),
            "get",
            "",
            "",
            r#"configmaps "x" is forbidden: User "u" cannot get resource "configmaps" in API group "" in the namespace "default""#,
        );
        check(
            Some(ResourceAttributes {
                name: "",
                ..configmap
            }),
            "list",
            "",
            r#"RBAC: role.rbac.authorization.k8s.io "r" not found"#,
            r#"configmaps is forbidden: User "u" cannot list resource "configmaps" in API group "" in the namespace "default": RBAC: role.rbac.authorization.k8s.io "r" not found"#,
        );
        let scale = ResourceAttributes {
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            name: "web",
            ..ResourceAttributes::default()
        };
        check(
            Some(scale),
            "update",
            "",
            "",
            r#"deployments.apps "web" is forbidden: User "u" cannot update resource "deployments/scale" in API group "apps" at the cluster scope"#,
        );
    }

    #[test]
    fn message_for_paths_is_safe_to_render() {
        check(
            None,
            "get",
            "/a<b>&",
            "",
            r#"forbidden: User "u" cannot get path "/a&lt;b&gt;&amp;""#,
        );
    }
}
