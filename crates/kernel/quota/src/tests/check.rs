//! What fits, what is charged, and the words of a refusal.

use serde_json::{Value, json};

use super::{NOW, pod, quota};
use crate::{Operation, Quota, Request, check};

/// Checks a write against one quota: what will be used, or why not. `None`: nothing is charged.
fn decide(
    quota: &Value,
    kind: (&str, &str),
    subresource: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<Option<Value>, String> {
    let quota = Quota::from_object(quota);
    let operation = if old.is_some() {
        Operation::Update
    } else {
        Operation::Create
    };
    let request = Request {
        operation,
        group: kind.0,
        resource: kind.1,
        subresource,
        object,
        old,
        now: NOW,
    };
    let charges = check(&[&quota], &request)?;
    assert!(charges.len() < 2);
    Ok(charges.first().map(|charge| charge.used.to_value()))
}

type Kind = (&'static str, &'static str);
/// What will be used; `None`: nothing is charged.
type Want = Result<Option<Value>, &'static str>;
/// Reason, quota, kind, object.
type Creation = (&'static str, Value, Kind, Value, Want);
/// Reason, quota, kind, subresource, before, after.
type Change = (&'static str, Value, Kind, &'static str, Value, Value, Want);

const PODS: Kind = ("", "pods");
const CONFIG_MAPS: Kind = ("", "configmaps");

#[test]
fn new_objects() {
    let cpu = |request: &str| pod(json!({"requests": {"cpu": request}, "limits": {"cpu": request}}));
    let thing = json!({"metadata": {"name": "t"}});
    let cases: Vec<Creation> = vec![
        (
            "there is room",
            quota(json!({"configmaps": "2"}), json!({"configmaps": "1"})),
            CONFIG_MAPS,
            thing.clone(),
            Ok(Some(json!({"configmaps": "2"}))),
        ),
        (
            "there is none",
            quota(json!({"configmaps": "3"}), json!({"configmaps": "3"})),
            CONFIG_MAPS,
            thing.clone(),
            Err("exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"),
        ),
        (
            "both names of a kind are charged, and only what has no room is told",
            quota(
                json!({"configmaps": "9", "count/configmaps": "1"}),
                json!({"configmaps": "1", "count/configmaps": "1"}),
            ),
            CONFIG_MAPS,
            thing.clone(),
            Err(
                "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1",
            ),
        ),
        (
            "other kinds are not charged",
            quota(json!({"configmaps": "0"}), json!({"configmaps": "0"})),
            ("", "secrets"),
            thing.clone(),
            Ok(None),
        ),
        (
            "any kind can be counted",
            quota(
                json!({"count/widgets.example.com": "1"}),
                json!({"count/widgets.example.com": "1"}),
            ),
            ("example.com", "widgets"),
            thing.clone(),
            Err(
                "exceeded quota: q, requested: count/widgets.example.com=1, used: count/widgets.example.com=1, limited: count/widgets.example.com=1",
            ),
        ),
        (
            "events are free",
            quota(json!({"count/events": "0"}), json!({"count/events": "0"})),
            ("", "events"),
            thing.clone(),
            Ok(None),
        ),
        (
            "not counted yet",
            quota(json!({"configmaps": "1", "count/configmaps": "1"}), json!({})),
            CONFIG_MAPS,
            thing.clone(),
            Err("status unknown for quota: q, resources: configmaps,count/configmaps"),
        ),
        (
            "no limit has been taken over yet",
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}, "status": {}}),
            CONFIG_MAPS,
            thing,
            Ok(None),
        ),
        (
            "a pod's requests and limits",
            quota(
                json!({"requests.cpu": "1", "limits.cpu": "2", "pods": "5"}),
                json!({"requests.cpu": "500m", "limits.cpu": "0", "pods": "1"}),
            ),
            PODS,
            cpu("500m"),
            Ok(Some(
                json!({"limits.cpu": "500m", "pods": "2", "requests.cpu": "1"}),
            )),
        ),
        (
            "several at once",
            quota(
                json!({"requests.cpu": "1", "pods": "1"}),
                json!({"requests.cpu": "900m", "pods": "1"}),
            ),
            PODS,
            cpu("200m"),
            Err(
                "exceeded quota: q, requested: pods=1,requests.cpu=200m, used: pods=1,requests.cpu=900m, limited: pods=1,requests.cpu=1",
            ),
        ),
        (
            "what it needs is not said",
            quota(
                json!({"limits.cpu": "1", "memory": "1Gi"}),
                json!({"limits.cpu": "0", "memory": "0"}),
            ),
            PODS,
            pod(json!({"requests": {"cpu": "1"}})),
            Err("failed quota: q: must specify limits.cpu for: c; memory for: c"),
        ),
        (
            "storage of containers need not be said",
            quota(
                json!({"requests.ephemeral-storage": "1Gi"}),
                json!({"requests.ephemeral-storage": "0"}),
            ),
            PODS,
            pod(json!({})),
            Ok(None),
        ),
        (
            "less than nothing",
            quota(json!({"requests.cpu": "1"}), json!({"requests.cpu": "0"})),
            PODS,
            pod(json!({"requests": {"cpu": "-1"}})),
            Err("quota usage is negative for resource(s): cpu,requests.cpu"),
        ),
        (
            "what exceeds already and is not asked for does not matter",
            quota(
                json!({"pods": "5", "services": "1"}),
                json!({"pods": "1", "services": "9"}),
            ),
            PODS,
            pod(json!({})),
            Ok(Some(json!({"pods": "2", "services": "9"}))),
        ),
    ];
    for (case, quota, kind, object, want) in cases {
        let decided = decide(&quota, kind, "", &object, None);
        assert_eq!(decided, want.map_err(str::to_owned), "{case}");
    }
}

