//! Where objects are in the API. Names that people wrote into an instance become part of paths here, so what is no name leads
//! nowhere.

use fairway_controller::ObjectKey;

/// An object of the core group in an instance's namespace; nothing if the name cannot be one.
pub(crate) fn beside(of: &ObjectKey, plural: &str, name: &str) -> Option<String> {
    is_name(name).then(|| format!("/api/v1/namespaces/{}/{plural}/{name}", of.namespace))
}

/// An object of the core group that is in no namespace.
pub(crate) fn cluster(plural: &str, name: &str) -> Option<String> {
    is_name(name).then(|| format!("/api/v1/{plural}/{name}"))
}

/// An instance.
pub(crate) fn instance(key: &ObjectKey) -> String {
    format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}",
        key.namespace, key.name
    )
}

/// Names of objects: lower-case letters, digits, dashes and dots.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || byte == b'-' || byte == b'.';
    (1..=253).contains(&text.len())
        && text.bytes().all(inner)
        && text.bytes().next().is_some_and(plain)
        && text.bytes().last().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;

    use super::*;

    #[test]
    fn what_is_no_name_leads_nowhere() {
        let of = ObjectKey::new(&WorkspaceId::root(), "shop", "web");
        assert_eq!(
            beside(&of, "secrets", "a.b-1").as_deref(),
            Some("/api/v1/namespaces/shop/secrets/a.b-1")
        );
        for wrong in [
            "",
            "..",
            "a/b",
            "../x",
            "a?b",
            "A",
            "a%2f",
            "-a",
            "a ",
            &"a".repeat(254),
        ] {
            assert_eq!(beside(&of, "secrets", wrong), None, "{wrong:?}");
            assert_eq!(cluster("nodes", wrong), None, "{wrong:?}");
        }
    }
}
