//! Services: defaults, mistakes, changes, and what they need from the allocators.

use serde_json::{Value, json};

use super::{AllocationPlan, IpNeed, PortNeed, plan_allocation, plan_release};
use crate::Strategy;
use crate::check::{create, stored, update, update_through};

fn service(spec: Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec})
}

fn with_ip(mut service: Value) -> Value {
    AllocationPlan::assign_ip(&mut service, 0, "10.0.0.1");
    service
}

#[test]
fn defaults() {
    let object = create("", "services", service(json!({"ports": [{"port": 80}]}))).ok();
    assert_eq!(
        object["spec"],
        json!({
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "sessionAffinity": "None",
            "type": "ClusterIP", "internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack",
            "ipFamilies": ["IPv4"],
        })
    );
    assert_eq!(object["status"], json!({"loadBalancer": {}}));
    let object = create(
        "",
        "services",
        service(json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP", "ports": [{"port": 80, "targetPort": "http"}]})),
    )
    .ok();
    assert_eq!(object["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(object["spec"]["allocateLoadBalancerNodePorts"], true);
    assert_eq!(
        object["spec"]["sessionAffinityConfig"],
        json!({"clientIP": {"timeoutSeconds": 10800}})
    );
    assert_eq!(object["spec"]["ports"][0]["targetPort"], "http");
    let object = create("", "services", service(json!({"clusterIP": "None"}))).ok();
    assert_eq!(
        object["spec"]["clusterIPs"],
        json!(["None"]),
        "headless needs no ports"
    );
    assert_eq!(
        object["spec"]["ipFamilies"],
        json!(["IPv4", "IPv6"]),
        "headless without selector is dual"
    );
    let object = create(
        "",
        "services",
        service(json!({"clusterIP": "None", "selector": {"a": "b"}})),
    )
    .ok();
    assert_eq!(object["spec"]["ipFamilies"], json!(["IPv4"]));
}

#[test]
fn mistakes() {
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &["spec.ports: Required value"]),
        (
            json!({"ports": [{"port": 0, "targetPort": 80}]}),
            &["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"ports": [{"port": 80}, {"port": 81}]}),
            &[
                "spec.ports[0].name: Required value",
                "spec.ports[1].name: Required value",
            ],
        ),
        (
            json!({"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 80}]}),
            &[
                "spec.ports[1].name: Duplicate value: \"a\"",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\"",
            ],
        ),
        (
            json!({"ports": [{"name": "A", "port": 80}]}),
            &["spec.ports[0].name: Invalid value: \"A\": a lowercase RFC 1123 label"],
        ),
        (
            json!({"ports": [{"port": 80, "protocol": "ICMP"}]}),
            &[
                "spec.ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            ],
        ),
        (
            json!({"ports": [{"port": 80, "targetPort": "No_Way"}]}),
            &[
                "spec.ports[0].targetPort: Invalid value: \"No_Way\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            ],
        ),
        (
            json!({"ports": [{"port": 80, "targetPort": 70000}]}),
            &["spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"ports": [{"port": 80, "nodePort": 30000}]}),
            &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            json!({"type": "Nope", "ports": [{"port": 80}]}),
            &[
                "spec.type: Unsupported value: \"Nope\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (
            json!({"type": "ExternalName"}),
            &["spec.externalName: Required value"],
        ),
        (
            json!({"type": "ExternalName", "externalName": "a b", "clusterIPs": ["10.0.0.1"]}),
            &[
                "spec.externalName: Invalid value: \"a b\"",
                "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
            ],
        ),
        (
            json!({"clusterIP": "1.2.3", "ports": [{"port": 80}]}),
            &[
                "spec.clusterIPs[0]: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            json!({"clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]}),
            &[
                "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: must be empty when `clusterIP` is not specified",
            ],
        ),
        (
            json!({"clusterIP": "None", "type": "NodePort", "ports": [{"port": 80}]}),
            &["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}),
            &[
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
            ],
        ),
        (
            json!({"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}),
            &["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"],
        ),
        (
            json!({"sessionAffinity": "Sticky", "ports": [{"port": 80}]}),
            &[
                "spec.sessionAffinity: Unsupported value: \"Sticky\": supported values: \"ClientIP\", \"None\"",
            ],
        ),
        (
            json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}, "ports": [{"port": 80}]}),
            &[
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400",
            ],
        ),
        (
            json!({"externalIPs": ["127.0.0.1"], "ports": [{"port": 80}]}),
            &[
                "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ],
        ),
        (
            json!({"externalTrafficPolicy": "Local", "ports": [{"port": 80}]}),
            &[
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
            ],
        ),
        (
            json!({"loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": [{"port": 80}]}),
            &["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        ),
        (
            json!({"loadBalancerClass": "a", "ports": [{"port": 80}]}),
            &["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        ),
        (
            json!({"selector": {"a b": "c"}, "ports": [{"port": 80}]}),
            &["spec.selector: Invalid value: \"a b\": name part"],
        ),
        (
            json!({"type": "NodePort", "ports": [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]}),
            &["spec.ports[1].nodePort: Duplicate value: 30001"],
        ),
    ];
    for (spec, expected) in cases {
        println!("{spec}");
        create("", "services", service(spec)).fails(expected);
    }
}

#[test]
fn names_may_begin_with_a_digit() {
    let mut object = service(json!({"ports": [{"port": 80}]}));
    object["metadata"]["name"] = json!("1web");
    create("", "services", object.clone()).ok();
    object["metadata"]["name"] = json!("a.b");
    create("", "services", object).fails(&["metadata.name: Invalid value: \"a.b\": must not contain dots"]);
}

#[test]
fn changes() {
    let old = with_ip(stored("", "services", service(json!({"ports": [{"port": 80}]}))));
    update("", "services", &old, |o| {
        o["spec"]["clusterIP"] = json!("10.0.0.2");
        o["spec"]["clusterIPs"] = json!(["10.0.0.2"]);
    })
    .fails(&["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"]);
    let kept = update("", "services", &old, |o| {
        *o = service(json!({"ports": [{"port": 81}]}));
        o["metadata"] = old["metadata"].clone();
    })
    .ok();
    assert_eq!(
        kept["spec"]["clusterIP"], "10.0.0.1",
        "a client that leaves the address out keeps it"
    );
    let named = update("", "services", &old, |o| {
        o["spec"]["type"] = json!("ExternalName");
        o["spec"]["externalName"] = json!("example.com");
    })
    .ok();
    assert!(named["spec"].get("clusterIPs").is_none(), "{named}");
    assert!(named["spec"].get("ipFamilies").is_none(), "{named}");
}

#[test]
fn leaving_a_type_clears_its_ports() {
    let mut old = with_ip(stored(
        "",
        "services",
        service(json!({"type": "NodePort", "ports": [{"port": 80}]})),
    ));
    AllocationPlan::assign_port(&mut old, 0, 30080);
    let new = update("", "services", &old, |o| o["spec"]["type"] = json!("ClusterIP")).ok();
    assert!(new["spec"]["ports"][0].get("nodePort").is_none());
    assert!(new["spec"].get("externalTrafficPolicy").is_none());
}

#[test]
fn status_has_an_endpoint_of_its_own() {
    let old = with_ip(stored(
        "",
        "services",
        service(json!({"type": "LoadBalancer", "ports": [{"port": 80}]})),
    ));
    let ingress = json!([{"ip": "1.2.3.4"}]);
    let ignored = update("", "services", &old, |o| {
        o["status"]["loadBalancer"]["ingress"] = ingress.clone();
    })
    .ok();
    assert_eq!(ignored["status"], old["status"]);
    let set = update_through("", "services", Some("status"), &old, |o| {
        o["status"]["loadBalancer"]["ingress"] = ingress;
        o["spec"]["ports"] = json!([]);
    })
    .ok();
    assert_eq!(
        set["status"]["loadBalancer"]["ingress"],
        json!([{"ip": "1.2.3.4", "ipMode": "VIP"}])
    );
    assert_eq!(set["spec"], old["spec"]);
}

fn plan(spec: Value, old: Option<Value>, families: &[&str]) -> AllocationPlan {
    let mut new = service(spec);
    super::Service.default(&mut new);
    plan_allocation(&mut new, old.map(service).as_ref(), families).unwrap()
}

#[test]
fn what_to_allocate() {
    let any = |index, family: &str| IpNeed {
        index,
        family: family.to_owned(),
        requested: None,
    };
    let port = |index, requested, same_as| PortNeed {
        index,
        requested,
        same_as,
    };
    let found = plan(json!({"ports": [{"port": 80}]}), None, &["IPv4"]);
    assert_eq!(
        found,
        AllocationPlan {
            cluster_ips: vec![any(0, "IPv4")],
            ..AllocationPlan::default()
        }
    );

    let found = plan(
        json!({"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}),
        None,
        &["IPv4", "IPv6"],
    );
    assert_eq!(found.cluster_ips, [any(0, "IPv4"), any(1, "IPv6")]);

    let found = plan(
        json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}),
        None,
        &["IPv4"],
    );
    assert_eq!(found.cluster_ips[0].requested.as_deref(), Some("10.0.0.9"));

    assert!(plan(json!({"clusterIP": "None"}), None, &["IPv4"]).is_empty());
    assert!(
        plan(
            json!({"type": "ExternalName", "externalName": "a.b"}),
            None,
            &["IPv4"]
        )
        .is_empty()
    );

    let dns = json!({"type": "NodePort", "ports": [
        {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}, {"name": "m", "port": 9, "nodePort": 30009}]});
    let found = plan(dns, None, &["IPv4"]);
    assert_eq!(
        found.node_ports,
        [
            port(0, None, None),
            port(1, None, Some(0)),
            port(2, Some(30009), None)
        ],
        "both protocols of port 53 share a node port"
    );

    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    assert_eq!(plan(local, None, &["IPv4"]).health_check_port, Some(None));

    let quiet =
        json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    assert_eq!(plan(quiet, None, &["IPv4"]).node_ports, []);
}

#[test]
fn what_to_release() {
    let old = json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "ports": [{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 81, "nodePort": 30081}]});
    let found = plan(
        json!({"type": "NodePort", "ports": [{"name": "a", "port": 80}]}),
        Some(old.clone()),
        &["IPv4"],
    );
    assert_eq!(
        found.released_ports,
        [30081],
        "a removed port is given back, a named one is kept"
    );
    assert!(found.node_ports.is_empty() && found.cluster_ips.is_empty());

    let found = plan(
        json!({"type": "ClusterIP", "ports": [{"port": 80}]}),
        Some(old.clone()),
        &["IPv4"],
    );
    assert_eq!(found.released_ports, [30080, 30081]);

    let found = plan(
        json!({"type": "ExternalName", "externalName": "a.b"}),
        Some(old.clone()),
        &["IPv4"],
    );
    assert_eq!(found.released_ips, ["10.0.0.1"]);

    let gone = plan_release(&service(old));
    assert_eq!(
        (gone.released_ips.len(), gone.released_ports),
        (1, vec![30080, 30081])
    );
}

#[test]
fn warnings() {
    let found = create(
        "",
        "services",
        service(json!({"clusterIP": "None", "externalIPs": ["10.0.0.1"], "sessionAffinity": "ClientIP"})),
    );
    assert_eq!(
        found.warnings,
        [
            "spec.externalIPs is ignored for headless services",
            "spec.SessionAffinity is ignored for headless services"
        ]
    );
}
