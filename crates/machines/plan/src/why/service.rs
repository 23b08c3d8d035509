//! The network: an address, and Services that lead to it.

use serde_json::Value;

use super::{Facts, Link, State, condition, field, items, name, told};

pub(super) fn services(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("Service", state, finding);
    let Some(vmi) = &facts.vmi else {
        return link(State::Unknown, "there is no instance".to_owned());
    };
    let address = items(vmi, "/status/interfaces")
        .iter()
        .map(|it| field(it, "/ipAddress"))
        .find(|it| !it.is_empty());
    let Some(address) = address else {
        return match items(vmi, "/spec/networks") {
            [] => link(State::Unused, "the machine has no network".to_owned()),
            _ => link(State::Broken, "the machine has no address".to_owned())
                .advised("look at the interfaces in its status, and at the log of its node"),
        };
    };
    let (Some(services), Some(slices)) = (&facts.services, &facts.endpoint_slices) else {
        return link(State::Unknown, format!("at {address}; Services cannot be read"));
    };
    let chosen: Vec<&Value> = services.iter().filter(|it| selects(it, vmi)).collect();
    if chosen.is_empty() {
        let near = services.iter().find(|it| nearly(it, vmi));
        return match near {
            Some(service) => link(
                State::Broken,
                format!("at {address}; the Service {} selects other labels", name(service)),
            )
            .shown_by([
                format!("selector {}", labels(&service["spec"]["selector"])),
                format!("labels of the instance {}", labels(&vmi["metadata"]["labels"])),
            ])
            .advised("labels of instances come from spec.template.metadata.labels of the machine"),
            None => link(State::Unused, format!("at {address}; no Service selects it")),
        };
    }
    let mut said = Vec::new();
    for service in chosen {
        let of_service =
            |it: &&Value| it["metadata"]["labels"]["kubernetes.io/service-name"] == name(service);
        let endpoint = slices
            .iter()
            .filter(of_service)
            .flat_map(|it| items(it, "/endpoints"))
            .find(|it| items(it, "/addresses").iter().any(|it| it == address));
        let Some(endpoint) = endpoint else {
            return link(
                State::Waiting,
                format!("the Service {} does not lead to {address} yet", name(service)),
            );
        };
        if endpoint["conditions"]["ready"] == false {
            let ready = condition(vmi, "Ready").filter(|it| it["status"] != "True");
            return link(
                State::Broken,
                format!(
                    "the Service {} does not lead to {address}, because the machine is not ready",
                    name(service)
                ),
            )
            .shown_by(ready.map(told))
            .advised("its readiness probe decides: check the port and what listens there in the guest");
        }
        said.push(name(service));
    }
    link(State::Good, format!("{} to {address}", said.join(", ")))
}

/// Whether a Service selects the instance.
fn selects(service: &Value, vmi: &Value) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|all| !all.is_empty() && all.iter().all(|(key, value)| label(vmi, key) == *value))
}

/// A label of the instance, or one that KubeVirt gives to its pod: Services select by both.
fn label<'v>(vmi: &'v Value, key: &str) -> &'v str {
    match field_of(&vmi["metadata"]["labels"], key) {
        "" => match key {
            "kubevirt.io" => "virt-launcher",
            "kubevirt.io/created-by" => field(vmi, "/metadata/uid"),
            "vm.kubevirt.io/name" => name(vmi),
            _ => "",
        },
        own => own,
    }
}

fn field_of<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether somebody seems to have meant it: a Service of the machine's name, or with a selector that speaks of it.
fn nearly(service: &Value, vmi: &Value) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|all| {
        !all.is_empty() && (name(service) == name(vmi) || all.values().any(|value| *value == name(vmi)))
    })
}

fn labels(all: &Value) -> String {
    let pairs = all.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    match pairs.is_empty() {
        true => "(none)".to_owned(),
        false => pairs.join(","),
    }
}
