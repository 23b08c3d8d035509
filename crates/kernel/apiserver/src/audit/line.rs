//! The text of one audit event.
//!
//! A line is written for every request, so it is written straight into its bytes: a tree of it would cost a request half
//! as much again as the decision that it records.

use std::fmt::Write;

use fairway_kernel_authz::UserInfo;

use super::{Entry, MAX_USER_AGENT};
use crate::key::ROOT_CLUSTER;

/// Longer than nearly every line, so that the buffer is allocated once.
const USUAL: usize = 1024;

/// An object or list that is being written. The closing brace is the caller's.
struct Fields<'t> {
    text: &'t mut String,
    first: bool,
}

impl Fields<'_> {
    /// Begins a field. Its name is one of ours; [`Fields::foreign_name`] takes others.
    fn name(&mut self, name: &str) -> &mut String {
        self.separate();
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
        self.text
    }

    fn foreign_name(&mut self, name: &str) -> &mut String {
        self.separate();
        push_string(self.text, name);
        self.text.push(':');
        self.text
    }

    fn separate(&mut self) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
    }

    fn string(&mut self, name: &str, value: &str) {
        push_string(self.name(name), value);
    }

    fn string_unless_empty(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.string(name, value);
        }
    }

    fn object(&mut self, name: &str, write: impl FnOnce(&mut Fields<'_>)) {
        object(self.name(name), write);
    }
}

fn object(text: &mut String, write: impl FnOnce(&mut Fields<'_>)) {
    text.push('{');
    write(&mut Fields { text, first: true });
    text.push('}');
}

/// The line of an entry, with its end.
pub(super) fn write(entry: &Entry<'_>) -> String {
    let mut text = String::with_capacity(USUAL);
    object(&mut text, |event| write_event(event, entry));
    text.push('\n');
    text
}

fn write_event(event: &mut Fields<'_>, entry: &Entry<'_>) {
    event.string("kind", "Event");
    event.string("apiVersion", "audit.k8s.io/v1");
    event.string("level", entry.level.as_str());
    event.string("auditID", entry.id);
    event.string("stage", entry.stage.as_str());
    event.string("requestURI", entry.uri);
    event.string("verb", entry.info.verb);
    match entry.user {
        Some(user) => event.object("user", |fields| write_user(fields, user)),
        None => event.object("user", |_| {}),
    }
    if let Some(user) = entry.impersonated {
        event.object("impersonatedUser", |fields| write_user(fields, user));
    }
    let sources = event.name("sourceIPs");
    match entry.peer.address {
        Some(address) => push_display(sources, format_args!("[\"{address}\"]")),
        None => sources.push_str("[]"),
    }
    match entry.user_agent.get(..MAX_USER_AGENT) {
        Some(start) if start.len() < entry.user_agent.len() => {
            event.string("userAgent", &format!("{start}...TRUNCATED"));
        }
        _ => event.string("userAgent", entry.user_agent),
    }
    if let Some(resource) = &entry.info.resource {
        event.object("objectRef", |fields| {
            fields.string("resource", &resource.resource);
            fields.string("apiVersion", &resource.version);
            fields.string_unless_empty("apiGroup", &resource.group);
            fields.string_unless_empty("namespace", resource.namespace.as_deref().unwrap_or(""));
            fields.string_unless_empty("name", &resource.name);
            fields.string_unless_empty("subresource", &resource.subresource);
        });
    }
    if let Some(outcome) = entry.outcome {
        event.object("responseStatus", |fields| {
            fields.object("metadata", |_| {});
            for (name, value) in outcome.details.iter().flatten() {
                push_display(fields.foreign_name(name), format_args!("{value}"));
            }
            push_display(fields.name("code"), format_args!("{}", outcome.code));
        });
    }
    if let Some(sent) = &entry.sent {
        push_display(event.name("requestObject"), format_args!("{sent}"));
    }
    if let Some(answer) = entry.outcome.and_then(|outcome| outcome.object.as_ref()) {
        push_display(event.name("responseObject"), format_args!("{answer}"));
    }
    event.string("requestReceivedTimestamp", entry.received);
    event.string("stageTimestamp", entry.answered);
    let truncated = entry.outcome.is_some_and(|outcome| outcome.truncated);
    let is_elsewhere = !matches!(entry.info.cluster.as_str(), "" | ROOT_CLUSTER);
    if entry.decision.is_some() || truncated || is_elsewhere {
        event.object("annotations", |fields| {
            if is_elsewhere {
                fields.string("tenancy.kcp.io/workspace", &entry.info.cluster);
                fields.string("kcp.io/path", &entry.info.workspace);
            }
            if let Some((decision, reason)) = entry.decision {
                fields.string("authorization.k8s.io/decision", decision);
                fields.string("authorization.k8s.io/reason", reason);
            }
            if truncated {
                fields.string("audit.k8s.io/truncated", "true");
            }
        });
    }
}

fn write_user(fields: &mut Fields<'_>, user: &UserInfo) {
    fields.string("username", &user.name);
    push_strings(fields.name("groups"), &user.groups);
    fields.string_unless_empty("uid", &user.uid);
    if !user.extra.is_empty() {
        fields.object("extra", |extra| {
            for (name, values) in &user.extra {
                push_strings(extra.foreign_name(name), values);
            }
        });
    }
}

fn push_strings(text: &mut String, strings: &[String]) {
    text.push('[');
    for (i, string) in strings.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        push_string(text, string);
    }
    text.push(']');
}

