//! `cargo xtask codegen protobuf`: the table of messages, out of upstream's `generated.proto` files.
//!
//! Those files say how fields are numbered and typed on the wire; how Go writes them as JSON is in the struct tags, which
//! carry the same numbers. Every message that the facts about the built-in kinds know as well must agree with them, field
//! by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use fairway_kernel_protobuf::table::{FieldRow, Form, MessageRow, Presence, Repeats, Scalar, Table, Type};
use fairway_kernel_schema::builtin::table as facts;

use super::gotypes::{GoField, GoTypes};
use super::protofile::{self, ProtoField, ProtoMessages, ProtoShape};
use crate::upstream;

const MODULES: [&str; 4] = ["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"];
const FILE: &str = "crates/kernel/protobuf/data/messages.facts";

/// Kinds that clients send but that no schema of a resource mentions.
const MORE_KINDS: [(&str, &str); 6] = [
    ("k8s.io.apimachinery.pkg.apis.meta.v1.List", "v1/List"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.CreateOptions", "*/CreateOptions"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.GetOptions", "*/GetOptions"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.ListOptions", "*/ListOptions"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.PatchOptions", "*/PatchOptions"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.UpdateOptions", "*/UpdateOptions"),
];
/// Kinds that only servers send.
const ANSWERS: [&str; 2] = ["APIResourceList", "WatchEvent"];

/// Messages that Go writes with functions of its own.
const SCALARS: [(&str, Scalar); 7] = [
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", Scalar::Time),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime", Scalar::MicroTime),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", Scalar::Raw),
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", Scalar::Quantity),
    ("k8s.io.apimachinery.pkg.util.intstr.IntOrString", Scalar::IntOrString),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", Scalar::Raw),
    ("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON", Scalar::Raw),
];
const CHOICES: &str = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr";

/// A message on its way into the table.
struct Found {
    form: Form,
    kind: Option<String>,
    fields: Vec<FoundField>,
}

struct FoundField {
    number: u32,
    name: Option<String>,
    presence: Presence,
    repeats: Repeats,
    ty: FoundType,
}

#[derive(Clone)]
enum FoundType {
    Scalar(Scalar),
    Message(String),
}

/// Writes or checks the table.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = upstream::root();
    let mut protos = ProtoMessages::new();
    for module in MODULES {
        let version = upstream::KUBERNETES.replacen("v1", "v0", 1);
        protofile::read(&upstream::go_module(&format!("k8s.io/{module}@{version}"))?, &mut protos)?;
    }
    let known = fs::read_to_string(root.join("crates/kernel/schema/data/builtin.facts"))
        .context("reading the facts about the built-in kinds")?;
    let known = facts::Table::parse(&known)?;

    let found = reachable(&protos, kinds(&known, &protos)?)?;
    verify(&found, &known)?;
    let table = Table { messages: rows(&found)? };
    let text = format!(
        "# Messages of the built-in kinds of Kubernetes {}. Written by `cargo xtask codegen protobuf`; do not edit.\n{}",
        upstream::KUBERNETES,
        table.render()
    );
    if Table::parse(&text)? != table {
        bail!("the table does not survive a round trip through its text");
    }
    let kinds = table.messages.iter().filter(|m| m.kind.is_some()).count();
    let summary = format!("{} messages, {kinds} kinds, {} KB", table.messages.len(), text.len() / 1024);
    if check {
        if fs::read_to_string(root.join(FILE)).context("reading the committed table")? != text {
            bail!("the table of messages is out of date: run `cargo xtask codegen protobuf`");
        }
        println!("up to date: {summary}");
    } else {
        fs::write(root.join(FILE), text)?;
        println!("written: {summary}");
    }
    Ok(())
}

/// The messages of kinds that clients send, by name.
fn kinds(known: &facts::Table<'_>, protos: &ProtoMessages) -> Result<BTreeMap<String, String>> {
    let mut kinds: BTreeMap<String, String> =
        MORE_KINDS.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect();
    for row in &known.types {
        let short = row.name.rsplit('.').next().unwrap_or_default();
        if ANSWERS.contains(&short) {
            continue;
        }
        let kind = match row.kinds {
            facts::Kinds::None => continue,
            facts::Kinds::One(gvk) if gvk.group.is_empty() => format!("{}/{}", gvk.version, gvk.kind),
            facts::Kinds::One(gvk) => format!("{}/{}/{}", gvk.group, gvk.version, gvk.kind),
            facts::Kinds::Everywhere => format!("*/{short}"),
        };
        kinds.insert(proto_name(row.name), kind);
    }
    for name in kinds.keys() {
        if !protos.contains_key(name) {
            bail!("{name} is a kind without a message");
        }
    }
    Ok(kinds)
}

