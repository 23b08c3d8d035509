//! Expressions over one request, and what they must not be able to do.

mod shown;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fairway_gateway_guard::Asked;
use http::{HeaderMap, Method, Uri, Version};
use serde_json::{Value as Json, json};

use super::*;

/// A request by Alice.
fn with_facts<T>(test: impl FnOnce(&Facts<'_>) -> T) -> T {
    let uri: Uri = "/toys/7?color=red&size=2".parse().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("user-agent", "curl/8".parse().unwrap());
    headers.insert("x-team", "toys".parse().unwrap());
    headers.append("x-team", "games".parse().unwrap());
    headers.insert("content-length", "12".parse().unwrap());
    let asked = Asked {
        method: &Method::POST,
        uri: &uri,
        host: "shop.example.com",
        scheme: "https",
        version: Version::HTTP_2,
        headers: &headers,
        client: IpAddr::from([10, 0, 0, 9]),
        client_port: 4711,
        door: ([192, 0, 2, 1], 443).into(),
        id: "r-1",
        now: 1_700_000_000_500_000_000,
        probe: false,
    };
    let mut facts = Facts::new(&asked);
    facts.set_identity(Arc::new(json!({
        "sub": "alice", "age": 7, "groups": ["dev", "ops"], "admin": false, "nothing": null,
        "metadata": {"annotations": {"secret.kuadrant.io/user-id": "alice"}},
        "roles": [{"name": "reader", "level": 1}, {"name": "writer", "level": 5}],
        "encoded": "QWxpY2U=", "mail": "Alice <a@example.com>"})));
    facts.set_metadata("geo", json!({"country": "DE"}));
    test(&facts)
}

#[test]
fn cel_reads_the_well_known_attributes() {
    with_facts(|facts| {
        for (expression, expected) in [
            ("request.method", json!("POST")),
            ("request.path", json!("/toys/7?color=red&size=2")),
            ("request.url_path", json!("/toys/7")),
            ("request.query", json!("color=red&size=2")),
            ("request.host", json!("shop.example.com")),
            ("request.scheme", json!("https")),
            ("request.protocol", json!("HTTP/2")),
            ("request.id", json!("r-1")),
            ("request.size", json!(12)),
            ("request.user_agent", json!("curl/8")),
            ("request.headers['x-team']", json!("toys,games")),
            ("'x-none' in request.headers", json!(false)),
            ("request.time.getFullYear()", json!(2023)),
            ("source.address", json!("10.0.0.9")),
            ("source.remote_address", json!("10.0.0.9")),
            ("source.port", json!(4711)),
            ("destination.address", json!("192.0.2.1")),
            ("destination.port", json!(443)),
            ("destination.port == 443", json!(true)),
            (
                "context.destination.address.Address.SocketAddress.PortSpecifier.PortValue",
                json!(443),
            ),
            ("auth.identity.sub", json!("alice")),
            ("auth.identity.age + 1", json!(8)),
            ("auth.identity.groups.exists(g, g == 'ops')", json!(true)),
            ("has(auth.identity.missing)", json!(false)),
            (
                "auth.identity.metadata.annotations['secret.kuadrant.io/user-id']",
                json!("alice"),
            ),
            ("auth.metadata.geo.country", json!("DE")),
            ("context.request.http.method", json!("POST")),
            ("[request].map(r, r.method)[0]", json!("POST")),
            (
                "request.path.startsWith('/toys') && request.method in ['GET', 'POST']",
                json!(true),
            ),
            ("request.url_path.split('/')[2]", json!("7")),
        ] {
            let cel = Cel::expression(expression).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(cel.value(facts), Ok(expected), "{expression}");
        }
    });
}

#[test]
fn expressions_that_fail_are_no_answers() {
    for (source, why) in [
        ("request.", "no expression"),
        ("request.nope", "an attribute that there is not"),
        ("nope == 1", "a variable that there is not"),
        ("request.method", "not a truth value"),
        ("requestBodyJSON('/a') == 1", "a function that is not served"),
    ] {
        let compiled = Cel::predicate(source);
        let fails = match &compiled {
            Err(_) => true,
            Ok(cel) => with_facts(|facts| cel.test(facts).is_err()),
        };
        assert!(fails, "{why}: {source}");
    }
    assert!(Cel::predicate(&format!("'{}' == ''", "x".repeat(10_000))).is_err());
    with_facts(|facts| {
        for source in [
            "auth.identity.missing == 1",
            "auth.identity.age",
            "1 / (auth.identity.age - 7) == 0",
        ] {
            assert!(Cel::predicate(source).unwrap().test(facts).is_err(), "{source}");
        }
    });
}

#[test]
fn hostile_expressions_end_soon() {
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = format!("{ten}.all(a,{ten}.all(b,{ten}.all(c,{ten}.all(d,{ten}.all(e,{ten}.all(f,a>0))))))");
    let doubled = format!("'{}'", "x".repeat(500));
    let long = format!("{}.size() > 0", [doubled.as_str(); 8].join(" + "));
    let catastrophic = "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a+)+$')".to_owned();
    with_facts(|facts| {
        for source in [nested, long, catastrophic] {
            let Ok(cel) = Cel::predicate(&source) else {
                continue;
            };
            let start = Instant::now();
            let _ = cel.test(facts);
            assert!(
                start.elapsed().as_millis() < 500,
                "{:?} {source:.60}",
                start.elapsed()
            );
        }
    });
}

#[test]
fn selectors_are_read_as_gjson_reads_them() {
    let document = with_facts(|facts| facts.document().clone());
    for (selector, expected) in [
        ("request.method", Some(json!("POST"))),
        ("context.request.http.headers.user-agent", Some(json!("curl/8"))),
        (
            "auth.identity.metadata.annotations.secret\\.kuadrant\\.io/user-id",
            Some(json!("alice")),
        ),
        ("auth.identity.groups.0", Some(json!("dev"))),
        ("auth.identity.groups.#", Some(json!(2))),
        ("auth.identity.roles.#.name", Some(json!(["reader", "writer"]))),
        ("auth.identity.roles.#(level>2).name", Some(json!("writer"))),
        ("auth.identity.roles.#(name==\"reader\").level", Some(json!(1))),
        (
            "auth.identity.roles.#(level>=1)#.name",
            Some(json!(["reader", "writer"])),
        ),
        ("auth.identity.roles.#(name%\"w*\")#.level", Some(json!([5]))),
        ("auth.identity.gro*", Some(json!(["dev", "ops"]))),
        ("auth.identity.missing", None),
        ("auth.identity.nothing", Some(Json::Null)),
        ("auth.identity.encoded.@base64:decode", Some(json!("Alice"))),
        (
            "auth.identity.encoded|@base64:decode|@case:upper",
            Some(json!("ALICE")),
        ),
        ("auth.identity.sub.@base64:encode", Some(json!("YWxpY2U="))),
        (
            "auth.identity.mail.@extract:{\"sep\":\" \",\"pos\":0}",
            Some(json!("Alice")),
        ),
        (
            "auth.identity.mail.@extract:{sep:\" \",pos:1}",
            Some(json!("<a@example.com>")),
        ),
        ("auth.identity.mail.@extract:{pos:9}", None),
        (
            "auth.identity.sub.@replace:{\"old\":\"a\",\"new\":\"o\"}",
            Some(json!("olice")),
        ),
        (
            "auth.identity.sub.@replace:{\"old\":\"\",\"new\":\"o\"}",
            Some(json!("alice")),
        ),
        ("auth.metadata.geo.@keys", Some(json!(["country"]))),
        (
            "request.url_path.@extract:{\"sep\":\"/\",\"pos\":1}",
            Some(json!("toys")),
        ),
    ] {
        let found = Selector::compile(selector)
            .unwrap_or_else(|error| panic!("{error}"))
            .select(&document);
        assert_eq!(found, expected, "{selector}");
    }
    for wrong in [
        "a.@pretty",
        "a.#(b==1",
        "a.@extract:{",
        &"x".repeat(2000),
        "a.@case:title",
    ] {
        assert!(Selector::compile(wrong).is_err(), "{wrong:.40}");
    }
}

#[test]
fn templates_are_filled() {
    with_facts(|facts| {
        for (template, expected) in [
            ("Hello, {auth.identity.sub}!", "Hello, alice!"),
            ("{request.method} {request.url_path}", "POST /toys/7"),
            ("\\{auth.identity.sub}", "{auth.identity.sub}"),
            ("{auth.identity.missing}", ""),
            (
                "{auth.identity.mail.@extract:{\"sep\":\" \",\"pos\":0}}.",
                "Alice.",
            ),
            ("auth.identity.sub.@case:upper", "ALICE"),
            ("{auth.identity.age}", "7"),
        ] {
            let value = ValueFrom::selector(template).unwrap();
            assert_eq!(value.text(facts).as_deref(), Ok(expected), "{template}");
        }
    });
}

#[test]
fn conditions_are_tested() {
    let named: Named = serde_json::from_value(json!({
        "post": [{"selector": "request.method", "operator": "eq", "value": "POST"}],
        "loop": [{"patternRef": "loop"}]}))
    .unwrap();
    let eq = |selector: &str, operator: &str, value: &str| json!({"selector": selector, "operator": operator, "value": value});
    for (conditions, expected) in [
        (json!([]), Some(true)),
        (json!([eq("request.method", "eq", "POST")]), Some(true)),
        (json!([eq("request.method", "neq", "POST")]), Some(false)),
        (json!([eq("auth.identity.missing", "eq", "")]), Some(true)),
        (json!([eq("auth.identity.age", "eq", "7")]), Some(true)),
        (json!([eq("auth.identity.admin", "eq", "false")]), Some(true)),
        (json!([eq("auth.identity.groups", "incl", "ops")]), Some(true)),
        (json!([eq("auth.identity.groups", "excl", "ops")]), Some(false)),
        (json!([eq("auth.identity.sub", "incl", "alice")]), Some(true)),
        (json!([eq("auth.identity.missing", "excl", "x")]), Some(true)),
        (
            json!([eq("request.url_path", "matches", "^/toys/[0-9]+$")]),
            Some(true),
        ),
        (
            json!([{"patternRef": "post"}, {"predicate": "auth.identity.age < 8"}]),
            Some(true),
        ),
        (
            json!([{"any": [{"predicate": "false"}, {"patternRef": "post"}]}]),
            Some(true),
        ),
        (
            json!([{"any": [{"predicate": "false"}, {"all": [{"patternRef": "post"}, {"predicate": "false"}]}]}]),
            Some(false),
        ),
        (json!([{"patternRef": "missing"}]), None),
        (json!([{"patternRef": "loop"}]), None),
        (json!([{}]), None),
        (json!([eq("request.method", "like", "P")]), None),
        (json!([eq("request.method", "matches", "(")]), None),
        (
            json!([eq("request.method", "matches", &"a{1000}".repeat(200))]),
            None,
        ),
    ] {
        let specs: Vec<ConditionSpec> = serde_json::from_value(conditions.clone()).unwrap();
        let found = Predicate::compile(&specs, &named).ok();
        let found = found.map(|predicate| with_facts(|facts| predicate.test(facts).unwrap()));
        assert_eq!(found, expected, "{conditions:.200}");
    }
}
