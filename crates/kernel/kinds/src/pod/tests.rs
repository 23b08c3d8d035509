//! Pods: what is filled in, common mistakes, and what may change.

use serde_json::{Value, json};

use super::{delete_grace_period, qos_class};
use crate::check::{create, stored, update, update_through};

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": spec})
}

fn simple() -> Value {
    pod(json!({"containers": [{"name": "c", "image": "nginx"}]}))
}

#[test]
fn defaults() {
    let object = create(
        "",
        "pods",
        pod(json!({
            "serviceAccount": "sa",
            "containers": [{
                "name": "c", "image": "nginx",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                "livenessProbe": {"httpGet": {"port": 80}},
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "s", "mountPath": "/s"}],
            }],
            "volumes": [{"name": "s", "secret": {"secretName": "x"}}, {"name": "e"}, {"name": "h", "hostPath": {"path": "/"}}],
        })),
    )
    .ok();
    let spec = &object["spec"];
    let container = &spec["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always", "no tag means latest");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(container["terminationMessagePolicy"], "File");
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    assert_eq!(
        container["resources"]["requests"],
        json!({"cpu": "1", "memory": "1Gi"})
    );
    assert_eq!(
        container["livenessProbe"],
        json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
            "successThreshold": 1, "failureThreshold": 3})
    );
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(spec["volumes"][0]["secret"]["defaultMode"], 420);
    assert_eq!(spec["volumes"][1]["emptyDir"], json!({}));
    assert_eq!(spec["volumes"][2]["hostPath"]["type"], "");
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("serviceAccountName", json!("sa")),
        ("serviceAccount", json!("sa")),
    ] {
        assert_eq!(spec[key], value, "{key}");
    }
    assert_eq!(
        object["status"],
        json!({"phase": "Pending", "qosClass": "Guaranteed"})
    );
    assert_eq!(object["metadata"]["generation"], 1);
}

#[test]
fn pull_policies() {
    for (image, policy) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("reg.io:5000/nginx", "Always"),
        ("reg.io:5000/nginx:1", "IfNotPresent"),
        (
            "nginx@sha256:0123456789012345678901234567890123456789012345678901234567890123",
            "IfNotPresent",
        ),
    ] {
        let object = create(
            "",
            "pods",
            pod(json!({"containers": [{"name": "c", "image": image}]})),
        )
        .ok();
        assert_eq!(
            object["spec"]["containers"][0]["imagePullPolicy"], policy,
            "{image}"
        );
    }
}