/// The kinds' messages and all that those refer to.
fn reachable(protos: &ProtoMessages, kinds: BTreeMap<String, String>) -> Result<BTreeMap<String, Found>> {
    let mut go = GoTypes::default();
    let mut found = BTreeMap::new();
    let mut wanted: BTreeSet<String> = kinds.keys().cloned().collect();
    while let Some(name) = wanted.pop_first() {
        let fields = protos.get(&name).with_context(|| format!("there is no message {name}"))?;
        let mut message = message(&name, fields, &mut go).with_context(|| name.clone())?;
        message.kind = kinds.get(&name).cloned();
        for field in &message.fields {
            if let FoundType::Message(other) = &field.ty
                && *other != name
                && !found.contains_key(other)
            {
                wanted.insert(other.clone());
            }
        }
        found.insert(name, message);
    }
    Ok(found)
}

fn message(name: &str, fields: &[ProtoField], go: &mut GoTypes) -> Result<Found> {
    let go_fields = go.fields(&facts_name(name))?;
    let form = if name.starts_with(CHOICES) {
        Form::Choice
    } else if go_fields.is_some() {
        Form::Struct
    } else if matches!(fields, [only] if only.name == "items" && only.shape == ProtoShape::Repeated) {
        Form::List
    } else {
        bail!("is not a struct in Go");
    };
    let mut rows = Vec::with_capacity(fields.len());
    for field in fields {
        let ty = match SCALARS.iter().find(|(message, _)| *message == field.ty) {
            Some((_, scalar)) => FoundType::Scalar(*scalar),
            None => plain(&field.ty).map_or_else(|| FoundType::Message(field.ty.clone()), FoundType::Scalar),
        };
        let repeats = match field.shape {
            ProtoShape::One => Repeats::One,
            ProtoShape::Repeated => Repeats::List,
            ProtoShape::Map => Repeats::Map,
        };
        let mut row =
            FoundField { number: field.number, name: Some(field.name.clone()), presence: Presence::Set, repeats, ty };
        if form == Form::Struct {
            let tagged = go_fields.iter().flat_map(|f| f.iter()).find(|f| f.number() == Some(field.number));
            let tagged = tagged.with_context(|| format!("no field of the Go struct has number {}", field.number))?;
            row.name = (!tagged.inline()).then(|| tagged.json().to_owned());
            row.presence = presence(&row, tagged);
            if row.name.as_deref() == Some("") {
                bail!("{} has no name in JSON", field.name);
            }
            let embeds = matches!(row.ty, FoundType::Message(_)) && repeats == Repeats::One && !tagged.pointer();
            if row.name.is_none() && !embeds {
                bail!("{} cannot be embedded", field.name);
            }
        } else if matches!(row.ty, FoundType::Scalar(Scalar::Bool)) {
            row.presence = Presence::Always;
        }
        rows.push(row);
    }
    // Fields without a number would be lost; only the kind itself travels in the envelope.
    for field in go_fields.into_iter().flatten() {
        if field.number().is_none() && !(field.inline() || field.json() == "-") {
            bail!("{} has no number", field.json());
        }
    }
    rows.sort_by_key(|f| f.number);
    Ok(Found { form, kind: None, fields: rows })
}

fn plain(word: &str) -> Option<Scalar> {
    Some(match word {
        "string" => Scalar::String,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "double" => Scalar::Double,
        "bool" => Scalar::Bool,
        "bytes" => Scalar::Bytes,
        _ => return None,
    })
}

/// When Go writes a field.
fn presence(row: &FoundField, field: &GoField) -> Presence {
    let one = row.repeats == Repeats::One;
    // Structs are never empty in Go's eyes.
    let structure = one
        && match row.ty {
            FoundType::Scalar(scalar) => plain_scalar(scalar).is_none(),
            FoundType::Message(_) => true,
        };
    let nullable = field.pointer() || !one || matches!(row.ty, FoundType::Scalar(Scalar::Bytes));
    if row.name.is_none() {
        Presence::Set
    } else if field.omit_zero() {
        if field.pointer() { Presence::Set } else { Presence::NotZero }
    } else if !field.omit_empty() {
        if nullable { Presence::AlwaysNull } else { Presence::Always }
    } else if field.pointer() {
        Presence::Set
    } else if structure {
        Presence::Always
    } else {
        Presence::NotEmpty
    }
}

/// The facts' word for a scalar that is none of those that Go holds as structs.
fn plain_scalar(scalar: Scalar) -> Option<facts::Format> {
    Some(match scalar {
        Scalar::String => facts::Format::String,
        Scalar::Int32 => facts::Format::Int32,
        Scalar::Int64 => facts::Format::Int64,
        Scalar::Double => facts::Format::Double,
        Scalar::Bool => facts::Format::Boolean,
        Scalar::Bytes => facts::Format::Bytes,
        _ => return None,
    })
}

