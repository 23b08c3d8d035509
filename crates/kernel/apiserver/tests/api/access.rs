//! Who may do what: RBAC and its sentences, impersonation, escalation, tokens, strangers.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, Server, config_map, names};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn grant(admin: &Client, namespace: &str, user: &str, rules: Value) {
    let name = format!("for-{user}");
    let (path, role_kind, kind) = if namespace.is_empty() {
        (RBAC.to_owned(), "ClusterRole", "clusterrole")
    } else {
        (format!("{RBAC}/namespaces/{namespace}"), "Role", "role")
    };
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user});
    admin
        .post(
            &format!("{path}/{kind}s"),
            &json!({"metadata": {"name": name}, "rules": rules}),
        )
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": name},
    });
    admin
        .post(&format!("{path}/{kind}bindings"), &binding)
        .await
        .expect(201);
}

#[tokio::test]
async fn refusals_say_who_what_and_where() {
    let server = Server::start().await;
    let eve = server.user("eve", &[]);
    for (method, path, words) in [
        (
            Method::GET,
            "/api/v1/namespaces/default/configmaps/a",
            "configmaps \"a\" is forbidden: User \"eve\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\"",
        ),
        (
            Method::GET,
            "/api/v1/nodes",
            "nodes is forbidden: User \"eve\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
        ),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/default/deployments?watch=1",
            "cannot watch resource \"deployments\" in API group \"apps\"",
        ),
        (Method::DELETE, CONFIG_MAPS, "cannot deletecollection resource"),
        (
            Method::PATCH,
            "/apis/apps/v1/namespaces/default/deployments/d/status",
            "cannot patch resource \"deployments/status\"",
        ),
        (
            Method::GET,
            "/metrics",
            "User \"eve\" cannot get path \"/metrics\"",
        ),
        (
            Method::GET,
            "/apis/none.dev/v1/things",
            "cannot list resource \"things\" in API group \"none.dev\"",
        ),
    ] {
        let status = eve
            .send(method, path, "application/json", "{}")
            .await
            .refused(403, "Forbidden", words);
        assert_eq!(status["status"], "Failure");
    }
}

#[tokio::test]
async fn a_role_counts_from_the_moment_it_is_written_until_it_goes() {
    let server = Server::start().await;
    let admin = server.admin();
    let bob = server.user("bob", &[]);
    bob.get(CONFIG_MAPS).await.expect(403);
    grant(
        &admin,
        "default",
        "bob",
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]),
    )
    .await;
    bob.get(CONFIG_MAPS).await.expect(200);
    bob.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    bob.delete(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(403, "Forbidden", "cannot delete");
    bob.get("/api/v1/namespaces/kube-system/configmaps")
        .await
        .expect(403);
    bob.get("/api/v1/configmaps")
        .await
        .refused(403, "Forbidden", "at the cluster scope");
    let update = bob.put(&format!("{CONFIG_MAPS}/a"), &config_map("a")).await;
    update.refused(403, "Forbidden", "cannot update");
    admin
        .delete(&format!("{RBAC}/namespaces/default/rolebindings/for-bob"))
        .await
        .expect(200);
    bob.get(CONFIG_MAPS).await.expect(403);
}

#[tokio::test]
async fn rights_on_one_name_reach_its_list_and_watch() {
    let server = Server::start().await;
    let admin = server.admin();
    let bob = server.user("bob", &[]);
    admin.post(CONFIG_MAPS, &config_map("mine")).await.expect(201);
    admin.post(CONFIG_MAPS, &config_map("other")).await.expect(201);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["get", "list", "watch"]}]);
    grant(&admin, "default", "bob", rules).await;
    bob.get(&format!("{CONFIG_MAPS}/mine")).await.expect(200);
    bob.get(&format!("{CONFIG_MAPS}/other")).await.expect(403);
    bob.get(CONFIG_MAPS).await.expect(403);
    let list = bob
        .get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dmine"))
        .await
        .expect(200);
    assert_eq!(
        names(&list),
        ["mine"],
        "an informer on one object needs no right on all"
    );
    bob.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dother"))
        .await
        .expect(403);
    bob.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name!%3Dmine"))
        .await
        .expect(403);
    let mut watch = bob
        .watch(&format!(
            "{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dmine"
        ))
        .await;
    assert_eq!(watch.step().await, "ADDED mine");
}

