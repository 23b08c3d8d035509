//! Requests that want to break something: each is answered in bounded time, with a Status that says what is wrong.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, Reply, Server, config_map};

/// Generous for a loaded machine and a debug build; the point is that nothing here takes minutes.
const BOUND: Duration = Duration::from_secs(8);

async fn timed(
    client: &Client,
    method: Method,
    path: &str,
    kind: &str,
    body: impl Into<bytes::Bytes>,
) -> Reply {
    let started = Instant::now();
    let reply = client.send(method, path, kind, body).await;
    let took = started.elapsed();
    assert!(
        took < BOUND,
        "{} took {took:?}",
        &reply.request[..80.min(reply.request.len())]
    );
    reply
}

#[tokio::test]
async fn large_bodies_are_cut_off() {
    let server = Server::start().await;
    let admin = server.admin();
    let huge = format!(
        r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#,
        "x".repeat(3 * 1024 * 1024)
    );
    for (method, path, kind) in [
        (Method::POST, CONFIG_MAPS.to_owned(), "application/json"),
        (Method::POST, CONFIG_MAPS.to_owned(), "application/yaml"),
        (Method::PUT, format!("{CONFIG_MAPS}/a"), "application/json"),
        (
            Method::PATCH,
            format!("{CONFIG_MAPS}/a"),
            "application/merge-patch+json",
        ),
        (Method::DELETE, format!("{CONFIG_MAPS}/a"), "application/json"),
    ] {
        let reply = timed(&admin, method, &path, kind, huge.clone()).await;
        reply.refused(413, "RequestEntityTooLarge", "limit is 3145728");
    }
    let two = format!(
        r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#,
        "x".repeat(2 * 1024 * 1024)
    );
    let reply = timed(&admin, Method::POST, CONFIG_MAPS, "application/json", two).await;
    assert!(
        matches!(reply.code, 413 | 422),
        "too large for a ConfigMap: {} {}",
        reply.code,
        &reply.text()[..100]
    );
}

