//! The gateway: from its class and listeners over routes and policies to OpenShift's Routes, in the order in which each needs the one before.

use serde_json::Value;

use crate::Facts;
use crate::link::{Evidence, Link, State};
use crate::object::{among, condition, field, items, name, title, told};

const LINK: &str = "gateway";

fn link(state: State, finding: impl Into<String>) -> Link {
    Link::new(LINK, state, finding)
}

/// Whether what is published is published.
pub(crate) fn gateway(facts: &Facts) -> Link {
    if facts.routes.is_empty()
        && facts.doors.is_empty()
        && facts.gateways.is_empty()
        && facts.policies.is_empty()
    {
        return nothing(facts);
    }
    judged(facts, &[gateways, routes, policies, doors])
}

/// The way to what a policy or an API is for, without what policies say: that is another link.
pub(crate) fn path(facts: &Facts) -> Link {
    if facts.routes.is_empty() && facts.gateways.is_empty() && targets(facts).is_none() {
        return nothing(facts);
    }
    judged(facts, &[targets, gateways, routes])
}

/// The worst that is said; a fault before what waits.
fn judged(facts: &Facts, judges: &[fn(&Facts) -> Option<Link>]) -> Link {
    let mut waits = None;
    for judge in judges {
        match judge(facts) {
            Some(bad) if bad.state == State::Broken => return bad,
            Some(other) if waits.is_none() => waits = Some(other),
            _ => {}
        }
    }
    if let Some(waits) = waits {
        return waits;
    }
    let of = |all: &[Value], pointer: &str| -> Vec<String> {
        let texts = all.iter().flat_map(|it| match it.pointer(pointer) {
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(one)) => vec![one.clone()],
            _ => Vec::new(),
        });
        texts.collect()
    };
    let mut hosts = of(&facts.routes, "/spec/hostnames");
    hosts.extend(of(&facts.doors, "/spec/host"));
    hosts.sort();
    hosts.dedup();
    let titles: Vec<String> = facts.routes.iter().chain(&facts.doors).map(title).collect();
    let finding = match (titles.is_empty(), hosts.is_empty()) {
        (true, _) => facts.gateways.iter().map(title).collect::<Vec<_>>().join(", "),
        (false, true) => titles.join(", "),
        (false, false) => format!("{} by {}", hosts.join(", "), titles.join(", ")),
    };
    link(State::Good, finding).since(&settled(facts))
}

/// When the last of the routes was settled.
fn settled(facts: &Facts) -> String {
    let parents = facts.routes.iter().flat_map(|it| items(it, "/status/parents"));
    let doors = facts.doors.iter().flat_map(|it| items(it, "/status/ingress"));
    let times = parents
        .chain(doors)
        .flat_map(|it| items(it, "/conditions"))
        .map(|it| field(it, "/lastTransitionTime"));
    times.max().unwrap_or_default().to_owned()
}

fn nothing(facts: &Facts) -> Link {
    if facts.asked.kind == "Host" && !facts.unreadable.contains_key("httproutes") {
        let host = &facts.asked.name;
        return link(
            State::Broken,
            format!("no HTTPRoute, Gateway or Route has the host name {host}"),
        )
        .advised("`fairway gateway routes` shows what is published; correct spec.hostnames or spec.host");
    }
    match facts.unreadable.get("httproutes") {
        Some(why) => link(State::Unknown, "routes cannot be read").shown_by([Evidence::new(
            "answer to reading HTTPRoutes",
            "",
            why,
        )]),
        None => link(State::Unused, "nothing publishes it"),
    }
}

/// Whether a status speaks of the object as it was before the last change.
pub(crate) fn is_stale(object: &Value, condition: &Value) -> bool {
    let now = object["metadata"]["generation"].as_i64().unwrap_or(0);
    condition["observedGeneration"]
        .as_i64()
        .is_some_and(|seen| seen < now)
}

/// A condition that must be true, and is not.
pub(crate) fn fault<'v>(object: &Value, conditions: &'v [Value], kinds: &[&str]) -> Option<&'v Value> {
    let bad =
        |kind: &&str| among(conditions, kind).filter(|it| it["status"] == "False" && !is_stale(object, it));
    kinds.iter().find_map(bad)
}

pub(crate) fn broken(object: &Value, condition: &Value, what: &str) -> Link {
    let why = match field(condition, "/message") {
        "" => field(condition, "/reason"),
        message => message,
    };
    link(State::Broken, format!("{what}: {why}"))
        .shown_by([told(condition, what)])
        .advised(advice(field(condition, "/reason"), object))
}

