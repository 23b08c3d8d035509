//! Random requests through the whole server: never a panic, never a 5xx that is the client's doing.
//!
//! Cases are made from pieces that occur in true requests, bent at random, because uniform noise dies in the first
//! parser. `PROPTEST_CASES` raises the number.

use std::sync::OnceLock;

use http::Method;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use crate::harness::{
    CONFIG_MAPS, DEFINITIONS, NO_PAGE, Server, config_map, definition, deployment, is_refusal,
};

/// One server for all cases of this file, on a runtime of its own: a start costs more than a hundred requests.
fn server() -> &'static (tokio::runtime::Runtime, Server) {
    static SERVER: OnceLock<(tokio::runtime::Runtime, Server)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let server = Server::start().await;
            let admin = server.admin();
            admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
            admin.post("/apis/apps/v1/namespaces/default/deployments", &deployment("a")).await.expect(201);
            admin.post("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "a"}})).await.expect(201);
            let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
            admin.post("/api/v1/namespaces/default/services", &service).await.expect(201);
            let crd = definition("widgets", "Widget", &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
            admin.post(DEFINITIONS, &crd).await.expect(201);
            let widget = json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"list": [1, {"x": "y"}]}});
            admin.post("/apis/test.dev/v1/namespaces/default/widgets", &widget).await.expect(201);
            server
        });
        (runtime, server)
    })
}

/// Sends it, and checks what must hold of every answer.
fn check(method: &Method, path: &str, kind: &str, body: &str) -> Result<(), TestCaseError> {
    // What the HTTP library itself refuses never reaches the server.
    if path.parse::<http::Uri>().is_err() {
        return Ok(());
    }
    let (runtime, server) = server();
    let shown = format!("{method} {path} {kind}\n{body}");
    let (code, text, refusal) = runtime.block_on(async {
        let admin = server.admin();
        if path.contains("watch") {
            let response = admin
                .open(
                    method.clone(),
                    path,
                    kind,
                    bytes::Bytes::copy_from_slice(body.as_bytes()),
                )
                .await;
            let code = response.status().as_u16();
            // A watch has no end, a refusal has.
            if code < 400 {
                return (code, String::new(), false);
            }
        }
        let mut reply = admin.send(method.clone(), path, kind, body.to_owned()).await;
        if *method == Method::HEAD && reply.code >= 500 {
            // Only the answer with a body says why.
            reply = admin.send(Method::GET, path, kind, body.to_owned()).await;
        }
        (reply.code, reply.text(), reply.code >= 500 && is_refusal(&reply))
    });
    // 501: a subresource that needs a node. 504: a resource version that has not come yet.
    prop_assert!(
        code < 500 || matches!(code, 501 | 504) || refusal,
        "{}\nanswered {} {}",
        shown,
        code,
        text
    );
    // What nobody serves is told in a text, everything else in a `Status`.
    if code >= 400 && !text.is_empty() && (code, text.as_str()) != (404, NO_PAGE) {
        let status: Value = serde_json::from_str(&text).unwrap_or_default();
        prop_assert_eq!(&status["code"], &json!(code), "{}\nanswered {}", shown, text);
    }
    Ok(())
}

fn pieces(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(of).prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
        1 => "\\PC{0,6}",
    ]
}

fn segment() -> impl Strategy<Value = String> {
    pieces(&[
        "api",
        "apis",
        "v1",
        "v2",
        "apps",
        "test.dev",
        "namespaces",
        "default",
        "configmaps",
        "deployments",
        "services",
        "serviceaccounts",
        "widgets",
        "pods",
        "nodes",
        "secrets",
        "a",
        "status",
        "scale",
        "token",
        "watch",
        "clusters",
        "root",
        "openapi",
        "v3",
        "livez",
        "proxy",
        "log",
        "exec",
        "finalize",
        "..",
        ".",
        "%2F",
        "%00",
        "%",
        "",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "authentication.k8s.io",
        "tokenreviews",
        "events",
        "events.k8s.io",
        "autoscaling",
        "leases",
    ])
}