#[test]
fn host_network_ports() {
    let object = create(
        "",
        "pods",
        pod(json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]})),
    )
    .ok();
    assert_eq!(object["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
}

#[test]
fn mistakes() {
    let c = |extra: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        container
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"containers": [container]})
    };
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &["spec.containers: Required value"]),
        (
            json!({"containers": [{}]}),
            &[
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
            ],
        ),
        (
            c(json!({"name": "Bad"})),
            &["spec.containers[0].name: Invalid value: \"Bad\": a lowercase RFC 1123 label"],
        ),
        (
            json!({"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]}),
            &["spec.containers[1].name: Duplicate value: \"a\""],
        ),
        (
            json!({"containers": [{"name": "a", "image": "i"}], "initContainers": [{"name": "a", "image": "i"}]}),
            &["spec.initContainers[0].name: Duplicate value: \"a\""],
        ),
        (
            c(json!({"image": " i"})),
            &[
                "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            ],
        ),
        (
            c(json!({"imagePullPolicy": "Maybe"})),
            &[
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
            ],
        ),
        (
            c(json!({"ports": [{"containerPort": 70000}]})),
            &[
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            c(json!({"ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]})),
            &["spec.containers[0].ports[1].name: Duplicate value: \"a\""],
        ),
        (
            c(json!({"env": [{"name": "A=B"}]})),
            &[
                "spec.containers[0].env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
            ],
        ),
        (
            c(
                json!({"env": [{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
            ),
            &[
                "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            ],
        ),
        (
            c(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})),
            &["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
        ),
        (
            c(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
            &[
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ],
        ),
        (
            c(json!({"resources": {"requests": {"cpu": "-1"}}})),
            &[
                "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        ),
        (
            c(json!({"resources": {"limits": {"gpus": "1"}}})),
            &[
                "spec.containers[0].resources.limits[gpus]: Invalid value: \"gpus\": must be a standard resource type or fully qualified",
                "spec.containers[0].resources.limits[gpus]: Invalid value: \"gpus\": must be a standard resource for containers",
                "spec.containers[0].resources.requests[gpus]: Invalid value: \"gpus\": must be a standard resource type or fully qualified",
                "spec.containers[0].resources.requests[gpus]: Invalid value: \"gpus\": must be a standard resource for containers",
            ],
        ),
        (
            c(json!({"resources": {"limits": {"memory": "lots"}, "requests": {"memory": "1Mi"}}})),
            &[
                "spec.containers[0].resources.limits[memory]: Invalid value: \"lots\": quantities must match the regular expression",
            ],
        ),
        (
            c(json!({"livenessProbe": {}})),
            &["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
        ),
        (
            c(json!({"livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}})),
            &["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"],
        ),
        (
            c(json!({"securityContext": {"runAsUser": -1}})),
            &[
                "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
        ),
    ];
    for (spec, expected) in cases {
        println!("{spec}");
        create("", "pods", pod(spec)).fails(expected);
    }
    let with = |key: &str, value: Value| {
        let mut object = simple();
        object["spec"][key] = value;
        create("", "pods", object)
    };
    with("restartPolicy", json!("Sometimes")).fails(&["spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\""]);
    with("nodeSelector", json!({"a b": "c"})).fails(&["spec.nodeSelector: Invalid value: \"a b\""]);
    with("activeDeadlineSeconds", json!(0)).fails(&[
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
    ]);
    with(
        "volumes",
        json!([{"name": "v", "secret": {}, "configMap": {"name": "c"}}]),
    )
    .fails(&[
        "spec.volumes[0].secret.secretName: Required value",
        "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
    ]);
    with("volumes", json!([{"name": "v"}, {"name": "v"}]))
        .fails(&["spec.volumes[1].name: Duplicate value: \"v\""]);
    with("tolerations", json!([{"operator": "Equal"}])).fails(&[
        "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty",
    ]);
    with("dnsPolicy", json!("None"))
        .fails(&["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]);
    with(
        "topologySpreadConstraints",
        json!([{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
    )
    .fails(&["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"]);
    with("affinity", json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}})).fails(&[
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
    ]);
    with("ephemeralContainers", json!([{"name": "d", "image": "i"}]))
        .fails(&["spec.ephemeralContainers: Forbidden: cannot be set on create"]);
}

#[test]
fn little_may_change() {
    let old = stored("", "pods", simple());
    let image = update("", "pods", &old, |o| {
        o["spec"]["containers"][0]["image"] = json!("nginx:2");
    })
    .ok();
    assert_eq!(image["metadata"]["generation"], 2);
    update("", "pods", &old, |o| {
        o["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
    })
    .ok();
    update("", "pods", &old, |o| o["spec"]["nodeName"] = json!("n")).fails(&[
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)",
    ]);
    update("", "pods", &old, |o| {
        o["spec"]["containers"] = json!([{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]);
    })
    .fails(&["spec.containers: Forbidden: pod updates may not add or remove containers"]);
    let status = update_through("", "pods", Some("status"), &old, |o| {
        o["status"]["phase"] = json!("Running");
        o["spec"]["containers"] = json!([]);
    })
    .ok();
    assert_eq!(status["spec"], old["spec"]);
    assert_eq!(
        status["status"],
        json!({"phase": "Running", "qosClass": "BestEffort"})
    );
    let debug = update_through("", "pods", Some("ephemeralcontainers"), &old, |o| {
        o["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": "busybox"}]);
        o["spec"]["nodeName"] = json!("ignored");
    })
    .ok();
    assert_eq!(debug["spec"]["ephemeralContainers"][0]["name"], "d");
    assert!(debug["spec"].get("nodeName").is_none());
}

#[test]
fn nothing_runs_them() {
    let warnings = create("", "pods", simple()).warnings;
    assert_eq!(
        warnings,
        ["no node here runs pods: Pod \"web\" is stored, but nothing will run it"]
    );
    let mut dotted = simple();
    dotted["metadata"]["name"] = json!("a.b");
    assert_eq!(
        create("", "pods", dotted).warnings[1],
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
    );
}

#[test]
fn quality_of_service() {
    let spec = |resources: Value| json!({"containers": [{"resources": resources}]});
    assert_eq!(qos_class(&spec(json!({}))), "BestEffort");
    assert_eq!(qos_class(&spec(json!({"requests": {"cpu": "1"}}))), "Burstable");
    let full = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
    assert_eq!(qos_class(&spec(full)), "Guaranteed");
}

#[test]
fn grace_ends_with_the_work() {
    let mut object = json!({"spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n"}, "status": {"phase": "Running"}});
    assert_eq!(delete_grace_period(&object, None), 30);
    assert_eq!(delete_grace_period(&object, Some(5)), 5);
    assert_eq!(delete_grace_period(&object, Some(-1)), 1);
    object["status"]["phase"] = json!("Succeeded");
    assert_eq!(delete_grace_period(&object, None), 0);
}
