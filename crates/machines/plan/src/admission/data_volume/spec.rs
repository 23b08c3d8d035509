//! What is wrong with the spec of a DataVolume, in the order in which the data importer looks. It tells one thing at a time.

use fairway_kernel_scalar::quantity::Quantity;
use serde_json::Value;

use super::super::{cause, same, text};
use super::{MAX_NAME, source};
use crate::validate::{Cause, CauseType};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const MIB: i64 = 1 << 20;

pub(super) fn wrong(field: impl Into<String>, message: impl Into<String>) -> Cause {
    cause(CauseType::Invalid, field, message)
}

/// A name that is too long.
pub(in super::super) fn name_length(name: &str, most: usize) -> Option<Cause> {
    (name.len() > most).then(|| wrong("", format!("Name cannot be longer than {most} characters")))
}

/// What is wrong; of a source made elsewhere it may be several things.
pub(in super::super) fn faults(path: &str, spec: &Value) -> Vec<Cause> {
    match check(path, spec) {
        Ok(()) => Vec::new(),
        Err(causes) => causes,
    }
}

fn check(path: &str, spec: &Value) -> Result<(), Vec<Cause>> {
    let one = |fault: Option<Cause>| fault.map_or(Ok(()), |fault| Err(vec![fault]));
    let (claim, storage) = (&spec["pvc"], &spec["storage"]);
    one(match (claim.is_object(), storage.is_object()) {
        (false, false) => Some(wrong(format!("{path}.PVC"), "Missing Data volume PVC")),
        (true, true) => Some(wrong(
            format!("{path}.PVC.Storage"),
            "Duplicate storage definition, both target storage and target pvc defined",
        )),
        _ => None,
    })?;
    let wanted = if claim.is_object() { claim } else { storage };
    one(size(path, spec, wanted))?;
    one(name_length(text(wanted, "/storageClassName"), MAX_NAME))?;
    one(modes(path, wanted, claim.is_object()))?;
    let (other, reference) = (&wanted["dataSource"], &wanted["dataSourceRef"]);
    if other.is_object() || reference.is_object() {
        let causes = filled_elsewhere(path, spec, other, reference);
        return if causes.is_empty() { Ok(()) } else { Err(causes) };
    }
    let (from, named) = (&spec["source"], &spec["sourceRef"]);
    if from.is_object() == named.is_object() {
        let message = "Data volume should have either Source or SourceRef, or be externally populated";
        return one(Some(wrong(format!("{path}.source"), message)));
    }
    if named.is_object() {
        return one(source_reference(path, named));
    }
    one(source::fault(path, spec))
}

fn size(path: &str, spec: &Value, wanted: &Value) -> Option<Cause> {
    let is_claim = spec["pvc"].is_object();
    let word = if is_claim { "PVC" } else { "Storage" };
    let field = format!("{path}.{word}.resources.requests.size");
    // A copy is as large as what it is made from, if nobody says otherwise.
    let is_copy = spec["sourceRef"].is_object()
        || spec["source"]["pvc"].is_object()
        || spec["source"]["snapshot"].is_object();
    let Some(size) = Quantity::from_value(&wanted["resources"]["requests"]["storage"]) else {
        return (is_claim || !is_copy).then(|| wrong(field, format!("{word} size is missing")));
    };
    if size.value() <= 0 {
        return Some(wrong(
            field,
            format!("{word} size can't be equal or less than zero"),
        ));
    }
    (size.value() < MIB).then(|| wrong(field, format!("{word} size should be at least 1MiB")))
}

fn modes(path: &str, wanted: &Value, is_claim: bool) -> Option<Cause> {
    let field = format!("{path}.PVC.accessModes");
    let modes = wanted["accessModes"].as_array().map_or(&[][..], Vec::as_slice);
    if is_claim && modes.is_empty() {
        return Some(wrong(field, "Required value: at least 1 access mode is required"));
    }
    if is_claim && modes.len() > 1 {
        return Some(wrong(field, "PVC multiple accessModes"));
    }
    let is_known = |mode: &Value| mode.as_str().is_some_and(|mode| MODES.contains(&mode));
    // Upstream names the first one, whichever is wrong.
    (!modes.iter().all(is_known)).then(|| {
        let named = modes.first().and_then(Value::as_str).unwrap_or_default();
        let message = format!(
            "Unsupported value: \"{named}\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \
             \"ReadWriteOncePod\""
        );
        wrong(field, message)
    })
}

/// A claim that somebody else fills.
fn filled_elsewhere(path: &str, spec: &Value, other: &Value, reference: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if spec["source"].is_object() || spec["sourceRef"].is_object() {
        let message = "External population is incompatible with Source and SourceRef";
        causes.push(wrong(format!("{path}.source"), message));
    }
    if other.is_object() && reference.is_object() && !same(other, reference) {
        causes.push(wrong("", "DataSourceRef and DataSource must match"));
    }
    for (field, word, value) in [
        ("dataSource", "DataSource", other),
        ("dataSourceRef", "DataSourceRef", reference),
    ] {
        if !value.is_object() {
            continue;
        }
        if !text(value, "/namespace").is_empty() {
            let message = format!("Invalid value: {word} namespace not supported");
            causes.push(wrong(format!("{path}.{field}.namespace."), message));
        }
        for part in ["name", "kind"] {
            if value[part].as_str().unwrap_or_default().is_empty() {
                let end = if part == "name" { "." } else { "" };
                let message = format!("Required value: {word} {part}");
                causes.push(wrong(format!("{path}.{field}.{part}{end}"), message));
            }
        }
        if text(value, "/apiGroup").is_empty() && value["kind"] != "PersistentVolumeClaim" {
            let message = format!("Required value: {word} apiGroup when kind is not 'PersistentVolumeClaim'");
            causes.push(wrong(format!("{path}.{field}.apiGroup."), message));
        }
    }
    causes
}

fn source_reference(path: &str, reference: &Value) -> Option<Cause> {
    let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
    let (part, message) = match (kind, name) {
        ("", _) => ("Kind", "Missing sourceRef kind".to_owned()),
        ("DataSource", "") => ("Name", "Missing sourceRef name".to_owned()),
        ("DataSource", _) => return None,
        (kind, _) => (
            "Kind",
            format!("Unsupported sourceRef kind {kind}, currently only DataSource is supported"),
        ),
    };
    Some(wrong(format!("{path}.sourceRef.{part}"), message))
}
