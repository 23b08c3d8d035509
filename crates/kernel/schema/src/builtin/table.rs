//! The table of facts about the built-in kinds: its rows, and the text they are kept in.
//!
//! One fact per line, so that a new Kubernetes version shows up as a readable diff. The generator writes the table with
//! [`Table::render`] and the server reads it with [`Table::parse`]; both live here so that the format has one home.
//!
//! ```text
//! type io.k8s.api.core.v1.Pod gvk=/v1/Pod
//!  metadata+ meta.v1.ObjectMeta ={}
//! type io.k8s.api.core.v1.PodSpec
//!  containers-! []core.v1.Container map(name) patch=merge key=name
//!  nodeSelector~ {}string atomic
//! type io.k8s.apimachinery.pkg.api.resource.Quantity = quantity
//! group apps
//! version v1
//! resource deployments deployment Deployment namespaced verbs=get,list short=deploy cat=all hash=8aSe+NMegvE= storage
//!  sub scale autoscaling/v1/Scale verbs=get,patch,update
//! ```
//!
//! `!` marks a required field; before it stands when Go writes the field (`~` when it is not empty, `+` always, `-` always
//! and null when it is not set, nothing: when it is set). `[]T` is a list, `{}T` a map with string keys; `*T` after either is an element that Go holds
//! by pointer, so that it has no zero value. A reference is the last three segments of a type's name. What follows the
//! type is how elements relate (`atomic`, `granular`, `set`, `map(keys)`), strategic merge (`patch=`, `key=`), then
//! `enum=` with a JSON list (of the elements' values, if the field is a list) and `=` with the default as JSON.

use std::fmt::Write as _;

use serde_json::Value;

mod parse;

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table<'a> {
    /// Types, sorted by name.
    pub types: Vec<TypeRow<'a>>,
    /// API groups in order of priority; the first is the core group.
    pub groups: Vec<GroupRow<'a>>,
}

/// A named type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeRow<'a> {
    /// Full name, such as `io.k8s.api.core.v1.PodSpec`.
    pub name: &'a str,
    /// What it consists of.
    pub body: Body<'a>,
    /// The struct is owned as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// The kinds it stands for.
    pub kinds: Kinds<'a>,
    /// `x-kubernetes-unions`.
    pub unions: Option<Value>,
}

/// The kinds that a type stands for (`x-kubernetes-group-version-kind`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kinds<'a> {
    /// It is no kind, only a part of some.
    None,
    /// This one.
    One(Gvk<'a>),
    /// One in every group-version, of the type's own name (`DeleteOptions`, `WatchEvent`).
    Everywhere,
}

/// Group, version and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// What a named type consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// Fields, sorted by name.
    Struct(Vec<FieldRow<'a>>),
    /// A value that Go decodes with a function of its own.
    Scalar(Format),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRow<'a> {
    /// JSON name.
    pub name: &'a str,
    /// Its type.
    pub ty: Type<'a>,
    /// Whether it must be there.
    pub required: bool,
    /// When Go writes it.
    pub presence: Presence,
    /// How list elements or map values relate.
    pub relation: Relation<'a>,
    /// `x-kubernetes-patch-strategy`, as upstream writes it.
    pub patch_strategy: Option<&'a str>,
    /// `x-kubernetes-patch-merge-key`.
    pub merge_key: Option<&'a str>,
    /// Allowed values; those of the elements, if the field is a list.
    pub enumeration: Vec<String>,
    /// Default.
    pub default: Option<Value>,
}

/// When Go writes a field; this decides how stored objects look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// When it is set: it is held by pointer, so that a zero can be told from nothing.
    Optional,
    /// When it is not empty: zero, false, empty text, list and map are left out.
    OmitEmpty,
    /// Always, if need be with its zero value.
    Always,
    /// Always, if need be as null.
    AlwaysNull,
}

impl Presence {
    const MARKS: [(Self, &'static str); 4] = [
        (Self::Optional, ""),
        (Self::OmitEmpty, "~"),
        (Self::Always, "+"),
        (Self::AlwaysNull, "-"),
    ];

    fn mark(self) -> &'static str {
        Self::MARKS
            .iter()
            .find(|(p, _)| *p == self)
            .map_or("", |(_, mark)| mark)
    }
}