/// Compares every message with what the facts say of the same type.
fn verify(found: &BTreeMap<String, Found>, known: &facts::Table<'_>) -> Result<()> {
    let known: BTreeMap<&str, &facts::TypeRow<'_>> = known.types.iter().map(|row| (row.name, row)).collect();
    for (name, message) in found {
        let Some(row) = known.get(facts_name(name).as_str()) else {
            // Types that schemas spell out at their place, and those that schemas of resources do not mention.
            let expected = message.form == Form::List
                || MORE_KINDS.iter().any(|(more, _)| more == name)
                || embedded_somewhere(name, found);
            if !expected {
                bail!("{name} is not among the facts about the built-in kinds");
            }
            continue;
        };
        let facts::Body::Struct(fields) = &row.body else {
            if message.form == Form::Struct && !message.fields.is_empty() {
                bail!("{name} has fields here but not among the facts");
            }
            continue;
        };
        let mut left: BTreeMap<&str, &facts::FieldRow<'_>> = fields.iter().map(|f| (f.name, f)).collect();
        compare(message, found, &mut left).with_context(|| name.clone())?;
        // A kind's own name and version travel in the envelope.
        if message.kind.is_some() || row.kinds != facts::Kinds::None {
            left.remove("kind");
            left.remove("apiVersion");
        }
        if let Some(missing) = left.keys().next() {
            bail!("{name} has no field {missing}");
        }
    }
    Ok(())
}

fn embedded_somewhere(name: &str, found: &BTreeMap<String, Found>) -> bool {
    found.values().flat_map(|m| &m.fields).any(|f| f.name.is_none() && matches!(&f.ty, FoundType::Message(m) if m == name))
}

fn compare(
    message: &Found,
    found: &BTreeMap<String, Found>,
    left: &mut BTreeMap<&str, &facts::FieldRow<'_>>,
) -> Result<()> {
    for field in &message.fields {
        let Some(name) = &field.name else {
            if let FoundType::Message(embedded) = &field.ty {
                compare(&found[embedded], found, left)?;
            }
            continue;
        };
        let fact = left.remove(name.as_str()).with_context(|| format!("the facts know no field {name}"))?;
        let presence = match fact.presence {
            facts::Presence::Optional => &[Presence::Set, Presence::NotZero][..],
            facts::Presence::OmitEmpty => &[Presence::NotEmpty],
            facts::Presence::Always => &[Presence::Always],
            facts::Presence::AlwaysNull => &[Presence::AlwaysNull],
        };
        if !presence.contains(&field.presence) {
            bail!("{name} is written {:?} here and {:?} among the facts", field.presence, fact.presence);
        }
        let same = match (&fact.ty, field.repeats) {
            (facts::Type::List(element), Repeats::List) | (facts::Type::Map(element), Repeats::Map) => {
                same_type(&element.ty, &field.ty, found)
            }
            (ty, Repeats::One) => same_type(ty, &field.ty, found),
            _ => false,
        };
        if !same {
            bail!("{name} is {:?} among the facts", fact.ty);
        }
    }
    Ok(())
}

fn same_type(fact: &facts::Type<'_>, ty: &FoundType, found: &BTreeMap<String, Found>) -> bool {
    match (fact, ty) {
        (facts::Type::Scalar(format), FoundType::Scalar(scalar)) => plain_scalar(*scalar) == Some(*format),
        (facts::Type::Ref(name), FoundType::Scalar(scalar)) => SCALARS
            .iter()
            .any(|(message, known)| known == scalar && *name == facts::reference(&facts_name(message))),
        (facts::Type::Ref(name), FoundType::Message(message)) => *name == facts::reference(&facts_name(message)),
        (facts::Type::List(_), FoundType::Message(message)) => found[message].form == Form::List,
        _ => false,
    }
}

fn rows(found: &BTreeMap<String, Found>) -> Result<Vec<MessageRow<'_>>> {
    let mut rows = Vec::with_capacity(found.len());
    let mut seen = BTreeMap::new();
    for (name, message) in found {
        if let Some(other) = seen.insert(short(name), name) {
            bail!("{name} and {other} would be referred to by the same words");
        }
        let fields = message.fields.iter().map(|field| FieldRow {
            number: field.number,
            name: field.name.as_deref(),
            presence: field.presence,
            repeats: field.repeats,
            ty: match &field.ty {
                FoundType::Scalar(scalar) => Type::Scalar(*scalar),
                FoundType::Message(name) => Type::Message(short(name)),
            },
        });
        rows.push(MessageRow {
            name: short(name),
            form: message.form,
            kind: message.kind.as_deref(),
            fields: fields.collect(),
        });
    }
    rows.sort_by_key(|row| row.name);
    Ok(rows)
}

/// The last three segments of a name.
fn short(name: &str) -> &str {
    name.rmatch_indices('.').nth(2).map_or(name, |(at, _)| &name[at + 1..])
}

/// `k8s.io.kube_aggregator.X` is `io.k8s.kube-aggregator.X` among the facts.
fn facts_name(proto: &str) -> String {
    format!("io.k8s.{}", proto.trim_start_matches("k8s.io.").replace('_', "-"))
}

fn proto_name(fact: &str) -> String {
    format!("k8s.io.{}", fact.trim_start_matches("io.k8s.").replace('-', "_"))
}
