//! Each service gets its form.

use std::collections::BTreeMap;

use fairway_text_gotemplate::Map;
use fairway_text_gotemplate::value::{Entries, from_json};
use serde_json::{Value, json};

use super::{Message, Request, message};
use crate::config::Config;
use crate::facts::{Commit, Facts};
use crate::functions;
use crate::subscription::Destination;

fn config() -> Config {
    let entries = [
        (
            "service.webhook.ci",
            "url: https://ci.example.com/\nheaders: [{name: X, value: z}]\nbasicAuth: {username: u, password: p}",
        ),
        ("service.email", "{host: mail, port: 25, from: a@b}"),
        (
            "service.slack",
            "{token: t, apiURL: 'http://slack/api', icon: ':ship:', username: Fairway}",
        ),
        ("service.pager", "{}"),
        ("context", "url: https://ui"),
        (
            "template.short",
            "message: '{{.app.metadata.name}} is {{.app.status.sync.status | upper}}'",
        ),
        (
            "template.full",
            r#"
email:
  subject: 'About {{.app.metadata.name}}'
slack:
  attachments: |
    [{"title": "{{.context.url}}", "fields": [{{range $i, $c := .app.list}}{{if $i}},{{end}}{{$c}}{{end}}]}]
webhook:
  ci:
    method: POST
    path: /x/{{.app.metadata.name}}
    body: '{"to": "{{.recipient}}", "by": "{{.serviceType}} {{.context.notificationType}}"}'
  other:
    method: DELETE
"#,
        ),
        (
            "template.mail-body",
            "email:\n  body: <b>{{.app.metadata.name}}</b>",
        ),
        ("template.hook-without-body", "webhook:\n  ci:\n    method: PUT"),
        (
            "template.slack-own",
            "slack:\n  username: '{{.app.metadata.name}}'\n  icon: https://x/i.png\n  blocks: '[{\"type\": \"divider\"}]'\n  notifyBroadcast: true",
        ),
        ("template.not-json", "slack:\n  attachments: nothing"),
        ("template.fails", "message: '{{ fail \"no\" }}'"),
        (
            "template.functions",
            "message: '{{ call .repo.FullNameByRepoURL \"git@h:a/b.git\" }} {{ call .repo.QueryEscape \"a b\" }} {{ (call .time.Parse \"2026-01-02T03:04:05Z\").Format .time.Kitchen }} {{ (call .time.Now).Unix }} {{ (call .repo.GetCommitMetadata \"abc\").Message }} {{ call .strings.ToLower \"X\" }} {{ .secrets.token }} {{ .appProject.metadata.name }}'",
        ),
        (
            "template.asks",
            "message: '{{ (call .repo.GetCommitMetadata \"def\").Author }}'",
        ),
        ("template.unserved", "message: '{{ call .repo.GetAppDetails }}'"),
    ];
    let entries = entries
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let secrets = [("token".to_owned(), "s3cret".to_owned())].into();
    let config = Config::read(&entries, &secrets);
    assert_eq!(config.problems, Vec::<String>::new());
    config
}

fn facts() -> Facts {
    let mut facts = Facts::at(7_000_000_000);
    let commit = Commit {
        message: "Fix".to_owned(),
        ..Commit::default()
    };
    facts.commits.insert("abc".to_owned(), Ok(commit));
    facts
}

fn made(templates: &[&str], to: &str) -> Result<Message, String> {
    let variables = Map::new(Entries::new());
    let app = json!({"metadata": {"name": "web"}, "status": {"sync": {"status": "Synced"}}, "list": [1, 2]});
    variables.set(*b"app", from_json(&app));
    variables.set(*b"appProject", from_json(&json!({"metadata": {"name": "shop"}})));
    variables.set(*b"secrets", from_json(&json!({"token": "s3cret"})));
    functions::add(&variables);
    let templates: Vec<String> = templates.iter().map(|name| (*name).to_owned()).collect();
    message(
        &config(),
        &templates,
        &Destination::parse(to),
        &variables,
        &facts(),
    )
}

