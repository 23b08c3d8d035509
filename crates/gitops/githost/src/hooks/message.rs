//! A delivery as a request: Gitea's headers, and the signatures that prove who sent it.

use bytes::Bytes;
use fairway_outbound::Message;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ring::hmac::{self, Algorithm, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};

use super::hook::Hook;
use super::outbox::Task;

/// How long a receiver may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// What is kept of his answer.
pub(crate) const MAX_REPLY: usize = 4 << 10;

/// A keyed digest in hexadecimal digits; nothing without a key, as Gitea has it.
pub(crate) fn signature(algorithm: Algorithm, secret: &str, content: &[u8]) -> String {
    if secret.is_empty() {
        return String::new();
    }
    let tag = hmac::sign(&hmac::Key::new(algorithm, secret.as_bytes()), content);
    hex(tag.as_ref())
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What is sent.
pub(crate) fn message(hook: &Hook, task: &Task) -> Message {
    let (content_type, body) = match hook.is_form {
        false => ("application/json", task.payload.clone()),
        true => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("payload", &task.payload);
            ("application/x-www-form-urlencoded", form.finish())
        }
    };
    let mut headers = headers(hook, task);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Message {
        method: Method::POST,
        url: hook.url.clone(),
        headers,
        body: Bytes::from(body),
        timeout: TIMEOUT,
        max_reply: MAX_REPLY,
    }
}

fn headers(hook: &Hook, task: &Task) -> HeaderMap {
    let content = task.payload.as_bytes();
    let strong = signature(HMAC_SHA256, &hook.secret, content);
    let weak = signature(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &hook.secret, content);
    let mut headers = HeaderMap::new();
    let mut add = |name: &'static str, value: &str| {
        // What cannot be a header's value is not sent; ids and names always can.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    for (delivery, event, kind) in [
        ("x-gitea-delivery", "x-gitea-event", "x-gitea-event-type"),
        ("x-gogs-delivery", "x-gogs-event", "x-gogs-event-type"),
        ("x-github-delivery", "x-github-event", "x-github-event-type"),
    ] {
        add(delivery, &task.uuid);
        add(event, task.kind.event());
        add(kind, task.kind.name());
    }
    add("x-gitea-signature", &strong);
    add("x-gogs-signature", &strong);
    add("x-hub-signature", &format!("sha1={weak}"));
    add("x-hub-signature-256", &format!("sha256={strong}"));
    add("user-agent", concat!("fairway/", env!("CARGO_PKG_VERSION")));
    if !hook.authorization.is_empty()
        && let Ok(mut value) = HeaderValue::from_str(&hook.authorization)
    {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hooks::Kind;

    #[test]
    fn deliveries_are_signed_as_gitea_signs_them() {
        let asked = json!({"type": "gitea", "authorization_header": "Bearer x",
                           "config": {"url": "https://h/x", "content_type": "json", "secret": "key"}});
        let hook = Hook::create(1, &asked, "").unwrap();
        let mut task = Task::new(
            1,
            Kind::PullRequestComment,
            "The quick brown fox jumps over the lazy dog".to_owned(),
        )
        .unwrap();
        task.uuid = "u".to_owned();
        let sent = message(&hook, &task);
        let of = |name: &str| sent.headers.get(name).map_or("", |value| value.to_str().unwrap());
        let strong = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
        assert_eq!(of("x-gitea-signature"), strong);
        assert_eq!(of("x-hub-signature-256"), format!("sha256={strong}"));
        assert_eq!(
            of("x-hub-signature"),
            "sha1=de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"
        );
        assert_eq!(
            (of("x-gitea-event"), of("x-gitea-event-type")),
            ("issue_comment", "pull_request_comment")
        );
        assert_eq!(
            (of("x-github-event"), of("x-gogs-delivery")),
            ("issue_comment", "u")
        );
        assert_eq!(
            (of("authorization"), of("content-type")),
            ("Bearer x", "application/json")
        );
    }

    #[test]
    fn a_form_holds_the_same_payload_and_no_secret_no_signature() {
        let asked = json!({"type": "gogs", "config": {"url": "https://h/x", "content_type": "form"}});
        let hook = Hook::create(1, &asked, "").unwrap();
        let sent = message(&hook, &Task::new(1, Kind::Push, "{\"a\": 1}".to_owned()).unwrap());
        assert_eq!(sent.body, "payload=%7B%22a%22%3A+1%7D");
        assert_eq!(sent.headers["x-gitea-signature"], "");
        assert!(!sent.headers.contains_key("authorization"));
    }
}
