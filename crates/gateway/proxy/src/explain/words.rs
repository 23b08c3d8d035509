//! What an explanation says of keys, matches and filters, for people.

use fairway_gateway_guard::{HIDDEN, is_secret};
use fairway_gateway_routes::table::{
    Backend, Cors, Filter, HeaderChanges, ListenerKey, Match, Mirror, PathChange, PathMatch, Redirect, Rule,
    RuleKey, Target, Timeouts, ValueMatch,
};
use http::{HeaderName, HeaderValue};

pub(super) fn listener_name(key: &ListenerKey) -> String {
    // Routes of OpenShift hang on no Gateway.
    if key.gateway.is_empty() {
        return format!("the router's listener {}", key.listener);
    }
    format!(
        "Gateway {}/{} listener {}",
        key.namespace, key.gateway, key.listener
    )
}

pub(super) fn rule_name(key: &RuleKey) -> String {
    let section = key
        .section
        .as_ref()
        .map(|name| format!(" ({name})"))
        .unwrap_or_default();
    format!(
        "{} {}/{} rule {}{section}",
        key.kind, key.namespace, key.name, key.rule
    )
}

pub(super) fn match_text(matches: &Match) -> String {
    let value = |value: &ValueMatch| match value {
        ValueMatch::Exact(text) => format!("= {text:?}"),
        ValueMatch::Regex(regex) => format!("~ {:?}", regex.as_str()),
    };
    let mut all = vec![match &matches.path {
        PathMatch::Exact(path) => format!("path = {path}"),
        PathMatch::Prefix(path) => format!("path below {}", if path.is_empty() { "/" } else { path }),
        PathMatch::Regex(regex) => format!("path ~ {}", regex.as_str()),
    }];
    all.extend(matches.method.iter().map(|method| format!("method = {method}")));
    all.extend(
        matches
            .headers
            .iter()
            .map(|one| format!("header {} {}", one.name, value(&one.value))),
    );
    all.extend(
        matches
            .query
            .iter()
            .map(|one| format!("query {} {}", one.name, value(&one.value))),
    );
    all.join(", ")
}

/// As manifests name it.
pub(super) fn filter_name(filter: &Filter) -> &'static str {
    match filter {
        Filter::RequestHeaders(_) => "RequestHeaderModifier",
        Filter::ResponseHeaders(_) => "ResponseHeaderModifier",
        Filter::Redirect(_) => "RequestRedirect",
        Filter::Rewrite { .. } => "URLRewrite",
        Filter::Mirror(_) => "RequestMirror",
        Filter::Cors(_) => "CORS",
    }
}

/// What it does, as a sentence.
pub(super) fn filter_text(filter: &Filter) -> String {
    match filter {
        Filter::RequestHeaders(changes) => format!("of what backends get: {}", changes_text(changes)),
        Filter::ResponseHeaders(changes) => format!("of what the client gets: {}", changes_text(changes)),
        Filter::Redirect(redirect) => redirect_text(redirect),
        Filter::Rewrite { hostname, path } => {
            let host = hostname.as_ref().map(|name| format!("the host becomes {name}"));
            listed(
                host.into_iter().chain(path.as_ref().map(path_text)),
                "changes nothing",
            )
        }
        Filter::Mirror(mirror) => mirror_text(mirror),
        Filter::Cors(cors) => cors_text(cors),
    }
}

/// Names of headers; their values may be secrets.
pub(super) fn names_text(headers: &[(HeaderName, HeaderValue)]) -> String {
    listed(headers.iter().map(|(name, _)| name.to_string()), "nothing")
}

fn listed(all: impl Iterator<Item = String>, none: &str) -> String {
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        none.to_owned()
    } else {
        all.join(", ")
    }
}

fn changes_text(changes: &HeaderChanges) -> String {
    let set = changes
        .set
        .iter()
        .map(|(name, value)| format!("sets {name} to {}", value_text(name, value)));
    let add = changes
        .add
        .iter()
        .map(|(name, value)| format!("adds {name}: {}", value_text(name, value)));
    let remove = changes.remove.iter().map(|name| format!("removes {name}"));
    listed(set.chain(add).chain(remove), "changes nothing")
}

fn value_text(name: &HeaderName, value: &HeaderValue) -> String {
    match is_secret(name.as_str()) {
        true => HIDDEN.to_owned(),
        false => format!("{value:?}"),
    }
}

/// How long is waited for a backend, and what is tried again; nothing, if the rule says nothing of it.
pub(super) fn patience_text(rule: &Rule) -> Option<String> {
    let Timeouts {
        request,
        backend_request,
    } = rule.timeouts;
    let mut all: Vec<String> = Vec::new();
    all.extend(request.map(|time| format!("the whole answer may take {time:?}")));
    all.extend(backend_request.map(|time| format!("each attempt may take {time:?}")));
    all.extend(rule.retry.as_ref().map(|retry| {
        let codes: Vec<String> = retry.codes.iter().map(u16::to_string).collect();
        let codes = match codes.is_empty() {
            true => "no answer".to_owned(),
            false => format!("no answer or one of {}", codes.join(", ")),
        };
        format!(
            "{} more attempts after {codes}, the first {:?} later",
            retry.attempts, retry.backoff
        )
    }));
    all.extend(rule.affinity.as_ref().map(|affinity| {
        let by = if affinity.by_header { "header" } else { "cookie" };
        format!("sessions stay by {by} {}", affinity.name)
    }));
    (!all.is_empty()).then(|| all.join("\n"))
}

