//! The network: Services, whom they select, and whether anybody listens there.

use serde_json::Value;

use super::process::off;
use super::{Answer, Machine};
use crate::Facts;
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, items, labels, name, title, told};

const LINK: &str = "Service";

fn link(state: State, finding: impl Into<String>) -> Link {
    Link::new(LINK, state, finding)
}

/// Whether the Services lead to who listens.
pub(crate) fn service(facts: &Facts) -> Link {
    let addressless = facts.machines.iter().find_map(addressless);
    let own: Vec<&Value> = facts.services.iter().filter(|it| !is_of_gateway(it)).collect();
    if own.is_empty() {
        if let Some(bad) = addressless {
            return bad;
        }
        return match facts.unreadable.get("services") {
            Some(why) => link(State::Unknown, "Services cannot be read").shown_by([Evidence::new(
                "answer to reading Services",
                "",
                why,
            )]),
            None if facts.machines.is_empty() => link(State::Unused, "there is no Service in it"),
            None => link(State::Unused, "no Service selects the machine"),
        };
    }
    let links: Vec<Link> = own.iter().map(|it| one(facts, it)).chain(addressless).collect();
    let order = [State::Broken, State::Waiting, State::Off, State::Unknown];
    let worst = order
        .iter()
        .find_map(|state| links.iter().find(|it| it.state == *state));
    if let Some(worst) = worst {
        return worst.clone();
    }
    let said: Vec<&str> = links.iter().map(|it| it.finding.as_str()).collect();
    let made = own
        .iter()
        .map(|it| field(it, "/metadata/creationTimestamp"))
        .max();
    link(State::Good, said.join("; ")).since(made.unwrap_or_default())
}

/// Services that stand for Gateways belong to that link.
fn is_of_gateway(service: &Value) -> bool {
    field(service, "/metadata/labels/app.kubernetes.io~1managed-by") == "fairway-gateway"
        || !field(
            service,
            "/metadata/labels/gateway.networking.k8s.io~1gateway-name",
        )
        .is_empty()
}

fn addressless(machine: &Machine) -> Option<Link> {
    let vmi = machine
        .vmi
        .as_ref()
        .filter(|it| field(it, "/status/phase") == "Running")?;
    let has_network = !items(vmi, "/spec/networks").is_empty();
    (has_network && address(machine).is_none()).then(|| {
        link(State::Broken, format!("{} has no address", title(vmi)))
            .advised("look at the interfaces in its status, and at the log of its node")
    })
}

fn address(machine: &Machine) -> Option<&str> {
    let all = items(machine.vmi.as_ref()?, "/status/interfaces").iter();
    all.map(|it| field(it, "/ipAddress")).find(|it| !it.is_empty())
}

/// One Service.
fn one(facts: &Facts, service: &Value) -> Link {
    let titled = title(service);
    let chosen: Vec<&Machine> = facts
        .machines
        .iter()
        .filter(|it| it.namespace == field(service, "/metadata/namespace") || it.namespace.is_empty())
        .filter(|it| subject(it).is_some_and(|subject| is_selected(service, subject)))
        .collect();
    if chosen.is_empty() {
        return unselected(facts, service);
    }
    let mut said = Vec::new();
    for machine in chosen {
        let is_running = machine
            .vmi
            .as_ref()
            .is_some_and(|it| field(it, "/status/phase") == "Running");
        let Some(address) = address(machine).filter(|_| is_running) else {
            return match off(machine) {
                Some(why) => link(
                    State::Off,
                    format!("{titled} leads to a machine that does not run: {why}"),
                ),
                None => link(
                    State::Waiting,
                    format!("{titled} waits for {} to run", machine.name),
                ),
            };
        };
        let endpoint =
            endpoints(facts, service).find(|it| items(it, "/addresses").iter().any(|it| it == address));
        let Some(endpoint) = endpoint else {
            return link(State::Waiting, format!("{titled} does not lead to {address} yet"));
        };
        if endpoint["conditions"]["ready"] == false {
            let ready = machine.vmi.as_ref().and_then(|it| condition(it, "Ready"));
            let ready = ready.filter(|it| it["status"] != "True");
            return link(
                State::Broken,
                format!("{titled} does not lead to {address}, because the machine is not ready"),
            )
            .shown_by(ready.map(|it| told(it, &format!("VirtualMachineInstance {}", machine.name))))
            .advised("its readiness probe decides: check the port and what listens there in the guest");
        }
        if let Some(bad) = unanswered(facts, service, machine) {
            return bad;
        }
        said.push(format!("{} to {address}", name(service)));
    }
    link(State::Good, said.join(", "))
}

fn endpoints<'f>(facts: &'f Facts, service: &'f Value) -> impl Iterator<Item = &'f Value> {
    let is_its = |it: &&Value| {
        it["metadata"]["labels"]["kubernetes.io/service-name"] == name(service)
            && (field(it, "/metadata/namespace") == field(service, "/metadata/namespace"))
    };
    facts
        .endpoint_slices
        .iter()
        .filter(is_its)
        .flat_map(|it| items(it, "/endpoints"))
}

