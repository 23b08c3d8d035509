//! What is a difference and what is none.

use fairway_gitops_health::Customizations;
use serde_json::json;

use super::ignore::{IgnoreStatus, Ignored, ResourceIgnoreDifferences};
use super::*;

fn options() -> Options {
    Options {
        ignore_aggregated_roles: false,
        ignore: Ignored::new(&[], &Customizations::default(), IgnoreStatus::All).unwrap(),
    }
}

fn ignoring(entry: Value) -> Options {
    let entry: ResourceIgnoreDifferences = serde_json::from_value(entry).unwrap();
    Options {
        ignore: Ignored::new(&[entry], &Customizations::default(), IgnoreStatus::All).unwrap(),
        ..options()
    }
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn live_deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 4, "labels": {"by": "someone"},
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": []},
        "spec": {"replicas": 2, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"creationTimestamp": null, "labels": {"a": "b"}},
                "spec": {"containers": [
                    {"name": "app", "image": "app:1", "imagePullPolicy": "IfNotPresent",
                     "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                     "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                     "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                    {"name": "injected", "image": "proxy:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                     "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                    "securityContext": {}, "terminationGracePeriodSeconds": 30}}},
        "status": {"replicas": 2},
    })
}

fn container() -> Value {
    json!({"name": "app", "image": "app:1", "ports": [{"containerPort": 80}],
           "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}})
}

fn spec(container: Value) -> Value {
    json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
           "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}})
}

#[test]
fn defaults_and_spellings_are_no_difference() {
    let target = deployment(spec(container()));
    let difference = three_way(Some(&target), Some(&live_deployment()), &options());
    assert!(!difference.is_modified(), "{difference:#?}");
}

#[test]
fn real_differences_are_found() {
    let mut image = container();
    image["image"] = json!("app:2");
    let mut extra = container();
    extra["env"] = json!([{"name": "A", "value": "1"}]);
    let mut recreate = spec(container());
    recreate["strategy"] = json!({"type": "Recreate"});
    let mut unknown = spec(container());
    unknown["replicass"] = json!(3);
    let cases = [
        ("another image", deployment(spec(image))),
        ("a new variable", deployment(spec(extra))),
        ("another strategy", deployment(recreate)),
        ("a field that does not exist", deployment(unknown)),
    ];
    for (reason, target) in cases {
        let difference = three_way(Some(&target), Some(&live_deployment()), &options());
        assert!(difference.is_modified(), "{reason}");
        assert_eq!(difference.predicted["metadata"]["uid"], "u", "{reason}");
    }
}

#[test]
fn what_was_applied_and_is_no_longer_declared_goes() {
    let target = deployment(spec(container()));
    let mut before = target.clone();
    before["metadata"]["labels"] = json!({"by": "someone"});
    let mut live = live_deployment();
    annotation::set(&mut live, LAST_APPLIED, &before.to_string());
    let difference = three_way(Some(&target), Some(&live), &options());
    assert!(difference.is_modified());
    // As with kubectl: who stops declaring a map gives up all of it.
    assert_eq!(difference.predicted["metadata"]["labels"], Value::Null);
    assert_eq!(
        difference.predicted["spec"]["template"]["spec"]["containers"][1]["name"],
        "injected"
    );

    let mut was_two = target.clone();
    let containers = was_two["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap();
    containers.push(json!({"name": "injected", "image": "proxy:1"}));
    let mut live = live_deployment();
    annotation::set(&mut live, LAST_APPLIED, &was_two.to_string());
    let difference = three_way(Some(&target), Some(&live), &options());
    let containers = difference.predicted["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    assert_eq!(
        containers.len(),
        1,
        "a container that was declared once and is no more"
    );
}

#[test]
fn lists_of_custom_kinds() {
    let object = |list: Value| json!({"apiVersion": "a.io/v1", "kind": "B", "metadata": {"name": "b"}, "spec": {"list": list}});
    let live = object(json!([{"a": 1, "defaulted": true}, {"a": 2, "defaulted": true}]));
    let cases = [
        ("elements with defaults", json!([{"a": 1}, {"a": 2}]), false),
        ("a changed element", json!([{"a": 1}, {"a": 3}]), true),
        ("one more", json!([{"a": 1}, {"a": 2}, {"a": 3}]), true),
        ("one less", json!([{"a": 1}]), true),
        ("whole numbers", json!([{"a": 1.0}, {"a": 2.0}]), false),
    ];
    for (reason, list, modified) in cases {
        let difference = three_way(Some(&object(list)), Some(&live), &options());
        assert_eq!(difference.is_modified(), modified, "{reason}: {difference:#?}");
    }
}

#[test]
fn ignored_fields_do_not_count() {
    let mut target = deployment(spec(container()));
    target["spec"]["replicas"] = json!(5);
    let mut live = live_deployment();
    live["metadata"]["managedFields"] = json!([{"manager": "autoscaler", "operation": "Update",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let cases = [
        (
            "a pointer",
            json!({"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}),
            false,
        ),
        (
            "patterns",
            json!({"group": "*", "kind": "*", "jsonPointers": ["/spec/replicas"]}),
            false,
        ),
        (
            "jq",
            json!({"group": "apps", "kind": "Deployment", "jqPathExpressions": [".spec.replicas"]}),
            false,
        ),
        (
            "an owner",
            json!({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["autoscaler"]}),
            false,
        ),
        (
            "another owner",
            json!({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["kubectl"]}),
            true,
        ),
        (
            "another kind",
            json!({"group": "apps", "kind": "StatefulSet", "jsonPointers": ["/spec/replicas"]}),
            true,
        ),
        (
            "another name",
            json!({"group": "apps", "kind": "Deployment", "name": "x", "jsonPointers": ["/spec/replicas"]}),
            true,
        ),
        (
            "another field",
            json!({"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replica"]}),
            true,
        ),
    ];
    for (reason, entry, modified) in cases {
        let difference = three_way(Some(&target), Some(&live), &ignoring(entry));
        assert_eq!(difference.is_modified(), modified, "{reason}");
    }
}

#[test]
fn ignored_fields_are_respected_in_a_sync() {
    let mut target = deployment(spec(container()));
    target["spec"]["replicas"] = json!(5);
    let entry = json!({"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]});
    let respected = ignoring(entry).ignore.respect(&target, &live_deployment());
    assert_eq!(respected["spec"]["replicas"], 2);
    assert_eq!(respected["spec"]["selector"], target["spec"]["selector"]);
    assert_eq!(respected["metadata"], target["metadata"]);
    assert!(respected.get("status").is_none());
}

#[test]
fn bad_entries_are_named() {
    let bad = |pointer: &str, expression: &str| {
        let entry = ResourceIgnoreDifferences {
            json_pointers: vec![pointer.to_owned()],
            jq_path_expressions: vec![expression.to_owned()],
            ..Default::default()
        };
        Ignored::new(&[entry], &Customizations::default(), IgnoreStatus::All)
            .unwrap_err()
            .to_string()
    };
    assert!(bad("spec/replicas", ".").contains("\"spec/replicas\" is no JSON pointer"));
    assert!(bad("/spec", "reduce .[] as $x (0; 1)").contains("reduce is not understood"));
}

#[test]
fn what_is_missing_or_extra() {
    let target = deployment(spec(container()));
    assert!(three_way(Some(&target), None, &options()).is_modified());
    assert!(!three_way(None, Some(&live_deployment()), &options()).is_modified());
}

#[test]
fn secrets_and_roles() {
    let secret = |fields: Value| {
        let mut object =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque"});
        object
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        object
    };
    let target = secret(json!({"stringData": {"a": "b"}, "data": {"empty": null}}));
    let live = secret(json!({"data": {"a": "Yg==", "empty": ""}}));
    let difference = three_way(Some(&target), Some(&live), &options());
    assert!(!difference.is_modified(), "{difference:#?}");
    let role = |rules: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": rules})
    };
    let filled = role(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
    assert!(!three_way(Some(&role(json!([]))), Some(&role(Value::Null)), &options()).is_modified());
    let ignoring = Options {
        ignore_aggregated_roles: true,
        ..options()
    };
    let one = role(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]));
    assert!(!three_way(Some(&one), Some(&filled), &ignoring).is_modified());
    assert!(three_way(Some(&one), Some(&filled), &options()).is_modified());
}

#[test]
fn masks_show_equality_and_nothing_else() {
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": value}});
    let mut live = secret("b2xk");
    annotation::set(&mut live, LAST_APPLIED, &secret("bmV3").to_string());
    let (target, masked) = secret::mask(Some(&secret("bmV3")), Some(&live));
    let (target, masked) = (target.unwrap(), masked.unwrap());
    assert_eq!(target["data"]["k"], "++++++++");
    assert_eq!(masked["data"]["k"], "++++++++++++");
    assert_eq!(
        last_applied(&masked).unwrap()["data"]["k"],
        "++++++++",
        "the same as the target's"
    );
    let text = format!("{target}{masked}");
    assert!(!text.contains("bmV3") && !text.contains("b2xk"));
    annotation::set(&mut live, LAST_APPLIED, "{bmV3");
    let (_, masked) = secret::mask(None, Some(&live));
    assert_eq!(
        annotation::get(&masked.unwrap(), LAST_APPLIED),
        "++++++++",
        "what cannot be read is hidden whole"
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}});
    assert_eq!(secret::mask(Some(&map), None), (Some(map), None));
}

#[test]
fn a_dry_run_decides_and_webhooks_do_not_count() {
    let shape = Shape {
        shapes: fairway_kernel_schema::builtin::shapes(),
        id: fairway_kernel_schema::builtin::kind("", "v1", "ConfigMap")
            .unwrap()
            .shape,
    };
    let owned = |fields: Value| {
        json!([{"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": fields}}])
    };
    let map = |data: Value, fields: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "managedFields": owned(fields)}, "data": data})
    };
    let live = map(json!({"a": "1", "old": "x"}), json!({"f:a": {}, "f:old": {}}));
    let same = map(
        json!({"a": "1", "old": "x", "hooked": "y"}),
        json!({"f:a": {}, "f:old": {}}),
    );
    let changed = map(json!({"a": "2", "old": "x"}), json!({"f:a": {}, "f:old": {}}));
    let dropped = map(json!({"a": "1"}), json!({"f:a": {}}));
    let shared = map(json!({"a": "1", "old": "x"}), json!({"f:a": {}}));
    let cases = [
        ("a webhook added a field", &same, false, false),
        ("webhooks count if asked for", &same, true, true),
        ("a field that we own changes", &changed, false, true),
        ("a field is given up and goes", &dropped, false, true),
        ("a field is given up and stays another's", &shared, false, false),
    ];
    for (reason, dry_run, include, modified) in cases {
        let difference = server_side(
            dry_run,
            &live,
            "argocd-controller",
            Some(shape),
            include,
            &options(),
        );
        assert_eq!(difference.is_modified(), modified, "{reason}: {difference:#?}");
    }
}

#[test]
fn what_an_apply_writes() {
    let target =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}});
    let created = super::applied(&target, None);
    let memory = created["metadata"]["annotations"][super::LAST_APPLIED]
        .as_str()
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(memory).unwrap(), target);
    // Somebody adds a field; the next configuration drops one.
    let mut live = created;
    live["data"]["theirs"] = json!("x");
    live["metadata"]["uid"] = json!("u");
    let mut next = target;
    next["data"] = json!({"b": "2"});
    let changed = super::applied(&next, Some(&live));
    assert_eq!(changed["data"], json!({"theirs": "x", "b": "2"}));
    assert_eq!(changed["metadata"]["uid"], "u");
    let memory = super::last_applied(&changed).unwrap();
    assert_eq!(memory["data"], json!({"b": "2"}));
}
