//! ValidatingAdmissionPolicies judge writes; pods get their service accounts.

use serde_json::{Value, json};

use crate::harness::{Client, Server};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn policy(name: &str, validation: &Value, more: &Value) -> Value {
    let mut policy = json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"]}]},
        "validations": [validation]}});
    for (field, value) in more.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

async fn enforce(admin: &Client, policy: &Value, actions: &Value, more: &Value) {
    let name = policy["metadata"]["name"].clone();
    let mut binding =
        json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": actions}});
    for (field, value) in more.as_object().unwrap() {
        binding["spec"][field] = value.clone();
    }
    admin.post(POLICIES, policy).await.expect(201);
    admin.post(BINDINGS, &binding).await.expect(201);
}

fn map(name: &str, size: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"size": size}})
}

#[tokio::test]
async fn a_policy_counts_from_the_moment_when_it_is_bound() {
    let server = Server::start().await;
    let admin = server.admin();
    let check = json!({"expression": "object == null || object.data.size == 'small'",
        "messageExpression": "'too ' + object.data.size"});
    let size = policy("size", &check, &json!({}));
    admin.post(POLICIES, &size).await.expect(201);
    admin.post(MAPS, &map("unbound", "big")).await.expect(201);
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "size", "validationActions": ["Deny"]}});
    admin.post(BINDINGS, &binding).await.expect(201);
    let answer = admin.post(MAPS, &map("a", "big")).await;
    let status = answer.refused(
        422,
        "Invalid",
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'size' with binding 'b' denied request: too big",
    );
    assert_eq!(
        status["details"]["causes"][0]["message"],
        "ValidatingAdmissionPolicy 'size' with binding 'b' denied request: too big"
    );
    admin.post(MAPS, &map("a", "small")).await.expect(201);
    let path = format!("{MAPS}/a");
    admin
        .patch("merge", &path, &json!({"data": {"size": "big"}}))
        .await
        .refused(422, "Invalid", "too big");
    admin
        .post(&format!("{MAPS}?dryRun=All"), &map("dry", "big"))
        .await
        .refused(422, "Invalid", "too big");
    admin.delete(&path).await.expect(200);
    admin.delete(&format!("{BINDINGS}/b")).await.expect(200);
    admin.post(MAPS, &map("c", "big")).await.expect(201);
}

#[tokio::test]
async fn bindings_say_what_becomes_of_a_failure() {
    let server = Server::start().await;
    let admin = server.admin();
    let never = |reason: &str| json!({"expression": "false", "message": "never", "reason": reason});
    enforce(
        &admin,
        &policy("warn", &never("Invalid"), &json!({})),
        &json!(["Warn"]),
        &json!({}),
    )
    .await;
    let answer = admin.post(MAPS, &map("a", "x")).await;
    answer.expect(201);
    let warning = "Validation failed for ValidatingAdmissionPolicy 'warn' with binding 'warn': never";
    assert!(
        answer.warnings().iter().any(|w| w.contains(warning)),
        "{:?}",
        answer.warnings()
    );
    enforce(
        &admin,
        &policy("deny", &never("Forbidden"), &json!({})),
        &json!(["Deny", "Audit"]),
        &json!({}),
    )
    .await;
    admin
        .delete(&format!("{MAPS}/a"))
        .await
        .refused(403, "Forbidden", "never");
    // Nobody can lock himself out of the policies.
    admin.delete(&format!("{BINDINGS}/deny")).await.expect(200);
    admin.delete(&format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn parameters_come_from_the_objects_that_the_binding_names() {
    let server = Server::start().await;
    let admin = server.admin();
    server.namespace("limits").await;
    let kind = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "sized", "expression": "has(object.data) && 'size' in object.data"}]});
    let check = json!({"expression": "object.data.size == params.data.allowed", "message": "not allowed"});
    let reference =
        json!({"paramRef": {"name": "size", "namespace": "limits", "parameterNotFoundAction": "Deny"}});
    enforce(&admin, &policy("p", &check, &kind), &json!(["Deny"]), &reference).await;
    admin
        .post(MAPS, &map("a", "m"))
        .await
        .refused(422, "Invalid", "no params found");
    let limits = json!({"metadata": {"name": "size"}, "data": {"allowed": "m"}});
    // The parameters themselves are a ConfigMap that the policy is about; its conditions leave them out.
    admin.delete(&format!("{BINDINGS}/p")).await.expect(200);
    admin
        .post("/api/v1/namespaces/limits/configmaps", &limits)
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "size", "namespace": "limits", "parameterNotFoundAction": "Deny"}}});
    admin.post(BINDINGS, &binding).await.expect(201);
    admin.post(MAPS, &map("a", "m")).await.expect(201);
    admin
        .post(MAPS, &map("b", "l"))
        .await
        .refused(422, "Invalid", "not allowed");
    let unsized_map = json!({"metadata": {"name": "c"}, "data": {"other": "x"}});
    admin.post(MAPS, &unsized_map).await.expect(201);
}

#[tokio::test]
async fn expressions_must_compile() {
    let server = Server::start().await;
    let admin = server.admin();
    let wrong = policy("w", &json!({"expression": "object.data.size"}), &json!({}));
    admin.post(POLICIES, &wrong).await.refused(
        422,
        "Invalid",
        "spec.validations[0].expression: Invalid value: \"object.data.size\": must evaluate to bool",
    );
}

#[tokio::test]
async fn who_scales_is_judged_by_the_scale() {
    let server = Server::start().await;
    let admin = server.admin();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let rules = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}]}});
    let check = json!({"expression": "request.kind.kind == 'Scale' && object.spec.replicas < 5 && oldObject.kind == 'Scale'",
        "message": "at most four"});
    enforce(
        &admin,
        &policy("scale", &check, &rules),
        &json!(["Deny"]),
        &json!({}),
    )
    .await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 9, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    admin.post(deployments, &deployment).await.expect(201);
    let path = format!("{deployments}/d/scale");
    let merge = "merge";
    admin
        .patch(merge, &path, &json!({"spec": {"replicas": 4}}))
        .await
        .expect(200);
    admin
        .patch(merge, &path, &json!({"spec": {"replicas": 5}}))
        .await
        .refused(422, "Invalid", "at most four");
}

#[tokio::test]
async fn pods_run_as_an_account_that_exists() {
    let server = Server::start().await;
    let admin = server.admin();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, account: &str| json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}});
    admin.post(pods, &pod("p", "nobody")).await.refused(
        403,
        "Forbidden",
        "error looking up service account default/nobody: serviceaccount \"nobody\" not found",
    );
    let quiet = json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "pull"}]});
    admin.post(accounts, &quiet).await.expect(201);
    let made = admin.post(pods, &pod("quiet", "quiet")).await.expect(201);
    assert!(made["spec"]["volumes"].is_null());
    assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
    // One that comes with its namespace waits for the default account.
    let late = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        admin
            .post(accounts, &json!({"metadata": {"name": "default"}}))
            .await
            .expect(201)
    };
    let plain = pod("plain", "");
    let (made, _) = tokio::join!(admin.post(pods, &plain), late);
    let made = made.expect(201);
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    let mount = &made["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(
        mount["mountPath"],
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
    assert_eq!(mount["name"], made["spec"]["volumes"][0]["name"]);
}
