//! The facts about the kinds of virtual machines, out of the Go modules of KubeVirt, its data importer, Multus, and
//! Kubernetes' snapshots of volumes.
//!
//! KubeVirt keeps schemas as YAML in Go strings and the rest of its definitions as Go code; of the code exactly what is
//! needed is read, and what is not found is an error. Descriptions are left out: they are upstream's sentences.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result, bail};
use fairway_api::machine_definitions;
use serde_json::{Value, json};

use super::crd_facts::{Writer, drop_descriptions};
use crate::upstream::{self, CDI, KUBEVIRT, MULTUS, SNAPSHOTTER};

const COMPONENTS: &str = "pkg/virt-operator/resource/generate/components";

/// A file of facts: its group and its kinds.
struct Target {
    file: &'static str,
    group: &'static str,
    module: &'static str,
    kinds: Vec<Value>,
}

/// KubeVirt's kinds: file, version, kind, plural, and the function that defines it.
const KINDS: [(&str, &str, &str, &str, &str); 12] = [
    (
        "kubevirt",
        "v1",
        "VirtualMachine",
        "virtualmachines",
        "NewVirtualMachineCrd",
    ),
    (
        "kubevirt",
        "v1",
        "VirtualMachineInstance",
        "virtualmachineinstances",
        "NewVirtualMachineInstanceCrd",
    ),
    (
        "kubevirt",
        "v1",
        "VirtualMachineInstanceMigration",
        "virtualmachineinstancemigrations",
        "NewVirtualMachineInstanceMigrationCrd",
    ),
    ("kubevirt", "v1", "KubeVirt", "kubevirts", "NewKubeVirtCrd"),
    (
        "kubevirt_instancetype",
        "v1beta1",
        "VirtualMachineInstancetype",
        "virtualmachineinstancetypes",
        "NewVirtualMachineInstancetypeCrd",
    ),
    (
        "kubevirt_instancetype",
        "v1beta1",
        "VirtualMachineClusterInstancetype",
        "virtualmachineclusterinstancetypes",
        "NewVirtualMachineClusterInstancetypeCrd",
    ),
    (
        "kubevirt_instancetype",
        "v1beta1",
        "VirtualMachinePreference",
        "virtualmachinepreferences",
        "NewVirtualMachinePreferenceCrd",
    ),
    (
        "kubevirt_instancetype",
        "v1beta1",
        "VirtualMachineClusterPreference",
        "virtualmachineclusterpreferences",
        "NewVirtualMachineClusterPreferenceCrd",
    ),
    (
        "kubevirt_snapshot",
        "v1beta1",
        "VirtualMachineSnapshot",
        "virtualmachinesnapshots",
        "NewVirtualMachineSnapshotCrd",
    ),
    (
        "kubevirt_snapshot",
        "v1beta1",
        "VirtualMachineSnapshotContent",
        "virtualmachinesnapshotcontents",
        "NewVirtualMachineSnapshotContentCrd",
    ),
    (
        "kubevirt_snapshot",
        "v1beta1",
        "VirtualMachineRestore",
        "virtualmachinerestores",
        "NewVirtualMachineRestoreCrd",
    ),
    (
        "kubevirt_clone",
        "v1beta1",
        "VirtualMachineClone",
        "virtualmachineclones",
        "NewVirtualMachineCloneCrd",
    ),
];

/// The data importer's kinds, by the names of its table.
const IMPORTER: [&str; 6] = [
    "datavolume",
    "datasource",
    "dataimportcron",
    "storageprofile",
    "cdi",
    "cdiconfig",
];

/// Kinds of Kubernetes' snapshots of volumes.
const SNAPSHOTS: [&str; 3] = [
    "volumesnapshots",
    "volumesnapshotcontents",
    "volumesnapshotclasses",
];

/// `cargo xtask codegen machines [--check]`.
pub(super) fn run(check: bool) -> Result<()> {
    let targets = read()?;
    let mut lines = 0;
    for target in &targets {
        let mut table = Writer::default();
        for crd in &target.kinds {
            table.reserve(crd["spec"]["names"]["kind"].as_str().unwrap_or_default());
        }
        for crd in &target.kinds {
            table.kind(crd)?;
        }
        let body = format!("{}{}", table.kinds, table.types);
        let text = format!(
            "# Facts about the kinds of {}. Written by `cargo xtask codegen machines`; do not edit. sum={:016x}\n{body}",
            target.module,
            sum(&body)
        );
        lines += text.lines().count();
        let file = upstream::root().join(format!("crates/api/data/{}.facts", target.file));
        if !check {
            fs::write(&file, text)?;
        } else if fs::read_to_string(&file).unwrap_or_default() != text {
            bail!(
                "the facts about {} are out of date: run `cargo xtask codegen machines`",
                target.group
            );
        }
    }
    if check {
        // What is built into this program is what was just compared.
        for crd in targets.iter().flat_map(|it| &it.kinds) {
            confirm(crd)?;
        }
    }
    let done = if check { "up to date" } else { "written" };
    println!("{done}: {lines} lines of facts about the kinds of virtual machines");
    Ok(())
}

