//! APIs that domains serve behind the kernel: a domain that echoes, in a group of its own and on ConfigMaps.

mod wire;

use std::time::Duration;

use bytes::Bytes;
use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, User, full, websocket};
use fairway_kernel_apiserver::api_services::RegisterError;
use futures::{SinkExt, StreamExt};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tower::service_fn;

use crate::harness::{Client, Server};

const ROOT: &str = "/apis/echo.fairway.dev/v1";
const ECHO: &str = "/apis/echo.fairway.dev/v1/namespaces/default/echoes/a";
const ON_CONFIG_MAP: &str = "/apis/echo.fairway.dev/v1/namespaces/default/configmaps/settings/echo";

/// Echoes; what exactly depends on the resource.
struct Echo;

impl ApiService for Echo {
    fn group_version(&self) -> (&str, &str) {
        ("echo.fairway.dev", "v1")
    }

    fn resources(&self) -> Vec<Resource> {
        vec![
            Resource::new("echoes", "Echo").verbs(&["get", "list", "create"]),
            Resource::new("echoes/stream", "Echo")
                .verbs(&["create"])
                .long_running(),
            Resource::new("echoes/panic", "Echo"),
            Resource::new("echoes/broken", "Echo"),
            Resource::new("echoes/halfway", "Echo"),
            Resource::new("configmaps/echo", "Echo")
                .verbs(&["get", "update"])
                .long_running(),
        ]
    }

    fn handler(&self) -> Handler {
        Handler::new(service_fn(echo))
    }
}

async fn echo(request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let info = request.extensions().get::<RequestInfo>().unwrap().clone();
    match info.subresource.as_str() {
        // Frame by frame, as they come.
        "stream" => Ok(Response::new(request.into_body())),
        "panic" => panic!("a domain's mistake"),
        "broken" => Err("the echo is out of order".into()),
        "halfway" => {
            let frames = futures::stream::iter(0..3).map(|number| match number {
                0 => Ok(http_body::Frame::data(Bytes::from_static(b"half"))),
                _ => panic!("a domain's mistake"),
            });
            Ok(Response::new(BodyExt::boxed_unsync(StreamBody::new(frames))))
        }
        "echo" if request.headers().contains_key("upgrade") => {
            Ok(match websocket::accept(&request, &["echo.v1"]) {
                Err(refused) => *refused,
                Ok(accepted) => {
                    let name = info.name.clone();
                    tokio::spawn(async move { speak(accepted.upgrade.io().await.unwrap(), &name).await });
                    accepted.response
                }
            })
        }
        _ => {
            let user = request.extensions().get::<User>().unwrap().clone();
            let credentials = request.headers().contains_key("authorization")
                || request.headers().contains_key("impersonate-user");
            let body = request.into_body().collect().await?.to_bytes();
            let answer = json!({
                "kind": "Echo", "apiVersion": "echo.fairway.dev/v1", "metadata": {"name": info.name},
                "verb": info.verb, "namespace": info.namespace, "rest": info.rest, "user": user.name, "groups": user.groups,
                "credentials": credentials, "body": String::from_utf8_lossy(&body),
            });
            let mut response = Response::new(full(answer.to_string()));
            response
                .headers_mut()
                .insert("content-type", http::HeaderValue::from_static("application/json"));
            Ok(response)
        }
    }
}

async fn speak(io: fairway_apiservice::Upgraded, name: &str) {
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            socket
                .send(Message::text(format!("{name}: {text}")))
                .await
                .unwrap();
        }
    }
}

async fn server() -> Server {
    let server = Server::start().await;
    server.kernel.serve_api(&Echo).unwrap();
    server
}

/// Gives a user what a role allows.
async fn allow(admin: &Client, user: &str, resources: &[&str], verbs: &[&str]) {
    let rules = json!([{"apiGroups": ["echo.fairway.dev"], "resources": resources, "verbs": verbs}]);
    let role = json!({"metadata": {"name": user}, "rules": rules});
    admin
        .post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role)
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": user}, "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"},
    });
    admin
        .post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)
        .await
        .expect(201);
}

