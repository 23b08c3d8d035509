//! Figures of machines, their migrations and their snapshots, from objects: also of machines that do not run.
//!
//! Labels and groups are upstream's, and `workspace`. Nothing in a label grows without end: there is a series for an object that somebody keeps,
//! and of a machine only the last few migrations and snapshots are told.

use std::collections::BTreeMap;

use fairway_controller::ObjectKey;
use fairway_machines_plan::view::Amount;
use jiff::Timestamp;
use serde_json::Value;

use super::text::Page;

/// Of a machine so many migrations that have ended are told, as many as upstream keeps, and so many snapshots.
const TOLD: usize = 5;
/// A guest may name any number of cards.
pub(super) const CARDS: usize = 32;

/// By workspace, namespace and name.
pub(super) type Objects = BTreeMap<ObjectKey, Value>;
/// By the workspace, namespace and name of the machine that they are about.
type OfMachines<'o> = BTreeMap<(&'o str, &'o str, &'o str), Vec<(&'o ObjectKey, &'o Value)>>;

/// The names of migrations, by workspace and uid.
type Names<'o> = BTreeMap<(&'o str, &'o str), &'o str>;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) machines: Objects,
    pub(super) instances: Objects,
    pub(super) migrations: Objects,
    pub(super) snapshots: Objects,
    pub(super) claims: Objects,
    /// Of the root workspace.
    pub(super) nodes: Objects,
}

/// What a machine's state comes to: the group, and the family of its moments.
const GROUPS: [(&str, &str, &str); 5] = [
    (
        "starting",
        "kubevirt_vm_starting_status_last_transition_timestamp_seconds",
        "Virtual Machine last transition timestamp to starting status.",
    ),
    (
        "running",
        "kubevirt_vm_running_status_last_transition_timestamp_seconds",
        "Virtual Machine last transition timestamp to running status.",
    ),
    (
        "migrating",
        "kubevirt_vm_migrating_status_last_transition_timestamp_seconds",
        "Virtual Machine last transition timestamp to migrating status.",
    ),
    (
        "non_running",
        "kubevirt_vm_non_running_status_last_transition_timestamp_seconds",
        "Virtual Machine last transition timestamp to paused/stopped status.",
    ),
    (
        "error",
        "kubevirt_vm_error_status_last_transition_timestamp_seconds",
        "Virtual Machine last transition timestamp to error status.",
    ),
];

fn group(printable: &str) -> &'static str {
    match printable {
        "Provisioning" | "Starting" | "WaitingForVolumeBinding" | "WaitingForReceiver" => "starting",
        "Running" => "running",
        "Migrating" => "migrating",
        "Stopped" | "Paused" | "Stopping" | "Terminating" => "non_running",
        _ => "error",
    }
}

pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

pub(super) fn list<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

pub(super) fn seconds(object: &Value, pointer: &str) -> Option<i64> {
    let moment: Timestamp = text(object, pointer).parse().ok()?;
    Some(moment.as_second())
}

pub(super) fn workspace(key: &ObjectKey) -> &str {
    match key.workspace.is_root() {
        true => "",
        false => key.workspace.as_str(),
    }
}

/// Adds what is known of all of them.
pub(super) fn add(known: &Known, page: &mut Page) {
    add_machines(known, page);
    add_addresses(&known.instances, page);
    add_migrations(known, page);
    add_snapshots(&known.snapshots, page);
}

fn add_machines(known: &Known, page: &mut Page) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (key, vm) in &known.machines {
        let place = [
            ("workspace", workspace(key)),
            ("namespace", key.namespace.as_str()),
            ("name", key.name.as_str()),
        ];
        *counts.entry((workspace(key), &key.namespace)).or_default() += 1;
        let annotation = |name: &str| {
            let all = &vm["spec"]["template"]["metadata"]["annotations"];
            all[format!("vm.kubevirt.io/{name}")].as_str().unwrap_or("<none>")
        };
        let printable = text(vm, "/status/printableStatus");
        let status = printable.to_lowercase();
        let now = group(printable);
        let mut labels = place.to_vec();
        labels.extend([
            ("os", annotation("os")),
            ("workload", annotation("workload")),
            ("flavor", annotation("flavor")),
            (
                "machine_type",
                or_none(text(vm, "/spec/template/spec/domain/machine/type")),
            ),
            ("instance_type", or_none(text(vm, "/spec/instancetype/name"))),
            ("preference", or_none(text(vm, "/spec/preference/name"))),
            ("status", &status),
            ("status_group", now),
        ]);
        page.gauge("kubevirt_vm_info", "Information about Virtual Machines.")
            .put(&labels, 1);
        let changed = last_transition(vm);
        for (group, family, help) in GROUPS {
            let value = if group == now { changed } else { 0 };
            page.counter(family, help).put(&place, value);
        }
        // A size is in the instance that it made; without one it is not known.
        let domain = match vm["spec"]["instancetype"].is_object() {
            true => known.instances.get(key).map(|it| &it["spec"]["domain"]),
            false => Some(&vm["spec"]["template"]["spec"]["domain"]),
        };
        if let Some(domain) = domain {
            add_requests(domain, &place, page);
        }
    }
    for ((workspace, namespace), count) in counts {
        page.gauge(
            "kubevirt_number_of_vms",
            "The number of VMs in the cluster by namespace.",
        )
        .put(&[("workspace", workspace), ("namespace", namespace)], count);
    }
}

