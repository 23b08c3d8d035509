//! The machines: those that were asked about, that the Application has, or that the Services select; with disks, nodes, console and ports.

use std::collections::BTreeSet;
use std::time::Duration;

use fairway_why_chain::{Facts, Machine, Probe, guest_port, service_selects};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use jiff::Timestamp;
use serde_json::Value;

use crate::Places;
use crate::entry::Entry;
use crate::probe;
use crate::published::Space;
use crate::read::{Reader, collection, items, text};

/// The most machines that are looked at, and the most ports of each.
const MACHINES: usize = 10;
const PORTS: usize = 4;
/// How long the guest's agent may take to read what cloud-init keeps.
const AGENT: Duration = Duration::from_secs(5);
/// How much of the console is read.
const TAIL: usize = 64 << 10;
/// Where images are published, for every workspace, in the root of all.
const IMAGES: &str = "fairway-images";
const KUBEVIRT: &str = "kubevirt.io/v1";

/// Finds them.
pub(crate) async fn find(
    reader: &Reader,
    places: &Places,
    entry: &Entry,
    spaces: &[Space],
    facts: &mut Facts,
) {
    let mut named = names(entry, facts);
    // A disk that no machine uses has none.
    let spaces = if entry.is_disk() { &[] } else { spaces };
    for space in spaces {
        let chosen = facts
            .services
            .iter()
            .filter(|it| text(it, "/metadata/namespace") == space.namespace);
        let chosen: Vec<&Value> = chosen.filter(|it| !items(it, "/spec/ports").is_empty()).collect();
        if chosen.is_empty() || !named.is_empty() {
            continue;
        }
        let all = reader
            .list_in("virtualmachines", KUBEVIRT, &space.namespace)
            .await
            .unwrap_or_default();
        let selected = all.iter().filter(|vm| {
            let template = vm.pointer("/spec/template");
            // One that a Service means by its name and does not select explains why it leads nowhere.
            let name = text(vm, "/metadata/name");
            chosen.iter().any(|it| {
                template.is_some_and(|labels| service_selects(it, labels))
                    || fairway_why_chain::service_means(it, name)
            })
        });
        named.extend(selected.map(|it| (space.namespace.clone(), text(it, "/metadata/name").to_owned())));
    }
    let nodes = nodes(reader, places).await;
    let wanted: Vec<(String, String)> = named.into_iter().take(MACHINES).collect();
    let services = facts.services.clone();
    let machines = wanted
        .iter()
        .map(|(namespace, name)| one(reader, places, namespace, name, &services))
        // As values: a closure that borrows from what it is given makes futures that no other thread may have.
        .collect::<Vec<_>>();
    let mut machines: Vec<Machine> = stream::iter(machines).buffered(4).collect().await;
    for machine in &mut machines {
        machine.nodes.clone_from(&nodes);
    }
    facts.machines = machines;
}

/// Machines that are known by name.
fn names(entry: &Entry, facts: &Facts) -> BTreeSet<(String, String)> {
    let mut named = BTreeSet::new();
    let at = |name: &str| (entry.namespace.clone(), name.to_owned());
    match entry.kind.as_str() {
        // One that is not there is known by the Application that should have it.
        "VirtualMachine" | "VirtualMachineInstance" if entry.object.is_some() => {
            named.insert(at(&entry.name));
            return named;
        }
        _ if entry.is_disk() => {
            named.extend(entry.machine.as_ref().map(|it| at(text(it, "/metadata/name"))));
            return named;
        }
        _ => {}
    }
    let own = facts
        .application
        .as_ref()
        .map_or(&[][..], |it| items(it, "/status/resources"));
    for it in own.iter().filter(|it| it["kind"] == "VirtualMachine") {
        named.insert((text(it, "/namespace").to_owned(), text(it, "/name").to_owned()));
    }
    named
}

/// A workspace has no nodes of its own; those of the root are not for everybody to see.
async fn nodes(reader: &Reader, places: &Places) -> Option<Vec<Value>> {
    let own = reader.list_in("nodes", "v1", "").await;
    match own.filter(|it| !it.is_empty()) {
        Some(own) => Some(own),
        None => {
            let root = Reader::new(places.root.clone()?);
            root.list_in("nodes", "v1", "").await.filter(|it| !it.is_empty())
        }
    }
}

async fn one(reader: &Reader, places: &Places, namespace: &str, name: &str, services: &[Value]) -> Machine {
    let at = |plural: &str| format!("{}/{name}", collection(KUBEVIRT, plural, namespace));
    let (machine, instance) = (at("virtualmachines"), at("virtualmachineinstances"));
    let (vm, vmi) = tokio::join!(
        reader.get("virtualmachines", &machine),
        reader.get("virtualmachineinstances", &instance),
    );
    let tail = format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}/console/tail?bytes={TAIL}"
    );
    let is_running = vmi
        .as_ref()
        .is_some_and(|it| text(it, "/status/phase") == "Running");
    let (data_volumes, claims, console, cloud_init, events, probes) = tokio::join!(
        reader.list_in("datavolumes", "cdi.kubevirt.io/v1beta1", namespace),
        reader.list_in("persistentvolumeclaims", "v1", namespace),
        probe::plain(&reader.client, &tail),
        cloud_init(reader, namespace, name, vmi.as_ref().filter(|_| is_running)),
        events(reader, namespace, name, vm.as_ref(), vmi.as_ref()),
        ports(
            reader,
            namespace,
            name,
            vmi.as_ref().filter(|_| is_running),
            services
        ),
    );
    let data_sources = sources(reader, places, data_volumes.as_deref().unwrap_or_default()).await;
    Machine {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        running_for: vmi.as_ref().filter(|_| is_running).and_then(running_for),
        vm,
        vmi,
        data_volumes,
        claims,
        data_sources,
        nodes: None,
        events,
        console,
        cloud_init,
        probes,
    }
}

