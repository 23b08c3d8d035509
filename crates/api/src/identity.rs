//! `fairway.dev`: people, groups and the programs that they sign in to, and what the API says of who asks.
//!
//! The realm of an organisation is its workspace: `root:acme` is the realm `acme`, the root workspace the realm `root`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::Kind;
use crate::definition::Source;
use crate::fairway::GROUP;

const fn kind(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: GROUP,
        version: "v1alpha1",
        kind,
        plural,
    }
}

/// A person.
pub const USER: Kind = kind("User", "users");
/// People with the same rights.
pub const GROUP_KIND: Kind = kind("Group", "groups");
/// A program that people sign in to.
pub const OIDC_CLIENT: Kind = kind("OIDCClient", "oidcclients");
/// Settings of a realm.
pub const REALM: Kind = kind("Realm", "realms");
/// A sign-in.
pub const SESSION: Kind = kind("Session", "sessions");
/// Secrets, encrypted at rest.
pub const CREDENTIAL: Kind = kind("Credential", "credentials");

/// In the extra of a user: the realm that knows him.
pub const REALM_EXTRA: &str = "authentication.fairway.dev/realm";
/// In the extra of a user: the session that his token is of.
pub const SESSION_EXTRA: &str = "authentication.fairway.dev/session";
/// In the extra of a service account: the user who asked for its token, which counts for as long as he does.
pub const REQUESTED_BY: &str = "authentication.fairway.dev/requested-by";

/// Between the name of a realm and that of a user or a group. A name with it is never one of Kubernetes' own, which begin with
/// `system:`.
pub const SEPARATOR: char = '/';
/// The group that everybody in a realm is in.
pub const EVERYONE: &str = "everyone";

/// The longest token that is looked into.
const MAX_TOKEN: usize = 16 * 1024;

/// The workspace, as a path or an id, in which a token is to be reviewed: that of the realm that it claims to be from, or of the
/// service account that it claims to be of. Nothing of it is believed; it only says whom to ask.
pub fn home_of_token(token: &str) -> Option<String> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b':')
    };
    if let Some(cluster) = claims
        .pointer("/kubernetes.io/clusterName")
        .and_then(Value::as_str)
    {
        return is_name(cluster).then(|| cluster.to_owned());
    }
    let (_, realm) = claims["iss"].as_str()?.split_once("/realms/")?;
    is_name(realm).then(|| workspace_of_realm(realm))
}

/// The path of a realm's workspace.
pub fn workspace_of_realm(realm: &str) -> String {
    match realm {
        "root" => realm.to_owned(),
        _ => format!("root:{realm}"),
    }
}

/// What is known of the kinds.
pub(crate) static SOURCES: [Source; 1] = [Source {
    group: GROUP,
    facts: include_str!("../data/identity.facts"),
    words: include_str!("../data/identity.words"),
    annotations: &[],
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity_definitions;

    #[test]
    fn the_home_of_a_token_is_a_hint() {
        let token = |claims: &str| format!("e30.{}.s", URL_SAFE_NO_PAD.encode(claims));
        for (token, home) in [
            (
                token(r#"{"iss":"https://id.x:1/realms/acme"}"#),
                Some("root:acme"),
            ),
            (token(r#"{"iss":"https://id.x:1/realms/root"}"#), Some("root")),
            (token(r#"{"iss":"https://id.x:1/realms/../x"}"#), None),
            (token(r#"{"iss":"https://id.x:1/realms/"}"#), None),
            (token(r#"{"iss":"https://other"}"#), None),
            (
                token(r#"{"kubernetes.io":{"clusterName":"abc"},"iss":"x"}"#),
                Some("abc"),
            ),
            (token(r#"{"kubernetes.io":{"clusterName":"a/b"}}"#), None),
            ("opaque".to_owned(), None),
            ("x".repeat(MAX_TOKEN + 1), None),
        ] {
            assert_eq!(home_of_token(&token).as_deref(), home, "{token:.80}");
        }
    }

    #[test]
    fn the_definitions_are_those_of_the_constants() {
        let found: Vec<_> = identity_definitions()
            .iter()
            .map(|it| (it.kind().kind, it.kind().plural, it.kind().sealed))
            .collect();
        let expected: Vec<_> = [USER, GROUP_KIND, OIDC_CLIENT, REALM, SESSION, CREDENTIAL]
            .iter()
            .map(|it| (it.kind, it.plural, matches!(it.kind, "Session" | "Credential")))
            .collect();
        assert_eq!(found, expected);
    }
}