fn parameter() -> impl Strategy<Value = String> {
    let name = pieces(&[
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "watch",
        "timeoutSeconds",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "pretty",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "exclude",
        "verbose",
    ]);
    let value = pieces(&[
        "",
        "0",
        "1",
        "-1",
        "2",
        "true",
        "false",
        "Exact",
        "NotOlderThan",
        "All",
        "Strict",
        "Warn",
        "metadata.name=a",
        "metadata.name!=a",
        "a=b",
        "a!=b",
        "a+in+(b,c)",
        "!a",
        "a>1",
        "a=",
        "18446744073709551615",
        "9223372036854775807",
        "1e9",
        "Orphan",
        "m",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJ6In0",
        "%zz",
        "%ff",
    ]);
    (name, value).prop_map(|(n, v)| {
        format!(
            "{}={}",
            n.replace(['&', '#', ' '], ""),
            v.replace(['&', '#', ' '], "")
        )
    })
}

fn path() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(
        &[
            "/api/v1/namespaces/default/configmaps",
            "/api/v1/namespaces/default/configmaps/a",
            "/apis/apps/v1/namespaces/default/deployments/a",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            "/apis/test.dev/v1/namespaces/default/widgets/a",
            "/api/v1/namespaces/default/serviceaccounts/a/token",
            "/api/v1/namespaces/default",
            "/api/v1/nodes",
            "/openapi/v3",
            "/apis",
        ][..],
    )
    .prop_map(str::to_owned);
    let free = prop::collection::vec(segment(), 0..8).prop_map(|s| format!("/{}", s.join("/")));
    let query = prop::collection::vec(parameter(), 0..5).prop_map(|q| q.join("&"));
    (prop_oneof![known, free], query).prop_map(|(path, query)| {
        let path = path.replace(['?', '#', ' ', '"', '<', '>', '`', '{', '}', '\\', '^', '|'], "");
        if query.is_empty() {
            path
        } else {
            format!("{path}?{query}")
        }
    })
}

fn method() -> impl Strategy<Value = Method> {
    proptest::sample::select(
        &[
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ][..],
    )
}

fn media() -> impl Strategy<Value = String> {
    pieces(&[
        "",
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "text/plain",
    ])
    .prop_map(|text| text.chars().filter(char::is_ascii_graphic).collect())
}

fn key() -> impl Strategy<Value = String> {
    pieces(&[
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "resourceVersion",
        "uid",
        "generation",
        "generateName",
        "creationTimestamp",
        "deletionTimestamp",
        "spec",
        "status",
        "data",
        "binaryData",
        "immutable",
        "replicas",
        "selector",
        "template",
        "containers",
        "image",
        "ports",
        "port",
        "nodePort",
        "clusterIP",
        "clusterIPs",
        "type",
        "matchLabels",
        "matchExpressions",
        "versions",
        "schema",
        "token",
        "audiences",
        "expirationSeconds",
        "boundObjectRef",
        "resourceAttributes",
        "verb",
        "group",
        "rules",
        "list",
        "x",
        "$patch",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$retainKeys",
        "preconditions",
        "dryRun",
        "manager",
        "operation",
        "fieldsType",
        "fieldsV1",
        "f:data",
        "time",
        "conditions",
        "names",
        "scope",
        "plural",
    ])
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3_i64..70_000).prop_map(Value::from),
        pieces(&[
            "a",
            "b",
            "v1",
            "apps/v1",
            "test.dev/v1",
            "ConfigMap",
            "Deployment",
            "Widget",
            "Service",
            "Scale",
            "default",
            "",
            "delete",
            "replace",
            "merge",
            "NodePort",
            "ClusterIP",
            "None",
            "10.96.0.9",
            "1",
            "2026-01-01T00:00:00Z",
            "In",
            "Apply",
            "Update",
            "FieldsV1",
            "100m",
            "1Gi"
        ])
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec(
        pieces(&[
            "metadata",
            "labels",
            "data",
            "k",
            "spec",
            "replicas",
            "template",
            "containers",
            "0",
            "-",
            "1",
            "list",
            "name",
            "finalizers",
            "managedFields",
            "99999999999999999999",
            "~0",
            "~1",
            "~",
            "",
            "x",
        ]),
        0..5,
    )
    .prop_map(|parts| parts.iter().map(|p| format!("/{p}")).collect())
}

fn operation() -> impl Strategy<Value = Value> {
    let op = pieces(&["add", "remove", "replace", "move", "copy", "test"]);
    (op, pointer(), pointer(), value())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
}