/// What cloud-init keeps of itself in the guest, if there is an agent to ask, and something for cloud-init to do.
async fn cloud_init(reader: &Reader, namespace: &str, name: &str, vmi: Option<&Value>) -> Option<Value> {
    let vmi = vmi?;
    let has_agent = items(vmi, "/status/conditions")
        .iter()
        .any(|it| it["type"] == "AgentConnected" && it["status"] == "True");
    let has_seed = items(vmi, "/spec/volumes")
        .iter()
        .any(|it| !it["cloudInitNoCloud"].is_null() || !it["cloudInitConfigDrive"].is_null());
    if !has_agent || !has_seed {
        return None;
    }
    let path = format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}/console/cloud-init"
    );
    // A guest that does not answer must not keep whoever asks: then the console has to tell.
    let asked = tokio::time::timeout(AGENT, probe::plain(&reader.client, &path)).await;
    serde_json::from_str(&asked.ok()??).ok()
}

fn running_for(vmi: &Value) -> Option<u64> {
    let phases = items(vmi, "/status/phaseTransitionTimestamps").iter();
    let since = phases.rev().find(|it| it["phase"] == "Running")?;
    let since: Timestamp = text(since, "/phaseTransitionTimestamp").parse().ok()?;
    u64::try_from(Timestamp::now().as_second() - since.as_second()).ok()
}

/// Events about the machine and its disks.
async fn events(
    reader: &Reader,
    namespace: &str,
    name: &str,
    vm: Option<&Value>,
    vmi: Option<&Value>,
) -> Vec<Value> {
    let volumes = match (vmi, vm) {
        (Some(vmi), _) => items(vmi, "/spec/volumes"),
        (None, Some(vm)) => items(vm, "/spec/template/spec/volumes"),
        (None, None) => &[],
    };
    let disks = volumes.iter().flat_map(|it| {
        [
            text(it, "/dataVolume/name"),
            text(it, "/persistentVolumeClaim/claimName"),
        ]
    });
    let names: BTreeSet<&str> = disks.chain([name]).filter(|it| !it.is_empty()).collect();
    let read = names.iter().take(8).map(|it| {
        let path = format!(
            "{}?fieldSelector=involvedObject.name%3D{it}",
            collection("v1", "events", namespace)
        );
        async move { reader.list("events", &path).await.unwrap_or_default() }
    });
    join_all(read).await.into_iter().flatten().collect()
}

/// The DataSources that DataVolumes name, as far as they exist; nothing if that cannot be known.
pub(crate) async fn sources(reader: &Reader, places: &Places, data_volumes: &[Value]) -> Option<Vec<Value>> {
    let mut wanted = BTreeSet::new();
    for volume in data_volumes
        .iter()
        .filter(|it| text(it, "/status/phase") != "Succeeded")
    {
        let name = text(volume, "/spec/sourceRef/name");
        let own = text(volume, "/metadata/namespace");
        let namespace = Some(text(volume, "/spec/sourceRef/namespace"))
            .filter(|it| !it.is_empty())
            .unwrap_or(own);
        if !name.is_empty() {
            wanted.insert((namespace.to_owned(), name.to_owned()));
        }
    }
    let mut found = Vec::new();
    for (namespace, name) in wanted.into_iter().take(8) {
        let path = format!(
            "{}/{name}",
            collection("cdi.kubevirt.io/v1beta1", "datasources", &namespace)
        );
        let mut source = reader.get("datasources", &path).await;
        if let (None, IMAGES, Some(root)) = (&source, namespace.as_str(), &places.root) {
            let root = Reader::new(root.clone());
            source = root.get("datasources", &path).await;
            if source.is_none() && !root.unreadable().is_empty() {
                return None;
            }
        }
        found.extend(source);
    }
    match reader.unreadable().contains_key("datasources") {
        true => None,
        false => Some(found),
    }
}

/// Tries the ports to which Services lead.
async fn ports(
    reader: &Reader,
    namespace: &str,
    name: &str,
    vmi: Option<&Value>,
    services: &[Value],
) -> Vec<Probe> {
    let Some(vmi) = vmi else {
        return Vec::new();
    };
    let chosen = services
        .iter()
        .filter(|it| text(it, "/metadata/namespace") == namespace && service_selects(it, vmi));
    let ports = chosen
        .flat_map(|it| items(it, "/spec/ports"))
        .filter(|it| it["protocol"] != "UDP");
    let numbers: BTreeSet<u16> = ports.filter_map(|it| guest_port(it, vmi)).collect();
    let tried = numbers.into_iter().take(PORTS).map(|port| async move {
        Probe {
            port,
            answer: probe::port(&reader.client, namespace, name, port).await,
        }
    });
    join_all(tried).await
}