#[tokio::test]
async fn apply_and_put_create_only_for_who_may_create() {
    let server = Server::start().await;
    let admin = server.admin();
    let bob = server.user("bob", &[]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    ]);
    grant(&admin, "default", "bob", rules).await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
    bob.patch("apply", &path, &config_map("a"))
        .await
        .refused(403, "Forbidden", "cannot create");
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    bob.patch("apply", &format!("{path}&force=true"), &config_map("a"))
        .await
        .expect(200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    bob.put(leases, &json!({"metadata": {"name": "l"}}))
        .await
        .refused(403, "Forbidden", "cannot create");
}

#[tokio::test]
async fn nobody_gives_away_what_he_has_not() {
    let server = Server::start().await;
    let admin = server.admin();
    let carol = server.user("carol", &[]);
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    grant(&admin, "default", "carol", rules).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |verbs: Value| json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]});
    carol.post(&roles, &role(json!(["get", "delete"]))).await.refused(
        403,
        "Forbidden",
        "attempting to grant RBAC permissions not currently held",
    );
    carol.post(&roles, &role(json!(["get"]))).await.expect(201);
    carol
        .put(&format!("{roles}/r"), &role(json!(["*"])))
        .await
        .refused(403, "Forbidden", "attempting to grant");
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    carol
        .patch("merge", &format!("{roles}/r"), &more)
        .await
        .refused(403, "Forbidden", "attempting to grant");

    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let bind = |name: &str, kind: &str, role: &str| {
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
        })
    };
    carol
        .post(&bindings, &bind("up", "ClusterRole", "cluster-admin"))
        .await
        .refused(403, "Forbidden", "attempting to grant");
    carol.post(&bindings, &bind("own", "Role", "r")).await.expect(201);
    let missing = carol.post(&bindings, &bind("none", "Role", "none")).await;
    assert_eq!(missing.code, 404, "{}", missing.text());
    let other = json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let refused = admin.patch("merge", &format!("{bindings}/own"), &other).await;
    refused.refused(422, "Invalid", "roleRef");
    carol
        .post(&format!("{RBAC}/clusterroles"), &role(json!(["get"])))
        .await
        .expect(403);
}

#[tokio::test]
async fn acting_as_somebody_else() {
    let server = Server::start().await;
    let admin = server.admin();
    grant(
        &admin,
        "default",
        "bob",
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]),
    )
    .await;
    let as_bob = admin.with("impersonate-user", "bob");
    as_bob.get(CONFIG_MAPS).await.expect(200);
    as_bob
        .get("/api/v1/nodes")
        .await
        .refused(403, "Forbidden", "User \"bob\" cannot list");
    let who = as_bob
        .with("impersonate-group", "staff")
        .with("impersonate-extra-scopes", "view")
        .with("impersonate-uid", "7");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = who
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .await;
    let user = answer.expect(201)["status"]["userInfo"].clone();
    assert_eq!(user["username"], "bob");
    assert_eq!(user["groups"], json!(["staff", "system:authenticated"]));
    assert_eq!(
        (&user["uid"], &user["extra"]),
        (&json!("7"), &json!({"scopes": ["view"]}))
    );

    let eve = server.user("eve", &[]);
    eve.with("impersonate-user", "admin")
        .get(CONFIG_MAPS)
        .await
        .refused(403, "Forbidden", "cannot impersonate resource \"users\"");
    grant(&admin, "", "eve", json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}])).await;
    let eve_as_bob = eve.with("impersonate-user", "bob");
    eve_as_bob.get(CONFIG_MAPS).await.expect(200);
    eve_as_bob
        .with("impersonate-group", "system:masters")
        .get("/api/v1/nodes")
        .await
        .refused(403, "Forbidden", "impersonate resource \"groups\"");
    eve_as_bob
        .with("impersonate-uid", "1")
        .get(CONFIG_MAPS)
        .await
        .refused(403, "Forbidden", "impersonate resource \"uids\"");
    eve_as_bob
        .with("impersonate-extra-a", "1")
        .get(CONFIG_MAPS)
        .await
        .refused(403, "Forbidden", "impersonate resource \"userextras/a\"");
    eve.with("impersonate-user", "root")
        .get(CONFIG_MAPS)
        .await
        .expect(403);
    let headless = admin.with("impersonate-group", "staff").get(CONFIG_MAPS).await;
    assert!(
        (400..500).contains(&headless.code),
        "a group without a user is the client's fault: {}",
        headless.text()
    );
    let account = admin.with("impersonate-user", "system:serviceaccount:default:robot");
    let answer = account
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .await;
    let groups = answer.expect(201)["status"]["userInfo"]["groups"].clone();
    assert_eq!(
        groups,
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
}

