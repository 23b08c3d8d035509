//! Limit ranges: what is filled in, and what is out of bounds.

use serde_json::{Value, json};

use super::pod;
use crate::limits::LimitRange;

fn range(limits: Value) -> LimitRange {
    LimitRange::from_object(&json!({"spec": {"limits": limits}}))
}

#[test]
fn defaults() {
    let sizes = json!([{"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "250m"}}]);
    let note = |text: &str| json!(format!("LimitRanger plugin set: {text}"));
    for (case, limits, resources, want, annotation) in [
        (
            "says nothing",
            sizes.clone(),
            json!({}),
            json!({"requests": {"cpu": "250m"}, "limits": {"cpu": "500m", "memory": "1Gi"}}),
            note("cpu request for container c; cpu, memory limit for container c"),
        ),
        (
            "says something",
            sizes.clone(),
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}),
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
            note("memory limit for container c"),
        ),
        (
            "says everything",
            sizes,
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
            Value::Null,
        ),
        (
            "limits of pods are no defaults",
            json!([{"type": "Pod", "max": {"cpu": "1"}}]),
            json!({}),
            json!({}),
            Value::Null,
        ),
    ] {
        let mut pod = pod(resources);
        range(limits).complete_pod(&mut pod);
        assert_eq!(pod["spec"]["containers"][0]["resources"], want, "{case}");
        assert_eq!(
            pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"], annotation,
            "{case}"
        );
    }
    let mut pod =
        json!({"metadata": {}, "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}});
    range(json!([{"type": "Container", "default": {"cpu": "1"}}])).complete_pod(&mut pod);
    assert_eq!(
        pod["spec"]["initContainers"][0]["resources"],
        json!({"limits": {"cpu": "1"}})
    );
    assert_eq!(
        pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        note("cpu limit for container c; cpu limit for init container i")
    );
}

#[test]
fn bounds_of_containers_and_pods() {
    let asks = |requests: Value, limits: Value| pod(json!({"requests": requests, "limits": limits}));
    let two = |a: &str, b: &str| {
        json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"cpu": a}, "limits": {"cpu": a}}},
            {"name": "b", "resources": {"requests": {"cpu": b}, "limits": {"cpu": b}}},
        ]}})
    };
    let max = |kind: &str| json!([{"type": kind, "max": {"cpu": "2"}}]);
    let min = json!([{"type": "Container", "min": {"cpu": "100m"}}]);
    let ratio = json!([{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}]);
    for (case, limits, object, want) in [
        (
            "within",
            max("Container"),
            asks(json!({"cpu": "1"}), json!({"cpu": "2"})),
            None,
        ),
        (
            "limit too high",
            max("Container"),
            asks(json!({"cpu": "1"}), json!({"cpu": "4"})),
            Some("maximum cpu usage per Container is 2, but limit is 4"),
        ),
        (
            "request too high",
            max("Container"),
            asks(json!({"cpu": "3"}), json!({"cpu": "2"})),
            Some("maximum cpu usage per Container is 2, but request is 3"),
        ),
        (
            "no limit",
            max("Container"),
            asks(json!({"cpu": "1"}), json!({})),
            Some("maximum cpu usage per Container is 2.  No limit is specified"),
        ),
        (
            "request too low",
            min.clone(),
            asks(json!({"cpu": "50m"}), json!({"cpu": "1"})),
            Some("minimum cpu usage per Container is 100m, but request is 50m"),
        ),
        (
            "limit too low",
            min.clone(),
            asks(json!({"cpu": "100m"}), json!({"cpu": "50m"})),
            Some("minimum cpu usage per Container is 100m, but limit is 50m"),
        ),
        (
            "no request",
            min,
            asks(json!({}), json!({})),
            Some("minimum cpu usage per Container is 100m.  No request is specified"),
        ),
        (
            "ratio within",
            ratio.clone(),
            asks(json!({"cpu": "1"}), json!({"cpu": "2"})),
            None,
        ),
        (
            "ratio too high",
            ratio.clone(),
            asks(json!({"cpu": "1"}), json!({"cpu": "2500m"})),
            Some("cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"),
        ),
        (
            "ratio without a request",
            ratio.clone(),
            asks(json!({}), json!({"cpu": "1"})),
            Some(
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ),
        ),
        (
            "ratio without a limit",
            ratio,
            asks(json!({"cpu": "1"}), json!({})),
            Some(
                "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            ),
        ),
        (
            "two containers, each within",
            max("Container"),
            two("2", "2"),
            None,
        ),
        (
            "but together too much for a pod",
            max("Pod"),
            two("2", "2"),
            Some("maximum cpu usage per Pod is 2, but limit is 4"),
        ),
        (
            "the same complaint once",
            max("Container"),
            two("3", "3"),
            Some("maximum cpu usage per Container is 2, but limit is 3"),
        ),
        (
            "several complaints",
            json!([{"type": "Container", "min": {"memory": "1Gi"}, "max": {"cpu": "2"}}]),
            asks(json!({"cpu": "4", "memory": "1Mi"}), json!({"cpu": "4"})),
            Some(
                "[minimum memory usage per Container is 1Gi, but request is 1Mi, maximum cpu usage per Container is 2, but limit is 4]",
            ),
        ),
        (
            "the pod's own figures count for the pod",
            max("Pod"),
            json!({"spec": {"resources": {"limits": {"cpu": "3"}}, "containers": [{"name": "c"}]}}),
            Some("maximum cpu usage per Pod is 2, but limit is 3"),
        ),
        (
            "claims are another matter",
            max("PersistentVolumeClaim"),
            asks(json!({}), json!({})),
            None,
        ),
    ] {
        assert_eq!(range(limits).refuse_pod(&object).as_deref(), want, "{case}");
    }
}

#[test]
fn bounds_of_claims() {
    let claim = |requests: Value| json!({"spec": {"resources": {"requests": requests}}});
    let limits =
        json!([{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]);
    for (case, object, want) in [
        ("within", claim(json!({"storage": "2Gi"})), None),
        (
            "too little",
            claim(json!({"storage": "1Mi"})),
            Some("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ),
        (
            "too much",
            claim(json!({"storage": "3Gi"})),
            Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"),
        ),
        (
            "nothing said",
            claim(json!({})),
            Some(
                "[minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified]",
            ),
        ),
    ] {
        assert_eq!(
            range(limits.clone()).refuse_claim(&object).as_deref(),
            want,
            "{case}"
        );
    }
}
