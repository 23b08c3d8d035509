//! Objects in, what upstream would keep of them and say about them out.

use serde_json::json;

use super::*;
use crate::builtin::kind;

fn run(group: &str, version: &str, kind_name: &str, object: Value) -> (Value, CheckResult) {
    let mut object = object;
    let result = check(
        kind(group, version, kind_name).unwrap(),
        &mut object,
        UnknownFields::Report,
    );
    (object, result)
}

/// The object passes and comes out as expected.
#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn becomes(kind_name: &str, object: Value, expected: Value) {
    let (object, result) = run("", "v1", kind_name, object);
    assert_eq!(result, CheckResult::default());
    assert_eq!(object, expected);
}

/// The object is refused with these messages.
#[track_caller]
fn refused(kind_name: &str, object: Value, expected: &[&str]) {
    let (_, result) = run("", "v1", kind_name, object);
    let messages: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, expected);
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn container(fields: Value) -> Value {
    json!({"spec": {"containers": [fields]}})
}

#[test]
fn unknown_fields_are_dropped_and_reported_with_their_path() {
    let (object, result) = run(
        "apps",
        "v1",
        "Deployment",
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "Name": "b"}, "extra": 1,
            "spec": {"replica": 2, "template": {"spec": {"containers": [{"name": "c"}, {"imagee": "x"}]}}},
        }),
    );
    assert_eq!(
        result.unknown,
        [
            "metadata.Name",
            "extra",
            "spec.replica",
            "spec.template.spec.containers[1].imagee"
        ]
    );
    assert_eq!(result.errors, []);
    assert_eq!(
        object,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": [{"name": "c"}, {}]}}},
        })
    );
}

#[test]
fn unknown_fields_are_dropped_in_silence_on_request() {
    let mut object = json!({"metadata": {"name": "a"}, "extra": 1});
    let result = check(kind("", "v1", "Pod").unwrap(), &mut object, UnknownFields::Ignore);
    assert_eq!(
        (result, object),
        (CheckResult::default(), json!({"metadata": {"name": "a"}}))
    );
}

#[test]
fn reports_are_bounded() {
    let many: serde_json::Map<String, Value> = (0..500).map(|i| (format!("f{i}"), json!(1))).collect();
    let (object, result) = run("", "v1", "Pod", json!({"spec": many}));
    assert_eq!((result.unknown.len(), object), (100, json!({"spec": {}})));
    let (_, result) = run(
        "",
        "v1",
        "ConfigMap",
        json!({"metadata": {"finalizers": vec![1; 500]}}),
    );
    assert_eq!(result.errors.len(), 100);
}