/// The type of a field or element.
#[derive(Clone, Debug, PartialEq)]
pub enum Type<'a> {
    /// A scalar or a free-form value.
    Scalar(Format),
    /// A named type, by the last three segments of its name.
    Ref(&'a str),
    /// A list.
    List(Box<Element<'a>>),
    /// A map with string keys.
    Map(Box<Element<'a>>),
}

/// The type of list elements or map values.
#[derive(Clone, Debug, PartialEq)]
pub struct Element<'a> {
    /// Their type.
    pub ty: Type<'a>,
    /// They have no zero value, because Go holds them by pointer or decodes them with a function.
    pub pointer: bool,
}

/// How list elements or map values relate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation<'a> {
    /// Nothing is declared.
    Default,
    /// `atomic`.
    Atomic,
    /// `granular` (maps).
    Granular,
    /// `set` (lists).
    Set,
    /// `map` with its keys (lists).
    Map(Vec<&'a str>),
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A string.
    String,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// Floating point number.
    Double,
    /// Boolean.
    Boolean,
    /// Base64 text.
    Bytes,
    /// RFC 3339 time in seconds.
    Time,
    /// RFC 3339 time in microseconds.
    MicroTime,
    /// Quantity: text or number.
    Quantity,
    /// 32-bit integer or string.
    IntOrString,
    /// Any object.
    Object,
    /// Any object, owned as a whole.
    Raw,
    /// Any value.
    Any,
    /// A JSON schema, or what may stand in the place of one: a boolean, a list.
    SchemaOr,
}

impl Format {
    const NAMES: [(Self, &'static str); 14] = [
        (Self::String, "string"),
        (Self::Int32, "int32"),
        (Self::Int64, "int64"),
        (Self::Double, "double"),
        (Self::Boolean, "boolean"),
        (Self::Bytes, "bytes"),
        (Self::Time, "time"),
        (Self::MicroTime, "micro-time"),
        (Self::Quantity, "quantity"),
        (Self::IntOrString, "int-or-string"),
        (Self::Object, "object"),
        (Self::Raw, "raw"),
        (Self::Any, "any"),
        (Self::SchemaOr, "schema-or"),
    ];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(f, _)| *f == self)
            .map_or("any", |(_, n)| n)
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(f, _)| *f)
    }
}

/// An API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow<'a> {
    /// Name; empty for the core group.
    pub name: &'a str,
    /// Versions, the preferred one first.
    pub versions: Vec<VersionRow<'a>>,
}

/// A version of an API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow<'a> {
    /// Name.
    pub name: &'a str,
    /// Resources, sorted by name.
    pub resources: Vec<ResourceRow<'a>>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRow<'a> {
    /// Plural name, as in URLs.
    pub name: &'a str,
    /// Singular name.
    pub singular: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs.
    pub verbs: Vec<&'a str>,
    /// Short names.
    pub short_names: Vec<&'a str>,
    /// Categories.
    pub categories: Vec<&'a str>,
    /// Hash of the version in which objects are stored; empty when they are not.
    pub storage_hash: &'a str,
    /// Objects are stored in this group and version.
    pub storage: bool,
    /// Deleting an object answers with the object, not with a `Status`.
    pub returns_deleted: bool,
    /// Subresources, sorted by name.
    pub subresources: Vec<SubresourceRow<'a>>,
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubresourceRow<'a> {
    /// Name.
    pub name: &'a str,
    /// Group, version and kind of its objects.
    pub gvk: Gvk<'a>,
    /// Verbs.
    pub verbs: Vec<&'a str>,
    /// Query parameters of its own, sorted by name.
    pub query: Vec<(&'a str, Format)>,
}

/// The part of a type's name by which other types refer to it.
pub fn reference(name: &str) -> &str {
    name.rmatch_indices('.')
        .nth(2)
        .map_or(name, |(i, _)| &name[i + 1..])
}

impl Table<'_> {
    /// The table as text.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(256 * 1024);
        for row in &self.types {
            render_type(&mut out, row);
        }
        for group in &self.groups {
            let _ = writeln!(out, "group {}", group.name);
            for version in &group.versions {
                let _ = writeln!(out, "version {}", version.name);
                version
                    .resources
                    .iter()
                    .for_each(|r| render_resource(&mut out, r));
            }
        }
        out
    }
}

