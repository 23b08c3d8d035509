//! What publishes it: Services, routes, Gateways, policies and OpenShift's Routes of the namespaces in question.

use std::collections::BTreeSet;

use fairway_gitops_sync::annotation::{self, TRACKING_ID};
use fairway_why_chain::Facts;
use futures::future::join_all;
use serde_json::Value;

use crate::entry::Entry;
use crate::read::{Reader, items, text};

const GATEWAY: &str = "gateway.networking.k8s.io/v1";
/// The most namespaces that are looked into.
const SPACES: usize = 4;

/// Everything of a namespace.
#[derive(Default)]
pub(crate) struct Space {
    pub(crate) namespace: String,
    pub(crate) services: Vec<Value>,
    pub(crate) slices: Vec<Value>,
    routes: Vec<Value>,
    gateways: Vec<Value>,
    policies: Vec<Value>,
    doors: Vec<Value>,
}

async fn read(reader: &Reader, namespace: &str) -> Space {
    let n = namespace;
    let policies = [
        ("authpolicies", "kuadrant.io/v1"),
        ("ratelimitpolicies", "kuadrant.io/v1"),
        ("tlspolicies", "kuadrant.io/v1"),
        ("dnspolicies", "kuadrant.io/v1"),
        ("planpolicies", "extensions.kuadrant.io/v1alpha1"),
    ];
    let (services, slices, http, grpc, tls, tcp, gateways, doors, policies) = tokio::join!(
        reader.list_in("services", "v1", n),
        reader.list_in("endpointslices", "discovery.k8s.io/v1", n),
        reader.list_in("httproutes", GATEWAY, n),
        reader.list_in("grpcroutes", GATEWAY, n),
        reader.list_in("tlsroutes", "gateway.networking.k8s.io/v1alpha3", n),
        reader.list_in("tcproutes", "gateway.networking.k8s.io/v1alpha2", n),
        reader.list_in("gateways", GATEWAY, n),
        reader.list_in("routes", "route.openshift.io/v1", n),
        join_all(policies.map(|(plural, group)| reader.list_in(plural, group, n))),
    );
    Space {
        namespace: namespace.to_owned(),
        services: services.unwrap_or_default(),
        slices: slices.unwrap_or_default(),
        routes: [http, grpc, tls, tcp].into_iter().flatten().flatten().collect(),
        gateways: gateways.unwrap_or_default(),
        policies: policies.into_iter().flatten().flatten().collect(),
        doors: doors.unwrap_or_default(),
    }
}

/// Finds it; what was read on the way is returned for the machines.
pub(crate) async fn find(reader: &Reader, entry: &Entry, facts: &mut Facts) -> Vec<Space> {
    let mut wanted = BTreeSet::new();
    if !matches!(
        entry.kind.as_str(),
        "Application" | "Voyage" | "Repository" | "Host"
    ) {
        wanted.insert(entry.namespace.clone());
    }
    if let Some(application) = &facts.application {
        let own = items(application, "/status/resources").iter();
        wanted.extend(own.map(|it| text(it, "/namespace").to_owned()));
        wanted.insert(text(application, "/spec/destination/namespace").to_owned());
    }
    if let Some(product) = &facts.product {
        wanted.insert(text(product, "/metadata/namespace").to_owned());
    }
    wanted.remove("");
    let mut spaces: Vec<Space> = match entry.kind.as_str() {
        // A name in an address says nothing of a namespace.
        "Host" => vec![read(reader, "").await],
        _ => join_all(wanted.iter().take(SPACES).map(|it| read(reader, it))).await,
    };
    if entry.kind == "Host" {
        let space = spaces.remove(0);
        spaces = of_host(&space, &entry.name);
        let first = spaces
            .iter()
            .flat_map(|it| it.routes.iter().chain(&it.doors))
            .next();
        if let Some(first) = first {
            let inside = Entry {
                kind: text(first, "/kind").to_owned(),
                namespace: text(first, "/metadata/namespace").to_owned(),
                name: text(first, "/metadata/name").to_owned(),
                object: Some(first.clone()),
                ..Entry::default()
            };
            crate::origin::find(reader, &inside, facts).await;
        }
    }
    choose(entry, &spaces, facts);
    // Gateways of other namespaces, and policies on them.
    let known: BTreeSet<&str> = spaces.iter().map(|it| it.namespace.as_str()).collect();
    let parents = facts.routes.iter().flat_map(|route| {
        items(route, "/spec/parentRefs")
            .iter()
            .map(move |it| match text(it, "/namespace") {
                "" => text(route, "/metadata/namespace"),
                space => space,
            })
    });
    let others: BTreeSet<String> = parents
        .filter(|it| !known.contains(it))
        .map(str::to_owned)
        .collect();
    let classes = format!("/apis/{GATEWAY}/gatewayclasses");
    let (others, classes) = tokio::join!(
        join_all(others.iter().take(SPACES).map(|it| read(reader, it))),
        reader.list("gatewayclasses", &classes),
    );
    if !others.is_empty() {
        choose(entry, &others, facts);
    }
    facts.gateway_classes = classes;
    spaces
}