#[test]
fn null_is_absent_but_keeps_its_place_in_lists_and_maps() {
    becomes(
        "Pod",
        json!({"metadata": {"creationTimestamp": null, "labels": {"a": null}}, "spec": {"containers": [null], "tolerations": null}}),
        json!({"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}]}}),
    );
}

#[test]
fn wrong_types_are_refused_in_go_s_words() {
    let message =
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
    let (_, result) = run("apps", "v1", "Deployment", json!({"spec": {"replicas": "3"}}));
    assert_eq!(result.errors[0].to_string(), message);
    assert_eq!(result.errors[0].path, "spec.replicas");
    refused(
        "Pod",
        container(json!({"image": 5, "args": [true], "env": {}, "resources": []})),
        &[
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
            "json: cannot unmarshal bool into Go struct field Container.spec.containers.args of type string",
            "json: cannot unmarshal object into Go struct field Container.spec.containers.env of type []v1.EnvVar",
            "json: cannot unmarshal array into Go struct field Container.spec.containers.resources of type v1.ResourceRequirements",
        ],
    );
    refused(
        "ConfigMap",
        json!({"data": {"a": 1}}),
        &["json: cannot unmarshal number into Go struct field ConfigMap.data of type string"],
    );
    refused(
        "ConfigMap",
        json!({"immutable": "yes", "metadata": {"labels": ["a"]}}),
        &[
            "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ],
    );
    refused(
        "Pod",
        json!([]),
        &["json: cannot unmarshal array into Go value of type v1.Pod"],
    );
}

#[test]
fn integers_have_their_size() {
    let seconds = |n: Value| json!({"spec": {"terminationGracePeriodSeconds": n}});
    becomes("Pod", seconds(json!(30)), seconds(json!(30)));
    becomes("Pod", seconds(json!(30.0)), seconds(json!(30)));
    becomes("Pod", seconds(json!(i64::MAX)), seconds(json!(i64::MAX)));
    let message = |n: &str| {
        format!(
            "json: cannot unmarshal number {n} into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64"
        )
    };
    refused("Pod", seconds(json!(1.5)), &[&message("1.5")]);
    refused(
        "Pod",
        seconds(json!(u64::MAX)),
        &[&message("18446744073709551615")],
    );
    refused(
        "Pod",
        json!({"spec": {"priority": 2_147_483_648_i64}}),
        &[
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ],
    );
}

#[test]
fn quantities_become_canonical() {
    let limits = |value: Value| container(json!({"resources": {"limits": value}}));
    becomes(
        "Pod",
        limits(json!({"cpu": 1, "memory": "1024Mi", "a": 0.5, "b": "1000m", "c": "2Gi", "d": null})),
        limits(json!({"cpu": "1", "memory": "1Gi", "a": "500m", "b": "1", "c": "2Gi", "d": "0"})),
    );
    let (_, result) = run("", "v1", "Pod", limits(json!({"cpu": "lots"})));
    assert_eq!(result.errors[0].path, "spec.containers[0].resources.limits.cpu");
    assert!(
        result.errors[0]
            .message
            .contains("quantities must match the regular expression")
    );
    let (_, result) = run("", "v1", "Pod", limits(json!({"cpu": true})));
    assert!(result.errors[0].message.contains("quantities must match"));
}

#[test]
fn times_become_utc() {
    let pod = |value: Value| json!({"metadata": {"creationTimestamp": value}});
    becomes(
        "Pod",
        pod(json!("2026-01-02T03:04:05Z")),
        pod(json!("2026-01-02T03:04:05Z")),
    );
    becomes(
        "Pod",
        pod(json!("2026-01-02T03:04:05+02:00")),
        pod(json!("2026-01-02T01:04:05Z")),
    );
    becomes(
        "Pod",
        pod(json!("2026-01-02T03:04:05.999Z")),
        pod(json!("2026-01-02T03:04:05Z")),
    );
    for wrong in [
        "",
        "yesterday",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05",
    ] {
        let (_, result) = run("", "v1", "Pod", pod(json!(wrong)));
        assert!(result.errors[0].message.contains("parsing time"), "{wrong}");
    }
    let (object, result) = run(
        "coordination.k8s.io",
        "v1",
        "Lease",
        json!({"spec": {"renewTime": "2026-01-02T03:04:05Z", "acquireTime": "2026-01-02T03:04:05.123456Z"}}),
    );
    assert_eq!(result, CheckResult::default());
    assert_eq!(object["spec"]["renewTime"], "2026-01-02T03:04:05.000000Z");
    assert_eq!(object["spec"]["acquireTime"], "2026-01-02T03:04:05.123456Z");
}

#[test]
fn bytes_are_base64() {
    let secret = |value: &str| json!({"data": {"a": value}});
    for text in ["", "YQ==", "YWI=", "YWJj", "+/+/"] {
        becomes("Secret", secret(text), secret(text));
    }
    becomes("Secret", secret("YW\nJj\r\n"), secret("YWJj"));
    becomes("Secret", secret("YR=="), secret("YQ=="));
    becomes(
        "Secret",
        json!({"data": {"a": null}}),
        json!({"data": {"a": null}}),
    );
    for (text, at) in [
        ("YQ", 2),
        ("YQ=", 3),
        ("Y===", 1),
        ("Y-Jj", 1),
        ("=", 1),
        ("YW J", 2),
    ] {
        refused(
            "Secret",
            secret(text),
            &[&format!("illegal base64 data at input byte {at}")],
        );
    }
    refused(
        "Secret",
        json!({"data": {"a": 1}}),
        &["json: cannot unmarshal number into Go struct field Secret.data of type []uint8"],
    );
}

#[test]
fn ports_are_numbers_or_names() {
    let service = |value: Value| json!({"spec": {"ports": [{"targetPort": value}]}});
    becomes("Service", service(json!(80)), service(json!(80)));
    becomes("Service", service(json!("http")), service(json!("http")));
    refused(
        "Service",
        service(json!(true)),
        &["json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32"],
    );
}

#[test]
fn free_form_values_are_left_alone() {
    let data = json!({"anything": [1, {"x": null}], "1.5": 1.5});
    let (object, result) = run(
        "apps",
        "v1",
        "ControllerRevision",
        json!({"data": data, "revision": 1}),
    );
    assert_eq!((result, &object["data"]), (CheckResult::default(), &data));
    let fields = json!({"f:metadata": {"f:name": {}, ".": {}}});
    becomes(
        "ConfigMap",
        json!({"metadata": {"managedFields": [{"manager": "m", "fieldsV1": fields}]}}),
        json!({"metadata": {"managedFields": [{"manager": "m", "fieldsV1": fields}]}}),
    );
}

#[test]
fn deep_objects_are_walked() {
    let mut schema = json!({"type": "object"});
    for _ in 0..40 {
        schema = json!({"properties": {"a": schema}, "typo": 1});
    }
    let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
    let (_, result) = run("apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd);
    assert_eq!(result.unknown.len(), 40);
    assert_eq!(result.unknown[39], "spec.versions[0].schema.openAPIV3Schema.typo");
}

#[test]
fn schemas_below_items_are_pruned_in_silence() {
    let crd = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    let schema = json!({"items": {"type": "string", "typo": 1}, "additionalProperties": true, "typo": 1});
    let (object, result) = run(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        crd(schema),
    );
    assert_eq!(result.unknown, ["spec.versions[0].schema.openAPIV3Schema.typo"]);
    assert_eq!(
        object,
        crd(json!({"items": {"type": "string"}, "additionalProperties": true}))
    );
}