#[tokio::test]
async fn requests_reach_the_service_with_who_and_what() {
    let server = server().await;
    let admin = server.admin();
    let echoed = admin.get(ECHO).await.expect(200);
    assert_eq!(
        (&echoed["verb"], &echoed["namespace"], &echoed["user"]),
        (&json!("get"), &json!("default"), &json!("admin"))
    );
    let echoed = admin
        .post(&format!("{ROOT}/namespaces/default/echoes"), &json!({"a": 1}))
        .await
        .expect(200);
    assert_eq!(
        (&echoed["verb"], &echoed["body"]),
        (&json!("create"), &json!("{\"a\":1}"))
    );
    let echoed = admin.get(&format!("{ON_CONFIG_MAP}/22/tcp")).await.expect(200);
    assert_eq!(
        (&echoed["rest"], &echoed["metadata"]["name"]),
        (&json!("22/tcp"), &json!("settings"))
    );
    let echoed = admin.put(ON_CONFIG_MAP, &json!({})).await.expect(200);
    assert_eq!(echoed["verb"], "update");

    // As somebody else: the service sees him, and not the means.
    let echoed = admin
        .with("impersonate-user", "eve")
        .with("impersonate-group", "system:masters")
        .get(ECHO)
        .await
        .expect(200);
    assert_eq!(
        (&echoed["user"], &echoed["credentials"]),
        (&json!("eve"), &json!(false))
    );
    let head = admin.send(Method::HEAD, ECHO, "", Bytes::new()).await;
    assert_eq!((head.code, head.body.len()), (200, 0));
}

#[tokio::test]
async fn what_is_not_offered_or_not_allowed_does_not_reach_it() {
    let server = server().await;
    let admin = server.admin();
    admin.delete(ECHO).await.refused(405, "MethodNotAllowed", "");
    for path in [
        format!("{ROOT}/namespaces/default/others/a"),
        format!("{ROOT}/namespaces/default/configmaps/settings"),
        format!("{ROOT}/echoes/a"),
        "/apis/echo.fairway.dev/v2/namespaces/default/echoes/a".to_owned(),
    ] {
        assert_eq!(admin.get(&path).await.code, 404, "{path}");
    }
    assert_eq!(
        admin.get(&format!("{ROOT}/echoes")).await.expect(200)["verb"],
        "list"
    );

    let eve = server.user("eve", &[]);
    eve.get(ECHO).await.refused(
        403,
        "Forbidden",
        "cannot get resource \"echoes\" in API group \"echo.fairway.dev\"",
    );
    allow(&admin, "eve", &["echoes"], &["get"]).await;
    eve.get(ECHO).await.expect(200);
    eve.get(ON_CONFIG_MAP)
        .await
        .refused(403, "Forbidden", "cannot get resource \"configmaps/echo\"");
    server
        .anonymous()
        .get(ECHO)
        .await
        .refused(403, "Forbidden", "system:anonymous");
}

#[tokio::test]
async fn its_failures_are_its_own() {
    let server = server().await;
    let admin = server.admin();
    admin
        .get(&format!("{ECHO}/panic"))
        .await
        .refused(500, "InternalError", "failed unexpectedly");
    admin
        .get(&format!("{ECHO}/broken"))
        .await
        .refused(500, "InternalError", "the echo is out of order");
    let response = admin
        .open(Method::GET, &format!("{ECHO}/halfway"), "", Bytes::new())
        .await;
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none());
    let large = "x".repeat(4 * 1024 * 1024);
    let refused = admin
        .send(
            Method::POST,
            &format!("{ROOT}/namespaces/default/echoes"),
            "text/plain",
            large.clone(),
        )
        .await;
    assert_eq!(refused.code, 413, "{}", refused.text());
    let streamed = admin
        .send(
            Method::POST,
            &format!("{ECHO}/stream"),
            "text/plain",
            large.clone(),
        )
        .await;
    assert_eq!((streamed.code, streamed.body.len()), (200, large.len()));
    admin.get(ECHO).await.expect(200);
}

#[tokio::test]
async fn names_are_taken_once() {
    let server = server().await;
    assert!(matches!(
        server.kernel.serve_api(&Echo),
        Err(RegisterError::Taken { .. })
    ));
    struct Other(&'static str, &'static str);
    impl ApiService for Other {
        fn group_version(&self) -> (&str, &str) {
            (self.0, "v1")
        }
        fn resources(&self) -> Vec<Resource> {
            vec![Resource::new(self.1, "Other")]
        }
        fn handler(&self) -> Handler {
            Handler::new(service_fn(echo))
        }
    }
    for (group, resource) in [
        ("", "configmaps"),
        ("", "pods/status"),
        ("apps", "deployments/scale"),
    ] {
        let refused = server.kernel.serve_api(&Other(group, resource));
        assert!(
            matches!(refused, Err(RegisterError::Taken { .. })),
            "{group}/{resource}"
        );
    }
    for (group, resource) in [
        ("Echo", "a"),
        ("a.b", "A"),
        ("a.b", "a/b/c"),
        ("a.b", "a/"),
        ("a.b", ""),
    ] {
        let refused = server.kernel.serve_api(&Other(group, resource));
        assert!(
            matches!(refused, Err(RegisterError::Name { .. })),
            "{group}/{resource}"
        );
    }
    // A subresource that a kind of the kernel's does not have.
    server.kernel.serve_api(&Other("", "configmaps/echo")).unwrap();
    let admin = server.admin();
    let path = "/api/v1/namespaces/default/configmaps/settings/echo";
    assert_eq!(admin.get(path).await.expect(200)["verb"], "get");
    let list = admin.get("/api/v1").await.expect(200);
    assert!(
        list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["name"] == "configmaps/echo")
    );
    let document = admin.get("/openapi/v3/api/v1").await.expect(200);
    assert!(
        document["paths"]
            .get("/api/v1/namespaces/{namespace}/configmaps/{name}/echo")
            .is_some()
    );
    assert!(
        document["paths"]
            .get("/api/v1/namespaces/{namespace}/configmaps/{name}")
            .is_some()
    );
}

