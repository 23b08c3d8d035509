//! Questions about rights and tokens.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, Server, config_map};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn may(client: &Client, attributes: Value) -> bool {
    let review = json!({"spec": {"resourceAttributes": attributes}});
    let answer = client
        .post(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"), &review)
        .await
        .expect(201);
    assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    answer["status"]["allowed"].as_bool().unwrap()
}

async fn with_viewer(server: &Server) -> Client {
    let binding = json!({
        "metadata": {"name": "viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "viewers"}],
    });
    server
        .admin()
        .post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding)
        .await
        .expect(201);
    server.user("vera", &["viewers"])
}

#[tokio::test]
async fn a_self_review_says_what_a_request_would_be_told() {
    let server = Server::start().await;
    let vera = with_viewer(&server).await;
    server
        .admin()
        .post(CONFIG_MAPS, &config_map("a"))
        .await
        .expect(201);
    for (attributes, path, method) in [
        (
            json!({"verb": "list", "resource": "configmaps", "namespace": "default"}),
            CONFIG_MAPS,
            http::Method::GET,
        ),
        (
            json!({"verb": "get", "resource": "configmaps", "namespace": "default", "name": "a"}),
            "/api/v1/namespaces/default/configmaps/a",
            http::Method::GET,
        ),
        (
            json!({"verb": "list", "resource": "secrets", "namespace": "default"}),
            "/api/v1/namespaces/default/secrets",
            http::Method::GET,
        ),
        (
            json!({"verb": "delete", "resource": "configmaps", "namespace": "default", "name": "a"}),
            "/api/v1/namespaces/default/configmaps/a",
            http::Method::DELETE,
        ),
        (
            json!({"verb": "list", "resource": "configmaps"}),
            "/api/v1/configmaps",
            http::Method::GET,
        ),
        (
            json!({"verb": "list", "group": "apps", "resource": "deployments", "namespace": "default"}),
            "/apis/apps/v1/namespaces/default/deployments",
            http::Method::GET,
        ),
    ] {
        let told = vera.send(method, path, "", "").await.code != 403;
        assert_eq!(may(&vera, attributes.clone()).await, told, "{attributes}");
    }
    assert!(
        may(
            &server.admin(),
            json!({"verb": "*", "resource": "*", "group": "*"})
        )
        .await
    );
    let path = json!({"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}});
    let answer = vera
        .post(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"), &path)
        .await
        .expect(201);
    assert_eq!(answer["status"]["allowed"], false);
}

#[tokio::test]
async fn reviews_of_others_need_the_right_to_ask() {
    let server = Server::start().await;
    let vera = with_viewer(&server).await;
    let admin = server.admin();
    let path = format!("{AUTHORIZATION}/subjectaccessreviews");
    let attributes = json!({"verb": "get", "resource": "configmaps", "namespace": "default"});
    let review = json!({"spec": {"user": "vera", "groups": ["viewers"], "resourceAttributes": attributes}});
    vera.post(&path, &review)
        .await
        .refused(403, "Forbidden", "subjectaccessreviews");
    assert_eq!(
        admin.post(&path, &review).await.expect(201)["status"]["allowed"],
        true
    );
    let other = json!({"spec": {"user": "eve", "resourceAttributes": attributes}});
    assert_eq!(
        admin.post(&path, &other).await.expect(201)["status"]["allowed"],
        false
    );
    let local = format!("{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews");
    assert_eq!(
        admin.post(&local, &review).await.expect(201)["status"]["allowed"],
        true
    );
    let wrong = format!("{AUTHORIZATION}/namespaces/kube-system/localsubjectaccessreviews");
    admin
        .post(&wrong, &review)
        .await
        .refused(422, "Invalid", "must match metadata.namespace");
    let everyone = json!({"spec": {"resourceAttributes": attributes}});
    assert_eq!(admin.post(&path, &everyone).await.code, 422, "about whom?");
}

#[tokio::test]
async fn questions_that_make_no_sense_are_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    for (resource, body, why) in [
        ("selfsubjectaccessreviews", json!({}), "no question"),
        ("selfsubjectaccessreviews", json!({"spec": {}}), "no question"),
        (
            "selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}}),
            "two questions",
        ),
        ("selfsubjectaccessreviews", json!({"spec": "x"}), "not an object"),
        (
            "selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": {"verb": 5}}}),
            "a number where text belongs",
        ),
        (
            "selfsubjectaccessreviews",
            json!({"kind": "Pod", "spec": {}}),
            "another kind",
        ),
        (
            "subjectaccessreviews",
            json!({"spec": {"user": "a", "groups": "b", "resourceAttributes": {"verb": "get"}}}),
            "groups are a list",
        ),
        (
            "selfsubjectrulesreviews",
            json!({"spec": {"namespace": 5}}),
            "a number where text belongs",
        ),
    ] {
        let reply = admin.post(&format!("{AUTHORIZATION}/{resource}"), &body).await;
        assert!(
            matches!(reply.code, 400 | 422),
            "{body}: {why}: {} {}",
            reply.code,
            reply.text()
        );
    }
    assert_eq!(
        admin
            .get(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"))
            .await
            .code,
        405,
        "nothing is stored"
    );
}