fn request(templates: &[&str], to: &str) -> Request {
    match made(templates, to) {
        Ok(Message::Http(request)) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mails() {
    for (templates, to, expected) in [
        (
            &["short", "full"][..],
            "email:a@b, c@d,",
            (&["a@b", "c@d"][..], "About web", "web is SYNCED"),
        ),
        (
            &["full", "short", "mail-body"],
            "email:x",
            (&["x"], "About web", "<b>web</b>"),
        ),
        (&["short"], "email:x", (&["x"], "", "web is SYNCED")),
    ] {
        let Ok(Message::Mail(mail)) = made(templates, to) else {
            panic!("{templates:?}")
        };
        let to: Vec<&str> = mail.to.iter().map(String::as_str).collect();
        assert_eq!((&to[..], mail.subject.as_str(), mail.body.as_str()), expected);
    }
}

#[test]
fn webhooks() {
    let own = (
        "POST",
        "https://ci.example.com/x/web",
        "{\"to\": \"me\", \"by\": \"ci ci\"}",
    );
    for (templates, to, expected) in [
        (&["short", "full"][..], "ci:me", own),
        (&["full", "short"], "ci:me", own),
        (
            &["short"],
            "ci",
            ("GET", "https://ci.example.com/", "web is SYNCED"),
        ),
        (
            &["short", "hook-without-body"],
            "ci",
            ("PUT", "https://ci.example.com/", ""),
        ),
    ] {
        let request = request(templates, to);
        assert_eq!(
            (
                request.method.as_str(),
                request.url.as_str(),
                request.body.as_str()
            ),
            expected,
            "{templates:?}"
        );
        assert_eq!(request.headers, [("X".to_owned(), "z".to_owned())]);
        assert_eq!(request.basic, Some(("u".to_owned(), "p".to_owned())));
    }
}

fn form(request: &Request) -> BTreeMap<String, String> {
    form_urlencoded::parse(request.body.as_bytes())
        .into_owned()
        .collect()
}

#[test]
fn slack() {
    let first = request(&["short", "full"], "slack:ops");
    assert_eq!(
        (first.method.as_str(), first.url.as_str()),
        ("POST", "http://slack/api/chat.postMessage")
    );
    assert!(
        first.is_slack
            && first
                .headers
                .contains(&("Authorization".to_owned(), "Bearer t".to_owned()))
    );
    let fields = form(&first);
    let attachments: Value = serde_json::from_str(&fields["attachments"]).unwrap();
    assert_eq!(attachments, json!([{"title": "https://ui", "fields": [1, 2]}]));
    let rest: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .skip(1)
        .collect();
    assert_eq!(
        rest,
        [
            ("channel", "ops"),
            ("icon_emoji", ":ship:"),
            ("text", "web is SYNCED"),
            ("username", "Fairway")
        ]
    );
    let fields = form(&request(&["full", "slack-own"], "slack:ops"));
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        fields,
        [
            ("blocks", "[{\"type\":\"divider\"}]"),
            ("channel", "ops"),
            ("icon_url", "https://x/i.png"),
            ("reply_broadcast", "true"),
            ("text", ""),
            ("username", "web"),
        ]
    );
}

#[test]
fn functions_are_called() {
    let request = request(&["functions"], "ci");
    assert_eq!(request.body, "a/b a+b 3:04AM 7 Fix x s3cret shop");
}

#[test]
fn what_cannot_be_said_is_named() {
    for (templates, to, why) in [
        (&["none"][..], "email:x", "template 'none' is not supported"),
        (&["short"], "nobody", "service 'nobody' is not supported"),
        (&["short"], "pager", "type pager are not served"),
        (&["fails"], "email:x", "error calling fail: no"),
        (&["short"], "email", "no address"),
        (&["not-json"], "slack:x", "slack.attachments is not a list"),
        (&["asks"], "ci", "not known yet"),
        (&["unserved"], "ci", "GetAppDetails is not served"),
    ] {
        let error = made(templates, to).unwrap_err();
        assert!(error.contains(why), "{templates:?} {to}: {error}");
    }
}
