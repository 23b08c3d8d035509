//! What the record needs beside ownership: capping, carrying over, forgetting, naming.

use serde_json::json;

use super::*;

#[test]
fn old_updaters_are_merged() {
    let world = World::new();
    let mut object = thing(&json!({"data": {"k": "0"}}));
    object = update(&world.ctx(T1), None, object, "creator");
    for i in 0..12 {
        let time = format!("2026-01-01T00:01:{i:02}Z");
        let mut next = object.clone();
        next["data"][format!("k{i}")] = json!("v");
        object = update(&world.ctx(&time), Some(&object), next, &format!("m{i:02}"));
    }
    let managers: Vec<String> = owners(&object).into_iter().map(|(manager, ..)| manager).collect();
    assert_eq!(
        managers,
        [
            "ancient-changes",
            "m03",
            "m04",
            "m05",
            "m06",
            "m07",
            "m08",
            "m09",
            "m10",
            "m11"
        ]
    );
    let (_, _, time, fields) = owners(&object).swap_remove(0);
    assert_eq!(time, "2026-01-01T00:01:02Z");
    assert_eq!(
        fields,
        json!({"f:data": {".": {}, "f:k": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}})
    );
}

#[test]
fn kubectl_takes_its_client_side_fields_along() {
    let world = World::new();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "data": {"a": "1"}});
    let object = thing(
        &json!({"metadata": {"annotations": {annotation: last.to_string()}}, "data": {"a": "1", "b": "1"}}),
    );
    let live = update(&world.ctx(T1), None, object, "kubectl-client-side-apply");

    let config = thing(&json!({"data": {"a": "<2>"}}));
    assert!(
        apply(&world.ctx(T2), Some(&live), &config, "ci", false).is_err(),
        "others conflict"
    );
    let applied = apply(&world.ctx(T2), Some(&live), &config, "kubectl", false).unwrap();
    assert_eq!(applied["data"], json!({"a": "<2>", "b": "1"}));
    assert_eq!(
        applied["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003c2\\u003e\"},\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}\n"
    );
    // What is not in the annotation is somebody else's.
    let config = thing(&json!({"data": {"a": "2", "b": "2"}}));
    let error = apply(&world.ctx(T2), Some(&live), &config, "kubectl", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.b"
    );
}

#[test]
fn times_alone_are_no_change() {
    let world = World::new();
    let live = update(&world.ctx(T1), None, thing(&json!({"data": {"a": "1"}})), "m");
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!(T2);
    let mut restored = new.clone();
    keep_unchanged_timestamps(&mut restored, &live);
    assert_eq!(restored, live);
    for change in ["manager", "fieldsV1"] {
        let mut changed = new.clone();
        changed["metadata"]["managedFields"][0][change] = json!("other");
        let before = changed.clone();
        keep_unchanged_timestamps(&mut changed, &live);
        assert_eq!(changed, before, "{change}");
    }
    let mut changed = new.clone();
    changed["data"]["a"] = json!("2");
    let before = changed.clone();
    keep_unchanged_timestamps(&mut changed, &live);
    assert_eq!(changed, before);
}

#[test]
fn records_of_versions_that_are_gone_are_forgotten() {
    let world = World::new();
    let mut live = update(
        &world.ctx(T1),
        None,
        thing(&json!({"metadata": {"uid": "u"}, "data": {"a": "1"}})),
        "m",
    );
    let mut old = live["metadata"]["managedFields"][0].clone();
    old["apiVersion"] = json!("v0");
    live["metadata"]["managedFields"]
        .as_array_mut()
        .unwrap()
        .push(old);
    let updated = update(&world.ctx(T2), Some(&live), live.clone(), "m");
    assert_eq!(owners(&updated).len(), 1);
}

#[test]
fn managers_are_named_after_the_client() {
    let long = "x".repeat(200);
    for (given, agent, name) in [
        (Some("me"), "kubectl/v1", "me"),
        (Some(""), "kubectl/v1.36 (linux)", "kubectl"),
        (None, "Go-http-client/2.0", "Go-http-client"),
        (None, "a\u{7}b c/d", "ab c"),
        (None, "", ""),
        (None, long.as_str(), &long[..128]),
    ] {
        assert_eq!(manager_name(given, agent), name);
    }
}