/// FNV-1a, by which a definition's fingerprint tells a change without reading the table.
pub(super) fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn read() -> Result<Vec<Target>> {
    let mut targets = vec![
        target("kubevirt", "kubevirt.io", KUBEVIRT),
        target("kubevirt_instancetype", "instancetype.kubevirt.io", KUBEVIRT),
        target("kubevirt_snapshot", "snapshot.kubevirt.io", KUBEVIRT),
        target("kubevirt_clone", "clone.kubevirt.io", KUBEVIRT),
        target("kubevirt_cdi", "cdi.kubevirt.io", CDI),
        target("multus", "k8s.cni.cncf.io", MULTUS),
        target("volume_snapshot", "snapshot.storage.k8s.io", SNAPSHOTTER),
    ];
    let module = upstream::go_module(KUBEVIRT)?;
    let schemas = strings(&fs::read_to_string(
        module.join(COMPONENTS).join("validations_generated.go"),
    )?);
    let code = fs::read_to_string(module.join(COMPONENTS).join("crds.go"))?;
    for (file, version, kind, plural, function) in KINDS {
        let target = targets
            .iter_mut()
            .find(|it| it.file == file)
            .context("every kind has a file")?;
        let mut crd = definition(&code, function).with_context(|| format!("reading {function}"))?;
        let singular = kind.to_lowercase();
        let schema = schemas
            .get(&singular)
            .with_context(|| format!("there is no schema of {singular}"))?;
        crd["metadata"]["name"] = json!(format!("{plural}.{}", target.group));
        crd["spec"]["group"] = json!(target.group);
        crd["spec"]["names"]["kind"] = json!(kind);
        crd["spec"]["names"]["plural"] = json!(plural);
        crd["spec"]["names"]["singular"] = json!(singular);
        crd["spec"]["names"]["listKind"] = json!(format!("{kind}List"));
        crd["spec"]["versions"][0]["name"] = json!(version);
        crd["spec"]["versions"][0]["schema"] = yaml(schema)?;
        target.kinds.push(cleaned(crd));
    }
    let module = upstream::go_module(CDI)?;
    let crds = strings(&fs::read_to_string(
        module.join("pkg/operator/resources/crds_generated.go"),
    )?);
    for name in IMPORTER {
        let text = crds
            .get(name)
            .with_context(|| format!("there is no definition of {name}"))?;
        let mut crd = yaml(text)?;
        // Older versions are not served.
        let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let kept: Vec<Value> = versions
            .into_iter()
            .filter(|it| it["name"] == "v1beta1")
            .collect();
        crd["spec"]["versions"] = json!(kept);
        targets[4].kinds.push(cleaned(crd));
    }
    let module = upstream::go_module(MULTUS)?;
    let mut crd = yaml(&fs::read_to_string(module.join("artifacts/networks-crd.yaml"))?)?;
    crd["spec"]["names"]["listKind"] = json!("NetworkAttachmentDefinitionList");
    targets[5].kinds.push(cleaned(crd));
    let module = upstream::go_module(SNAPSHOTTER)?;
    for plural in SNAPSHOTS {
        let file = format!("config/crd/snapshot.storage.k8s.io_{plural}.yaml");
        let mut crd = yaml(&fs::read_to_string(module.join(file))?)?;
        // Older versions are not served.
        let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let kept: Vec<Value> = versions.into_iter().filter(|it| it["name"] == "v1").collect();
        crd["spec"]["versions"] = json!(kept);
        // Facts have no rules in CEL: who keeps snapshots says what he cannot do with one.
        drop_rules(&mut crd);
        targets[6].kinds.push(cleaned(crd));
    }
    Ok(targets)
}

fn target(file: &'static str, group: &'static str, module: &'static str) -> Target {
    Target {
        file,
        group,
        module,
        kinds: Vec::new(),
    }
}

pub(super) fn yaml(text: &str) -> Result<Value> {
    let text = text.trim_start_matches("---\n");
    Ok(fairway_text_yaml::from_str(
        text,
        fairway_text_yaml::Limits::default(),
    )?)
}

/// Takes rules away, wherever they are, and writes quantities as everybody else does.
fn drop_rules(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("x-kubernetes-validations");
            if fields.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
                fields.shift_remove("type");
                fields.insert(
                    "anyOf".to_owned(),
                    json!([{"type": "integer"}, {"type": "string"}]),
                );
            }
            fields.values_mut().for_each(drop_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rules),
        _ => {}
    }
}