/// A true object with some of its parts replaced.
fn bent(base: Value) -> impl Strategy<Value = Value> {
    prop::collection::vec((pointer(), value()), 0..4).prop_map(move |changes| {
        let mut object = base.clone();
        for (at, new) in changes {
            if let Some(place) = object.pointer_mut(&at) {
                *place = new;
            } else if let (Some((parent, last)), true) = (at.rsplit_once('/'), true)
                && let Some(Value::Object(fields)) = object.pointer_mut(parent)
            {
                fields.insert(last.to_owned(), new);
            }
        }
        object
    })
}

fn cases(default: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|c| c.parse().ok())
        .unwrap_or(default);
    Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_path_and_query(method in method(), path in path(), kind in media(), body in value()) {
        // Deleting what the other cases work on would make them dull.
        let method = if method == Method::DELETE && !path.contains("dryRun=All") { Method::GET } else { method };
        check(&method, &path, &kind, &body.to_string())?;
    }

    #[test]
    fn any_body(
        target in 0..7_usize,
        first in bent(config_map("r")),
        second in bent(deployment("r")),
        third in bent(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": "r"}, "spec": {"list": [1]}})),
        fourth in bent(json!({"metadata": {"name": "r"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})),
        fifth in bent(json!({"spec": {"audiences": ["x"], "expirationSeconds": 600, "boundObjectRef": {"kind": "Secret", "name": "x"}}})),
        sixth in bent(definition("randoms", "Random", &json!({"type": "object", "properties": {"x": {"type": "string"}}}))),
        seventh in bent(json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})),
        dry in any::<bool>(),
    ) {
        let (path, body) = match target {
            0 => (CONFIG_MAPS, first),
            1 => ("/apis/apps/v1/namespaces/default/deployments", second),
            2 => ("/apis/test.dev/v1/namespaces/default/widgets", third),
            3 => ("/api/v1/namespaces/default/services", fourth),
            4 => ("/api/v1/namespaces/default/serviceaccounts/a/token", fifth),
            5 => (DEFINITIONS, sixth),
            _ => ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", seventh),
        };
        let dry_path = format!("{path}?dryRun=All");
        check(&Method::POST, if dry { &dry_path } else { path }, "application/json", &body.to_string())?;
    }

    #[test]
    fn any_text_as_body(kind in media(), text in "\\PC{0,200}", yaml in "[\\[\\]{}:,&*!|>'\"#%@ \\-?a-c\n]{0,80}") {
        check(&Method::POST, CONFIG_MAPS, &kind, &text)?;
        check(&Method::POST, CONFIG_MAPS, "application/yaml", &yaml)?;
        check(&Method::PATCH, "/api/v1/namespaces/default/configmaps/a?fieldManager=m", "application/apply-patch+yaml", &yaml)?;
    }

    #[test]
    fn any_patch(target in 0..5_usize, operations in prop::collection::vec(operation(), 0..6), patch in value(), merge in bent(deployment("a"))) {
        let path = [
            "/api/v1/namespaces/default/configmaps/a",
            "/apis/apps/v1/namespaces/default/deployments/a",
            "/apis/test.dev/v1/namespaces/default/widgets/a",
            "/apis/apps/v1/namespaces/default/deployments/a/status",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
        ][target];
        let dry = format!("{path}?dryRun=All");
        check(&Method::PATCH, &dry, "application/json-patch+json", &json!(operations).to_string())?;
        check(&Method::PATCH, &dry, "application/merge-patch+json", &patch.to_string())?;
        check(&Method::PATCH, &dry, "application/strategic-merge-patch+json", &patch.to_string())?;
        check(&Method::PATCH, &dry, "application/strategic-merge-patch+json", &merge.to_string())?;
        let apply = format!("{dry}&fieldManager=m&force=true");
        check(&Method::PATCH, &apply, "application/apply-patch+yaml", &merge.to_string())?;
        let mut applied = patch;
        if let Some(fields) = applied.as_object_mut() {
            fields.insert("apiVersion".to_owned(), if target == 0 { "v1" } else if target == 2 { "test.dev/v1" } else { "apps/v1" }.into());
            fields.insert("kind".to_owned(), if target == 0 { "ConfigMap" } else if target == 2 { "Widget" } else { "Deployment" }.into());
        }
        check(&Method::PATCH, &apply, "application/apply-patch+yaml", &applied.to_string())?;
    }
}