fn redirect_text(redirect: &Redirect) -> String {
    let scheme = redirect
        .scheme
        .as_ref()
        .map(|scheme| format!("the scheme becomes {scheme}"));
    let host = redirect
        .hostname
        .as_ref()
        .map(|name| format!("the host becomes {name}"));
    let port = redirect.port.map(|port| format!("the port becomes {port}"));
    let path = redirect.path.as_ref().map(path_text);
    let all = scheme.into_iter().chain(host).chain(port).chain(path);
    format!(
        "answers with {} and another address: {}",
        redirect.status,
        listed(all, "the same one")
    )
}

fn path_text(change: &PathChange) -> String {
    match change {
        PathChange::Full(path) => format!("the path becomes {path}"),
        PathChange::Prefix(prefix) => format!("what the path was matched by becomes {prefix}"),
    }
}

fn mirror_text(mirror: &Mirror) -> String {
    let Mirror {
        to,
        numerator,
        denominator,
    } = mirror;
    let share = if numerator == denominator {
        "every request".to_owned()
    } else {
        format!("{numerator} of {denominator} requests")
    };
    format!(
        "sends {share} to {}, too, and throws its answer away",
        backend_text(to)
    )
}

fn backend_text(backend: &Backend) -> String {
    match &backend.target {
        Target::Cluster(key) => format!("Service {}/{} port {}", key.namespace, key.service, key.port),
        Target::Broken(why) => format!("nobody ({why})"),
    }
}

fn cors_text(cors: &Cors) -> String {
    let origins = listed(cors.origins.iter().cloned(), "no origin");
    let methods = listed(cors.methods.iter().cloned(), "simple methods");
    let headers = listed(cors.headers.iter().cloned(), "no headers of their own");
    let credentials = if cors.credentials { "with" } else { "without" };
    format!("pages of {origins} may ask, {credentials} credentials: methods: {methods}; headers: {headers}")
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::table::ClusterKey;

    use super::*;

    fn name(text: &'static str) -> HeaderName {
        HeaderName::from_static(text)
    }

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    fn mirror(numerator: u32) -> Filter {
        let key = ClusterKey {
            workspace: "root".to_owned(),
            namespace: "team".to_owned(),
            service: "copy".to_owned(),
            port: 80,
            via: String::new(),
        };
        let to = Backend {
            weight: 1,
            target: Target::Cluster(key),
            filters: Vec::new(),
        };
        Filter::Mirror(Mirror {
            to,
            numerator,
            denominator: 100,
        })
    }

    #[test]
    fn filters_are_sentences() {
        let changes = HeaderChanges {
            set: vec![
                (name("x-a"), value("1")),
                (name("authorization"), value("Basic abc")),
            ],
            add: vec![(name("x-b"), value("2"))],
            remove: vec![name("x-c")],
        };
        let redirect = |hostname: Option<&str>, path| {
            Filter::Redirect(Redirect {
                scheme: None,
                hostname: hostname.map(str::to_owned),
                path,
                port: None,
                status: 302,
            })
        };
        let cases = [
            (
                Filter::RequestHeaders(changes),
                "of what backends get: sets x-a to \"1\", sets authorization to (hidden), adds x-b: \"2\", removes x-c",
            ),
            (
                Filter::ResponseHeaders(HeaderChanges::default()),
                "of what the client gets: changes nothing",
            ),
            (
                redirect(Some("other.example.com"), Some(PathChange::Full("/b".to_owned()))),
                "answers with 302 and another address: the host becomes other.example.com, the path becomes /b",
            ),
            (
                redirect(None, None),
                "answers with 302 and another address: the same one",
            ),
            (
                Filter::Rewrite {
                    hostname: None,
                    path: Some(PathChange::Prefix("/v2".to_owned())),
                },
                "what the path was matched by becomes /v2",
            ),
            (
                mirror(5),
                "sends 5 of 100 requests to Service team/copy port 80, too, and throws its answer away",
            ),
            (
                mirror(100),
                "sends every request to Service team/copy port 80, too, and throws its answer away",
            ),
            (
                Filter::Cors(Cors {
                    origins: vec!["https://a.example".to_owned()],
                    methods: vec!["PUT".to_owned()],
                    ..Cors::default()
                }),
                "pages of https://a.example may ask, without credentials: methods: PUT; headers: no headers of their own",
            ),
        ];
        for (filter, expected) in cases {
            assert_eq!(filter_text(&filter), expected);
        }
    }

    #[test]
    fn listeners_without_a_gateway_are_the_routers() {
        let key = |gateway: &str| ListenerKey {
            workspace: "root".to_owned(),
            namespace: "team".to_owned(),
            gateway: gateway.to_owned(),
            listener: "https".to_owned(),
        };
        assert_eq!(listener_name(&key("web")), "Gateway team/web listener https");
        assert_eq!(listener_name(&key("")), "the router's listener https");
    }

    #[test]
    fn headers_are_told_by_name_alone() {
        assert_eq!(names_text(&[]), "nothing");
        let told = [(name("x-user"), value("alice")), (name("x-plan"), value("gold"))];
        assert_eq!(names_text(&told), "x-user, x-plan");
    }
}
