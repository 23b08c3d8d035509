//! Common mistakes and rules of change in the groups whose kinds are small: storage, networking, quotas, policies,
//! admission, flow control, certificates and the rest. Each case names the reason.

use serde_json::{Value, json};

use crate::check::{create, stored, update, update_through};

struct Case {
    group: &'static str,
    resource: &'static str,
    reason: &'static str,
    body: Value,
    errors: &'static [&'static str],
}

fn named(body: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "a"}});
    object
        .as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    object
}

#[track_caller]
fn check(cases: Vec<Case>) {
    for case in cases {
        println!("{}/{}: {}", case.group, case.resource, case.reason);
        create(case.group, case.resource, named(&case.body)).fails(case.errors);
    }
}

fn case(
    (group, resource): (&'static str, &'static str),
    reason: &'static str,
    body: Value,
    errors: &'static [&'static str],
) -> Case {
    Case {
        group,
        resource,
        reason,
        body,
        errors,
    }
}

const CLAIMS: (&str, &str) = ("", "persistentvolumeclaims");
const VOLUMES: (&str, &str) = ("", "persistentvolumes");

fn claim(size: &str) -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}})
}

#[test]
fn claims_and_volumes() {
    let host = json!({"path": "/x"});
    check(vec![
        case(CLAIMS, "a good one", claim("1Gi"), &[]),
        case(
            CLAIMS,
            "nothing asked for",
            json!({"spec": {}}),
            &[
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        case(
            CLAIMS,
            "nothing is no size",
            claim("0"),
            &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"],
        ),
        case(
            CLAIMS,
            "unknown mode",
            json!({"spec": {"accessModes": ["All"], "resources": {"requests": {"storage": "1"}}}}),
            &[
                "spec.accessModes: Unsupported value: \"All\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            ],
        ),
        case(
            VOLUMES,
            "a good one",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": host}}),
            &[],
        ),
        case(
            VOLUMES,
            "empty",
            json!({"spec": {}}),
            &[
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec.capacity: Unsupported value: null: supported values: \"storage\"",
                "spec: Required value: must specify a volume type",
            ],
        ),
        case(
            VOLUMES,
            "two sources",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": host, "nfs": {"server": "s", "path": "/"}}}),
            &["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
    ]);
    let object = create("", "persistentvolumeclaims", named(&claim("1024Mi"))).ok();
    assert_eq!(object["spec"]["volumeMode"], "Filesystem");
    assert_eq!(object["spec"]["resources"]["requests"]["storage"], "1Gi");
    assert_eq!(object["status"], json!({"phase": "Pending"}));
}

#[test]
fn bound_claims_grow_but_do_not_shrink() {
    let mut old = stored("", "persistentvolumeclaims", named(&claim("2Gi")));
    let resize =
        |size: &'static str| move |o: &mut Value| o["spec"]["resources"]["requests"]["storage"] = json!(size);
    update("", "persistentvolumeclaims", &old, resize("3Gi")).fails(&[
        "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    ]);
    old["status"] = json!({"phase": "Bound", "capacity": {"storage": "2Gi"}});
    update("", "persistentvolumeclaims", &old, resize("3Gi")).ok();
    update("", "persistentvolumeclaims", &old, resize("1Gi"))
        .fails(&["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]);
    update("", "persistentvolumeclaims", &old, |o| {
        o["spec"]["accessModes"] = json!(["ReadWriteMany"]);
    })
    .fails(&["spec: Forbidden: spec is immutable after creation"]);
}

#[test]
fn storage_group() {
    const CLASSES: (&str, &str) = ("storage.k8s.io", "storageclasses");
    check(vec![
        case(
            CLASSES,
            "a provisioner is needed",
            json!({}),
            &["provisioner: Required value"],
        ),
        case(CLASSES, "a good one", json!({"provisioner": "x.io/p"}), &[]),
        case(
            CLASSES,
            "unknown policy",
            json!({"provisioner": "p", "reclaimPolicy": "Recycle"}),
            &["reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\""],
        ),
        case(
            ("storage.k8s.io", "volumeattachments"),
            "one source",
            json!({"spec": {"attacher": "x", "nodeName": "n", "source": {}}}),
            &[
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ],
        ),
        case(
            ("storage.k8s.io", "csinodes"),
            "drivers have ids",
            json!({"spec": {"drivers": [{"name": "d"}]}}),
            &["spec.drivers[0].nodeID: Required value"],
        ),
    ]);
    let old = stored(
        "storage.k8s.io",
        "storageclasses",
        named(&json!({"provisioner": "p"})),
    );
    assert_eq!(
        (&old["reclaimPolicy"], &old["volumeBindingMode"]),
        (&json!("Delete"), &json!("Immediate"))
    );
    update("storage.k8s.io", "storageclasses", &old, |o| {
        o["parameters"] = json!({"a": "b"});
    })
    .fails(&["parameters: Invalid value: {\"a\":\"b\"}: field is immutable"]);
}

#[test]
fn networking_group() {
    const POLICIES: (&str, &str) = ("networking.k8s.io", "networkpolicies");
    const INGRESSES: (&str, &str) = ("networking.k8s.io", "ingresses");
    let rule = |path: Value| json!({"spec": {"rules": [{"http": {"paths": [path]}}]}});
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    check(vec![
        case(
            POLICIES,
            "empty is deny all",
            json!({"spec": {"podSelector": {}}}),
            &[],
        ),
        case(
            POLICIES,
            "peers and ports",
            json!({"spec": {"podSelector": {}, "ingress": [{"from": [{}], "ports": [{"port": 0}]}]}}),
            &[
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        ),
        case(
            POLICIES,
            "holes lie inside",
            json!({"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]}}),
            &[
                "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
            ],
        ),
        case(
            INGRESSES,
            "a good one",
            rule(json!({"pathType": "Prefix", "path": "/", "backend": backend})),
            &[],
        ),
        case(
            INGRESSES,
            "nothing to do",
            json!({"spec": {}}),
            &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        ),
        case(
            INGRESSES,
            "path type",
            rule(json!({"path": "/", "backend": backend})),
            &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
        ),
        case(
            INGRESSES,
            "relative path and no port",
            rule(json!({"pathType": "Prefix", "path": "a", "backend": {"service": {"name": "s"}}})),
            &[
                "spec.rules[0].http.paths[0].path: Invalid value: \"a\": must be an absolute path",
                "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
            ],
        ),
        case(
            ("networking.k8s.io", "ingressclasses"),
            "controller names",
            json!({"spec": {"controller": "nginx"}}),
            &[
                "spec.controller: Invalid value: \"nginx\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            ],
        ),
        case(
            ("networking.k8s.io", "servicecidrs"),
            "one per family",
            json!({"spec": {"cidrs": ["10.0.0.0/16", "10.1.0.0/16"]}}),
            &[
                "spec.cidrs: Invalid value: [\"10.0.0.0/16\",\"10.1.0.0/16\"]: may specify no more than one IP for each IP family",
            ],
        ),
    ]);
    let policy = create(
        "networking.k8s.io",
        "networkpolicies",
        named(&json!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}})),
    )
    .ok();
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
}

#[test]
fn endpoints_and_slices() {
    check(vec![
        case(
            ("", "endpoints"),
            "loopback is nowhere",
            json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 80}]}]}),
            &[
                "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ],
        ),
        case(
            ("", "endpoints"),
            "no addresses",
            json!({"subsets": [{}]}),
            &["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
        ),
        case(
            ("discovery.k8s.io", "endpointslices"),
            "family",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["2001:db8::1"]}]}),
            &["endpoints[0].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address"],
        ),
        case(
            ("discovery.k8s.io", "endpointslices"),
            "address type",
            json!({"endpoints": []}),
            &["addressType: Required value"],
        ),
    ]);
    let old = stored(
        "discovery.k8s.io",
        "endpointslices",
        named(&json!({"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": []})),
    );
    assert_eq!(
        old["ports"][0],
        json!({"port": 80, "name": "", "protocol": "TCP"})
    );
    let labelled = update("discovery.k8s.io", "endpointslices", &old, |o| {
        o["metadata"]["labels"] = json!({"a": "b"});
    })
    .ok();
    assert_eq!(labelled["metadata"]["generation"], 2);
    update("discovery.k8s.io", "endpointslices", &old, |o| {
        o["addressType"] = json!("IPv6");
    })
    .fails(&["addressType: Invalid value: \"IPv6\": field is immutable"]);
}

#[test]
fn quotas_and_limits() {
    check(vec![
        case(
            ("", "resourcequotas"),
            "names and amounts",
            json!({"spec": {"hard": {"pods": "1500m", "cats": "1"}}}),
            &[
                "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
                "spec.hard[cats]: Invalid value: \"cats\": must be a standard resource type or fully qualified",
                "spec.hard[cats]: Invalid value: \"cats\": must be a standard resource for quota",
            ],
        ),
        case(
            ("", "resourcequotas"),
            "scopes exclude each other",
            json!({"spec": {"scopes": ["BestEffort", "NotBestEffort"]}}),
            &["spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"],
        ),
        case(
            ("", "limitranges"),
            "order",
            json!({"spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}),
            &["spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"],
        ),
    ]);
    let limits = create(
        "",
        "limitranges",
        named(&json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1000m"}}]}})),
    )
    .ok();
    assert_eq!(limits["spec"]["limits"][0]["default"], json!({"cpu": "1"}));
    assert_eq!(limits["spec"]["limits"][0]["defaultRequest"], json!({"cpu": "1"}));
}

#[test]
fn nodes() {
    let old = stored(
        "",
        "nodes",
        named(&json!({"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": 4}}})),
    );
    assert_eq!(old["spec"]["podCIDRs"], json!(["10.0.0.0/24"]));
    assert_eq!(
        old["status"]["allocatable"],
        json!({"cpu": "4"}),
        "a node registers with its status"
    );
    update("", "nodes", &old, |o| {
        o["spec"] = json!({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]});
    })
    .fails(&["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"]);
    update("", "nodes", &old, |o| o["spec"]["taints"] = json!([{"key": "a", "effect": "Maybe"}]))
        .fails(&["metadata.taints[0].effect: Unsupported value: \"Maybe\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""]);
}

#[test]
fn policies_classes_and_leases() {
    check(vec![
        case(
            ("policy", "poddisruptionbudgets"),
            "one of both",
            json!({"spec": {"minAvailable": "200%"}}),
            &["spec.minAvailable: Invalid value: \"200%\": must not be greater than 100%"],
        ),
        case(
            ("scheduling.k8s.io", "priorityclasses"),
            "users have limits",
            json!({"value": 2_000_000_000}),
            &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        case(
            ("node.k8s.io", "runtimeclasses"),
            "handler",
            json!({}),
            &["handler: Required value"],
        ),
        case(
            ("coordination.k8s.io", "leases"),
            "durations",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        case(
            ("apiregistration.k8s.io", "apiservices"),
            "its name says what it serves",
            json!({"spec": {"group": "x.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}}),
            &["metadata.name: Invalid value: \"a\": must be `spec.version+\".\"+spec.group`: \"v1.x.io\""],
        ),
        case(
            ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
            "limited needs limits",
            json!({"spec": {"type": "Limited"}}),
            &["spec.limited: Required value: must not be empty when type is Limited"],
        ),
        case(
            ("flowcontrol.apiserver.k8s.io", "flowschemas"),
            "level",
            json!({"spec": {}}),
            &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
        ),
        case(
            ("resource.k8s.io", "resourceclaims"),
            "requests say how",
            json!({"spec": {"devices": {"requests": [{"name": "r"}]}}}),
            &[
                "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
            ],
        ),
    ]);
    let old = stored(
        "scheduling.k8s.io",
        "priorityclasses",
        named(&json!({"value": 5})),
    );
    update("scheduling.k8s.io", "priorityclasses", &old, |o| {
        o["value"] = json!(6);
    })
    .fails(&["value: Forbidden: may not be changed in an update."]);
}

#[test]
fn admission_group() {
    let hook = json!({"name": "h.example.com", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
    let hooks = ("admissionregistration.k8s.io", "validatingwebhookconfigurations");
    let made = create(hooks.0, hooks.1, named(&json!({"webhooks": [hook]}))).ok();
    let first = &made["webhooks"][0];
    assert_eq!(
        (&first["failurePolicy"], &first["timeoutSeconds"]),
        (&json!("Fail"), &json!(10))
    );
    assert_eq!(
        (
            &first["rules"][0]["scope"],
            &first["clientConfig"]["service"]["port"]
        ),
        (&json!("*"), &json!(443))
    );
    check(vec![
        case(
            hooks,
            "an empty hook",
            json!({"webhooks": [{}]}),
            &[
                "webhooks[0].name: Required value",
                "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ],
        ),
        case(
            ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
            "an empty policy",
            json!({"spec": {}}),
            &[
                "spec.matchConstraints: Required value",
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        case(
            (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicybindings",
            ),
            "actions",
            json!({"spec": {"policyName": "p", "validationActions": ["Deny", "Warn"]}}),
            &[
                "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn",
            ],
        ),
    ]);
}

#[test]
fn certificate_requests_are_what_they_were() {
    // Made by `openssl req -new` for /O=developers/O=pilots/CN=anna; its key is thrown away.
    let request = concat!(
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIeE1JR1hBZ0VBTURVeEV6QVJCZ05WQkFvTUNtUmxkbVZzYjNC",
        "bGNuTXhEekFOQmdOVkJBb01CbkJwYkc5MApjekVOTUFzR0ExVUVBd3dFWVc1dVlUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlB",
        "d0VIQTBJQUJKNVVHNXF2ClBHaVJPaERlSDBSZEhzRkxuc1Rka2UydmNiZjAyUHZrTUw2WjNlUFB5THMwMzIrUGZVMGRqRVVTMHFN",
        "VlFGTUQKa0ZwM05XRi81ZDZRVWdHZ0FEQUtCZ2dxaGtqT1BRUURBZ05KQURCR0FpRUFsY014RDRjZ05VbnVZeUJXSm9TRgpNNndz",
        "OURraldHalhOdjdoTXc1eDhJb0NJUURKVWw2Z2hOUVBlZldzcm00WldiOHQ5d2orK0RCcGJoNklBMGpLCk9vZUo4UT09Ci0tLS0t",
        "RU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=",
    );
    let csrs = ("certificates.k8s.io", "certificatesigningrequests");
    let body = json!({"spec": {"request": request, "signerName": "x.io/s", "usages": ["client auth"], "username": "forged"}});
    let old = stored(csrs.0, csrs.1, named(&body));
    assert!(
        old["spec"].get("username").is_none(),
        "who asks is not for the client to say"
    );
    let same = update(csrs.0, csrs.1, &old, |o| o["spec"]["usages"] = json!(["any"])).ok();
    assert_eq!(same["spec"], old["spec"]);
    let approve = |o: &mut Value| {
        o["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "R"}]});
    };
    update_through(csrs.0, csrs.1, Some("status"), &old, approve)
        .fails(&["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]);
    let approved = update_through(csrs.0, csrs.1, Some("approval"), &old, approve).ok();
    assert_eq!(
        approved["status"]["conditions"][0]["lastUpdateTime"],
        crate::check::NOW
    );
    let issue = |o: &mut Value| o["status"]["certificate"] = json!("bm90aGluZw==");
    update_through(csrs.0, csrs.1, Some("status"), &approved, issue).fails(&[
        "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block",
    ]);
    let reword = |o: &mut Value| o["status"]["conditions"][0]["reason"] = json!("Other");
    let kept = update_through(csrs.0, csrs.1, Some("status"), &approved, reword).ok();
    assert_eq!(
        kept["status"], approved["status"],
        "a signer does not change the verdict"
    );
    check(vec![
        case(
            csrs,
            "an empty request",
            json!({"spec": {}}),
            &[
                "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
                "spec.usages: Required value",
                "spec.signerName: Required value",
            ],
        ),
        case(
            csrs,
            "a request that has been changed",
            json!({"spec": {"request": changed_key(request), "signerName": "x.io/s", "usages": ["client auth"]}}),
            Vec::leak(vec![&*String::leak(format!(
                "spec.request: Invalid value: \"{}\": x509: ECDSA verification failure",
                changed_key(request)
            ))]),
        ),
    ]);
}

/// The same request with another letter in its subject, so that its signature does not fit.
fn changed_key(request: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let pem = String::from_utf8(STANDARD.decode(request).unwrap()).unwrap();
    let body: String = pem.lines().filter(|l| !l.starts_with('-')).collect();
    let mut der = STANDARD.decode(body).unwrap();
    let place = der.windows(4).position(|w| w == b"anna").unwrap();
    der[place] = b'e';
    STANDARD.encode(fairway_kernel_x509::encode("CERTIFICATE REQUEST", &der))
}
