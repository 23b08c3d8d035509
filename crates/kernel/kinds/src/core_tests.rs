//! Namespace, ConfigMap, Secret, ServiceAccount and RBAC through their whole write.

use serde_json::{Value, json};

use crate::check::{create, stored, update, update_through};

#[test]
fn namespaces_are_active_labelled_and_held() {
    let ns = create(
        "",
        "namespaces",
        json!({"metadata": {"name": "a"}, "status": {"phase": "Odd"}}),
    )
    .ok();
    assert_eq!(ns["status"], json!({"phase": "Active"}));
    assert_eq!(ns["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(
        ns["metadata"]["labels"],
        json!({"kubernetes.io/metadata.name": "a"})
    );
    let generated = create("", "namespaces", json!({"metadata": {"generateName": "a-"}})).ok();
    assert_eq!(
        generated["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "a-abcde"
    );
    create("", "namespaces", json!({"metadata": {"name": "a.b"}}))
        .fails(&["metadata.name: Invalid value: \"a.b\": must not contain dots"]);
    create("", "namespaces", json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["mine"]}})).fails(&[
        "spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified",
    ]);
}

#[test]
fn namespace_endpoints() {
    let old = stored("", "namespaces", json!({"metadata": {"name": "a"}}));
    let same = update("", "namespaces", &old, |o| {
        o["spec"]["finalizers"] = json!([]);
        o["status"]["phase"] = json!("Terminating");
    })
    .ok();
    assert_eq!(
        same, old,
        "the main endpoint changes neither finalizers nor status"
    );
    let finalized = update_through("", "namespaces", Some("finalize"), &old, |o| {
        o["spec"]["finalizers"] = json!([]);
    })
    .ok();
    assert_eq!(finalized["spec"]["finalizers"], json!([]));
    update_through("", "namespaces", Some("status"), &old, |o| {
        o["status"]["phase"] = json!("Terminating");
    })
    .fails(&[
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
    ]);
    let unlabelled = update("", "namespaces", &old, |o| {
        o["metadata"]["labels"] = json!({"kubernetes.io/metadata.name": "b"});
    })
    .ok();
    assert_eq!(
        unlabelled["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "a"
    );
}

#[test]
fn configmaps() {
    let make = |body: Value| {
        let mut object = json!({"metadata": {"name": "a"}});
        object
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        object
    };
    create(
        "",
        "configmaps",
        make(json!({"data": {"a.b": "c"}, "binaryData": {"d": "AAAA"}})),
    )
    .ok();
    create("", "configmaps", make(json!({"data": {"a/b": "c", "..": "d"}, "binaryData": {"e f": ""}}))).fails(&[
        "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        "data[..]: Invalid value: \"..\": must not be '..'",
        "binaryData[e f]: Invalid value",
    ]);
    create(
        "",
        "configmaps",
        make(json!({"data": {"a": "c"}, "binaryData": {"a": ""}})),
    )
    .fails(&["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"]);
    create(
        "",
        "configmaps",
        make(json!({"data": {"a": "x".repeat(1024 * 1024 + 1)}})),
    )
    .fails(&["[]: Too long: may not be more than 1048576 bytes"]);
    let old = stored(
        "",
        "configmaps",
        make(json!({"immutable": true, "data": {"a": "b"}})),
    );
    update("", "configmaps", &old, |o| {
        o["data"]["a"] = json!("c");
        o["immutable"] = json!(false);
    })
    .fails(&[
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
    ]);
    update("", "configmaps", &old, |o| {
        o["metadata"]["labels"] = json!({"x": "y"});
    })
    .ok();
}

fn secret(kind: &str, data: Value) -> Value {
    json!({"metadata": {"name": "a"}, "type": kind, "data": data})
}

#[test]
fn secret_data() {
    let object = create("", "secrets", json!({"metadata": {"name": "a"}, "data": {"a": "b2xk", "c": "bGlu\nZQ=="}, "stringData": {"a": "new"}})).ok();
    assert_eq!(
        object["data"],
        json!({"a": "bmV3", "c": "bGluZQ=="}),
        "stringData wins and is not kept"
    );
    assert_eq!(object["type"], "Opaque");
    assert!(object.get("stringData").is_none());
    create("", "secrets", secret("Opaque", json!({"a": "not base64!"}))).fails(&[
        "data[a]: Invalid value: \"<secret contents redacted>\": illegal base64 data at input byte 3",
    ]);
    create(
        "",
        "secrets",
        json!({"metadata": {"name": "a"}, "stringData": {"a": "x".repeat(1024 * 1024 + 1)}}),
    )
    .fails(&["data: Too long: may not be more than 1048576 bytes"]);
}

#[test]
fn secret_types_need_their_keys() {
    let cases: [(&str, Value, &[&str]); 9] = [
        (
            "kubernetes.io/tls",
            json!({}),
            &["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        ),
        ("kubernetes.io/tls", json!({"tls.crt": "", "tls.key": ""}), &[]),
        (
            "kubernetes.io/basic-auth",
            json!({}),
            &["data[username]: Required value", "data[password]: Required value"],
        ),
        ("kubernetes.io/basic-auth", json!({"username": ""}), &[]),
        (
            "kubernetes.io/ssh-auth",
            json!({"ssh-privatekey": ""}),
            &["data[ssh-privatekey]: Required value"],
        ),
        (
            "kubernetes.io/dockercfg",
            json!({}),
            &["data[.dockercfg]: Required value"],
        ),
        (
            "kubernetes.io/dockerconfigjson",
            json!({".dockerconfigjson": "bm9wZQ=="}),
            &["data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\""],
        ),
        (
            "kubernetes.io/service-account-token",
            json!({}),
            &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("example.com/mine", json!({}), &[]),
    ];
    for (kind, data, expected) in cases {
        println!("{kind} {data}");
        create("", "secrets", secret(kind, data)).fails(expected);
    }
    let old = stored("", "secrets", secret("Opaque", json!({})));
    update("", "secrets", &old, |o| o["type"] = json!("example.com/other"))
        .fails(&["type: Invalid value: \"example.com/other\": field is immutable"]);
}

#[test]
fn service_account_secrets_are_names() {
    let object = create(
        "",
        "serviceaccounts",
        json!({"metadata": {"name": "a"}, "secrets": [{"name": "t", "kind": "Secret"}]}),
    )
    .ok();
    assert_eq!(object["secrets"], json!([{"name": "t"}]));
}

const RBAC: &str = "rbac.authorization.k8s.io";

#[test]
fn roles() {
    let role = |rules: Value| json!({"metadata": {"name": "system:a"}, "rules": rules});
    create(
        RBAC,
        "roles",
        role(json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])),
    )
    .ok();
    create(RBAC, "roles", role(json!([{}]))).fails(&[
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ]);
    create(RBAC, "roles", role(json!([{"verbs": ["get"], "nonResourceURLs": ["/a"]}]))).fails(&[
        "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: namespaced rules cannot apply to non-resource URLs",
    ]);
    create(
        RBAC,
        "clusterroles",
        role(json!([{"verbs": ["get"], "nonResourceURLs": ["/a"]}])),
    )
    .ok();
    create(RBAC, "clusterroles", json!({"metadata": {"name": "a/b"}}))
        .fails(&["metadata.name: Invalid value: \"a/b\": may not contain '/'"]);
    create(RBAC, "clusterroles", json!({"metadata": {"name": "a"}, "aggregationRule": {}})).fails(&[
        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
    ]);
}

#[test]
fn bindings() {
    let binding = |kind: &str, subjects: Value| json!({"metadata": {"name": "a"}, "roleRef": {"kind": kind, "name": "r"}, "subjects": subjects});
    let old = stored(
        RBAC,
        "rolebindings",
        binding(
            "Role",
            json!([{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]),
        ),
    );
    assert_eq!(old["roleRef"]["apiGroup"], RBAC);
    assert_eq!(old["subjects"][0]["apiGroup"], RBAC);
    assert!(old["subjects"][1].get("apiGroup").is_none());
    update(RBAC, "rolebindings", &old, |o| o["roleRef"]["name"] = json!("other")).fails(&[
        "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}: cannot change roleRef",
    ]);
    create(RBAC, "clusterrolebindings", binding("Role", json!([{"kind": "ServiceAccount", "name": "s"}, {"kind": "Robot", "name": "r"}]))).fails(&[
        "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
        "subjects[0].namespace: Required value",
        "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
    ]);
}