#[tokio::test]
async fn objects_that_the_store_cannot_take_are_refused_clearly() {
    let server = Server::start().await;
    let admin = server.admin();
    let crd = crate::harness::definition(
        "blobs",
        "Blob",
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    admin.post(crate::harness::DEFINITIONS, &crd).await.expect(201);
    let path = "/apis/test.dev/v1/namespaces/default/blobs";
    let blob = json!({"apiVersion": "test.dev/v1", "kind": "Blob", "metadata": {"name": "b"}, "spec": {"x": "x".repeat(2_500_000)}});
    let reply = timed(&admin, Method::POST, path, "application/json", blob.to_string()).await;
    reply.refused(413, "RequestEntityTooLarge", "too large");
    admin.get(&format!("{path}/b")).await.expect(404);
    let many: String = (0..200_000).map(|i| format!("\"f{i}\":{i},")).collect();
    let wide = format!(
        r#"{{"apiVersion":"test.dev/v1","kind":"Blob","metadata":{{"name":"w"}},"spec":{{{many}"z":0}}}}"#
    );
    let reply = timed(&admin, Method::POST, path, "application/json", wide).await;
    assert!(
        reply.code == 201 || reply.code == 413,
        "{} {}",
        reply.code,
        &reply.text()[..200.min(reply.text().len())]
    );
}

#[tokio::test]
async fn bodies_that_are_not_what_they_claim() {
    let server = Server::start().await;
    let admin = server.admin();
    let nest =
        |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let aliases = {
        let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
        for (from, to) in "abcdefghi".chars().zip("bcdefghij".chars()) {
            text.push_str(&format!(
                "{to}: &{to} [{}]\n",
                vec![format!("*{from}"); 9].join(",")
            ));
        }
        text
    };
    let quadratic = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 20_000].join(",")
    );
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("application/json", b"".to_vec(), "nothing"),
        ("application/json", b"   \n".to_vec(), "only space"),
        ("application/json", b"null".to_vec(), "null"),
        ("application/json", b"[]".to_vec(), "a list"),
        ("application/json", b"\"text\"".to_vec(), "text"),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"a\"".to_vec(),
            "truncated",
        ),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"a\"}} trailing".to_vec(),
            "something after the end",
        ),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"\xff\xfe\"}}".to_vec(),
            "not UTF-8",
        ),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"\\ud800\"}}".to_vec(),
            "half a surrogate pair",
        ),
        ("application/json", b"\x00\x01\x02".to_vec(), "binary"),
        (
            "application/json",
            b"\xef\xbb\xbf{}".to_vec(),
            "a byte order mark",
        ),
        (
            "application/json",
            nest("[", "]", 100_000).into_bytes(),
            "a deep list",
        ),
        (
            "application/json",
            nest("{\"a\":", "}", 100_000).replace(":}", ":1}").into_bytes(),
            "a deep object",
        ),
        (
            "application/json",
            b"[".repeat(1_000_000),
            "a deep list without an end",
        ),
        (
            "application/json",
            format!(
                "{{\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"k\":{}}}}}",
                "9".repeat(1_000_000)
            )
            .into_bytes(),
            "a number of a million digits",
        ),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"a\",\"generation\":1e999}}".to_vec(),
            "a number beyond all",
        ),
        (
            "application/json",
            b"{\"metadata\":{\"name\":\"a\",\"generation\":99999999999999999999}}".to_vec(),
            "a number beyond 64 bits",
        ),
        ("application/yaml", b"".to_vec(), "nothing"),
        ("application/yaml", aliases.into_bytes(), "aliases of aliases"),
        (
            "application/yaml",
            quadratic.into_bytes(),
            "a long text many times",
        ),
        ("application/yaml", b"a: &a [*a]".to_vec(), "an alias of itself"),
        (
            "application/yaml",
            nest("[", "]", 50_000).into_bytes(),
            "a deep list",
        ),
        (
            "application/yaml",
            "- ".repeat(50_000).into_bytes(),
            "deep in block style",
        ),
        (
            "application/yaml",
            "{a: ".repeat(50_000).into_bytes(),
            "deep without an end",
        ),
        (
            "application/yaml",
            b"metadata: {name: \xff}".to_vec(),
            "not UTF-8",
        ),
        ("application/yaml", b"metadata: {name: [".to_vec(), "truncated"),
        (
            "application/yaml",
            b"!!python/object:os.system {}".to_vec(),
            "a tag of somebody else",
        ),
        (
            "application/yaml",
            b"%YAML 9.9\n---\na: b".to_vec(),
            "another YAML",
        ),
        ("application/x-protobuf", b"k8s\0".to_vec(), "another encoding"),
        ("multipart/form-data; boundary=x", b"--x".to_vec(), "a form"),
    ];
    for (kind, body, why) in cases {
        let reply = timed(&admin, Method::POST, CONFIG_MAPS, kind, body).await;
        assert!(
            (400..=422).contains(&reply.code),
            "{kind} {why}: {} {}",
            reply.code,
            &reply.text()[..300.min(reply.text().len())]
        );
        assert!(
            reply.body.len() < 4_096,
            "{kind} {why}: the refusal is {} bytes long",
            reply.body.len()
        );
        assert_eq!(reply.json()["kind"], "Status", "{kind} {why}");
    }
    let merge = "{\"a\":".repeat(90_000);
    for kind in ["merge-patch", "strategic-merge-patch", "json-patch"] {
        let media = format!("application/{kind}+json");
        let reply = timed(
            &admin,
            Method::PATCH,
            &format!("{CONFIG_MAPS}/none"),
            &media,
            merge.clone(),
        )
        .await;
        assert!(
            (400..=422).contains(&reply.code),
            "{kind}: {} {}",
            reply.code,
            reply.text()
        );
    }
}