/// When a machine came to the state that it is in.
fn last_transition(vm: &Value) -> i64 {
    let tells = |it: &&Value| matches!(it["type"].as_str(), Some("Ready" | "Failure" | "Paused"));
    let told = list(vm, "/status/conditions").filter(tells);
    told.filter_map(|it| seconds(it, "/lastTransitionTime"))
        .max()
        .unwrap_or(0)
}

/// What a machine asks for, and where it says so.
fn add_requests(domain: &Value, place: &[(&str, &str)], page: &mut Page) {
    let mut put = |resource: &str, unit: &str, source: &str, value: f64| {
        let mut labels = place.to_vec();
        labels.extend([("resource", resource), ("unit", unit), ("source", source)]);
        let help = "Resources requested by Virtual Machine. Reports memory and CPU requests.";
        page.gauge("kubevirt_vm_resource_requests", help)
            .put(&labels, value);
    };
    let amount = |pointer: &str| {
        let found = domain.pointer(pointer)?;
        let amount: Amount = serde_json::from_value(found.clone()).ok()?;
        (amount.milli() > 0).then_some(amount)
    };
    for (source, pointer) in [
        ("domain", "/resources/requests/memory"),
        ("guest", "/memory/guest"),
        ("hugepages", "/memory/hugepages/pageSize"),
    ] {
        if let Some(amount) = amount(pointer) {
            put("memory", "bytes", source, whole(amount.bytes()));
        }
    }
    let requested = amount("/resources/requests/cpu");
    for unit in ["cores", "threads", "sockets"] {
        match domain["cpu"][unit].as_u64().filter(|it| *it > 0) {
            Some(count) => put("cpu", unit, "domain", whole(count)),
            None if requested.is_none() && domain["cpu"].is_null() => put("cpu", unit, "default", 1.0),
            None => {}
        }
    }
    if let Some(amount) = requested {
        put("cpu", "cores", "requests", whole(amount.milli()) / 1000.0);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are told as floating point, as Prometheus keeps them"
)]
pub(super) fn whole(count: u64) -> f64 {
    count as f64
}

fn add_addresses(instances: &Objects, page: &mut Page) {
    for (key, vmi) in instances {
        for card in list(vmi, "/status/interfaces").take(CARDS) {
            let (name, address) = (text(card, "/name"), text(card, "/ipAddress"));
            if name.is_empty() && address.is_empty() {
                continue;
            }
            let labels = [
                ("node", text(vmi, "/status/nodeName")),
                ("workspace", workspace(key)),
                ("namespace", &key.namespace),
                ("name", &key.name),
                ("network_name", name),
                ("address", address),
                ("type", "InternalIP"),
            ];
            let help = "The addresses of a VirtualMachineInstance, by network interface and type of address.";
            page.gauge("kubevirt_vmi_status_addresses", help).put(&labels, 1);
        }
    }
}