/// A Service that selects none of the machines.
fn unselected(facts: &Facts, service: &Value) -> Link {
    let titled = title(service);
    let selector = &service["spec"]["selector"];
    if field(service, "/spec/type") == "ExternalName" {
        return link(
            State::Good,
            format!(
                "{titled} is another name of {}",
                field(service, "/spec/externalName")
            ),
        );
    }
    if endpoints(facts, service).next().is_some() {
        return link(State::Good, format!("{titled} leads to endpoints of its own"));
    }
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return link(
            State::Broken,
            format!("{titled} has no selector and no endpoints"),
        )
        .since(field(service, "/metadata/creationTimestamp"))
        .shown_by([Evidence::new(
            format!("EndpointSlices of {titled}"),
            "",
            "no endpoint",
        )])
        .advised("give it a selector that picks the labels of the machine, or make EndpointSlices for it");
    }
    let other = facts.machines.iter().find(|it| !it.is_absent());
    match other.and_then(subject) {
        Some(subject) => link(State::Broken, format!("{titled} selects other labels than {} has", name(subject)))
            .since(field(service, "/metadata/creationTimestamp"))
            .shown_by([
                Evidence::new(format!("spec.selector of {titled}"), "", &labels(selector)),
                Evidence::new(
                    format!("labels of the instance {}", name(subject)),
                    "",
                    &labels(&subject["metadata"]["labels"]),
                ),
            ])
            .advised("correct the selector; labels of instances come from spec.template.metadata.labels of the machine"),
        None if facts.machines.is_empty() => link(State::Broken, format!("{titled} selects nothing: no machine has its labels"))
            .since(field(service, "/metadata/creationTimestamp"))
            .shown_by([Evidence::new(format!("spec.selector of {titled}"), "", &labels(selector))])
            .advised("correct the selector; labels of instances come from spec.template.metadata.labels of the machine"),
        None => link(State::Waiting, format!("{titled} waits for its machine")),
    }
}

/// A port of the Service behind which nobody listens.
fn unanswered(facts: &Facts, service: &Value, machine: &Machine) -> Option<Link> {
    let titled = title(service);
    let ports = items(service, "/spec/ports").iter();
    for port in ports.filter(|it| matches!(field(it, "/protocol"), "" | "TCP")) {
        let Some(number) = guest_port(port, machine.vmi.as_ref()?) else {
            return Some(unnamed(&titled, port, machine));
        };
        let tried = machine.probes.iter().find(|it| it.port == number);
        let Some(Answer::Closed(why)) = tried.map(|it| &it.answer) else {
            continue;
        };
        let finding = format!(
            "{titled} sends port {} to {number} of {}, where nobody listens",
            port["port"], machine.name
        );
        // A guest that is on its way has not started what shall listen.
        let is_up = [super::boot(facts), super::cloud_init(facts)]
            .iter()
            .all(|it| !matches!(it.state, State::Waiting | State::Broken));
        if !is_up {
            return Some(link(State::Waiting, finding));
        }
        return Some(
            link(State::Broken, finding)
                .shown_by([Evidence::new(
                    format!("connection to port {number} of {}", machine.name),
                    "",
                    why,
                )])
                .advised("correct targetPort, or start what shall listen there in the guest"),
        );
    }
    None
}

/// A port that goes by a name which the machine does not have.
fn unnamed(titled: &str, port: &Value, machine: &Machine) -> Link {
    let wanted = field(port, "/targetPort");
    let ports = machine.vmi.iter().flat_map(named_ports);
    let known: Vec<&str> = ports
        .map(|it| field(it, "/name"))
        .filter(|it| !it.is_empty())
        .collect();
    let known = match known.is_empty() {
        true => "no port has a name".to_owned(),
        false => known.join(", "),
    };
    let finding = format!(
        "{titled} sends port {} to the port {wanted:?} of {}, which has none of that name",
        port["port"], machine.name
    );
    link(State::Broken, finding)
        .shown_by([Evidence::new(
            format!("ports of the interfaces of {}", machine.name),
            "",
            &known,
        )])
        .advised("make targetPort a number, or name the port in spec.template.spec.domain.devices.interfaces of the machine")
}

fn named_ports(vmi: &Value) -> impl Iterator<Item = &Value> {
    items(vmi, "/spec/domain/devices/interfaces")
        .iter()
        .flat_map(|it| items(it, "/ports"))
}

/// The port of the guest that a port of a Service leads to; none if it goes by a name that no port of the guest has.
pub fn guest_port(port: &Value, vmi: &Value) -> Option<u16> {
    let protocol = |it: &Value| match field(it, "/protocol") {
        "" => "TCP".to_owned(),
        other => other.to_owned(),
    };
    let number = match &port["targetPort"] {
        Value::Null => port["port"].as_u64(),
        Value::String(wanted) => named_ports(vmi)
            .find(|it| field(it, "/name") == wanted && protocol(it) == protocol(port))
            .and_then(|it| it["port"].as_u64()),
        target => target.as_u64(),
    };
    number.and_then(|it| u16::try_from(it).ok())
}

/// What has labels: the instance, or what the machine says of the next one.
fn subject(machine: &Machine) -> Option<&Value> {
    let template = machine.vm.as_ref().and_then(|it| it.pointer("/spec/template"));
    machine.vmi.as_ref().or(template)
}

/// Whether a Service selects an instance.
pub fn is_selected(service: &Value, vmi: &Value) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|all| !all.is_empty() && all.iter().all(|(key, value)| label(vmi, key) == *value))
}

/// A label of the instance, or one that KubeVirt gives to its pod: Services select by both.
fn label<'v>(vmi: &'v Value, key: &str) -> &'v str {
    match vmi["metadata"]["labels"].get(key).and_then(Value::as_str) {
        None => match key {
            "kubevirt.io" => "virt-launcher",
            "kubevirt.io/created-by" => field(vmi, "/metadata/uid"),
            "vm.kubevirt.io/name" => name(vmi),
            _ => "",
        },
        Some(own) => own,
    }
}

/// Whether somebody seems to have meant a machine: a Service of its name, or with a selector that speaks of it.
pub fn is_near(service: &Value, machine: &str) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|all| {
        !all.is_empty() && (name(service) == machine || all.values().any(|value| *value == machine))
    })
}