#[tokio::test]
async fn strangers_reach_health_and_version_alone() {
    let server = Server::start().await;
    let nobody = server.anonymous();
    for path in ["/livez", "/readyz", "/healthz", "/version", "/version/"] {
        assert_eq!(nobody.get(path).await.code, 200, "{path}");
    }
    for path in [
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/openapi/v3",
        "/metrics",
        "/api/v1/namespaces",
        "/",
        "/openid/v1/jwks",
        "/api/v1/namespaces/default/secrets",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/none",
        "/version/../metrics",
        "/healthz/../metrics",
        "//metrics",
        "/livezz",
        "/livez/ping",
    ] {
        let reply = nobody.get(path).await;
        reply.refused(403, "Forbidden", "system:anonymous");
    }
    let post = nobody.post(CONFIG_MAPS, &config_map("x")).await;
    post.refused(403, "Forbidden", "User \"system:anonymous\" cannot create");
    for header in ["Bearer nonsense", "Bearer a.b.c", "bearer ", "Basic dXNlcjpwYXNz"] {
        let reply = nobody.with("authorization", header).get(CONFIG_MAPS).await;
        assert!(matches!(reply.code, 401 | 403), "{header}: {}", reply.text());
        if header.starts_with("Bearer") {
            reply.refused(401, "Unauthorized", "Unauthorized");
        }
    }
    nobody
        .with("impersonate-user", "admin")
        .get(CONFIG_MAPS)
        .await
        .expect(403);
}

#[tokio::test]
async fn tokens_live_and_die_with_their_account() {
    let server = Server::start().await;
    let admin = server.admin();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .post(accounts, &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    let path = format!("{accounts}/robot/token");
    let request =
        |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = admin.post(&path, &request(json!({}))).await.expect(201);
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(answer["spec"]["expirationSeconds"], 3_600);
    let bearer = |token: &str| {
        server
            .anonymous()
            .with("authorization", &format!("Bearer {token}"))
    };
    bearer(&token).get(CONFIG_MAPS).await.refused(
        403,
        "Forbidden",
        "User \"system:serviceaccount:default:robot\"",
    );
    bearer(&token).get("/api").await.expect(200);

    let mut other = token.clone();
    let flipped = if other.ends_with('A') { 'B' } else { 'A' };
    let at = other.len() - 5;
    other.replace_range(at..=at, &flipped.to_string());
    if other != token {
        bearer(&other).get("/api").await.expect(401);
    }
    let elsewhere = admin
        .post(&path, &request(json!({"audiences": ["vault"]})))
        .await
        .expect(201);
    bearer(elsewhere["status"]["token"].as_str().unwrap())
        .get("/api")
        .await
        .expect(401);

    admin
        .post(
            "/api/v1/namespaces/default/secrets",
            &json!({"metadata": {"name": "s"}}),
        )
        .await
        .expect(201);
    let reference = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}});
    let bound = admin.post(&path, &request(reference)).await.expect(201);
    let bound = bound["status"]["token"].as_str().unwrap().to_owned();
    bearer(&bound).get("/api").await.expect(200);
    admin
        .delete("/api/v1/namespaces/default/secrets/s")
        .await
        .expect(200);
    bearer(&bound).get("/api").await.expect(401);
    bearer(&token).get("/api").await.expect(200);

    admin.delete(&format!("{accounts}/robot")).await.expect(200);
    bearer(&token).get("/api").await.expect(401);
    admin
        .post(accounts, &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    bearer(&token)
        .get("/api")
        .await
        .refused(401, "Unauthorized", "Unauthorized");

    for (spec, code, why) in [
        (json!({"expirationSeconds": 10}), 422, "too short"),
        (json!({"expirationSeconds": 1_u64 << 40}), 422, "too long"),
        (json!({"expirationSeconds": "soon"}), 400, "not a number"),
        (json!("text"), 400, "not an object"),
        (json!(["x"]), 400, "not an object"),
        (json!({"audiences": "x"}), 400, "not a list"),
        (
            json!({"boundObjectRef": {"kind": "Deployment", "name": "d"}}),
            400,
            "cannot be bound",
        ),
        (
            json!({"boundObjectRef": {"kind": "Secret", "name": "none"}}),
            404,
            "not there",
        ),
    ] {
        let reply = admin.post(&path, &request(spec.clone())).await;
        assert_eq!(reply.code, code, "{spec}: {why}: {}", reply.text());
    }
    admin
        .post(&format!("{accounts}/none/token"), &request(json!({})))
        .await
        .refused(404, "NotFound", "none");
}

