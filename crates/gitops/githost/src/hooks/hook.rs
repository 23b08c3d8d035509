//! A webhook: where to, of what, in which form. As it is kept, as it is asked for, and as it is shown.

use fairway_text_glob::matches_between;
use serde_json::{Value, json};

use super::Kind;

/// Every event that Gitea knows, in its order. Those that never happen here can be chosen all the same.
const EVENTS: [&str; 23] = [
    "create",
    "delete",
    "fork",
    "push",
    "issues",
    "issue_assign",
    "issue_label",
    "issue_milestone",
    "issue_comment",
    "pull_request",
    "pull_request_assign",
    "pull_request_label",
    "pull_request_milestone",
    "pull_request_comment",
    "pull_request_review_approved",
    "pull_request_review_rejected",
    "pull_request_review_comment",
    "pull_request_sync",
    "wiki",
    "repository",
    "release",
    "package",
    "pull_request_review_request",
];
/// The longest secret, header or filter.
const MAX_TEXT: usize = 4096;

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) is_form: bool,
    pub(crate) secret: String,
    pub(crate) authorization: String,
    pub(crate) events: Vec<String>,
    pub(crate) branch_filter: String,
    pub(crate) active: bool,
    pub(crate) created: String,
    pub(crate) updated: String,
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or("").to_owned()
}

fn bounded(what: &str, text: String) -> Result<String, String> {
    match text.len() <= MAX_TEXT {
        true => Ok(text),
        false => Err(format!("{what} is longer than {MAX_TEXT} bytes")),
    }
}

impl Hook {
    /// What somebody asks for.
    pub(crate) fn create(id: u64, asked: &Value, now: &str) -> Result<Self, String> {
        let kind = text(asked, "type");
        if !["gitea", "gogs"].contains(&kind.as_str()) {
            return Err(format!(
                "Invalid hook type: {kind:?}; gitea and gogs are served here"
            ));
        }
        for name in ["url", "content_type"] {
            if asked["config"].get(name).is_none() {
                return Err(format!("Missing config option: {name}"));
            }
        }
        let mut hook = Self {
            id,
            kind,
            url: String::new(),
            is_form: false,
            secret: String::new(),
            authorization: String::new(),
            events: Vec::new(),
            branch_filter: String::new(),
            active: asked["active"].as_bool().unwrap_or(false),
            created: now.to_owned(),
            updated: now.to_owned(),
        };
        hook.change(asked, now)?;
        Ok(hook)
    }

    /// Takes over what somebody asks for. As in Gitea, events, filter and header that are not named go back to their default.
    pub(crate) fn change(&mut self, asked: &Value, now: &str) -> Result<(), String> {
        let config = &asked["config"];
        if config.get("url").is_some() {
            let url = text(config, "url");
            fairway_outbound::target(&url).map_err(|error| error.to_string())?;
            self.url = url;
        }
        if config.get("content_type").is_some() {
            self.is_form = match text(config, "content_type").as_str() {
                "json" => false,
                "form" => true,
                _ => return Err("Invalid content type".to_owned()),
            };
        }
        if let Some(method) = config["http_method"].as_str()
            && !method.eq_ignore_ascii_case("post")
        {
            return Err("only POST is sent".to_owned());
        }
        if config.get("secret").is_some() {
            self.secret = bounded("the secret", text(config, "secret"))?;
        }
        let authorization = bounded("authorization_header", text(asked, "authorization_header"))?;
        if http::HeaderValue::from_str(&authorization).is_err() {
            return Err("authorization_header is not the value of a header".to_owned());
        }
        self.authorization = authorization;
        self.branch_filter = bounded("branch_filter", text(asked, "branch_filter"))?;
        self.events = events(&asked["events"])?;
        if let Some(active) = asked["active"].as_bool() {
            self.active = active;
        }
        now.clone_into(&mut self.updated);
        Ok(())
    }

    /// Whether it is to be told.
    pub(crate) fn wants(&self, kind: Kind, branch: Option<&str>) -> bool {
        let is_chosen = self.events.iter().any(|event| event == kind.name());
        let is_filtered = matches!(kind, Kind::Push | Kind::Create | Kind::Delete);
        let passes = match (branch, self.branch_filter.as_str()) {
            (_, "" | "*") => true,
            (Some(branch), filter) if is_filtered => matches_between(filter, branch, &[]),
            _ => true,
        };
        is_chosen && passes
    }

    /// As it is shown: never with its secret.
    pub(crate) fn shape(&self) -> Value {
        json!({
            "id": self.id, "type": self.kind, "branch_filter": self.branch_filter,
            "config": {"content_type": if self.is_form { "form" } else { "json" }, "url": self.url},
            "events": self.events, "authorization_header": self.authorization, "active": self.active,
            "updated_at": self.updated, "created_at": self.created,
        })
    }

    /// As it is kept.
    pub(crate) fn record(&self) -> Value {
        let mut record = self.shape();
        record["secret"] = self.secret.as_str().into();
        record
    }