pub(super) fn cleaned(mut crd: Value) -> Value {
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        drop_descriptions(&mut version["schema"]["openAPIV3Schema"]);
        for column in version["additionalPrinterColumns"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if let Some(column) = column.as_object_mut() {
                column.shift_remove("description");
            }
        }
    }
    crd
}

/// The raw strings of a Go map literal, by key.
fn strings(code: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("\": `") {
        let key = before.rsplit('"').next().unwrap_or_default().to_owned();
        let Some((text, after)) = after.split_once("\n`,") else {
            break;
        };
        found.insert(key, text.to_owned());
        rest = after;
    }
    found
}

/// What a Go function says of a definition beside its names and schema.
fn definition(code: &str, function: &str) -> Result<Value> {
    let start = code
        .find(&format!("func {function}("))
        .context("there is no such function")?;
    let body = &code[start..];
    let body = &body[..body.find("\n}\n").context("the function does not end")?];
    let scope = if body.contains("ClusterScoped") {
        "Cluster"
    } else {
        "Namespaced"
    };
    if scope == "Namespaced" && !body.contains("\"Namespaced\"") && !body.contains("NamespaceScoped") {
        bail!("no scope");
    }
    let mut names = json!({});
    for (field, of) in [("ShortNames", "shortNames"), ("Categories", "categories")] {
        let list = texts_after(body, &format!("{field}:"));
        if !list.is_empty() {
            names[of] = json!(list);
        }
    }
    let mut version = json!({"served": true, "storage": true});
    if body.contains("CustomResourceSubresourceStatus{}") {
        version["subresources"] = json!({"status": {}});
    }
    let columns = columns(code, body)?;
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = json!(columns);
    }
    Ok(json!({"metadata": {}, "spec": {"names": names, "scope": scope, "versions": [version]}}))
}

/// The texts of the list that follows a word.
fn texts_after(body: &str, word: &str) -> Vec<String> {
    let list = body
        .split_once(word)
        .and_then(|(_, rest)| rest.split_once('{'))
        .and_then(|(_, it)| it.split_once('}'));
    let quoted = list
        .into_iter()
        .flat_map(|(list, _)| list.split('"').skip(1).step_by(2));
    quoted.map(str::to_owned).collect()
}

fn columns(code: &str, body: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for part in body.split("{Name: \"").skip(1) {
        let (name, rest) = part.split_once('"').context("a name has an end")?;
        // To the next column, or to the end of the list.
        let end = rest.find("},").context("a column has an end")?;
        let rest = &rest[..end];
        let text = |word: &str| rest.split_once(&format!("{word}: ")).map(|(_, it)| it);
        let kind = text("Type")
            .and_then(|it| it.split('"').nth(1))
            .context("a column has a type")?;
        let path = text("JSONPath").context("a column has a path")?;
        let path = match path.strip_prefix('"') {
            Some(literal) => literal.split('"').next().unwrap_or_default().to_owned(),
            None => {
                let constant = path.split([',', '\n']).next().unwrap_or_default().trim();
                let line = code
                    .lines()
                    .find(|it| it.trim_start().starts_with(constant) && it.contains('='));
                let line = line.with_context(|| format!("there is no {constant}"))?;
                line.split('"').nth(1).context("a constant is a text")?.to_owned()
            }
        };
        let mut column = json!({"name": name, "type": kind, "jsonPath": path});
        if let Some(priority) =
            text("Priority").and_then(|it| it.trim().split(',').next()?.parse::<i64>().ok())
        {
            column["priority"] = json!(priority);
        }
        found.push(column);
    }
    Ok(found)
}

/// The definitions say what upstream's do.
fn confirm(crd: &Value) -> Result<()> {
    let name = &crd["metadata"]["name"];
    let known = machine_definitions().into_iter().map(|it| cleaned(it.crd()));
    let known = known
        .into_iter()
        .find(|it| it["metadata"]["name"] == *name)
        .with_context(|| format!("{name} is not among the definitions"))?;
    let (ours, theirs) = (&known["spec"]["versions"][0], &crd["spec"]["versions"][0]);
    for field in ["schema", "additionalPrinterColumns", "name", "subresources"] {
        let (ours, theirs) = (ours.get(field), theirs.get(field));
        if ours != theirs && !(field == "subresources" && theirs.is_some_and(|it| it == &json!({}))) {
            bail!("{field} of {name} is not what upstream's definition says");
        }
    }
    for field in ["names", "scope", "group"] {
        if known["spec"][field] != crd["spec"][field] {
            bail!("{field} of {name} is not what upstream's definition says");
        }
    }
    Ok(())
}