/// A JSON string.
fn push_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    // Bytes, because all that must be escaped is ASCII, and decoding characters would be most of the cost of a line.
    let must_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    while let Some(at) = rest.bytes().position(must_escape) {
        let (plain, special) = rest.split_at(at);
        text.push_str(plain);
        match special.as_bytes()[0] {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            control => push_display(text, format_args!("\\u{control:04x}")),
        }
        rest = &special[1..];
    }
    text.push_str(rest);
    text.push('"');
}

fn push_display(text: &mut String, value: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(value);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::audit::capture::Outcome;
    use crate::audit::policy::{Level, Stage};
    use crate::authn::Peer;
    use crate::query::Query;
    use crate::request::RequestInfo;

    fn line(uri: &str, user: &UserInfo, impersonated: Option<&UserInfo>) -> Value {
        let path = uri.split('?').next().unwrap();
        let info = RequestInfo::read(&http::Method::GET, path, &Query::parse("").unwrap(), |_| None).unwrap();
        let text = write(&Entry {
            id: "id",
            info: &info,
            uri,
            user: Some(user),
            impersonated,
            peer: &Peer {
                address: Some([127, 0, 0, 1].into()),
                ..Peer::default()
            },
            user_agent: "kubectl/\"v1\" \\ \u{1}ü",
            level: Level::Metadata,
            stage: Stage::ResponseComplete,
            outcome: Some(&Outcome::of_code(200)),
            sent: None,
            received: "then",
            answered: "now",
            decision: Some(("allow", "a \"reason\"\n")),
        });
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_line_is_the_event_in_json() {
        let mut user = UserInfo::new("jane", ["devs", "ops"]);
        user.uid = "7".to_owned();
        user.extra
            .insert("scopes".to_owned(), vec!["a".to_owned(), "b\"".to_owned()]);
        let event = line(
            "/apis/apps/v1/namespaces/n/deployments/d/scale?x=%22",
            &user,
            None,
        );
        assert_eq!(
            event,
            json!({
                "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "id",
                "stage": "ResponseComplete", "requestURI": "/apis/apps/v1/namespaces/n/deployments/d/scale?x=%22",
                "verb": "get",
                "user": {"username": "jane", "groups": ["devs", "ops"], "uid": "7",
                         "extra": {"scopes": ["a", "b\""]}},
                "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl/\"v1\" \\ \u{1}ü",
                "objectRef": {"resource": "deployments", "apiVersion": "v1", "apiGroup": "apps", "namespace": "n",
                              "name": "d", "subresource": "scale"},
                "responseStatus": {"metadata": {}, "code": 200},
                "requestReceivedTimestamp": "then", "stageTimestamp": "now",
                "annotations": {"authorization.k8s.io/decision": "allow",
                                "authorization.k8s.io/reason": "a \"reason\"\n"},
            })
        );
    }

    #[test]
    fn paths_that_are_no_resources_have_no_object() {
        let anonymous = UserInfo::new("system:anonymous", ["system:unauthenticated"]);
        let event = line("/version", &UserInfo::new("root", ["g"]), Some(&anonymous));
        assert!(event.get("objectRef").is_none());
        assert_eq!(event["impersonatedUser"]["username"], "system:anonymous");
    }
}
