//! The fast look-up against the plain loop, on tables and requests that are made to collide.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use regex::Regex;

use super::{Matcher, Miss, Request};
use crate::hostname;
use crate::table::{
    Action, Entry, HeaderMatch, HostPattern, Listener, ListenerKey, Match, Names, PathMatch, QueryMatch,
    Rule, RuleKey, Timeouts, ValueMatch,
};

fn listener_key() -> ListenerKey {
    ListenerKey {
        workspace: "w".into(),
        namespace: "n".into(),
        gateway: "g".into(),
        listener: "http".into(),
    }
}

fn entry(matches: Match, rule: usize) -> Entry {
    let key = RuleKey {
        listener: listener_key(),
        kind: "HTTPRoute",
        namespace: "n".into(),
        name: "r".into(),
        rule,
        section: None,
    };
    Entry {
        matches,
        rule: Arc::new(Rule {
            key,
            filters: Vec::new(),
            action: Action::Answered,
            timeouts: Timeouts::default(),
            retry: None,
            affinity: None,
        }),
    }
}

fn listener(hosts: Vec<(HostPattern, Vec<Match>)>) -> Listener {
    let mut routes = Names::default();
    let mut rule = 0;
    for (pattern, matches) in hosts {
        let entries = matches
            .into_iter()
            .map(|one| {
                rule += 1;
                entry(one, rule)
            })
            .collect();
        routes.insert(pattern, Arc::new(entries));
    }
    Listener {
        key: listener_key(),
        routes,
    }
}

fn path(path: PathMatch) -> Match {
    Match {
        path,
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
    }
}