fn render_type(out: &mut String, row: &TypeRow<'_>) {
    let _ = write!(out, "type {}", row.name);
    if let Body::Scalar(format) = &row.body {
        let _ = write!(out, " = {}", format.name());
    }
    if row.atomic {
        out.push_str(" atomic");
    }
    match &row.kinds {
        Kinds::None => {}
        Kinds::One(gvk) => {
            let _ = write!(out, " gvk={}/{}/{}", gvk.group, gvk.version, gvk.kind);
        }
        Kinds::Everywhere => out.push_str(" gvk=*"),
    }
    if let Some(unions) = &row.unions {
        let _ = write!(out, " unions={unions}");
    }
    out.push('\n');
    if let Body::Struct(fields) = &row.body {
        fields.iter().for_each(|f| render_field(out, f));
    }
}

fn render_field(out: &mut String, field: &FieldRow<'_>) {
    let required = if field.required { "!" } else { "" };
    let _ = write!(out, " {}{}{required} ", field.name, field.presence.mark());
    render_expression(out, &field.ty);
    match &field.relation {
        Relation::Default => {}
        Relation::Atomic => out.push_str(" atomic"),
        Relation::Granular => out.push_str(" granular"),
        Relation::Set => out.push_str(" set"),
        Relation::Map(keys) => {
            let _ = write!(out, " map({})", keys.join(","));
        }
    }
    if let Some(strategy) = field.patch_strategy {
        let _ = write!(out, " patch={strategy}");
    }
    if let Some(key) = field.merge_key {
        let _ = write!(out, " key={key}");
    }
    if !field.enumeration.is_empty() {
        let _ = write!(out, " enum={}", Value::from(field.enumeration.as_slice()));
    }
    if let Some(default) = &field.default {
        let _ = write!(out, " ={default}");
    }
    out.push('\n');
}

fn render_expression(out: &mut String, ty: &Type<'_>) {
    let (prefix, element) = match ty {
        Type::Scalar(format) => return out.push_str(format.name()),
        Type::Ref(reference) => return out.push_str(reference),
        Type::List(element) => ("[]", element),
        Type::Map(element) => ("{}", element),
    };
    out.push_str(prefix);
    if element.pointer {
        out.push('*');
    }
    render_expression(out, &element.ty);
}

fn render_resource(out: &mut String, row: &ResourceRow<'_>) {
    let scope = if row.namespaced { "namespaced" } else { "cluster" };
    let _ = write!(
        out,
        "resource {} {} {} {scope} verbs={}",
        row.name,
        row.singular,
        row.kind,
        row.verbs.join(",")
    );
    for (key, names) in [("short", &row.short_names), ("cat", &row.categories)] {
        if !names.is_empty() {
            let _ = write!(out, " {key}={}", names.join(","));
        }
    }
    if !row.storage_hash.is_empty() {
        let _ = write!(out, " hash={}", row.storage_hash);
    }
    out.push_str(if row.storage { " storage" } else { "" });
    out.push_str(if row.returns_deleted {
        " returns-deleted\n"
    } else {
        "\n"
    });
    for sub in &row.subresources {
        let Gvk { group, version, kind } = sub.gvk;
        let _ = write!(
            out,
            " sub {} {group}/{version}/{kind} verbs={}",
            sub.name,
            sub.verbs.join(",")
        );
        for (index, (name, format)) in sub.query.iter().enumerate() {
            let _ = write!(
                out,
                "{}{name}:{}",
                if index == 0 { " query=" } else { "," },
                format.name()
            );
        }
        out.push('\n');
    }
}
