//! Bootstrap tokens: what a host shows that is to become a node, before it has a certificate.
//!
//! A token is a Secret `bootstrap-token-ID` in `kube-system` of the root workspace, with upstream's type and fields. It stands for the
//! user `system:bootstrap:ID`, who may ask for a node's certificate and for nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_authz::UserInfo;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;

/// The type of such Secrets.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Whoever came with a token.
const GROUP: &str = "system:bootstrappers";
/// Lengths of both parts of a token.
const ID: usize = 6;
const SECRET: usize = 16;

/// The parts of what looks like such a token: `abcdef.0123456789abcdef`.
pub fn parse(token: &str) -> Option<(&str, &str)> {
    let is_part = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let (id, secret) = token.split_once('.')?;
    (is_part(id, ID) && is_part(secret, SECRET)).then_some((id, secret))
}

/// The user of a token, if it looks like one of these.
pub(super) fn authenticate(kernel: &Kernel, cluster: &str, token: &str) -> Option<Result<UserInfo, String>> {
    let (id, secret) = parse(token)?;
    if cluster != ROOT_CLUSTER {
        return Some(Err(
            "bootstrap tokens are known in the root workspace alone".to_owned()
        ));
    }
    let name = format!("bootstrap-token-{id}");
    let found = (kernel.storage.cache).built_in_value("", "secrets", cluster, "kube-system", &name);
    Some(match found {
        Some(found) => judge(&found, id, secret, kernel.clock.unix()),
        None => Err(format!("there is no Secret {name} in kube-system")),
    })
}

/// Whether a Secret says that a token is good, at this time.
fn judge(found: &Value, id: &str, secret: &str, now: i64) -> Result<UserInfo, String> {
    let field = |name: &str| {
        let text = found["data"][name].as_str()?;
        String::from_utf8(STANDARD.decode(text).ok()?).ok()
    };
    let is = |name: &str, value: &str| field(name).as_deref() == Some(value);
    let wrong = |why: &str| Err(format!("the bootstrap token {id} {why}"));
    if found["type"] != SECRET_TYPE || !is("token-id", id) {
        return wrong("has a Secret that is none of a token");
    }
    if !found["metadata"]["deletionTimestamp"].is_null() {
        return wrong("is being deleted");
    }
    // Digests, so that the time of a comparison tells nothing.
    let expected = field("token-secret").unwrap_or_default();
    if digest(&SHA256, expected.as_bytes()).as_ref() != digest(&SHA256, secret.as_bytes()).as_ref() {
        return wrong("has another secret");
    }
    if let Some(end) = field("expiration") {
        let end = end.parse::<jiff::Timestamp>();
        if end.map_or(true, |end| end.as_second() <= now) {
            return wrong("has expired");
        }
    }
    if !is("usage-bootstrap-authentication", "true") {
        return wrong("is not for authentication");
    }
    let more = field("auth-extra-groups").unwrap_or_default();
    let more = more.split(',').map(str::trim).filter(|it| !it.is_empty());
    let mut groups = vec![GROUP.to_owned()];
    for group in more {
        let is_below = group
            .strip_prefix(GROUP)
            .is_some_and(|rest| rest.len() > 1 && rest.starts_with(':'));
        if !is_below {
            return wrong("has a group that does not begin with system:bootstrappers:");
        }
        groups.push(group.to_owned());
    }
    Ok(UserInfo::new(format!("system:bootstrap:{id}"), groups))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tokens_look_like_tokens() {
        assert_eq!(
            parse("abcdef.0123456789abcdef"),
            Some(("abcdef", "0123456789abcdef"))
        );
        for other in [
            "",
            "abcdef",
            "abcde.0123456789abcdef",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcdeg.x",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_is_judged_by_its_secret() {
        let text = |text: &str| STANDARD.encode(text);
        let good = json!({
            "type": SECRET_TYPE,
            "metadata": {"name": "bootstrap-token-abcdef"},
            "data": {
                "token-id": text("abcdef"), "token-secret": text("0123456789abcdef"),
                "expiration": text("1970-01-01T00:01:00Z"), "usage-bootstrap-authentication": text("true"),
                "auth-extra-groups": text("system:bootstrappers:kubeadm:default-node-token"),
            },
        });
        let ask = |object: &Value, secret: &str, now: i64| judge(object, "abcdef", secret, now);
        let user = ask(&good, "0123456789abcdef", 59).unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [GROUP, "system:bootstrappers:kubeadm:default-node-token"]
        );
        assert!(ask(&good, "0123456789abcdeX", 59).is_err(), "another secret");
        assert!(ask(&good, "0123456789abcdef", 60).is_err(), "expired");
        for (field, value, why) in [
            ("/type", json!("Opaque"), "another type"),
            ("/data/token-id", json!(text("bbbbbb")), "another token"),
            ("/data/expiration", json!(text("soon")), "no time"),
            (
                "/data/usage-bootstrap-authentication",
                json!(text("false")),
                "not for this",
            ),
            (
                "/data/auth-extra-groups",
                json!(text("system:masters")),
                "too much",
            ),
            ("/metadata/name", json!({}), ""),
        ] {
            let mut object = good.clone();
            *object.pointer_mut(field).unwrap() = value;
            let refused = ask(&object, "0123456789abcdef", 59).is_err();
            assert_eq!(refused, !why.is_empty(), "{field}");
        }
        let mut leaving = good;
        leaving["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        assert!(ask(&leaving, "0123456789abcdef", 59).is_err());
    }
}