#[tokio::test]
async fn discovery_and_openapi_show_it() {
    let plain = Server::start().await;
    let server = server().await;
    let admin = server.admin();
    let groups = admin.get("/apis").await.expect(200);
    let group = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|g| g["name"] == "echo.fairway.dev")
        .unwrap()
        .clone();
    assert_eq!(group["preferredVersion"]["groupVersion"], "echo.fairway.dev/v1");
    assert_eq!(
        admin.get("/apis/echo.fairway.dev").await.expect(200)["kind"],
        "APIGroup"
    );
    let list = admin.get(ROOT).await.expect(200);
    let names: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "echoes",
            "echoes/stream",
            "echoes/panic",
            "echoes/broken",
            "echoes/halfway",
            "configmaps/echo"
        ]
    );
    assert_eq!(list["resources"][0]["singularName"], "echo");
    let root = admin.get("/").await.expect(200);
    assert!(root["paths"].as_array().unwrap().contains(&json!(ROOT)));

    let aggregated = admin
        .with(
            "accept",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        )
        .get("/apis")
        .await
        .expect(200);
    let item = aggregated["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|i| i["metadata"]["name"] == "echo.fairway.dev")
        .unwrap()
        .clone();
    let resources = item["versions"][0]["resources"].as_array().unwrap();
    assert_eq!(resources[0]["resource"], "echoes");
    assert_eq!(resources[0]["subresources"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&resources[1]["resource"], &resources[1]["verbs"]),
        (&json!("configmaps"), &json!([]))
    );
    assert_eq!(resources[1]["subresources"][0]["subresource"], "echo");

    let index = admin.get("/openapi/v3").await.expect(200);
    let url = index["paths"]["apis/echo.fairway.dev/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap()
        .to_owned();
    let document = admin.get(&url).await.expect(200);
    let on_config_map = "/apis/echo.fairway.dev/v1/namespaces/{namespace}/configmaps/{name}/echo";
    assert!(document["paths"][on_config_map]["put"].is_object(), "{document}");
    let before = plain.admin().get("/openapi/v2").await;
    let after = admin.get("/openapi/v2").await;
    assert_ne!(before.header("etag"), after.header("etag"));
    assert!(before.json()["paths"].get(on_config_map).is_none());
    assert!(after.json()["paths"][on_config_map]["get"].is_object());
    let protobuf = admin
        .with(
            "accept",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        )
        .get("/openapi/v2")
        .await;
    assert!(
        protobuf
            .body
            .windows(on_config_map.len())
            .any(|window| window == on_config_map.as_bytes())
    );
}

#[tokio::test]
async fn the_audit_log_tells_who_asked_for_what() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("audit.log");
    let server = Server::start_audited(&log).await;
    server.kernel.serve_api(&Echo).unwrap();
    server.admin().get(ON_CONFIG_MAP).await.expect(200);
    server
        .user("eve", &[])
        .get(ON_CONFIG_MAP)
        .await
        .refused(403, "Forbidden", "");
    let line = |user: &str| -> Option<Value> {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|line| line["user"]["username"] == user && line["requestURI"] == ON_CONFIG_MAP)
    };
    for (user, code) in [("admin", 200), ("eve", 403)] {
        let mut found = None;
        for _ in 0..200 {
            found = line(user);
            if found.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = found.unwrap_or_else(|| panic!("no line of {user}"));
        assert_eq!(found["responseStatus"]["code"], code);
        let object = json!({
            "resource": "configmaps", "apiVersion": "v1", "apiGroup": "echo.fairway.dev", "namespace": "default",
            "name": "settings", "subresource": "echo",
        });
        assert_eq!(found["objectRef"], object);
    }
}
