//! Nothing is ignored in silence: every field of KubeVirt's machines is in `fields.txt`, with what becomes of it, and where
//! that can be seen from here, it is seen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;

use fairway_api::machine_definitions;
use fairway_machines_plan::defaults;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::validate;
use fairway_machines_plan::view::{self, VirtualMachineInstance};
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("fields.txt");

const GATES: [&str; 10] = [
    "DownwardMetrics",
    "HostDevices",
    "HostDisk",
    "Macvtap",
    "NUMA",
    "Passt",
    "PersistentReservation",
    "VMPersistentState",
    "VSOCK",
    "WorkloadEncryptionSEV",
];

struct Row<'t> {
    field: &'t str,
    class: &'t str,
    rest: Vec<&'t str>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = TABLE.lines().filter(|it| !it.starts_with('#'));
    let row = |line: &'static str| {
        let mut parts = line.split(" | ");
        Row {
            field: parts.next().unwrap(),
            class: parts.next().unwrap_or_else(|| panic!("{line}")),
            rest: parts.collect(),
        }
    };
    lines.map(row).collect()
}

/// Every field of the kind's `spec` that has no fields itself.
fn leaves(kind: &str) -> BTreeSet<String> {
    let all = machine_definitions();
    let definition = all.iter().find(|it| it.kind().kind == kind).unwrap();
    let crd = definition.crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = BTreeSet::new();
    walk(&schema["properties"]["spec"], String::new(), &mut found);
    found
}

fn walk(schema: &Value, path: String, found: &mut BTreeSet<String>) {
    if let Some(items) = schema.get("items") {
        return walk(items, format!("{path}[]"), found);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|it| it.is_object()) {
        return walk(values, format!("{path}{{}}"), found);
    }
    match schema.get("properties").and_then(Value::as_object) {
        Some(fields) if !fields.is_empty() => {
            for (name, schema) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                walk(schema, path, found);
            }
        }
        _ => {
            found.insert(path);
        }
    }
}

fn covers(row: &str, field: &str) -> bool {
    match row.strip_suffix(".**") {
        // Of a list or a map of plain values, and of an object, whatever is below.
        Some(above) => field
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{'])),
        None => row == field,
    }
}

#[test]
fn every_field_is_in_the_table() {
    let mut fields = leaves("VirtualMachineInstance");
    let of_machine = leaves("VirtualMachine");
    let own = of_machine.iter().filter(|it| !it.starts_with("template.spec."));
    fields.extend(own.map(|it| format!("VirtualMachine.{it}")));
    let rows = rows();
    let lists = |field: &String| rows.iter().filter(|row| covers(row.field, field)).count();
    let missing: Vec<&String> = fields.iter().filter(|it| lists(it) == 0).collect();
    assert!(
        missing.is_empty(),
        "say in fields.txt what becomes of {missing:#?}"
    );
    let twice: Vec<&String> = fields.iter().filter(|it| lists(it) > 1).collect();
    assert!(twice.is_empty(), "these are in the table twice: {twice:#?}");
    let stale = rows
        .iter()
        .filter(|row| !fields.iter().any(|it| covers(row.field, it)));
    let stale: Vec<&str> = stale.map(|it| it.field).collect();
    assert!(stale.is_empty(), "no machine has such a field: {stale:#?}");
    let known = ["plan", "told", "refused", "elsewhere", "harmless"];
    assert!(rows.iter().all(|it| known.contains(&it.class)));
}

/// A machine as plain as can be.
fn base(with: &Value) -> Value {
    let mut spec = json!({
        "domain": {
            "cpu": {"cores": 1},
            "memory": {"guest": "64Mi"},
            "devices": {
                "disks": [{"name": "d", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "d", "emptyDisk": {"capacity": "1Gi"}}],
    });
    merge(&mut spec, with);
    spec
}

fn merge(into: &mut Value, with: &Value) {
    match (into, with) {
        (Value::Object(into), Value::Object(with)) => {
            for (key, value) in with {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, with) => *into = with.clone(),
    }
}

/// Sets a field; lists are as long as they must be.
fn set(into: &mut Value, path: &str, value: Value) {
    let path = path.strip_suffix(".**").unwrap_or(path);
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first.strip_suffix("{}").unwrap_or(first), false),
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let mut place = &mut into[name];
    if is_list && !(rest.is_empty() && value.is_array()) {
        if place.as_array().is_none_or(Vec::is_empty) {
            *place = json!([{}]);
        }
        place = &mut place[0];
    }
    match rest {
        "" => *place = value,
        rest => set(place, rest, value),
    }
}

/// What becomes of a machine: its plan, and whether it is refused.
fn judged(spec: &Value) -> (MachinePlan, Vec<String>) {
    // What a gate keeps out is refused; what is behind them counts here.
    let settings = Settings {
        feature_gates: GATES.map(str::to_owned).into(),
        ..Settings::default()
    };
    let mut vmi = json!({"metadata": {"name": "web", "namespace": "user-vms"}, "spec": spec});
    defaults::instance(&mut vmi, &settings).unwrap();
    let vmi: VirtualMachineInstance = view::read("VirtualMachineInstance", &vmi).unwrap();
    let causes = validate::instance(&vmi.spec, &vmi.metadata, &settings, false);
    let causes = causes.iter().map(|it| format!("{it:?}")).collect();
    // What no node has is not told to whoever writes a machine, but by the node.
    let able = Capabilities {
        kvm: true,
        hugepages: [2 << 20].into(),
        dedicated_cpus: true,
        tpm: true,
        uefi: true,
        secure_boot: true,
        qemu: (7, 2),
    };
    (plan(&vmi, Origin::default(), &able, &settings), causes)
}

#[test]
fn what_becomes_of_a_field_is_what_the_table_says() {
    let mut wrong = Vec::new();
    for row in rows() {
        let [value, ..] = row.rest.as_slice() else {
            panic!("{}: say why, by whom, or with which value", row.field);
        };
        if matches!(row.class, "elsewhere" | "harmless") {
            continue;
        }
        let value: Value =
            serde_json::from_str(value).unwrap_or_else(|error| panic!("{}: {error}", row.field));
        let with = row.rest.get(1).map_or("{}", |it| it);
        let with: Value = serde_json::from_str(with).unwrap_or_else(|error| panic!("{}: {error}", row.field));
        let plain = base(&with);
        let mut changed = plain.clone();
        set(&mut changed, row.field, value);
        let ((mut before, _), (mut after, causes)) = (judged(&plain), judged(&changed));
        let is_told = before.unsupported != after.unsupported;
        (before.unsupported, after.unsupported) = (Vec::new(), Vec::new());
        let seen = match (causes.is_empty(), is_told, before != after) {
            (false, _, _) => format!("refused: {causes:?}"),
            (true, true, _) => "told".to_owned(),
            (true, false, true) => "plan".to_owned(),
            (true, false, false) => "ignored in silence".to_owned(),
        };
        if !seen.starts_with(row.class) {
            wrong.push(format!("{}: {} expected, {seen}", row.field, row.class));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