fn add_migrations(known: &Known, page: &mut Page) {
    let (mut unset, mut pending, mut scheduling, mut running) = (0, 0, 0, 0);
    let mut ended = OfMachines::new();
    for (key, migration) in &known.migrations {
        match text(migration, "/status/phase") {
            "" => unset += 1,
            "Pending" => pending += 1,
            "Scheduling" => scheduling += 1,
            "Succeeded" | "Failed" => {
                let of = (
                    workspace(key),
                    key.namespace.as_str(),
                    text(migration, "/spec/vmiName"),
                );
                ended.entry(of).or_default().push((key, migration));
            }
            _ => running += 1,
        }
    }
    for (name, help, value) in [
        (
            "kubevirt_vmi_migrations_in_unset_phase",
            "Number of current unset migrations. These are pending items the virt-controller hasn't processed yet from the queue.",
            unset,
        ),
        (
            "kubevirt_vmi_migrations_in_pending_phase",
            "Number of current pending migrations.",
            pending,
        ),
        (
            "kubevirt_vmi_migrations_in_scheduling_phase",
            "Number of current scheduling migrations.",
            scheduling,
        ),
        (
            "kubevirt_vmi_migrations_in_running_phase",
            "Number of current running migrations.",
            running,
        ),
    ] {
        page.gauge(name, help).put(&[], value);
    }
    for ((workspace, namespace, vmi), all) in ended {
        for (key, migration) in last(all) {
            let (name, help) = match text(migration, "/status/phase") {
                "Succeeded" => (
                    "kubevirt_vmi_migration_succeeded",
                    "Indicates if the VMI migration succeeded.",
                ),
                _ => (
                    "kubevirt_vmi_migration_failed",
                    "Indicates if the VMI migration failed.",
                ),
            };
            let labels = [
                ("workspace", workspace),
                ("namespace", namespace),
                ("vmi", vmi),
                ("vmim", &key.name),
            ];
            page.gauge(name, help).put(&labels, 1);
        }
    }
    let uid = |it| text(it, "/metadata/uid");
    let migrations = known.migrations.iter();
    let names: Names<'_> = migrations
        .map(|(key, it)| ((workspace(key), uid(it)), key.name.as_str()))
        .collect();
    for (key, vmi) in &known.instances {
        add_moments(key, vmi, &names, page);
    }
}

/// When the last migration of an instance began and ended.
fn add_moments(key: &ObjectKey, vmi: &Value, migrations: &Names<'_>, page: &mut Page) {
    let state = &vmi["status"]["migrationState"];
    let migration = migrations.get(&(workspace(key), text(state, "/migrationUid")));
    let mut labels = vec![
        ("node", text(vmi, "/status/nodeName")),
        ("workspace", workspace(key)),
        ("namespace", key.namespace.as_str()),
        ("name", key.name.as_str()),
        ("migration_name", migration.copied().unwrap_or("<none>")),
    ];
    if let Some(began) = seconds(state, "/startTimestamp") {
        let help = "The time at which the migration started.";
        page.gauge("kubevirt_vmi_migration_start_time_seconds", help)
            .put(&labels, began);
    }
    if let Some(ended) = seconds(state, "/endTimestamp") {
        let status = match (state["completed"] == true, state["failed"] == true) {
            (false, _) => "",
            (true, true) => "failed",
            (true, false) => "succeeded",
        };
        labels.push(("status", status));
        let help = "The time at which the migration ended.";
        page.gauge("kubevirt_vmi_migration_end_time_seconds", help)
            .put(&labels, ended);
    }
}

fn add_snapshots(snapshots: &Objects, page: &mut Page) {
    let mut taken = OfMachines::new();
    let succeeded = |it: &(&ObjectKey, &Value)| text(it.1, "/status/phase") == "Succeeded";
    for (key, snapshot) in snapshots.iter().filter(succeeded) {
        let of = (
            workspace(key),
            key.namespace.as_str(),
            text(snapshot, "/spec/source/name"),
        );
        taken.entry(of).or_default().push((key, snapshot));
    }
    for ((workspace, namespace, name), all) in taken {
        for (key, snapshot) in last(all) {
            let Some(moment) = seconds(snapshot, "/status/creationTime") else {
                continue;
            };
            let labels = [
                ("workspace", workspace),
                ("namespace", namespace),
                ("name", name),
                ("snapshot_name", &key.name),
            ];
            let help = "Returns the timestamp of successful virtual machine snapshot.";
            page.gauge("kubevirt_vmsnapshot_succeeded_timestamp_seconds", help)
                .put(&labels, moment);
        }
    }
}