#[tokio::test]
async fn an_expired_token_is_refused() {
    use fairway_kernel_apiserver::authn::token::{Grant, TokenError};
    let server = Server::start().await;
    let admin = server.admin();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = admin
        .post(accounts, &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    let now = server.kernel.clock.unix();
    let issue = |now: i64, lifetime: i64| {
        server
            .kernel
            .tokens
            .issue(&Grant {
                cluster: "root",
                namespace: "default",
                account: "robot",
                uid: account["metadata"]["uid"].as_str().unwrap(),
                audiences: Vec::new(),
                now,
                lifetime,
                bound: None,
                requester: None,
                id: "id",
            })
            .unwrap()
    };
    for (token, code, why) in [
        (issue(now - 100, 99), 401, "expired a second ago"),
        (issue(now - 100, 600), 200, "still good"),
        (issue(now + 3_600, 600), 401, "not valid yet"),
    ] {
        let client = server
            .anonymous()
            .with("authorization", &format!("Bearer {token}"));
        assert_eq!(client.get("/api").await.code, code, "{why}");
    }
    let expired = issue(now - 100, 99);
    assert_eq!(
        server
            .kernel
            .tokens
            .authenticate(&server.kernel, "root", &expired, &[])
            .map(|_| ()),
        Err(TokenError::Time)
    );
}

#[tokio::test]
async fn client_certificates_name_their_user() {
    use fairway_kernel_apiserver::{authn::x509, pki};
    let authority = pki::Authority::load(&pki::new_authority(1_700_000_000).unwrap()).unwrap();
    let pair = authority
        .client("alice", &["staff", "pilots"], 3_600, 1_700_000_000)
        .unwrap();
    let der = pem_body(&pair.certificate);
    let user = x509::user(&der).expect("a user");
    assert_eq!(
        (user.name.as_str(), user.groups.as_slice()),
        ("alice", &["staff".to_owned(), "pilots".to_owned()][..])
    );
    for cut in [0, 1, 10, der.len() / 2, der.len() - 1] {
        let _ = x509::user(&der[..cut]);
    }
    let nameless = authority.client("", &["staff"], 3_600, 1_700_000_000).unwrap();
    assert!(
        x509::user(&pem_body(&nameless.certificate)).is_none(),
        "a certificate without a name names nobody"
    );
}

fn pem_body(pem: &str) -> Vec<u8> {
    use base64::Engine as _;
    let text: String = pem.lines().filter(|l| !l.starts_with("-----")).collect();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}
