//! Identities that are made, found and lost.

use super::*;

const KEY: &str = "the key";

fn export(over: Value) -> ApiExport {
    let mut object = json!({
        "metadata": {"name": "widgets", "uid": "u", "annotations": {"kcp.io/cluster": "prov", "kcp.io/path": "root:prov"}},
        "spec": {},
        "status": {},
    });
    for part in ["spec", "status"] {
        if let Some(value) = over.get(part) {
            object[part] = value.clone();
        }
    }
    if let Some(annotations) = over.get("annotations").and_then(Value::as_object) {
        for (key, value) in annotations {
            object["metadata"]["annotations"][key] = value.clone();
        }
    }
    ApiExport::read(&object)
}

fn secret(key: &str) -> Value {
    json!({"data": {"key": STANDARD.encode(key)}})
}

fn run(export: &ApiExport, secret: Option<&Value>, has_slice: bool) -> Plan {
    decide(&Observed {
        export,
        secret,
        has_slice,
        fresh: &[7; 32],
        now: "t",
    })
}

fn reason(plan: &Plan) -> Option<(String, String)> {
    let condition = plan.status.as_ref()?.pointer("/conditions/0")?;
    Some((
        condition.get("reason")?.as_str()?.to_owned(),
        condition.get("message")?.as_str()?.to_owned(),
    ))
}

#[test]
fn a_new_export_gets_everything_at_once() {
    let plan = run(&export(json!({})), None, false);
    let made = plan.create_secret.unwrap();
    assert_eq!(
        made["metadata"],
        json!({"namespace": "kcp-system", "name": "widgets"})
    );
    let key = STANDARD.decode(made["data"]["key"].as_str().unwrap()).unwrap();
    assert_eq!(key.len(), 43);
    assert_eq!(
        plan.secret_ref,
        Some(json!({"namespace": "kcp-system", "name": "widgets"}))
    );
    let status = plan.status.unwrap();
    assert_eq!(status["identityHash"], identity_hash(&key));
    assert_eq!(status["conditions"][0]["status"], "True");
    let slice = plan.create_slice.unwrap();
    assert_eq!(
        slice["spec"]["export"],
        json!({"name": "widgets", "path": "root:prov"})
    );
    assert_eq!(slice["metadata"]["ownerReferences"][0]["uid"], "u");
}

#[test]
fn identities() {
    let named = json!({"identity": {"secretRef": {"namespace": "mine", "name": "key"}}});
    let hash = identity_hash(KEY.as_bytes());
    assert_eq!(hash.len(), 64);
    for (what, export, found, expected) in [
        (
            "named, there",
            export(json!({"spec": named})),
            Some(secret(KEY)),
            None,
        ),
        (
            "named, missing",
            export(json!({"spec": named})),
            None,
            Some("secrets \"mine\"/\"key\" not found"),
        ),
        (
            "without a key",
            export(json!({"spec": named})),
            Some(json!({"data": {"other": ""}})),
            Some("secret is missing data.key"),
        ),
        (
            "another key",
            export(json!({"spec": named, "status": {"identityHash": "old"}})),
            Some(secret(KEY)),
            Some("hash mismatch: identity secret hash"),
        ),
        (
            "lost: not made again",
            export(json!({"status": {"identityHash": hash}})),
            None,
            Some("secrets \"kcp-system\"/\"widgets\" not found"),
        ),
        (
            "the default one was there",
            export(json!({})),
            Some(secret(KEY)),
            None,
        ),
    ] {
        let plan = run(&export, found.as_ref(), true);
        assert_eq!(plan.create_secret, None, "{what}");
        match expected {
            None => assert_eq!(
                plan.status.as_ref().unwrap()["identityHash"],
                json!(hash),
                "{what}"
            ),
            Some(part) => {
                let (reason, message) = reason(&plan).unwrap();
                assert_eq!(reason, "IdentityVerificationFailed", "{what}");
                assert!(message.contains(part), "{what}: {message}");
                // What is known stays: a hash that changed would take all objects out of sight.
                let known = &export.identity_hash;
                let written = plan
                    .status
                    .as_ref()
                    .unwrap()
                    .get("identityHash")
                    .and_then(Value::as_str);
                assert_eq!(written.unwrap_or_default(), known, "{what}");
            }
        }
    }
}

