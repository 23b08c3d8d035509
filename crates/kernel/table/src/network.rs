//! Services, their endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, NAME, text as column, wide};
use crate::field::{
    NONE, UNKNOWN, UNSET, age, annotation, at, count, filled_or, items, joined, name, number, shortened,
    text, text_or,
};
use crate::selector::{format_labels, format_selector};

pub(crate) fn networking(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "ingresses" => &INGRESS,
        "ingressclasses" => &INGRESS_CLASS,
        "networkpolicies" => &NETWORK_POLICY,
        "servicecidrs" => &SERVICE_CIDR,
        "ipaddresses" => &IP_ADDRESS,
        _ => return None,
    })
}

pub(crate) fn discovery(resource: &str) -> Option<&'static Printer> {
    (resource == "endpointslices").then_some(&ENDPOINT_SLICE)
}

pub(crate) static SERVICE: Printer = Printer {
    columns: &[
        NAME,
        column("Type", "How the service is exposed"),
        column("Cluster-IP", "The address within the cluster"),
        column("External-IP", "The addresses from outside of the cluster"),
        column("Port(s)", "The ports, with their node ports"),
        AGE,
        wide("Selector", "The labels that select the service's pods"),
    ],
    cells: |object, now| {
        let ports: Vec<String> = items(object, "spec.ports").map(service_port).collect();
        let cluster_ip = match items(object, "spec.clusterIPs").next() {
            Some(first) => first.as_str().unwrap_or_default(),
            None => filled_or(object, "spec.clusterIP", NONE),
        };
        vec![
            name(object),
            text(object, "spec.type").into(),
            cluster_ip.into(),
            external_ip(object).into(),
            if ports.is_empty() {
                NONE.into()
            } else {
                ports.join(",").into()
            },
            age(object, now),
            format_labels(at(object, "spec.selector")).into(),
        ]
    },
};

fn service_port(port: &Value) -> String {
    let (number_, protocol) = (number(port, "port"), text(port, "protocol"));
    match number(port, "nodePort") {
        node_port @ 1.. => format!("{number_}:{node_port}/{protocol}"),
        _ => format!("{number_}/{protocol}"),
    }
}

fn external_ip(service: &Value) -> String {
    let external = joined(service, "spec.externalIPs", ",");
    match text(service, "spec.type") {
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let balanced = load_balancer(service);
            match (balanced.is_empty(), external.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => external,
                (false, true) => balanced,
                (false, false) => format!("{balanced},{external}"),
            }
        }
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The addresses that a load balancer has given.
fn load_balancer(object: &Value) -> String {
    let addresses: BTreeSet<&str> = items(object, "status.loadBalancer.ingress")
        .map(|ingress| filled_or(ingress, "ip", text(ingress, "hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

pub(crate) static ENDPOINTS: Printer = Printer {
    columns: &[NAME, column("Endpoints", "The addresses that serve"), AGE],
    cells: |object, now| vec![name(object), endpoints(object).into(), age(object, now)],
};

fn endpoints(object: &Value) -> String {
    if count(object, "subsets") == 0 {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in items(object, "subsets") {
        let addresses = || items(subset, "addresses").map(|address| text(address, "ip"));
        if count(subset, "ports") == 0 {
            all.extend(addresses().map(str::to_owned));
        }
        for port in items(subset, "ports") {
            all.extend(addresses().map(|ip| host_and_port(ip, number(port, "port"))));
        }
    }
    shortened(&all, "")
}

fn host_and_port(host: &str, port: i64) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

static ENDPOINT_SLICE: Printer = Printer {
    columns: &[
        NAME,
        column("AddressType", "What kind of addresses the slice has"),
        column("Ports", "The ports that serve"),
        column("Endpoints", "The addresses that serve"),
        AGE,
    ],
    cells: |object, now| {
        let ports: Vec<String> = items(object, "ports")
            .map(|port| match at(port, "port") {
                Some(number) => number.to_string(),
                None => text_or(port, "name", "*").to_owned(),
            })
            .collect();
        let addresses: Vec<String> = items(object, "endpoints")
            .flat_map(|endpoint| items(endpoint, "addresses"))
            .filter_map(|address| address.as_str().map(str::to_owned))
            .collect();
        vec![
            name(object),
            text(object, "addressType").into(),
            shortened(&ports, UNSET).into(),
            shortened(&addresses, UNSET).into(),
            age(object, now),
        ]
    },
};

static INGRESS: Printer = Printer {
    columns: &[
        NAME,
        column("Class", "The class whose controller serves the ingress"),
        column("Hosts", "The hosts that the rules are for"),
        column("Address", "The addresses at which the ingress is served"),
        column("Ports", "The ports at which the ingress is served"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text_or(object, "spec.ingressClassName", NONE).into(),
            hosts(object).into(),
            load_balancer(object).into(),
            if count(object, "spec.tls") > 0 {
                "80, 443"
            } else {
                "80"
            }
            .into(),
            age(object, now),
        ]
    },
};

/// Three hosts. What is said to be missing counts the rules, with or without a host, as upstream does.
fn hosts(ingress: &Value) -> String {
    const SHOWN: usize = 3;
    let rules = items(ingress, "spec.rules").as_slice();
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        let host = text(rule, "host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
    }
}

static INGRESS_CLASS: Printer = Printer {
    columns: &[
        NAME,
        column("Controller", "The controller that serves ingresses of the class"),
        column("Parameters", "The object with the controller's parameters"),
        AGE,
    ],
    cells: |object, now| {
        let default = annotation(object, "ingressclass.kubernetes.io/is-default-class") == Some("true");
        let suffix = if default { " (default)" } else { "" };
        let parameters = at(object, "spec.parameters").map_or(NONE.to_owned(), |parameters| {
            let group = at(parameters, "apiGroup")
                .and_then(Value::as_str)
                .map_or(String::new(), |g| format!(".{g}"));
            format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
        });
        vec![
            format!("{}{suffix}", text(object, "metadata.name")).into(),
            text(object, "spec.controller").into(),
            parameters.into(),
            age(object, now),
        ]
    },
};

static NETWORK_POLICY: Printer = Printer {
    columns: &[
        NAME,
        column("Pod-Selector", "The pods that the policy is for"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            format_selector(at(object, "spec.podSelector")).into(),
            age(object, now),
        ]
    },
};

static SERVICE_CIDR: Printer = Printer {
    columns: &[
        NAME,
        column("CIDRs", "The ranges that addresses of services are from"),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            joined(object, "spec.cidrs", ",").into(),
            age(object, now),
        ]
    },
};

static IP_ADDRESS: Printer = Printer {
    columns: &[NAME, column("ParentRef", "The object that has the address")],
    cells: |object, _| {
        let parent = at(object, "spec.parentRef").map_or(NONE.to_owned(), |parent| {
            let group = match text(parent, "group") {
                "" => String::new(),
                group => format!(".{group}"),
            };
            let namespace = match text(parent, "namespace") {
                "" => String::new(),
                namespace => format!("/{namespace}"),
            };
            let resource = format!("{}{group}", text(parent, "resource")).to_lowercase();
            format!("{resource}{namespace}/{}", text(parent, "name"))
        });
        vec![name(object), parent.into()]
    },
};
