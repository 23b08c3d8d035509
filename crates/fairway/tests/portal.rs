//! The portal on the whole program, as a browser and as a hostile page see it: sign-in through the provider's page, the session and its
//! ends, whose requests count, what is behind, and the application's files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "portal/browser.rs"]
mod browser;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;

use std::path::Path;
use std::time::Duration;

use browser::{Browser, PORTAL};
use fairway_portal_realm::params::query;
use http_body_util::BodyExt as _;
use process::Process;
use serde_json::json;
use tools::{fairway, web_port};

const SESSION: &str = "__Host-fairway-session";
const CONSOLE: &str =
    "/k8s/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/none/console";
const SOCKET: [(&str, &str); 5] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("sec-websocket-protocol", "plain.kubevirt.io"),
];

/// A user of a realm and the password.
fn user(data: &Path, name: &str, org: &str) -> String {
    let text = fairway(data, &["user", "create", name, "--org", org]);
    let (_, rest) = text.split_once("Password: ").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

async fn allow(process: &Process, user: &str) {
    let requests = fairway_controller::Requests::new(process.client().await);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "portal-test"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert!(requests.create(path, &binding).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_signs_in_acts_and_signs_out() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let process = Process::start(&data);
    let password = user(&data, "alice", "root");
    allow(&process, "root/alice").await;
    let mut browser = Browser::new(&data, web_port(&data));

    // Nobody yet.
    assert_eq!(browser.get("/auth/session").await.status, 401);
    for foreign in [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/auth/login",
        "/k8s/api",
    ] {
        let login = format!("/auth/login?{}", query([("return", foreign)]));
        let callback = browser.fill_in(&login, "alice", &password).await;
        let back = browser.get(&callback).await;
        assert_eq!((back.status, back.header("location")), (303, "/"), "{foreign}");
    }
    assert_eq!(browser.get("/auth/login?org=nobodys").await.status, 404);

    // A cookie that somebody else has put there is not the one that the session gets.
    let planted = format!("root:s{}~{}", "0".repeat(32), "x".repeat(43));
    browser
        .cookies(PORTAL)
        .insert(SESSION.to_owned(), planted.clone());
    assert_eq!(browser.get("/auth/session").await.status, 401);
    let callback = browser
        .fill_in("/auth/login?return=%2Fmachines%3Fa%3Db", "alice", &password)
        .await;
    let answered = browser.get(&callback).await;
    assert_eq!(answered.header("location"), "/machines?a=b");
    let cookie = browser.cookies(PORTAL)[SESSION].clone();
    assert_ne!(cookie, planted);
    // The code is good once, and not in another browser.
    assert_eq!(browser.get(&callback).await.status, 400);
    assert_eq!(
        Browser::new(&data, web_port(&data)).get(&callback).await.status,
        400
    );

    let session = browser.get("/auth/session").await;
    let known = session.json();
    assert_eq!(known["user"]["name"], "root/alice");
    assert_eq!(
        (&known["workspace"], &known["domain"]),
        (&json!("root"), &json!("fairway.localhost"))
    );
    assert!(!session.text().contains("eyJ"), "no token reaches the browser");
    let token = known["csrf"].as_str().unwrap().to_owned();

    // Reading, and writing with and without the session's token.
    let listed = browser.get("/k8s/api/v1/namespaces").await;
    assert_eq!(
        (listed.status, &listed.json()["kind"]),
        (200, &json!("NamespaceList"))
    );
    assert!(listed.header("content-security-policy").contains("sandbox"));
    let create = ("POST", PORTAL, "/k8s/api/v1/namespaces");
    let origin = browser.origin(PORTAL);
    let typed = ("content-type", "application/json");
    for (headers, status, why) in [
        (vec![typed], 403, "no token"),
        (vec![typed, ("x-fairway-csrf", "wrong")], 403, "another token"),
        (
            vec![
                typed,
                ("x-fairway-csrf", &token),
                ("origin", "https://evil.example"),
            ],
            403,
            "another page",
        ),
        (
            vec![typed, ("x-fairway-csrf", &token), ("sec-fetch-site", "same-site")],
            403,
            "a sister host",
        ),
        (
            vec![typed, ("x-fairway-csrf", &token), ("origin", &origin)],
            201,
            "the application",
        ),
    ] {
        let answered = browser
            .send(create, &headers, "{\"metadata\":{\"name\":\"made\"}}")
            .await;
        assert_eq!(answered.status, status, "{why}: {}", answered.text());
    }
    let reading = browser
        .send(
            ("GET", PORTAL, "/k8s/api/v1/secrets"),
            &[("sec-fetch-site", "cross-site")],
            "",
        )
        .await;
    assert_eq!(reading.status, 403);

    // The siblings know the same user by the cookie, and others by their tokens alone.
    for path in [
        "/api/catalog/entities",
        "/api/scaffolder/v2/tasks",
        "/api/gitea/v1/user",
    ] {
        let answered = browser.get(path).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.text());
        assert_eq!(
            Browser::new(&data, web_port(&data)).get(path).await.status,
            401,
            "{path}"
        );
    }
    assert_eq!(
        browser.get("/api/gitea/v1/user").await.json()["login"],
        "root/alice"
    );
    let forged = browser
        .send(
            ("GET", PORTAL, "/api/catalog/entities"),
            &[("authorization", "Bearer x.y.z")],
            "",
        )
        .await;
    assert_eq!(
        forged.status, 401,
        "a token counts, and the cookie does not stand in for it"
    );

    // Consoles are the application's alone; what there is not is said by whoever serves them.
    for (from, status) in [
        (None, 403),
        (Some("https://evil.example"), 403),
        (Some(origin.as_str()), 404),
    ] {
        let mut headers = SOCKET.to_vec();
        headers.extend(from.map(|from| ("origin", from)));
        let answered = browser.send(("GET", PORTAL, CONSOLE), &headers, "").await;
        assert_eq!(answered.status, status, "{from:?}: {}", answered.text());
    }

    // Signing out needs the token, too, and the cookie is worth nothing afterwards.
    assert_eq!(
        browser
            .send(("POST", PORTAL, "/auth/logout"), &[], "")
            .await
            .status,
        403
    );
    let out = browser
        .send(
            ("POST", PORTAL, "/auth/logout"),
            &[("x-fairway-csrf", &token)],
            "",
        )
        .await;
    assert_eq!(out.status, 204);
    assert!(!browser.cookies(PORTAL).contains_key(SESSION));
    browser.cookies(PORTAL).insert(SESSION.to_owned(), cookie);
    assert_eq!(browser.get("/auth/session").await.status, 401);
    assert_eq!(browser.get("/k8s/api/v1/namespaces").await.status, 401);
    // The provider asks for the password again.
    browser.cookies(PORTAL).clear();
    let (_, path) = browser.get("/auth/login").await.location();
    let page = browser.send(("GET", browser::ID, &path), &[], "").await;
    assert!(
        page.status == 200 && page.text().contains("password"),
        "{}",
        page.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_restart_and_ends_with_its_user() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    std::fs::create_dir_all(&data).unwrap();
    let mut process = Process::start_with(&data, &["--web-listen", &port]);
    let password = user(&data, "alice", "root");
    allow(&process, "root/alice").await;
    let mut browser = Browser::new(&data, web_port(&data));
    browser.sign_in("/auth/login", "alice", &password).await;

    process.kill();
    let process = Process::start_with(&data, &["--web-listen", &port]);
    assert_eq!(browser.get("/auth/session").await.status, 200);

    // A watch tells what happens, and ends with the right to it.
    let path = "/k8s/api/v1/namespaces/default/configmaps?watch=1";
    let mut watch = browser
        .open(("GET", PORTAL, path), &[("sec-fetch-site", "same-origin")], "")
        .await;
    assert_eq!(watch.status(), 200);
    let requests = fairway_controller::Requests::new(process.client().await);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told"}});
    assert!(
        requests
            .create("/api/v1/namespaces/default/configmaps", &map)
            .await
            .unwrap()
    );
    let mut told = String::new();
    while !told.contains("\"told\"") {
        let frame = tokio::time::timeout(Duration::from_secs(20), watch.frame())
            .await
            .unwrap();
        told += &String::from_utf8_lossy(&frame.unwrap().unwrap().into_data().unwrap());
    }
    fairway(&data, &["user", "disable", "alice", "--org", "root"]);
    assert_eq!(browser.get("/auth/session").await.status, 401, "at once");
    assert_eq!(browser.get("/k8s/api/v1/namespaces").await.status, 401);
    let end = async { while let Some(Ok(_)) = watch.frame().await {} };
    tokio::time::timeout(Duration::from_secs(20), end)
        .await
        .expect("the watch goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_application_is_served_to_everybody_and_framed_by_nobody() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let _process = Process::start(&data);
    let mut browser = Browser::new(&data, web_port(&data));
    let page = browser.get("/").await;
    for path in [
        "/",
        "/machines/root:acme/default/web",
        "/auth/session",
        "/k8s/version",
        "/api/nothing",
        "/assets/none.js",
    ] {
        let answered = browser.get(path).await;
        let policy = answered.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}"
        );
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answered.header(name), value, "{path}");
        }
        assert_eq!(
            answered.header("strict-transport-security"),
            "",
            "not for names of this machine"
        );
    }
    assert_eq!(browser.send(("POST", PORTAL, "/"), &[], "").await.status, 405);
    assert_eq!(browser.get("/assets/none.js").await.status, 404);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let head = browser.send(("HEAD", PORTAL, "/"), &[], "").await;
    assert_eq!((head.status, head.body.len()), (page.status, 0));
    if page.status == 503 {
        assert!(page.text().contains("make web"));
        return;
    }
    // The program was built with the application.
    assert_eq!((page.status, page.header("cache-control")), (200, "no-cache"));
    let nonce_of = |policy: &str| {
        let rest = policy.split_once("'nonce-").unwrap().1;
        rest.split_once('\'').unwrap().0.to_owned()
    };
    let nonce = nonce_of(page.header("content-security-policy"));
    assert!(page.text().contains(&nonce) && !page.text().contains("__CSP_NONCE__"));
    let deep = browser.get("/machines/root:acme/default/web").await;
    assert_eq!(deep.header("etag"), page.header("etag"));
    assert_ne!(nonce_of(deep.header("content-security-policy")), nonce);
    let known = browser
        .send(
            ("GET", PORTAL, "/"),
            &[("if-none-match", page.header("etag"))],
            "",
        )
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(
        known.header("content-security-policy"),
        "",
        "the page that is kept has its own nonce"
    );
    let text = page.text();
    let (_, rest) = text.split_once("/assets/").expect("the page loads nothing");
    let script = format!("/assets/{}", rest.split('"').next().unwrap());
    let mut sizes = Vec::new();
    for (accepted, encoding) in [("", ""), ("gzip", "gzip"), ("gzip, br", "br")] {
        let answered = browser
            .send(("GET", PORTAL, &script), &[("accept-encoding", accepted)], "")
            .await;
        assert_eq!(
            (answered.status, answered.header("content-encoding")),
            (200, encoding)
        );
        assert_eq!(
            answered.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
        assert_eq!(answered.header("vary"), "Accept-Encoding");
        sizes.push(answered.body.len());
    }
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

/// With another domain, everything is below it, and the certificate is good for it.
#[tokio::test(flavor = "multi_thread")]
async fn all_sites_are_below_a_domain_of_ones_own() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let _process = Process::start_with(&data, &["--domain", "fairway.example.com"]);
    let password = user(&data, "alice", "root");
    let port = web_port(&data);
    let mut browser = Browser::below(&data, port, "fairway.example.com");

    let session = browser.sign_in("/auth/login", "alice", &password).await;
    assert_eq!(session["domain"], "fairway.example.com");
    let discovery = "/realms/root/.well-known/openid-configuration";
    let discovered = browser
        .send(("GET", "id.fairway.example.com", discovery), &[], "")
        .await;
    let issuer = format!("https://id.fairway.example.com:{port}/realms/root");
    assert_eq!(discovered.json()["issuer"], issuer);
    let git = browser
        .send(("GET", "git.fairway.example.com", "/api/v1/version"), &[], "")
        .await;
    assert_eq!(git.status, 200, "{}", git.text());
    let status = fairway(&data, &["status", "--data", data.to_str().unwrap()]);
    for site in ["git", "portal"] {
        let address = format!("https://{site}.fairway.example.com:{port}");
        assert!(status.contains(&address), "{status}");
    }
}
