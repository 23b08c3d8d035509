//! What the status says of a size, and how its copy looks.

use fairway_controller::fake::Script;
use serde_json::{Value, json};

use super::*;

#[test]
fn what_the_status_says_of_a_size() {
    let cases = [
        (
            "first use",
            json!(null),
            json!({"name": "small", "kind": "k"}),
            json!({"name": "small", "kind": "k"}),
        ),
        (
            "nothing new",
            json!({"name": "small", "kind": "k", "controllerRevisionRef": {"name": "r"}}),
            json!({"name": "small", "kind": "k"}),
            json!({"name": "small", "kind": "k", "controllerRevisionRef": {"name": "r"}}),
        ),
        (
            "another name",
            json!({"name": "large", "kind": "k", "controllerRevisionRef": {"name": "r"}}),
            json!({"name": "small", "kind": "k"}),
            json!({"name": "small", "kind": "k"}),
        ),
        (
            "a copy that the machine names",
            json!({"name": "small", "kind": "k", "controllerRevisionRef": {"name": "r"}}),
            json!({"name": "small", "kind": "k", "revisionName": "mine"}),
            json!({"name": "small", "kind": "k", "controllerRevisionRef": {"name": "mine"}}),
        ),
    ];
    for (name, before, matcher, expected) in cases {
        assert_eq!(next_reference(&before, &matcher), expected, "{name}");
    }
}

#[test]
fn words_for_kinds() {
    for (word, expected) in [
        ("", Some(CLUSTER_INSTANCETYPE.kind)),
        (
            "VirtualMachineClusterInstancetype",
            Some(CLUSTER_INSTANCETYPE.kind),
        ),
        (
            "virtualmachineclusterinstancetypes",
            Some(CLUSTER_INSTANCETYPE.kind),
        ),
        ("virtualmachineinstancetype", Some(INSTANCETYPE.kind)),
        ("VirtualMachinePreference", None),
    ] {
        assert_eq!(SIZES.kind(word).ok().map(|it| it.kind), expected, "{word}");
    }
    let why = TASTES.kind("Flavor").unwrap_err().to_string();
    assert_eq!(why, "got unexpected kind in PreferenceMatcher: flavor");
}

const COPY: &str = "/apis/apps/v1/namespaces/vms/controllerrevisions";

fn vm(spec: Value, status: Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "vms", "uid": "vm-1"}, "spec": spec, "status": status})
}

fn small() -> Value {
    json!({
        "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
        "metadata": {"name": "small", "uid": "s-1", "generation": 3, "labels": {"a": "b"}},
        "spec": {"cpu": {"guest": 2}, "memory": {"guest": "1Gi"}},
    })
}

#[tokio::test]
async fn a_copy_is_made_at_the_first_use() {
    let name = "web-small-v1beta1-s-1-3";
    let script = Script::new()
        .expect(
            "GET",
            "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes/small",
            200,
            small(),
        )
        .expect(
            "POST",
            &format!("{COPY}?fieldManager=virt-controller"),
            201,
            json!({}),
        )
        .expect("GET", &format!("{COPY}/{name}"), 200, json!({"data": small()}));
    let requests = Requests::new(script.client());
    let mut vm = vm(
        json!({"instancetype": {"name": "small"}, "template": {"spec": {"domain": {}}}}),
        json!({}),
    );
    let sizes = resolve(&mut vm, &requests).await.unwrap();
    assert_eq!(sizes.size.unwrap().cpu.guest, 2);
    assert_eq!(sizes.size_reference["controllerRevisionRef"]["name"], name);
    assert_eq!(vm["spec"]["instancetype"]["revisionName"], name);
    assert!(sizes.taste.is_none() && sizes.taste_reference.is_null());
    let made = &script.finish()[1].body;
    assert_eq!(
        made["metadata"]["labels"]["instancetype.kubevirt.io/object-generation"],
        "3"
    );
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "vm-1");
    assert!(made["data"]["metadata"]["labels"].is_null());
}

#[tokio::test]
async fn a_size_that_clashes_is_not_kept() {
    let script = Script::new().expect_prefix("GET", "/apis/instancetype.kubevirt.io/", 200, small());
    let requests = Requests::new(script.client());
    let template = json!({"spec": {"domain": {"memory": {"guest": "2Gi"}}}});
    let mut vm = vm(
        json!({"instancetype": {"name": "small"}, "template": template}),
        json!({}),
    );
    let why = resolve(&mut vm, &requests).await.unwrap_err().to_string();
    assert!(why.contains("spec.template.spec.domain.memory"), "{why}");
    script.finish();
}

#[tokio::test]
async fn who_names_nothing_is_told() {
    let script = Script::new();
    let requests = Requests::new(script.client());
    let mut vm = vm(json!({"preference": {"inferFromVolume": "root"}}), json!({}));
    let why = resolve(&mut vm, &requests).await.unwrap_err().to_string();
    assert_eq!(
        why,
        "spec.preference names nothing; give a name, or a volume that knows one"
    );
    script.finish();
}
