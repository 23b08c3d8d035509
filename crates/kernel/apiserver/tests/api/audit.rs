//! The lines that requests leave, at every level and stage.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Server;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [quiet]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: Request
  resources: [{group: "", resources: [configmaps]}]
  verbs: [update, patch]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
  omitManagedFields: true
- level: Metadata
  nonResourceURLs: [/version]
  omitStages: []
- level: Metadata
  userGroups: ["system:unauthenticated"]
"#;

/// The lines so far, once there are this many; the log is written by a thread that takes its time.
fn lines(server: &Server, count: usize) -> Vec<Value> {
    let path = server.directory().join("audit.log");
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        let text = std::fs::read_to_string(&path).unwrap();
        let found: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            // What starting the server did is not looked at.
            .filter(|line: &Value| line["user"]["username"] != "system:apiserver")
            .collect();
        if found.len() >= count {
            assert_eq!(found.len(), count, "{text}");
            return found;
        }
        assert!(Instant::now() < give_up, "{count} lines were expected:\n{text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_how_much_is_kept() {
    let server = Server::with_audit(POLICY).await;
    let admin = server.admin();
    let quiet = server.user("quiet", &["system:masters"]);
    let map = json!({"metadata": {"name": "m"}, "data": {"who": "you"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    quiet.post(maps, &map).await.expect(201);
    quiet.delete(&format!("{maps}/m")).await.expect(200);

    admin.post(maps, &map).await.expect(201);
    let line = lines(&server, 1).remove(0);
    assert_eq!(line["level"], "RequestResponse");
    assert_eq!(line["stage"], "ResponseComplete");
    assert_eq!(line["requestObject"]["data"]["who"], "you");
    assert_eq!(line["responseObject"]["metadata"]["name"], "m");
    assert!(line["responseObject"]["metadata"]["uid"].is_string());
    assert!(line["responseObject"]["metadata"]["managedFields"].is_null());
    assert_eq!(line["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(line["annotations"]["authorization.k8s.io/decision"], "allow");

    let patch = json!({"data": {"who": "me"}});
    admin
        .patch("merge", &format!("{maps}/m"), &patch)
        .await
        .expect(200);
    let line = lines(&server, 2).remove(1);
    assert_eq!(
        (&line["level"], &line["requestObject"]),
        (&json!("Request"), &patch)
    );
    assert!(line["responseObject"].is_null());

    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    admin
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await
        .expect(201);
    let line = lines(&server, 3).remove(2);
    assert_eq!(line["level"], "Metadata");
    assert!(!line.to_string().contains("hunter2"));

    let refused = server.anonymous().get("/api/v1/namespaces/default/secrets").await;
    refused.expect(403);
    let line = lines(&server, 4).remove(3);
    assert_eq!(line["responseStatus"]["reason"], "Forbidden");
    assert_eq!(line["responseStatus"]["status"], "Failure");
    assert_eq!(line["annotations"]["authorization.k8s.io/decision"], "forbid");

    // A global omission holds for every rule.
    let own = admin.with("audit-id", "my-own-id");
    own.get("/version").await.expect(200);
    let line = lines(&server, 5).remove(4);
    assert_eq!(
        (&line["auditID"], &line["stage"]),
        (&json!("my-own-id"), &json!("ResponseComplete"))
    );
    // No rule matches this one.
    admin.get("/api/v1/namespaces").await.expect(200);
    let _ = lines(&server, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_has_a_line_when_it_begins_and_one_when_it_ends() {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, users: [w]}]}";
    let server = Server::with_audit(policy).await;
    let watch = server
        .user("w", &["system:masters"])
        .watch("/api/v1/namespaces?watch=true")
        .await;
    let stages = |lines: Vec<Value>| -> Vec<String> {
        lines
            .iter()
            .map(|l| l["stage"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(stages(lines(&server, 2)), ["RequestReceived", "ResponseStarted"]);
    drop(watch);
    let all = lines(&server, 3);
    assert_eq!(all[0]["responseStatus"], Value::Null);
    assert_eq!(all[1]["responseStatus"]["code"], 200);
    assert_eq!(all[2]["responseStatus"]["code"], 200);
    assert_eq!(all[2]["auditID"], all[0]["auditID"]);
    assert_eq!(stages(all)[2], "ResponseComplete");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_not_kept_and_said_so() {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], \
                  rules: [{level: RequestResponse, users: [w]}]}";
    let server = Server::with_audit(policy).await;
    let map = json!({"metadata": {"name": "m"}, "data": {"large": "x".repeat(150 * 1024)}});
    let user = server.user("w", &["system:masters"]);
    user.post("/api/v1/namespaces/default/configmaps", &map)
        .await
        .expect(201);
    let line = lines(&server, 1).remove(0);
    assert_eq!(line["annotations"]["audit.k8s.io/truncated"], "true");
    assert!(line["requestObject"].is_null() && line["responseObject"].is_null());
    let wrong = server.anonymous().with("authorization", "Bearer nonsense");
    wrong.get("/version").await.expect(401);
}