#[test]
fn nothing_new_nothing_to_do() {
    let settled = export(json!({
        "spec": {"identity": {"secretRef": {"namespace": "kcp-system", "name": "widgets"}}},
        "status": {
            "identityHash": identity_hash(KEY.as_bytes()),
            "conditions": [{"type": "IdentityValid", "status": "True", "lastTransitionTime": "t0"}],
        },
    }));
    assert_eq!(run(&settled, Some(&secret(KEY)), true), Plan::default());
    let skipping = export(json!({"annotations": {"apiexports.apis.kcp.io/skip-endpointslice": ""}}));
    assert_eq!(run(&skipping, None, false).create_slice, None);
}

#[test]
fn endpoint_slices() {
    let export = export(json!({}));
    let prov = ClusterId::parse("prov").unwrap();
    let slice = json!({"metadata": {"annotations": {"kcp.io/cluster": "here"}}, "spec": {"export": {"name": "widgets"}}});
    let status = slice_status(&slice, Some((&export, &prov)), true, "https://h/", "t").unwrap();
    assert_eq!(
        status["endpoints"],
        json!([{"url": "https://h/services/apiexport/prov/widgets"}])
    );
    let mut after = slice.clone();
    after["status"] = status;
    assert_eq!(
        slice_status(&after, Some((&export, &prov)), true, "https://h", "t2"),
        None
    );
    // The last consumer left.
    let status = slice_status(&after, Some((&export, &prov)), false, "https://h", "t").unwrap();
    assert!(status.get("endpoints").is_none());
    let status = slice_status(&after, None, true, "https://h", "t").unwrap();
    assert!(status.get("endpoints").is_none());
    assert_eq!(
        status["conditions"][0]["message"],
        "Error getting APIExport here|widgets"
    );
    let mut partitioned = slice;
    partitioned["spec"]["partition"] = json!("eu");
    let status = slice_status(&partitioned, Some((&export, &prov)), true, "https://h", "t").unwrap();
    assert_eq!(status["conditions"][1]["reason"], "PartitionInvalidReference");
}

#[test]
fn judged() {
    let errors = objections(&json!({"spec": {
        "permissionClaims": [
            {"resource": "secrets"},
            {"group": "y.io", "resource": "gadgets"},
            {"group": "y.io", "resource": "gadgets", "identityHash": "i"},
            {"group": "apis.kcp.io", "resource": "apibindings"},
        ],
        "resources": [
            {"name": "widgets", "group": "x.io", "schema": "v1.widgets.x.io"},
            {"name": "widgets", "group": "", "schema": "v1.widgets.core"},
            {"name": "widgets", "group": "x.io", "schema": "v1.gadgets.x.io"},
        ],
    }}));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.permissionClaims[1].identityHash: Invalid value: \"\": identityHash is required for API types that are not built-in",
            "spec.resources[2].schema: Invalid value: \"v1.gadgets.x.io\": must end in .widgets.x.io",
        ]
    );
}

#[test]
fn who_may_bind() {
    let here = WorkspacePath::parse("root:acme").unwrap();
    let there = BindQuestion::new("root:prov", "widgets", &here, "create APIBinding");
    assert_eq!(there.path.as_str(), "root:prov");
    assert_eq!(
        there.refusal,
        "unable to create APIBinding: no permission to bind to export root:prov:widgets"
    );
    let local = BindQuestion::new("", "widgets", &here, "create APIBinding");
    assert_eq!(local.path, here);
    assert_eq!(
        local.refusal,
        "unable to create APIBinding: no permission to bind to export widgets"
    );
}