/// The last few, by when they were made.
fn last<'o>(mut all: Vec<(&'o ObjectKey, &'o Value)>) -> Vec<(&'o ObjectKey, &'o Value)> {
    // As it is written, a later moment is greater.
    all.sort_by_key(|(key, it)| (text(it, "/metadata/creationTimestamp"), &key.name));
    let from = all.len().saturating_sub(TOLD);
    all.split_off(from)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    fn keyed(workspace: &str, name: &str, object: Value) -> (ObjectKey, Value) {
        let key = ObjectKey::new(&WorkspaceId::parse(workspace).unwrap(), "shop", name);
        (key, object)
    }

    fn lines(known: &Known) -> Vec<String> {
        let mut page = Page::default();
        add(known, &mut page);
        let page = page.write();
        let lines = page.lines().filter(|it| !it.starts_with('#'));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn machines_are_told_and_counted() {
        let at = "2026-11-18T20:00:00Z";
        let plain = json!({
            "spec": {"template": {
                "metadata": {"annotations": {"vm.kubevirt.io/os": "debian"}},
                "spec": {"domain": {
                    "machine": {"type": "q35"}, "cpu": {"cores": 2}, "memory": {"guest": "64Mi"},
                    "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}},
                }},
            }},
            "status": {"printableStatus": "Running", "conditions": [
                {"type": "Ready", "lastTransitionTime": at}, {"type": "LiveMigratable", "lastTransitionTime": "2026-11-18T21:00:00Z"},
            ]},
        });
        let sized = json!({
            "spec": {"instancetype": {"name": "u1.small"}, "preference": {"name": "linux"}, "template": {"spec": {"domain": {}}}},
            "status": {"printableStatus": "CrashLoopBackOff"},
        });
        let instance = json!({
            "spec": {"domain": {"memory": {"guest": "1Gi"}}},
            "status": {"nodeName": "n1", "interfaces": [{"name": "default", "ipAddress": "10.88.0.9"}, {}, {"name": "lan"}]},
        });
        let team = "2a8f0a9b1c3d4e5f";
        let known = Known {
            machines: BTreeMap::from([keyed("root", "a", plain), keyed(team, "b", sized)]),
            instances: BTreeMap::from([keyed(team, "b", instance)]),
            ..Known::default()
        };
        let told = lines(&known);
        expect![[r#"
            kubevirt_number_of_vms{namespace="shop"} 1
            kubevirt_number_of_vms{workspace="2a8f0a9b1c3d4e5f",namespace="shop"} 1
            kubevirt_vm_error_status_last_transition_timestamp_seconds{namespace="shop",name="a"} 0
            kubevirt_vm_error_status_last_transition_timestamp_seconds{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 0
            kubevirt_vm_info{namespace="shop",name="a",os="debian",workload="<none>",flavor="<none>",machine_type="q35",instance_type="<none>",preference="<none>",status="running",status_group="running"} 1
            kubevirt_vm_info{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",os="<none>",workload="<none>",flavor="<none>",machine_type="<none>",instance_type="u1.small",preference="linux",status="crashloopbackoff",status_group="error"} 1
            kubevirt_vm_migrating_status_last_transition_timestamp_seconds{namespace="shop",name="a"} 0
            kubevirt_vm_migrating_status_last_transition_timestamp_seconds{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 0
            kubevirt_vm_non_running_status_last_transition_timestamp_seconds{namespace="shop",name="a"} 0
            kubevirt_vm_non_running_status_last_transition_timestamp_seconds{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 0
            kubevirt_vm_resource_requests{namespace="shop",name="a",resource="cpu",unit="cores",source="domain"} 2
            kubevirt_vm_resource_requests{namespace="shop",name="a",resource="cpu",unit="cores",source="requests"} 0.25
            kubevirt_vm_resource_requests{namespace="shop",name="a",resource="memory",unit="bytes",source="domain"} 134217728
            kubevirt_vm_resource_requests{namespace="shop",name="a",resource="memory",unit="bytes",source="guest"} 67108864
            kubevirt_vm_resource_requests{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",resource="cpu",unit="cores",source="default"} 1
            kubevirt_vm_resource_requests{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",resource="cpu",unit="sockets",source="default"} 1
            kubevirt_vm_resource_requests{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",resource="cpu",unit="threads",source="default"} 1
            kubevirt_vm_resource_requests{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",resource="memory",unit="bytes",source="guest"} 1073741824
            kubevirt_vm_running_status_last_transition_timestamp_seconds{namespace="shop",name="a"} 1795032000
            kubevirt_vm_running_status_last_transition_timestamp_seconds{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 0
            kubevirt_vm_starting_status_last_transition_timestamp_seconds{namespace="shop",name="a"} 0
            kubevirt_vm_starting_status_last_transition_timestamp_seconds{workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b"} 0
            kubevirt_vmi_migrations_in_pending_phase 0
            kubevirt_vmi_migrations_in_running_phase 0
            kubevirt_vmi_migrations_in_scheduling_phase 0
            kubevirt_vmi_migrations_in_unset_phase 0
            kubevirt_vmi_status_addresses{node="n1",workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",network_name="default",address="10.88.0.9",type="InternalIP"} 1
            kubevirt_vmi_status_addresses{node="n1",workspace="2a8f0a9b1c3d4e5f",namespace="shop",name="b",network_name="lan",type="InternalIP"} 1"#]]
        .assert_eq(&told.join("\n"));
    }

    #[test]
    fn every_state_is_in_a_group() {
        for (printable, expected) in [
            ("Provisioning", "starting"),
            ("WaitingForVolumeBinding", "starting"),
            ("Running", "running"),
            ("Migrating", "migrating"),
            ("Paused", "non_running"),
            ("Terminating", "non_running"),
            ("ErrorUnschedulable", "error"),
            ("ImagePullBackOff", "error"),
            ("", "error"),
        ] {
            assert_eq!(group(printable), expected, "{printable}");
        }
    }

    #[test]
    fn of_many_migrations_and_snapshots_the_last_are_told() {
        let mut known = Known::default();
        for number in 0..9 {
            let made = format!("2026-11-18T20:00:0{number}Z");
            let metadata = json!({"creationTimestamp": made, "uid": format!("u{number}")});
            let phase = if number == 8 { "Failed" } else { "Succeeded" };
            let migration =
                json!({"metadata": metadata, "spec": {"vmiName": "web"}, "status": {"phase": phase}});
            known
                .migrations
                .extend([keyed("root", &format!("m{number}"), migration)]);
            let snapshot = json!({
                "metadata": metadata, "spec": {"source": {"name": "web"}}, "status": {"phase": "Succeeded", "creationTime": made},
            });
            known
                .snapshots
                .extend([keyed("root", &format!("s{number}"), snapshot)]);
        }
        for (name, phase) in [
            ("p", "Pending"),
            ("q", ""),
            ("s", "Scheduling"),
            ("t", "TargetReady"),
            ("r", "Running"),
        ] {
            let migration = json!({"spec": {"vmiName": "other"}, "status": {"phase": phase}});
            known.migrations.extend([keyed("root", name, migration)]);
        }
        let broken = json!({"spec": {"source": {"name": "web"}}, "status": {"phase": "Failed", "creationTime": "2026-11-18T20:00:00Z"}});
        known.snapshots.extend([keyed("root", "broken", broken)]);
        let moved = json!({"status": {"nodeName": "n2", "migrationState": {
            "migrationUid": "u7", "startTimestamp": "2026-11-18T20:00:07Z", "endTimestamp": "2026-11-18T20:00:09Z", "completed": true,
        }}});
        known.instances.extend([keyed("root", "web", moved)]);
        expect![[r#"
            kubevirt_vmi_migration_end_time_seconds{node="n2",namespace="shop",name="web",migration_name="m7",status="succeeded"} 1795032009
            kubevirt_vmi_migration_failed{namespace="shop",vmi="web",vmim="m8"} 1
            kubevirt_vmi_migration_start_time_seconds{node="n2",namespace="shop",name="web",migration_name="m7"} 1795032007
            kubevirt_vmi_migration_succeeded{namespace="shop",vmi="web",vmim="m4"} 1
            kubevirt_vmi_migration_succeeded{namespace="shop",vmi="web",vmim="m5"} 1
            kubevirt_vmi_migration_succeeded{namespace="shop",vmi="web",vmim="m6"} 1
            kubevirt_vmi_migration_succeeded{namespace="shop",vmi="web",vmim="m7"} 1
            kubevirt_vmi_migrations_in_pending_phase 1
            kubevirt_vmi_migrations_in_running_phase 2
            kubevirt_vmi_migrations_in_scheduling_phase 1
            kubevirt_vmi_migrations_in_unset_phase 1
            kubevirt_vmsnapshot_succeeded_timestamp_seconds{namespace="shop",name="web",snapshot_name="s4"} 1795032004
            kubevirt_vmsnapshot_succeeded_timestamp_seconds{namespace="shop",name="web",snapshot_name="s5"} 1795032005
            kubevirt_vmsnapshot_succeeded_timestamp_seconds{namespace="shop",name="web",snapshot_name="s6"} 1795032006
            kubevirt_vmsnapshot_succeeded_timestamp_seconds{namespace="shop",name="web",snapshot_name="s7"} 1795032007
            kubevirt_vmsnapshot_succeeded_timestamp_seconds{namespace="shop",name="web",snapshot_name="s8"} 1795032008"#]]
        .assert_eq(&lines(&known).join("\n"));
    }
}