#[test]
fn changed_objects() {
    let service =
        |kind: &str, ports: usize| json!({"spec": {"type": kind, "ports": vec![json!({"port": 80}); ports]}});
    let claim = |storage: &str| json!({"spec": {"resources": {"requests": {"storage": storage}}}});
    let grown = |storage: &str| json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"allocatedResources": {"storage": storage}}});
    let with_deadline = || {
        let mut pod = pod(json!({}));
        pod["spec"]["activeDeadlineSeconds"] = 5.into();
        pod
    };
    let scoped = |scope: &str, used: &str| {
        let mut quota = quota(json!({"pods": "1"}), json!({"pods": used}));
        quota["spec"]["scopes"] = json!([scope]);
        quota
    };
    let ports = quota(
        json!({"services.nodeports": "2", "services": "1"}),
        json!({"services.nodeports": "1", "services": "1"}),
    );
    let storage = quota(
        json!({"requests.storage": "2Gi"}),
        json!({"requests.storage": "1Gi"}),
    );
    let cpu = |cpu: &str| pod(json!({"requests": {"cpu": cpu}}));
    let one_cpu = quota(json!({"requests.cpu": "2"}), json!({"requests.cpu": "1"}));
    let (services, claims) = (("", "services"), ("", "persistentvolumeclaims"));
    let cases: Vec<Change> = vec![
        (
            "a Service gets a port more",
            ports.clone(),
            services,
            "",
            service("NodePort", 1),
            service("NodePort", 2),
            Ok(Some(json!({"services": "1", "services.nodeports": "2"}))),
        ),
        (
            "and too many",
            ports.clone(),
            services,
            "",
            service("ClusterIP", 2),
            service("NodePort", 2),
            Err(
                "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=1, limited: services.nodeports=2",
            ),
        ),
        (
            "and gives them back",
            ports.clone(),
            services,
            "",
            service("NodePort", 2),
            service("ClusterIP", 2),
            Ok(None),
        ),
        (
            "its status does not matter",
            ports,
            services,
            "status",
            service("NodePort", 1),
            service("NodePort", 2),
            Ok(None),
        ),
        (
            "a claim grows",
            storage.clone(),
            claims,
            "",
            claim("1Gi"),
            claim("2Gi"),
            Ok(Some(json!({"requests.storage": "2Gi"}))),
        ),
        (
            "too much",
            storage.clone(),
            claims,
            "",
            claim("1Gi"),
            claim("3Gi"),
            Err(
                "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi",
            ),
        ),
        (
            "or shrinks",
            storage.clone(),
            claims,
            "",
            claim("3Gi"),
            claim("1Gi"),
            Ok(None),
        ),
        (
            "a status is charged and not refused",
            storage.clone(),
            claims,
            "status",
            claim("1Gi"),
            grown("5Gi"),
            Ok(Some(json!({"requests.storage": "5Gi"}))),
        ),
        (
            "a status that changes nothing",
            storage,
            claims,
            "status",
            grown("5Gi"),
            grown("5Gi"),
            Ok(None),
        ),
        (
            "a ConfigMap's data do not matter",
            quota(json!({"configmaps": "0"}), json!({"configmaps": "1"})),
            CONFIG_MAPS,
            "",
            json!({}),
            json!({"data": {}}),
            Ok(None),
        ),
        (
            "a pod's labels do not matter",
            one_cpu.clone(),
            PODS,
            "",
            cpu("1"),
            cpu("9"),
            Ok(None),
        ),
        (
            "a pod is resized",
            one_cpu.clone(),
            PODS,
            "resize",
            cpu("1"),
            cpu("2"),
            Ok(Some(json!({"requests.cpu": "2"}))),
        ),
        (
            "too far",
            one_cpu,
            PODS,
            "resize",
            cpu("1"),
            cpu("3"),
            Err(
                "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=1, limited: requests.cpu=2",
            ),
        ),
        (
            "a pod that gets a deadline comes into a scope with all it has",
            scoped("Terminating", "0"),
            PODS,
            "",
            pod(json!({})),
            with_deadline(),
            Ok(Some(json!({"pods": "1"}))),
        ),
        (
            "where there may be no room",
            scoped("Terminating", "1"),
            PODS,
            "",
            pod(json!({})),
            with_deadline(),
            Err("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
        ),
        (
            "and leaves another",
            scoped("NotTerminating", "1"),
            PODS,
            "",
            pod(json!({})),
            with_deadline(),
            Ok(None),
        ),
    ];
    for (case, quota, kind, subresource, old, object, want) in cases {
        let decided = decide(&quota, kind, subresource, &object, Some(&old));
        assert_eq!(decided, want.map_err(str::to_owned), "{case}");
    }
}