#[tokio::test]
async fn rules_are_listed() {
    let server = Server::start().await;
    let vera = with_viewer(&server).await;
    let review = json!({"spec": {"namespace": "default"}});
    let answer = vera
        .post(&format!("{AUTHORIZATION}/selfsubjectrulesreviews"), &review)
        .await
        .expect(201);
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.iter().any(
        |r| r["resources"].as_array().unwrap().contains(&json!("configmaps"))
            && r["verbs"].as_array().unwrap().contains(&json!("list"))
    ));
    assert!(
        !rules
            .iter()
            .any(|r| r["resources"].as_array().unwrap().contains(&json!("secrets")))
    );
    assert!(
        answer["status"]["nonResourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["nonResourceURLs"]
                .as_array()
                .unwrap()
                .contains(&json!("/healthz")))
    );
}

#[tokio::test]
async fn token_reviews_judge_tokens() {
    let server = Server::start().await;
    let admin = server.admin();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .post(accounts, &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    let made = admin
        .post(
            &format!("{accounts}/robot/token"),
            &json!({"spec": {"audiences": ["vault"]}}),
        )
        .await
        .expect(201);
    let token = made["status"]["token"].clone();
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let ask =
        async |spec: Value| admin.post(path, &json!({"spec": spec})).await.expect(201)["status"].clone();
    let good = ask(json!({"token": token, "audiences": ["vault", "other"]})).await;
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["audiences"], json!(["vault"]));
    assert_eq!(good["user"]["username"], "system:serviceaccount:default:robot");
    assert!(
        good["user"]["groups"]
            .as_array()
            .unwrap()
            .contains(&json!("system:serviceaccounts:default"))
    );
    for (spec, why) in [
        (json!({"token": token}), "not for this server"),
        (json!({"token": token, "audiences": ["other"]}), "not for them"),
        (json!({"token": "x.y.z"}), "garbage"),
    ] {
        let status = ask(spec).await;
        assert_ne!(status["authenticated"], true, "{why}");
    }
    admin.post(path, &json!({"spec": {"token": ""}})).await.refused(
        400,
        "BadRequest",
        "token is required for TokenReview",
    );
    server
        .user("eve", &[])
        .post(path, &json!({"spec": {"token": "x"}}))
        .await
        .refused(403, "Forbidden", "tokenreviews");
}

#[tokio::test]
async fn an_answer_has_no_rows() {
    let server = Server::start().await;
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = format!("{AUTHORIZATION}/selfsubjectaccessreviews");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let admin = server.admin();
    admin.with("accept", table).post(&path, &review).await.refused(
        406,
        "NotAcceptable",
        "only the following media types are accepted",
    );
    let both = format!("{table},application/json");
    admin.with("accept", &both).post(&path, &review).await.expect(201);
}
