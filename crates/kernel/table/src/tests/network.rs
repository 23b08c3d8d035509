//! Services, endpoints and what guards and exposes them.

use serde_json::json;

use super::check;

#[test]
fn services() {
    let port = json!({"port": 2233, "protocol": "TCP"});
    let node_port = json!({"port": 8888, "nodePort": 9999, "protocol": "TCP"});
    let ingress =
        json!({"loadBalancer": {"ingress": [{"ip": "3.4.5.6"}, {"ip": "2.3.4.5"}, {"hostname": "lb.x"}]}});
    for (kind, spec, status, external, ports) in [
        (
            "ClusterIP",
            json!({"ports": [port]}),
            json!({}),
            "<none>",
            "2233/TCP",
        ),
        (
            "ClusterIP",
            json!({"externalIPs": ["1.1.1.1", "2.2.2.2"]}),
            json!({}),
            "1.1.1.1,2.2.2.2",
            "<none>",
        ),
        (
            "NodePort",
            json!({"ports": [node_port, port]}),
            json!({}),
            "<none>",
            "8888:9999/TCP,2233/TCP",
        ),
        ("LoadBalancer", json!({}), json!({}), "<pending>", "<none>"),
        (
            "LoadBalancer",
            json!({}),
            ingress.clone(),
            "2.3.4.5,3.4.5.6,lb.x",
            "<none>",
        ),
        (
            "LoadBalancer",
            json!({"externalIPs": ["9.9.9.9"]}),
            ingress,
            "2.3.4.5,3.4.5.6,lb.x,9.9.9.9",
            "<none>",
        ),
        (
            "ExternalName",
            json!({"externalName": "db.x"}),
            json!({}),
            "db.x",
            "<none>",
        ),
        ("", json!({}), json!({}), "<unknown>", "<none>"),
    ] {
        let mut object = json!({"spec": spec, "status": status});
        object["spec"]["type"] = json!(kind);
        object["spec"]["clusterIPs"] = json!(["10.9.8.7", "fd00::1"]);
        check(
            "",
            "services",
            object,
            json!(["x", kind, "10.9.8.7", external, ports, "5m", "<none>"]),
        );
    }
    let want = json!(["x", "ClusterIP", "<none>", "<none>", "<none>", "5m", "a=b"]);
    check(
        "",
        "services",
        json!({"spec": {"type": "ClusterIP", "selector": {"a": "b"}}}),
        want,
    );
}

#[test]
fn endpoints() {
    let addresses = json!([{"ip": "1.2.3.4"}, {"ip": "fd00::1"}]);
    let two_ports = json!([{"port": 80}, {"port": 443}]);
    for (subsets, want) in [
        (json!([]), "<none>"),
        (json!([{}]), ""),
        (json!([{"addresses": addresses}]), "1.2.3.4,fd00::1"),
        (
            json!([{"addresses": addresses, "ports": [{"port": 80}]}]),
            "1.2.3.4:80,[fd00::1]:80",
        ),
        (
            json!([{"addresses": addresses, "ports": two_ports}]),
            "1.2.3.4:80,[fd00::1]:80,1.2.3.4:443 + 1 more...",
        ),
    ] {
        check(
            "",
            "endpoints",
            json!({"subsets": subsets}),
            json!(["x", want, "5m"]),
        );
    }
    let slice = json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "web"}, {}, {"port": 443}],
        "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3"]}]});
    let want = json!([
        "x",
        "IPv4",
        "80,web,* + 1 more...",
        "10.0.0.1,10.0.0.2,10.0.0.3",
        "5m"
    ]);
    check("discovery.k8s.io", "endpointslices", slice, want);
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({}),
        json!(["x", "", "<unset>", "<unset>", "5m"]),
    );
}

#[test]
fn networking() {
    let rules = |hosts: &[&str]| hosts.iter().map(|host| json!({"host": host})).collect::<Vec<_>>();
    let group = "networking.k8s.io";
    for (hosts, want) in [
        (&["a", "b"][..], "a,b"),
        (&[], "*"),
        (&["", ""], "*"),
        (&["a", "b", "c"], "a,b,c"),
        (&["a", "b", "c", "d", "e"], "a,b,c + 2 more..."),
    ] {
        let object = json!({"spec": {"rules": rules(hosts)}});
        check(
            group,
            "ingresses",
            object,
            json!(["x", "<none>", want, "", "80", "5m"]),
        );
    }
    let object = json!({"spec": {"ingressClassName": "nginx", "tls": [{}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "2.3.4.5"}]}}});
    check(
        group,
        "ingresses",
        object,
        json!(["x", "nginx", "*", "2.3.4.5", "80, 443", "5m"]),
    );
    let object = json!({"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/c", "parameters": {"apiGroup": "g.io", "kind": "Params", "name": "p"}}});
    check(
        group,
        "ingressclasses",
        object,
        json!(["x (default)", "example.com/c", "Params.g.io/p", "5m"]),
    );
    let selector = json!({"matchLabels": {"z": "1"}, "matchExpressions": [
        {"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "NotIn", "values": ["x"]},
        {"key": "d", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}]});
    let object = json!({"spec": {"podSelector": selector}});
    check(
        group,
        "networkpolicies",
        object,
        json!(["x", "!a,b in (x,y),c notin (x),d,z=1", "5m"]),
    );
    check(
        group,
        "networkpolicies",
        json!({"spec": {"podSelector": {}}}),
        json!(["x", "<none>", "5m"]),
    );
    check(
        group,
        "servicecidrs",
        json!({"spec": {"cidrs": ["10.0.0.0/8", "fd00::/64"]}}),
        json!(["x", "10.0.0.0/8,fd00::/64", "5m"]),
    );
    let parent =
        json!({"spec": {"parentRef": {"group": "g", "resource": "rs", "namespace": "ns", "name": "n"}}});
    check(group, "ipaddresses", parent, json!(["x", "rs.g/ns/n"]));
}