/// Few segments, so that paths meet.
fn any_path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![Just(""), Just("a"), Just("b"), Just("ab")];
    proptest::collection::vec(segment, 0..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn any_path_match() -> impl Strategy<Value = PathMatch> {
    prop_oneof![
        any_path().prop_map(PathMatch::Exact),
        any_path().prop_map(|path| {
            let whole = path.trim_end_matches('/');
            PathMatch::Prefix(if whole.is_empty() {
                "/".into()
            } else {
                whole.into()
            })
        }),
        prop_oneof![Just("^(?:/a.*)$"), Just("^(?:.*b)$"), Just("^(?:/[^/]*)$")]
            .prop_map(|text| PathMatch::Regex(Regex::new(text).unwrap())),
    ]
}

fn any_value() -> impl Strategy<Value = ValueMatch> {
    prop_oneof![
        Just(ValueMatch::Exact("1".into())),
        Just(ValueMatch::Exact("2".into())),
        Just(ValueMatch::Regex(Regex::new("^(?:1|3)$").unwrap())),
    ]
}

fn any_match() -> impl Strategy<Value = Match> {
    let header = (prop_oneof![Just("x-a"), Just("x-b")], any_value()).prop_map(|(name, value)| HeaderMatch {
        name: HeaderName::from_static(name),
        value,
    });
    let query = (prop_oneof![Just("p"), Just("q")], any_value()).prop_map(|(name, value)| QueryMatch {
        name: name.into(),
        value,
    });
    (
        any_path_match(),
        prop_oneof![3 => Just(None), 1 => Just(Some(Method::GET)), 1 => Just(Some(Method::POST))],
        proptest::collection::vec(header, 0..2),
        proptest::collection::vec(query, 0..2),
    )
        .prop_map(|(path, method, headers, query)| Match {
            path,
            method,
            headers,
            query,
        })
}

fn any_host() -> impl Strategy<Value = HostPattern> {
    prop_oneof![
        Just("a.example.com"),
        Just("b.a.example.com"),
        Just("*.example.com"),
        Just("*.a.example.com"),
        Just(""),
    ]
    .prop_map(|text| hostname::read(text).unwrap())
}

/// The rule that the plain loop finds, told without any of the matcher's parts but the comparison of one entry.
fn plainly(listener: &Listener, host: &str, request: &Request<'_>) -> Option<usize> {
    let mut hosts: Vec<(HostPattern, &Arc<Vec<Entry>>)> = listener.routes.iter().collect();
    // Exact names first, then wildcards by length, then the rest.
    hosts.sort_by_key(|(pattern, _)| match pattern {
        HostPattern::Exact(_) => (0, 0),
        HostPattern::Wildcard(suffix) => (1, usize::MAX - suffix.len()),
        HostPattern::Any => (2, 0),
    });
    let asked = HostPattern::Exact(host.to_owned());
    hosts
        .iter()
        .filter(|(pattern, _)| hostname::covers(pattern, &asked))
        .flat_map(|(_, entries)| entries.iter())
        .find(|entry| request.miss(&entry.matches).is_none())
        .map(|entry| entry.rule.key.rule)
}

proptest! {
    #[test]
    fn the_fast_way_finds_what_the_plain_loop_finds(
        hosts in proptest::collection::vec((any_host(), proptest::collection::vec(any_match(), 0..24)), 0..5),
        host in prop_oneof![Just("a.example.com"), Just("b.a.example.com"), Just("c.example.com"), Just("example.com"), Just("")],
        path in any_path(),
        post in any::<bool>(),
        headers in proptest::collection::vec((prop_oneof![Just("x-a"), Just("x-b")], prop_oneof![Just("1"), Just("2"), Just("3")]), 0..3),
        query in proptest::option::of(proptest::collection::vec((prop_oneof![Just("p"), Just("q")], prop_oneof![Just("1"), Just("%31"), Just("2")]), 0..3)),
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let method = if post { Method::POST } else { Method::GET };
        let query = query.map(|pairs| pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"));
        let request = Request::new(&method, &path, query.as_deref(), &map);
        let listener = listener(hosts);
        let matcher = Matcher::new(&listener);
        let found = matcher.find(host, &request);
        let rule = found.map(|found| found.entry.rule.key.rule);
        prop_assert_eq!(rule, plainly(&listener, host, &request));
        let told = matcher.explain(host, &request);
        prop_assert_eq!(rule, told.found.map(|found| found.entry.rule.key.rule));
        prop_assert_eq!(found.map(|found| found.position), told.found.map(|found| found.position));
        if let Some(found) = found {
            prop_assert_eq!(matcher.entries().nth(found.position).map(|entry| entry.rule.key.rule), rule);
        }
    }
}

#[test]
fn prefixes_are_whole_segments() {
    let cases = [
        ("/a", "/a", true, "itself"),
        ("/a", "/a/", true, "with a slash"),
        ("/a", "/a/b", true, "below"),
        ("/a", "/ab", false, "half a segment"),
        ("/a", "/", false, "above"),
        ("/a/b", "/a", false, "above"),
        ("/", "/", true, "everything"),
        ("/", "/x/y", true, "everything"),
        (
            "/",
            "*",
            true,
            "OPTIONS * has no path, and everything is everything",
        ),
        ("/a", "//a", false, "an empty segment is one"),
        ("/a", "/A", false, "case matters in paths"),
    ];
    let (method, headers) = (Method::GET, HeaderMap::new());
    for (prefix, asked, expected, why) in cases {
        let matcher = Matcher::new(&listener(vec![(
            HostPattern::Any,
            vec![path(PathMatch::Prefix(prefix.into()))],
        )]));
        let request = Request::new(&method, asked, None, &headers);
        assert_eq!(
            matcher.find("h", &request).is_some(),
            expected,
            "{why}: {prefix} {asked}"
        );
    }
}

#[test]
fn the_explanation_names_what_did_not_fit() {
    let wants_header = Match {
        headers: vec![HeaderMatch {
            name: HeaderName::from_static("x-a"),
            value: ValueMatch::Exact("1".into()),
        }],
        ..path(PathMatch::Prefix("/".into()))
    };
    let wants_post = Match {
        method: Some(Method::POST),
        ..path(PathMatch::Prefix("/".into()))
    };
    let elsewhere = path(PathMatch::Exact("/b".into()));
    let all = path(PathMatch::Prefix("/".into()));
    let matcher = Matcher::new(&listener(vec![(
        HostPattern::Any,
        vec![wants_header, wants_post, elsewhere, all],
    )]));
    let (method, headers) = (Method::GET, HeaderMap::new());
    let told = matcher.explain("h", &Request::new(&method, "/a", None, &headers));
    let misses: Vec<Option<Miss>> = told.tried.iter().map(|tried| tried.miss.clone()).collect();
    assert_eq!(
        misses,
        [
            Some(Miss::Header(HeaderName::from_static("x-a"))),
            Some(Miss::Method),
            None
        ]
    );
    assert_eq!(told.other_paths, 1);
    assert_eq!(told.found.map(|found| found.position), Some(3));
}

/// Counted in steps and not in time, so that it holds on a busy machine: what is compared is how many entries are looked at.
#[test]
fn ten_thousand_routes_and_a_hostile_path() {
    let many = (0..10_000)
        .map(|at| path(PathMatch::Prefix(format!("/svc-{at}/api"))))
        .collect();
    let matcher = Matcher::new(&listener(vec![(HostPattern::Any, many)]));
    assert_eq!(matcher.len(), 10_000);
    let (method, headers) = (Method::GET, HeaderMap::new());
    let found = |asked: &str| {
        matcher
            .find("h", &Request::new(&method, asked, None, &headers))
            .map(|found| found.position)
    };
    assert_eq!(found("/svc-9999/api/x"), Some(9_999));
    assert_eq!(found("/svc-10000/api"), None);
    let deep = "/svc-1/api".to_owned() + &"/".repeat(1 << 20);
    assert_eq!(found(&deep), Some(1));
    let nested: Vec<Match> = (1..=40)
        .map(|depth| path(PathMatch::Prefix("/a".repeat(depth))))
        .collect();
    let matcher = Matcher::new(&listener(vec![(HostPattern::Any, nested)]));
    let request = Request::new(
        &method,
        "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
        None,
        &headers,
    );
    // Not in the order of precedence: the first that fits is the shortest.
    assert_eq!(
        matcher.find("h", &request).map(|found| found.position),
        Some(0),
        "deeper than what is kept in order"
    );
}