    /// Reads what is kept.
    pub(crate) fn read(record: &Value) -> Option<Self> {
        let events = record["events"].as_array()?;
        Some(Self {
            id: record["id"].as_u64()?,
            kind: text(record, "type"),
            url: record["config"]["url"].as_str()?.to_owned(),
            is_form: record["config"]["content_type"] == "form",
            secret: text(record, "secret"),
            authorization: text(record, "authorization_header"),
            events: events
                .iter()
                .filter_map(|event| event.as_str().map(str::to_owned))
                .collect(),
            branch_filter: text(record, "branch_filter"),
            active: record["active"] == true,
            created: text(record, "created_at"),
            updated: text(record, "updated_at"),
        })
    }
}

/// The events that a list of names means: `pull_request` and `issues` mean all of their family, as in Gitea.
fn events(asked: &Value) -> Result<Vec<String>, String> {
    let names: Vec<String> = asked
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_ascii_lowercase))
        .collect();
    if names.is_empty() {
        return Ok(vec!["push".to_owned()]);
    }
    let has = |name: &str| names.iter().any(|known| known == name);
    for name in &names {
        let is_known = EVENTS.contains(&name.as_str())
            || ["issues_only", "pull_request_only", "pull_request_review"].contains(&name.as_str());
        if !is_known {
            return Err(format!("there is no event {name:?}"));
        }
    }
    let is_on = |event: &str| {
        let family = match event {
            _ if event.starts_with("pull_request") => Some("pull_request"),
            _ if event.starts_with("issue") => Some("issues"),
            _ => None,
        };
        let only = match event {
            "pull_request" => has("pull_request_only"),
            "issues" => has("issues_only"),
            _ if event.starts_with("pull_request_review_") => has("pull_request_review"),
            _ => false,
        };
        has(event) || only || family.is_some_and(has)
    };
    Ok(EVENTS
        .into_iter()
        .filter(|event| is_on(event))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "callers hand over JSON literals")]
    fn asked(more: Value) -> Value {
        let mut asked = json!({"type": "gitea", "active": true, "config": {"url": "https://h/x", "content_type": "json", "secret": "s"}});
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        asked
    }

    #[test]
    fn hooks_are_made_kept_and_shown() {
        let hook = Hook::create(3, &asked(json!({"events": ["push", "pull_request"]})), "now").unwrap();
        assert_eq!(Hook::read(&hook.record()), Some(hook.clone()));
        let shown = hook.shape();
        assert_eq!(
            shown["config"],
            json!({"content_type": "json", "url": "https://h/x"})
        );
        assert!(!shown.to_string().contains("\"s\""), "{shown}");
        assert!(hook.events.contains(&"pull_request_sync".to_owned()));
        let mut edited = hook;
        edited.change(&json!({"active": false}), "later").unwrap();
        assert_eq!(
            (edited.secret.as_str(), edited.active, &edited.events[..]),
            ("s", false, &["push".to_owned()][..])
        );
        assert_eq!(
            (edited.created.as_str(), edited.updated.as_str()),
            ("now", "later")
        );
    }

    #[test]
    fn wrong_hooks_are_refused() {
        for (wrong, why) in [
            (json!({"type": "slack"}), "hook type"),
            (json!({"config": {"url": "https://h"}}), "content_type"),
            (json!({"config": {"content_type": "json"}}), "url"),
            (
                json!({"config": {"url": "ftp://h", "content_type": "json"}}),
                "https://",
            ),
            (
                json!({"config": {"url": "https://u:p@h", "content_type": "json"}}),
                "user name",
            ),
            (
                json!({"config": {"url": "https://h", "content_type": "xml"}}),
                "content type",
            ),
            (
                json!({"config": {"url": "https://h", "content_type": "json", "http_method": "GET"}}),
                "POST",
            ),
            (json!({"events": ["everything"]}), "everything"),
            (json!({"authorization_header": "a\nb"}), "header"),
            (json!({"branch_filter": "x".repeat(5000)}), "longer"),
        ] {
            let found = Hook::create(1, &asked(wrong.clone()), "now").unwrap_err();
            assert!(found.contains(why), "{wrong}: {found}");
        }
    }

    #[test]
    fn a_hook_wants_what_it_chose() {
        // events, filter, what, branch, wanted
        let cases = [
            (json!(["push"]), "", Kind::Push, Some("main"), true),
            (json!([]), "", Kind::Push, Some("main"), true),
            (json!(["push"]), "", Kind::Create, Some("main"), false),
            (json!(["push"]), "release/*", Kind::Push, Some("main"), false),
            (json!(["push"]), "release/*", Kind::Push, Some("release/1"), true),
            (
                json!(["push"]),
                "{main,release/*}",
                Kind::Push,
                Some("main"),
                true,
            ),
            (json!(["push"]), "main", Kind::Push, None, true),
            (
                json!(["pull_request"]),
                "other",
                Kind::PullRequest,
                Some("main"),
                true,
            ),
            (json!(["pull_request"]), "", Kind::PullRequestComment, None, true),
            (
                json!(["pull_request_only"]),
                "",
                Kind::PullRequestComment,
                None,
                false,
            ),
            (json!(["pull_request_only"]), "", Kind::PullRequest, None, true),
            (
                json!(["pull_request_comment"]),
                "",
                Kind::PullRequestComment,
                None,
                true,
            ),
        ];
        for (events, filter, kind, branch, expected) in cases {
            let hook =
                Hook::create(1, &asked(json!({"events": events, "branch_filter": filter})), "").unwrap();
            assert_eq!(
                hook.wants(kind, branch),
                expected,
                "{events} {filter} {kind:?} {branch:?}"
            );
        }
    }
}