#[tokio::test]
async fn selectors_without_measure() {
    let server = Server::start().await;
    let admin = server.admin();
    for i in 0..20 {
        admin
            .post(CONFIG_MAPS, &crate::harness::labelled(&format!("c{i}"), "a", "b"))
            .await
            .expect(201);
    }
    // A URI ends at 64 KiB in most of the world; the HTTP library bounds ours. These are as long as it allows.
    let room = 60_000;
    for (name, selector) in [
        ("labelSelector", "a=b,".repeat(room / 4) + "a=b"),
        ("labelSelector", format!("a in ({}b)", "b,".repeat(room / 2))),
        ("labelSelector", "(".repeat(room)),
        ("labelSelector", "!".repeat(room)),
        ("labelSelector", "a".repeat(room)),
        ("labelSelector", " ".repeat(room)),
        ("labelSelector", ",".repeat(room)),
        ("fieldSelector", "metadata.name=b,".repeat(room / 16)),
        ("fieldSelector", "\\".repeat(room)),
        ("fieldSelector", "=".repeat(room)),
        ("fieldSelector", ",".repeat(room)),
        ("continue", "A".repeat(room)),
        ("resourceVersion", "9".repeat(room)),
        ("limit", "9".repeat(room)),
        ("timeoutSeconds", "9".repeat(room)),
    ] {
        let path = format!(
            "{CONFIG_MAPS}?{name}={}",
            selector.replace(' ', "+").replace('=', "%3D")
        );
        if path.len() > 65_000 {
            continue;
        }
        let reply = timed(&admin, Method::GET, &path, "", "").await;
        assert!(
            matches!(reply.code, 200 | 400 | 504),
            "{name} {}: {} {}",
            &selector[..10],
            reply.code,
            &reply.text()[..200.min(reply.text().len())]
        );
    }
    let many = format!("{CONFIG_MAPS}?{}", "a&".repeat(30_000));
    assert_eq!(timed(&admin, Method::GET, &many, "", "").await.code, 200);
    let many = format!("{CONFIG_MAPS}?{}", "labelSelector=a&".repeat(4_000));
    assert_eq!(timed(&admin, Method::GET, &many, "", "").await.code, 200);
    let limit = format!("{CONFIG_MAPS}?limit=9223372036854775807");
    assert_eq!(timed(&admin, Method::GET, &limit, "", "").await.code, 200);
    let negative = format!("{CONFIG_MAPS}?limit=-5");
    assert!(matches!(
        timed(&admin, Method::GET, &negative, "", "").await.code,
        200 | 400 | 422
    ));
    let selector = crate::harness::labelled("long", "a", &"v".repeat(64));
    admin
        .post(CONFIG_MAPS, &selector)
        .await
        .refused(422, "Invalid", "metadata.labels");
}