/// The namespaces that have to do with a host name, cut to what belongs to it.
fn of_host(all: &Space, host: &str) -> Vec<Space> {
    let fits = |pattern: &str| match pattern.strip_prefix("*.") {
        Some(rest) => host.strip_suffix(rest).is_some_and(|it| it.ends_with('.')),
        None => pattern.eq_ignore_ascii_case(host),
    };
    let has = |it: &&Value| {
        items(it, "/spec/hostnames")
            .iter()
            .filter_map(Value::as_str)
            .any(fits)
            || fits(text(it, "/spec/host"))
    };
    let found = all.routes.iter().chain(&all.doors).filter(has);
    let names: BTreeSet<&str> = found.map(|it| text(it, "/metadata/namespace")).collect();
    let of = |objects: &[Value], namespace: &str| -> Vec<Value> {
        let its = objects
            .iter()
            .filter(|it| text(it, "/metadata/namespace") == namespace);
        its.cloned().collect()
    };
    let cut = |namespace: &&str| Space {
        namespace: (*namespace).to_owned(),
        services: of(&all.services, namespace),
        slices: of(&all.slices, namespace),
        routes: of(&all.routes, namespace)
            .into_iter()
            .filter(|it| has(&it))
            .collect(),
        gateways: of(&all.gateways, namespace),
        policies: of(&all.policies, namespace),
        doors: of(&all.doors, namespace)
            .into_iter()
            .filter(|it| has(&it))
            .collect(),
    };
    names.iter().take(SPACES).map(cut).collect()
}

/// Who an object is.
fn is(object: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    object["kind"] == kind
        && text(object, "/metadata/namespace") == namespace
        && text(object, "/metadata/name") == name
}

