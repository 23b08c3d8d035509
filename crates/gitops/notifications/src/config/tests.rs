//! Entries of the ConfigMap, right and wrong.

use std::collections::BTreeMap;

use super::service::{Email, Slack, Webhook};
use super::{Config, Service};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn service(key: &str, content: &str) -> Result<Service, String> {
    let secrets = map(&[("token", "s3cret"), ("user", "me"), ("a_b", "c")]);
    let mut config = Config::read(&map(&[(key, content)]), &secrets);
    match config.services.pop_last() {
        Some((_, service)) => Ok(service),
        None => Err(config.problems.join("\n")),
    }
}

#[test]
fn services_are_read() {
    let webhook = |url: &str, headers: &[(&str, &str)], basic: Option<(&str, &str)>| {
        let own = |(one, other): &(&str, &str)| ((*one).to_owned(), (*other).to_owned());
        Service::Webhook(Webhook {
            url: url.to_owned(),
            headers: headers.iter().map(own).collect(),
            basic: basic.as_ref().map(own),
        })
    };
    let email = Email {
        host: "mail".to_owned(),
        port: 25,
        from: "a@b".to_owned(),
        ..Email::default()
    };
    let slack = Slack {
        token: "s3cret".to_owned(),
        api_url: "https://slack.com/api/".to_owned(),
        ..Slack::default()
    };
    for (key, content, expected) in [
        (
            "service.webhook.ci",
            "url: https://ci/$a_b$none\nheaders:\n- {name: Authorization, value: Bearer $token}\n",
            webhook("https://ci/c$none", &[("Authorization", "Bearer s3cret")], None),
        ),
        (
            "service.webhook.ci",
            "{url: 'https://ci', basicAuth: {username: $user, password: x$token}}",
            webhook("https://ci", &[], Some(("me", "xs3cret"))),
        ),
        (
            "service.email",
            "{host: mail, port: 25, from: a@b}",
            Service::Email(email.clone()),
        ),
        (
            "service.email.relay",
            "{host: mail, port: '465', from: a@b, html: true, username: $user, password: 1}",
            Service::Email(Email {
                port: 465,
                is_html: true,
                login: Some(("me".to_owned(), "1".to_owned())),
                ..email.clone()
            }),
        ),
        (
            "service.email",
            "{host: mail, port: 25, from: a@b, username: only}",
            Service::Email(email),
        ),
        ("service.slack", "token: $token", Service::Slack(slack.clone())),
        (
            "service.slack",
            "{token: $token, apiURL: 'http://chat/api', icon: ':x:', username: u, disableUnfurl: true, signingSecret: z}",
            Service::Slack(Slack {
                api_url: "http://chat/api/".to_owned(),
                icon: ":x:".to_owned(),
                username: "u".to_owned(),
                disables_unfurl: true,
                ..slack
            }),
        ),
        (
            "service.telegram",
            "token: x",
            Service::Unserved("telegram".to_owned()),
        ),
    ] {
        let found = service(key, content);
        assert!(found.as_ref() == Ok(&expected), "{key} {content}: {found:?}");
        let shown = format!("{found:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn wrong_entries_are_named_and_left_out() {
    for (key, content, why) in [
        ("service.email", "{host: mail, from: a@b}", "port is missing"),
        ("service.email", "{port: 25, from: a@b}", "host is missing"),
        (
            "service.email",
            "{host: mail, port: 70000, from: a@b}",
            "not a port",
        ),
        ("service.webhook.x", "{headers: []}", "url is missing"),
        (
            "service.webhook.x",
            "{url: 'https://x', insecureSkipVerify: true}",
            "not served",
        ),
        (
            "service.email",
            "{host: mail, port: 25, from: a@b, insecure_skip_verify: true}",
            "not served",
        ),
        ("service.slack", "{}", "token is missing"),
        ("service.webhook.a.b", "url: x", "service.TYPE.NAME"),
        ("service.email", "[", "service.email: "),
        ("trigger.t", "when: x", "list of conditions"),
        ("trigger.t", "- when: a ==\n", "condition 0: when: unexpected end"),
        (
            "trigger.t",
            "- when: 'true'\n  oncePer: (\n",
            "condition 0: oncePer: ",
        ),
        ("template.t", "message: '{{ .x '", "template: t:1"),
        (
            "template.t",
            "message: '{{ env \"HOME\" }}'",
            "function \"env\" not defined",
        ),
        ("template.t", "[]", "template is a map"),
        (
            "subscriptions",
            "- {recipients: [x], selector: 'a in'}",
            "selector",
        ),
        ("subscriptions", "x", "list of subscriptions"),
        ("defaultTriggers", "x", "list of triggers"),
        ("config.yaml", "x", "old form"),
    ] {
        let config = Config::read(
            &map(&[(key, content), ("trigger.good", "- when: true\n  send: [a]\n")]),
            &map(&[]),
        );
        let [problem] = &config.problems[..] else {
            panic!("{key} {content}: {:?}", config.problems);
        };
        assert!(problem.starts_with(key) && problem.contains(why), "{problem}");
        assert_eq!(config.triggers.len(), 1, "the others go on");
    }
}

#[test]
fn the_rest_is_read() {
    let config = Config::read(
        &map(&[
            (
                "trigger.a.b",
                "- when: true\n  oncePer: app.metadata.name\n  send: [one, two]\n  description: d\n- send: [x]\n",
            ),
            ("defaultTriggers", "- good\n"),
            ("defaultTriggers.ci", "- other\n"),
            ("context", "url: https://x\nlevel: 3\n"),
            ("subscriptions", ""),
            ("something.else", "["),
        ]),
        &map(&[("notifiers.yaml", "x")]),
    );
    assert_eq!(config.problems.len(), 1, "{:?}", config.problems);
    let conditions = &config.triggers["a.b"];
    assert_eq!(
        (
            conditions.len(),
            conditions[0].send.len(),
            conditions[0].once_per.is_some()
        ),
        (2, 2, true)
    );
    assert_eq!(conditions[0].description, "d");
    assert_eq!(config.default_triggers, ["good"]);
    assert_eq!(config.service_default_triggers["ci"], ["other"]);
    assert_eq!(config.context, map(&[("url", "https://x"), ("level", "3")]));
}