fn advice(reason: &str, object: &Value) -> String {
    let text = match reason {
        "BackendNotFound" => {
            "correct name, namespace and port in backendRefs: `kubectl get service` shows what there is"
        }
        "NoMatchingListenerHostname" => "make spec.hostnames of the route fit a listener's hostname",
        "NotAllowedByListeners" => {
            "the listener's allowedRoutes decide who may attach: change them, or move the route"
        }
        "NoMatchingParent" => {
            "correct sectionName and port of the parentRef: the Gateway has no such listener"
        }
        "RefNotPermitted" => "a ReferenceGrant in the other namespace allows it",
        "InvalidCertificateRef" => {
            "make the Secret with the certificate that the listener names, or a TLSPolicy"
        }
        "HostAlreadyClaimed" | "HostnameConflict" | "Conflicted" => {
            "another object has it already: choose another, or delete that one"
        }
        "TargetNotFound" => "correct targetRef: it names what does not exist",
        "Overridden" => "another policy takes its place: see the one that the message names",
        _ => {
            return format!("`kubectl describe {}` shows all of its status", {
                let kind = field(object, "/kind").to_lowercase();
                format!(
                    "{kind} {} -n {}",
                    name(object),
                    field(object, "/metadata/namespace")
                )
            });
        }
    };
    text.to_owned()
}

fn gateways(facts: &Facts) -> Option<Link> {
    let mut waits = None;
    for gateway in &facts.gateways {
        let titled = title(gateway);
        let class = field(gateway, "/spec/gatewayClassName");
        let conditions = items(gateway, "/status/conditions");
        if let Some(classes) = &facts.gateway_classes {
            let Some(class) = classes.iter().find(|it| name(it) == class) else {
                return Some(
                    link(
                        State::Broken,
                        format!("{titled} is of the GatewayClass {class:?}, which does not exist"),
                    )
                    .since(field(gateway, "/metadata/creationTimestamp"))
                    .shown_by([Evidence::new(
                        format!("spec.gatewayClassName of {titled}"),
                        "",
                        class,
                    )])
                    .advised("correct gatewayClassName: `kubectl get gatewayclass` shows what there is"),
                );
            };
            if let Some(bad) = fault(class, items(class, "/status/conditions"), &["Accepted"]) {
                return Some(broken(class, bad, &title(class)));
            }
        }
        // A listener says more than the Gateway that has it.
        for listener in items(gateway, "/status/listeners") {
            let conditions = items(listener, "/conditions");
            let what = format!("listener {} of {titled}", field(listener, "/name"));
            let conflict =
                among(conditions, "Conflicted").filter(|it| it["status"] == "True" && !is_stale(gateway, it));
            let bad =
                conflict.or_else(|| fault(gateway, conditions, &["ResolvedRefs", "Accepted", "Programmed"]));
            if let Some(bad) = bad {
                return Some(broken(gateway, bad, &what));
            }
        }
        if let Some(bad) = fault(gateway, conditions, &["Accepted", "ResolvedRefs", "Programmed"]) {
            return Some(broken(gateway, bad, &titled));
        }
        let programmed = among(conditions, "Programmed")
            .is_some_and(|it| it["status"] == "True" && !is_stale(gateway, it));
        if !programmed && waits.is_none() {
            waits = Some(link(State::Waiting, format!("{titled} is not programmed yet")));
        }
    }
    waits
}

fn routes(facts: &Facts) -> Option<Link> {
    let mut waits = None;
    for route in &facts.routes {
        let titled = title(route);
        for wanted in items(route, "/spec/parentRefs") {
            let kind = field(wanted, "/kind");
            let space = match field(wanted, "/namespace") {
                "" => field(route, "/metadata/namespace"),
                space => space,
            };
            let is_it =
                |it: &&Value| name(it) == field(wanted, "/name") && field(it, "/metadata/namespace") == space;
            let is_gateway = kind.is_empty() || kind == "Gateway";
            if is_gateway
                && !facts.unreadable.contains_key("gateways")
                && !facts.gateways.iter().any(|it| is_it(&it))
            {
                let parent = format!("{space}/{}", field(wanted, "/name"));
                return Some(
                    link(State::Broken, format!("{titled} hangs on the Gateway {parent}, which does not exist"))
                        .since(field(route, "/metadata/creationTimestamp"))
                        .shown_by([Evidence::new(format!("spec.parentRefs of {titled}"), "", &parent)])
                        .advised("make the Gateway, or correct parentRefs: `kubectl get gateways -A` shows what there is"),
                );
            }
        }
        let parents = items(route, "/status/parents");
        for parent in parents {
            let conditions = items(parent, "/conditions");
            let refused = fault(route, conditions, &["Accepted", "ResolvedRefs"]);
            let partly = among(conditions, "PartiallyInvalid")
                .filter(|it| it["status"] == "True" && !is_stale(route, it));
            if let Some(bad) = refused.or(partly) {
                return Some(broken(route, bad, &titled));
            }
            if conditions.iter().any(|it| is_stale(route, it)) && waits.is_none() {
                waits = Some(link(
                    State::Waiting,
                    format!("{titled} has changed and is being taken up"),
                ));
            }
        }
        if parents.is_empty() && waits.is_none() {
            waits = Some(link(
                State::Waiting,
                format!("{titled} has not been looked at yet"),
            ));
        }
    }
    waits
}

