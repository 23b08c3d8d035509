//! `fairway vm expose`: a Service for a machine.

use anyhow::{anyhow, bail, ensure};
use serde_json::{Value, json};

use super::session::Session;
use super::target::Kind;
use crate::cli::vm::doors::Expose;

/// What KubeVirt puts on every instance, and a Service can select by.
const NAME_LABEL: &str = "vm.kubevirt.io/name";

pub(super) async fn run(session: &Session, options: &Expose) -> anyhow::Result<()> {
    let mut spec = flags(options)?;
    let machine = session.target(&options.name)?;
    let word = options.kind.to_lowercase();
    let (kind, what, template) = match Kind::parse(&word) {
        Some(Kind::Machine) => (Kind::Machine, "VirtualMachine", "/spec/template/spec"),
        Some(Kind::Instance) => (Kind::Instance, "VirtualMachineInstance", "/spec"),
        None => bail!("unsupported resource type: {word}"),
    };
    let found = session.get(&machine.object(kind)).await;
    let found = found.map_err(|error| anyhow!("error fetching {what}: {error}"))?;
    if options.port == 0 {
        spec["ports"] = named_ports(found.pointer(template).unwrap_or(&Value::Null));
    }
    let has_ports = spec["ports"].as_array().is_some_and(|it| !it.is_empty());
    ensure!(has_ports, "couldn't find port via --port flag or introspection");
    spec["selector"] = json!({NAME_LABEL: machine.name});
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": options.service, "namespace": machine.namespace},
        "spec": spec,
    });
    let path = format!("/api/v1/namespaces/{}/services", machine.namespace);
    session
        .ask("POST", &path, Some(&service))
        .await
        .map_err(|error| anyhow!("service creation failed: {error}"))?;
    println!(
        "Service {} successfully created for {word} {}",
        options.service, machine.name
    );
    Ok(())
}

/// What the flags say of the Service, without its selector.
fn flags(options: &Expose) -> anyhow::Result<Value> {
    let protocol = match options.protocol.to_lowercase().as_str() {
        "tcp" => "TCP",
        "udp" => "UDP",
        _ => bail!("unknown protocol: {}", options.protocol),
    };
    let kind = match options.service_type.to_lowercase().as_str() {
        "clusterip" => "ClusterIP",
        "nodeport" => "NodePort",
        "loadbalancer" => "LoadBalancer",
        "externalname" => bail!("type: {} not supported", options.service_type),
        _ => bail!("unknown service type: {}", options.service_type),
    };
    let families: &[&str] = match options.ip_family.to_lowercase().as_str() {
        "" => &[],
        "ipv4" => &["IPv4"],
        "ipv6" => &["IPv6"],
        "ipv4,ipv6" => &["IPv4", "IPv6"],
        "ipv6,ipv4" => &["IPv6", "IPv4"],
        _ => bail!("unknown IPFamily/s: {}", options.ip_family),
    };
    let policy = match options.ip_family_policy.to_lowercase().as_str() {
        "" if families.len() > 1 => Some("PreferDualStack"),
        "" => None,
        "singlestack" => Some("SingleStack"),
        "preferdualstack" => Some("PreferDualStack"),
        "requiredualstack" => Some("RequireDualStack"),
        _ => bail!("unknown IPFamilyPolicy/s: {}", options.ip_family_policy),
    };
    let mut spec = json!({"type": kind});
    if options.port != 0 {
        let mut port = json!({"protocol": protocol, "port": options.port});
        if !options.port_name.is_empty() {
            port["name"] = json!(options.port_name);
        }
        match options.target_port.parse::<u16>() {
            Ok(number) => port["targetPort"] = json!(number),
            Err(_) if options.target_port.is_empty() => {}
            Err(_) => port["targetPort"] = json!(options.target_port),
        }
        spec["ports"] = json!([port]);
    }
    if !options.cluster_ip.is_empty() {
        spec["clusterIP"] = json!(options.cluster_ip);
    }
    if !options.external_ip.is_empty() {
        spec["externalIPs"] = json!([options.external_ip]);
    }
    if !families.is_empty() {
        spec["ipFamilies"] = json!(families);
    }
    if let Some(policy) = policy {
        spec["ipFamilyPolicy"] = json!(policy);
    }
    Ok(spec)
}

/// The ports that the machine itself names on the interface of the pod network.
fn named_ports(spec: &Value) -> Value {
    let items = |pointer: &str| {
        spec.pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let network = items("/networks").find(|it| !it["pod"].is_null());
    let interface = network
        .and_then(|network| items("/domain/devices/interfaces").find(|it| it["name"] == network["name"]));
    let ports = interface
        .and_then(|it| it["ports"].as_array())
        .into_iter()
        .flatten();
    let port = |(at, it): (usize, &Value)| {
        let protocol = it["protocol"]
            .as_str()
            .filter(|it| !it.is_empty())
            .unwrap_or("TCP");
        json!({"name": format!("port-{}", at + 1), "protocol": protocol, "port": it["port"]})
    };
    ports.enumerate().map(port).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::vm::VmCommand;
    use crate::cli::{Cli, Command};

    fn options(line: &str) -> Expose {
        let words = format!("fairway vm expose vm web --name s {line}");
        let cli = Cli::try_parse_from(words.split_whitespace()).unwrap();
        match cli.command {
            Command::Vm(vm) => match vm.command {
                VmCommand::Expose(options) => options,
                other => panic!("{other:?}"),
            },
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn flags_of_a_service() {
        for (line, expected) in [
            ("", json!({"type": "ClusterIP"})),
            (
                "--port 80 --target-port 8080 --type nodeport --protocol udp --port-name web",
                json!({"type": "NodePort", "ports": [{"protocol": "UDP", "port": 80, "name": "web", "targetPort": 8080}]}),
            ),
            (
                "--port 80 --target-port http --cluster-ip None --external-ip 10.0.0.1 --ip-family ipv4,ipv6",
                json!({
                    "type": "ClusterIP", "ports": [{"protocol": "TCP", "port": 80, "targetPort": "http"}],
                    "clusterIP": "None", "externalIPs": ["10.0.0.1"], "ipFamilies": ["IPv4", "IPv6"],
                    "ipFamilyPolicy": "PreferDualStack",
                }),
            ),
        ] {
            assert_eq!(flags(&options(line)).unwrap(), expected, "{line}");
        }
        for (line, expected) in [
            ("--protocol sctp", "unknown protocol: sctp"),
            ("--type ExternalName", "type: ExternalName not supported"),
            ("--type x", "unknown service type: x"),
            ("--ip-family x", "unknown IPFamily/s: x"),
            ("--ip-family-policy x", "unknown IPFamilyPolicy/s: x"),
        ] {
            assert_eq!(flags(&options(line)).unwrap_err().to_string(), expected, "{line}");
        }
    }

    #[test]
    fn ports_that_the_machine_names() {
        let spec = json!({
            "networks": [{"name": "other", "multus": {}}, {"name": "default", "pod": {}}],
            "domain": {"devices": {"interfaces": [
                {"name": "other", "ports": [{"port": 1}]},
                {"name": "default", "ports": [{"port": 22}, {"port": 53, "protocol": "UDP"}]},
            ]}},
        });
        let expected = json!([
            {"name": "port-1", "protocol": "TCP", "port": 22}, {"name": "port-2", "protocol": "UDP", "port": 53},
        ]);
        assert_eq!(named_ports(&spec), expected);
        assert_eq!(named_ports(&json!({})), json!([]));
    }
}