/// Picks from namespaces what is connected with what was asked about, going from link to link until nothing is added.
fn choose(entry: &Entry, spaces: &[Space], facts: &mut Facts) {
    let application = facts
        .application
        .as_ref()
        .map(|it| text(it, "/metadata/name").to_owned());
    let is_own = |it: &Value| {
        let id = annotation::get(it, TRACKING_ID);
        let of_application = application.as_ref().is_some_and(|name| {
            let owner = id.split(':').next().unwrap_or_default();
            owner == name || owner.ends_with(&format!("_{name}"))
        });
        of_application || is(it, &entry.kind, &entry.namespace, &entry.name)
    };
    let machine = match entry.kind.as_str() {
        "VirtualMachine" | "VirtualMachineInstance" => Some(&entry.name),
        _ => None,
    };
    let labels = entry.object.as_ref().and_then(|it| it.pointer("/spec/template"));
    for space in spaces {
        facts.endpoint_slices.extend(space.slices.iter().cloned());
        let near = |it: &Value| {
            machine.is_some_and(|name| {
                space.namespace == entry.namespace && fairway_why_chain::service_means(it, name)
            }) || labels.is_some_and(|it2| {
                space.namespace == entry.namespace && fairway_why_chain::service_selects(it, it2)
            })
        };
        add(&mut facts.services, &space.services, |it| is_own(it) || near(it));
        add(&mut facts.routes, &space.routes, is_own);
        add(&mut facts.gateways, &space.gateways, is_own);
        add(&mut facts.policies, &space.policies, is_own);
        add(&mut facts.doors, &space.doors, is_own);
        if entry.kind == "Host" {
            add(&mut facts.routes, &space.routes, |_| true);
            add(&mut facts.doors, &space.doors, |_| true);
        }
        // Link to link; the chain is short.
        for _ in 0..3 {
            let (services, routes, gateways) = (
                facts.services.clone(),
                facts.routes.clone(),
                facts.gateways.clone(),
            );
            // An API names its route as a policy does.
            let policies: Vec<Value> = facts.policies.iter().chain(&facts.product).cloned().collect();
            let doors = facts.doors.clone();
            add(&mut facts.services, &space.services, |it| {
                routes.iter().any(|route| leads(route, it)) || doors.iter().any(|door| enters(door, it))
            });
            add(&mut facts.routes, &space.routes, |it| {
                services.iter().any(|service| leads(it, service))
                    || policies.iter().any(|policy| targets(policy, it))
                    || (matches!(entry.kind.as_str(), "Gateway")
                        && gateways.iter().any(|gateway| hangs(it, gateway)))
            });
            add(&mut facts.gateways, &space.gateways, |it| {
                routes.iter().any(|route| hangs(route, it))
                    || policies.iter().any(|policy| targets(policy, it))
                    || services.iter().any(|service| {
                        text(
                            service,
                            "/metadata/labels/gateway.networking.k8s.io~1gateway-name",
                        ) == text(it, "/metadata/name")
                    })
            });
            add(&mut facts.policies, &space.policies, |it| {
                routes.iter().chain(&gateways).any(|target| targets(it, target))
            });
            add(&mut facts.doors, &space.doors, |it| {
                let hosts = routes.iter().flat_map(|route| items(route, "/spec/hostnames"));
                services.iter().any(|service| enters(it, service))
                    || hosts.into_iter().any(|host| *host == it["spec"]["host"])
            });
        }
    }
}

fn add(known: &mut Vec<Value>, all: &[Value], is_wanted: impl Fn(&Value) -> bool) {
    for it in all.iter().filter(|it| is_wanted(it)) {
        let is_it = |old: &Value| old["metadata"]["uid"] == it["metadata"]["uid"];
        if !known.iter().any(is_it) {
            known.push(it.clone());
        }
    }
}

fn space_of<'v>(reference: &'v Value, owner: &'v Value) -> &'v str {
    match text(reference, "/namespace") {
        "" => text(owner, "/metadata/namespace"),
        space => space,
    }
}

/// Whether a route leads to a Service.
fn leads(route: &Value, service: &Value) -> bool {
    let backends = items(route, "/spec/rules")
        .iter()
        .flat_map(|it| items(it, "/backendRefs"));
    backends.into_iter().any(|it| {
        it["name"] == service["metadata"]["name"]
            && space_of(it, route) == text(service, "/metadata/namespace")
    })
}

/// Whether a route hangs on a Gateway.
fn hangs(route: &Value, gateway: &Value) -> bool {
    items(route, "/spec/parentRefs").iter().any(|it| {
        it["name"] == gateway["metadata"]["name"]
            && space_of(it, route) == text(gateway, "/metadata/namespace")
    })
}

/// Whether a policy targets an object.
fn targets(policy: &Value, object: &Value) -> bool {
    let one = policy["spec"].get("targetRef").into_iter();
    one.chain(items(policy, "/spec/targetRefs")).any(|it| {
        it["kind"] == object["kind"]
            && it["name"] == object["metadata"]["name"]
            && space_of(it, policy) == text(object, "/metadata/namespace")
    })
}

/// Whether a Route of OpenShift leads to a Service.
fn enters(door: &Value, service: &Value) -> bool {
    door["spec"]["to"]["name"] == service["metadata"]["name"]
        && text(door, "/metadata/namespace") == text(service, "/metadata/namespace")
}