#[test]
fn scopes() {
    let with = |path: &[&str], value: Value| {
        let mut pod = pod(json!({}));
        let mut at = &mut pod;
        for step in path {
            at = &mut at[*step];
        }
        *at = value;
        pod
    };
    let best_effort = pod(json!({}));
    let modest = pod(json!({"requests": {"memory": "1"}}));
    let zero = pod(json!({"requests": {"memory": "0"}}));
    let said = with(&["status"], json!({"qosClass": "Burstable"}));
    let deadline = with(&["spec", "activeDeadlineSeconds"], json!(0));
    let urgent = with(&["spec", "priorityClassName"], json!("urgent"));
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let near = with(
        &["spec", "affinity"],
        json!({"podAffinity": {required: [{"namespaces": ["x"]}]}}),
    );
    let far = with(
        &["spec", "affinity"],
        json!({"podAntiAffinity": {preferred: [{"podAffinityTerm": {"namespaceSelector": {}}}]}}),
    );
    let home = with(
        &["spec", "affinity"],
        json!({"podAffinity": {required: [{"topologyKey": "k"}]}}),
    );
    let class = |operator: &str, values: &[&str]| json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
    let plain = |name: &str| json!({"scopeName": name, "operator": "Exists"});
    let fast = json!({"metadata": {}, "spec": {"volumeAttributesClassName": "fast"}});
    let moving = json!({
        "spec": {"volumeAttributesClassName": "fast"},
        "status": {"currentVolumeAttributesClassName": "slow", "modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast"}},
    });
    let plainly = json!({"spec": {}});
    let attributes = |operator: &str, values: &[&str]| json!({"scopeName": "VolumeAttributesClass", "operator": operator, "values": values});
    for (case, scope, kind, object, want) in [
        ("best effort", plain("BestEffort"), "pods", &best_effort, true),
        ("some effort", plain("BestEffort"), "pods", &modest, false),
        ("a request of nothing", plain("BestEffort"), "pods", &zero, true),
        ("the status knows", plain("BestEffort"), "pods", &said, false),
        ("not best effort", plain("NotBestEffort"), "pods", &modest, true),
        ("terminating", plain("Terminating"), "pods", &deadline, true),
        (
            "not terminating",
            plain("NotTerminating"),
            "pods",
            &deadline,
            false,
        ),
        (
            "without a deadline",
            plain("NotTerminating"),
            "pods",
            &best_effort,
            true,
        ),
        ("has a class", class("Exists", &[]), "pods", &urgent, true),
        ("has none", class("Exists", &[]), "pods", &best_effort, false),
        (
            "has this class",
            class("In", &["urgent", "other"]),
            "pods",
            &urgent,
            true,
        ),
        ("has another", class("In", &["other"]), "pods", &urgent, false),
        (
            "no class is in no list",
            class("In", &["other"]),
            "pods",
            &best_effort,
            false,
        ),
        (
            "not this class",
            class("NotIn", &["urgent"]),
            "pods",
            &urgent,
            false,
        ),
        (
            "no class is not this class",
            class("NotIn", &["urgent"]),
            "pods",
            &best_effort,
            true,
        ),
        (
            "must have none",
            class("DoesNotExist", &[]),
            "pods",
            &best_effort,
            true,
        ),
        ("and has one", class("DoesNotExist", &[]), "pods", &urgent, false),
        (
            "near pods elsewhere",
            plain("CrossNamespacePodAffinity"),
            "pods",
            &near,
            true,
        ),
        (
            "far from pods elsewhere",
            plain("CrossNamespacePodAffinity"),
            "pods",
            &far,
            true,
        ),
        (
            "near pods here",
            plain("CrossNamespacePodAffinity"),
            "pods",
            &home,
            false,
        ),
        (
            "has attributes",
            attributes("Exists", &[]),
            "persistentvolumeclaims",
            &fast,
            true,
        ),
        (
            "has none",
            attributes("Exists", &[]),
            "persistentvolumeclaims",
            &plainly,
            false,
        ),
        (
            "had this class",
            attributes("In", &["slow"]),
            "persistentvolumeclaims",
            &moving,
            true,
        ),
        (
            "one of its classes is another",
            attributes("NotIn", &["slow"]),
            "persistentvolumeclaims",
            &moving,
            true,
        ),
        (
            "not in the list",
            attributes("In", &["slow"]),
            "persistentvolumeclaims",
            &fast,
            false,
        ),
        (
            "claims know no other scope",
            plain("BestEffort"),
            "persistentvolumeclaims",
            &fast,
            false,
        ),
        (
            "Services know none",
            plain("NotBestEffort"),
            "services",
            &plainly,
            false,
        ),
    ] {
        let hard = json!({"count/pods": "1", "persistentvolumeclaims": "1", "services": "1"});
        let used = json!({"count/pods": "0", "persistentvolumeclaims": "0", "services": "0"});
        let mut quota = quota(hard, used);
        quota["spec"]["scopeSelector"] = json!({"matchExpressions": [scope]});
        let charged = decide(&quota, ("", kind), "", object, None).unwrap();
        assert_eq!(charged.is_some(), want, "{case}");
    }
}

#[test]
fn every_quota_that_applies_is_charged() {
    let quotas = [
        quota(json!({"pods": "5"}), json!({"pods": "1"})),
        quota(json!({"services": "5"}), json!({"services": "1"})),
        quota(json!({"count/pods": "5"}), json!({"count/pods": "3"})),
    ]
    .map(|quota| Quota::from_object(&quota));
    let object = pod(json!({}));
    let request = Request {
        operation: Operation::Create,
        group: "",
        resource: "pods",
        subresource: "",
        object: &object,
        old: None,
        now: NOW,
    };
    let all: Vec<&Quota> = quotas.iter().collect();
    let charges = check(&all, &request).unwrap();
    let told: Vec<_> = charges.iter().map(|c| (c.index, c.used.to_value())).collect();
    assert_eq!(told, [(0, json!({"pods": "2"})), (2, json!({"count/pods": "4"}))]);
}