#[tokio::test]
async fn selectors_of_a_million_terms_in_a_body() {
    let server = Server::start().await;
    let admin = server.admin();
    let values = vec!["\"x\""; 600_000].join(",");
    let body = format!(
        r#"{{"metadata":{{"name":"d"}},"spec":{{"selector":{{"matchExpressions":[{{"key":"a","operator":"In","values":[{values}]}}]}},"template":{{"metadata":{{"labels":{{"a":"x"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    );
    let reply = timed(
        &admin,
        Method::POST,
        "/apis/apps/v1/namespaces/default/deployments",
        "application/json",
        body,
    )
    .await;
    assert!(
        reply.code < 500,
        "{} {}",
        reply.code,
        &reply.text()[..200.min(reply.text().len())]
    );
}

#[tokio::test]
async fn paths_that_want_out() {
    let server = Server::start().await;
    let admin = server.admin();
    admin
        .post(
            "/api/v1/namespaces/default/secrets",
            &json!({"metadata": {"name": "s"}, "stringData": {"a": "hidden"}}),
        )
        .await
        .expect(201);
    let bob = server.user("bob", &[]);
    for path in [
        "/api/v1/namespaces/default%2Fsecrets%2Fs",
        "/api/v1/namespaces/default/configmaps/..%2Fsecrets%2Fs",
        "/api/v1/namespaces/..%2F..%2Fsecrets/configmaps/s",
        "/api/v1/namespaces/%00/configmaps",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/namespaces/%ff/configmaps",
        "/api/v1/namespaces/%/configmaps",
        "/api/v1/namespaces/%4/configmaps",
        "/api/v1/namespaces/default/configmaps/a/b/c/d/e/f",
        "/api/v1//////namespaces//default///configmaps",
        "/api/v1/watch",
        "/api/v1/watch/watch/watch",
        "/api/v1/namespaces/a/namespaces/b/namespaces/c",
        "/apis//v1/x",
        "/apis/%2e%2e/v1/x",
        "/clusters//api",
        "/clusters/root",
        "/clusters/root/",
        "/clusters/root/clusters/root/api",
        "/clusters/..%2Froot/api",
        "/openapi/v3/apis/..%2F..",
        "/openapi/v3/",
        "/livez/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ] {
        for client in [&admin, &bob] {
            let reply = timed(client, Method::GET, path, "", "").await;
            assert!(reply.code < 500, "{path}: {} {}", reply.code, reply.text());
            assert!(!reply.text().contains("hidden"), "{path} shows a secret");
        }
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
            Method::OPTIONS,
            Method::TRACE,
            Method::CONNECT,
        ] {
            let reply = timed(&bob, method, path, "application/json", "{}").await;
            assert!(
                (400..500).contains(&reply.code),
                "{}: {} {}",
                reply.request,
                reply.code,
                reply.text()
            );
        }
    }
    let long = format!("/api/v1/namespaces/default/configmaps/{}", "n".repeat(60_000));
    assert_eq!(timed(&admin, Method::GET, &long, "", "").await.code, 404);
    let many = format!("/api/v1/{}", "a/".repeat(30_000));
    assert!(timed(&admin, Method::GET, &many, "", "").await.code < 500);
    let name: Value = json!({"metadata": {"name": "n".repeat(100_000)}});
    assert_eq!(
        timed(
            &admin,
            Method::POST,
            CONFIG_MAPS,
            "application/json",
            name.to_string()
        )
        .await
        .code,
        422
    );
}

#[tokio::test]
async fn headers_that_mean_ill() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    for (name, value) in [
        ("accept", "application/json;".repeat(2_000)),
        ("accept", "x/y,".repeat(10_000)),
        ("accept", ";;;,,,".to_owned()),
        ("accept", "application/json;as=Table".to_owned()),
        ("accept-encoding", "gzip,".repeat(10_000)),
        ("content-type", ";".repeat(10_000)),
        ("user-agent", "a/".repeat(10_000)),
        ("user-agent", "\u{e9}".to_owned()),
        ("authorization", format!("Bearer {}", "a.".repeat(20_000))),
        ("authorization", format!("Bearer {}", "A".repeat(20_000))),
        ("authorization", "Bearer ..".to_owned()),
        ("authorization", "Bearer e30.e30.".to_owned()),
        ("impersonate-user", "x".repeat(20_000)),
        ("impersonate-extra-%zz", "x".to_owned()),
        ("impersonate-group", "x".to_owned()),
        ("impersonate-uid", "x".to_owned()),
    ] {
        let client = admin.with(name, &value);
        let reply = timed(&client, Method::GET, CONFIG_MAPS, "", "").await;
        assert!(
            reply.code < 500,
            "{name}: {}: {} {}",
            &value[..10.min(value.len())],
            reply.code,
            reply.text()
        );
        let reply = timed(
            &client,
            Method::PATCH,
            &format!("{CONFIG_MAPS}/a"),
            "application/merge-patch+json",
            r#"{"data":{"k":"w"}}"#,
        )
        .await;
        assert!(reply.code < 500, "{name}: {} {}", reply.code, reply.text());
    }
}