/// What a policy is for, if that is not there. An APIProduct has a target as policies do.
fn targets(facts: &Facts) -> Option<Link> {
    let policy = facts.product.as_ref().or(facts.object.as_ref())?;
    let one = policy["spec"].get("targetRef").into_iter();
    let known = || facts.routes.iter().chain(&facts.gateways);
    let space = field(policy, "/metadata/namespace");
    let missing = one.chain(items(policy, "/spec/targetRefs")).find(|wanted| {
        let plural = format!("{}s", field(wanted, "/kind").to_lowercase());
        let is_it = |it: &Value| {
            field(it, "/kind") == field(wanted, "/kind")
                && name(it) == field(wanted, "/name")
                && field(it, "/metadata/namespace") == space
        };
        let is_known = matches!(plural.as_str(), "gateways" | "httproutes" | "grpcroutes");
        is_known && !facts.unreadable.contains_key(plural.as_str()) && !known().any(is_it)
    })?;
    let titled = title(policy);
    let target = format!("{} {space}/{}", field(missing, "/kind"), field(missing, "/name"));
    Some(
        link(
            State::Broken,
            format!("{titled} is for {target}, which does not exist"),
        )
        .since(field(policy, "/metadata/creationTimestamp"))
        .shown_by([Evidence::new(format!("spec.targetRef of {titled}"), "", &target)])
        .advised(
            "make what targetRef names, or correct it: `kubectl get gateways,httproutes` shows what there is",
        ),
    )
}

/// The policy that was asked about.
pub(crate) fn policy(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("policy", state, finding);
    let Some(policy) = &facts.object else {
        return link(State::Waiting, format!("there is no {} yet", facts.asked));
    };
    let titled = title(policy);
    let conditions = items(policy, "/status/conditions");
    if let Some(bad) = fault(policy, conditions, &["Accepted", "Enforced"]) {
        return Link {
            name: "policy",
            ..broken(policy, bad, &titled)
        };
    }
    let settled =
        |kind: &str| among(conditions, kind).filter(|it| it["status"] == "True" && !is_stale(policy, it));
    match (settled("Accepted"), settled("Enforced")) {
        (Some(_), Some(enforced)) => link(State::Good, field(enforced, "/message").to_owned())
            .since(field(enforced, "/lastTransitionTime")),
        (Some(accepted), None) => link(
            State::Waiting,
            format!("{titled} is accepted, and not enforced yet"),
        )
        .shown_by([told(accepted, &titled)]),
        (None, _) => link(State::Waiting, format!("{titled} has not been taken up yet")),
    }
}

/// The first policy that does not do what it is for.
pub(crate) fn policies(facts: &Facts) -> Option<Link> {
    let mut waits = None;
    for policy in &facts.policies {
        let titled = title(policy);
        let conditions = items(policy, "/status/conditions");
        let bad = fault(policy, conditions, &["Accepted", "Enforced", "Ready"]);
        let Some(bad) = bad else {
            let is_settled = |it: &Value| it["status"] == "True" && !is_stale(policy, it);
            if condition(policy, "Accepted").is_none_or(|it| !is_settled(it)) && waits.is_none() {
                waits = Some(link(
                    State::Waiting,
                    format!("{titled} has not been taken up yet"),
                ));
            }
            continue;
        };
        return Some(broken(policy, bad, &titled));
    }
    waits
}

fn doors(facts: &Facts) -> Option<Link> {
    let mut waits = None;
    for door in &facts.doors {
        let titled = title(door);
        let ingress = items(door, "/status/ingress");
        for it in ingress {
            let admitted = among(items(it, "/conditions"), "Admitted");
            if let Some(bad) = admitted.filter(|it| it["status"] == "False") {
                return Some(broken(door, bad, &titled));
            }
        }
        let target = field(door, "/spec/to/name");
        let is_there = facts.services.iter().any(|it| {
            name(it) == target && field(it, "/metadata/namespace") == field(door, "/metadata/namespace")
        });
        if !target.is_empty() && !is_there && !facts.unreadable.contains_key("services") {
            return Some(
                link(
                    State::Broken,
                    format!("{titled} leads to the Service {target}, which does not exist"),
                )
                .since(field(door, "/metadata/creationTimestamp"))
                .shown_by([Evidence::new(format!("spec.to of {titled}"), "", target)])
                .advised("make the Service, or correct spec.to: `kubectl get services` shows what there is"),
            );
        }
        if ingress.is_empty() && waits.is_none() {
            waits = Some(link(
                State::Waiting,
                format!("{titled} has not been looked at yet"),
            ));
        }
    }
    waits
}
