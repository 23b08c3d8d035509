//! References from one object to another, and the grants that let them cross namespaces.

use serde::Deserialize;
use serde_json::Value;

use super::{Kind, Name, Unread, read};

/// A route's wish to hang on a parent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentRef {
    /// For the status: with the defaults that a definition would have filled in, because clients look for them.
    pub shown: Value,
    pub group: String,
    pub kind: String,
    pub name: Name,
    pub section: Option<String>,
    pub port: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawParent {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
    section_name: Option<String>,
    port: Option<u16>,
}

impl ParentRef {
    pub fn is_gateway(&self) -> bool {
        self.group == Kind::Gateway.group() && self.kind == Kind::Gateway.name()
    }
}

/// Fields of a route that change nothing here.
pub(super) fn unheeded(spec: &Value) -> Vec<String> {
    let wants_default = spec["useDefaultGateways"]
        .as_str()
        .is_some_and(|scope| scope != "None");
    let remark =
        "spec.useDefaultGateways does nothing: there are no default Gateways; name one in spec.parentRefs";
    wants_default.then(|| remark.to_owned()).into_iter().collect()
}

/// `spec.parentRefs` of a route in `namespace`. Those that cannot be read are told by the rest of the route.
pub(super) fn parents(object: &Value, namespace: &str) -> Result<Vec<ParentRef>, String> {
    let list = &object["spec"]["parentRefs"];
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .enumerate()
        .map(|(at, raw)| {
            let read: RawParent = read::part(raw, &format!("spec.parentRefs[{at}]"))?;
            let group = read.group.unwrap_or_else(|| Kind::Gateway.group().to_owned());
            let kind = read.kind.unwrap_or_else(|| Kind::Gateway.name().to_owned());
            let mut shown = raw.clone();
            // A list in the order of the fields reads as well, and stays as it is.
            if let Some(fields) = shown.as_object_mut() {
                fields.insert("group".to_owned(), group.clone().into());
                fields.insert("kind".to_owned(), kind.clone().into());
            }
            Ok(ParentRef {
                shown,
                group,
                kind,
                name: Name::new(read.namespace.unwrap_or_else(|| namespace.to_owned()), read.name),
                section: read.section_name,
                port: read.port,
            })
        })
        .collect()
}

/// A reference to any object, with the namespace filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    pub group: String,
    pub kind: String,
    pub name: Name,
}

#[derive(Deserialize)]
pub(super) struct RawObject {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl RawObject {
    pub(super) fn into_ref(self, default_kind: &str, namespace: &str) -> ObjectRef {
        ObjectRef {
            group: self.group.unwrap_or_default(),
            kind: self.kind.unwrap_or_else(|| default_kind.to_owned()),
            name: Name::new(self.namespace.unwrap_or_else(|| namespace.to_owned()), self.name),
        }
    }
}

impl ObjectRef {
    pub fn is(&self, kind: Kind) -> bool {
        self.group == kind.group() && self.kind == kind.name()
    }

    /// `Kind.group` as people write it.
    pub fn full_kind(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

/// A backend as a route names it, before anybody has looked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendRef {
    pub to: ObjectRef,
    pub port: Option<u16>,
    pub weight: u32,
}

#[derive(Deserialize)]
pub(super) struct RawBackend {
    #[serde(flatten)]
    to: RawObject,
    port: Option<u16>,
    weight: Option<u32>,
}

impl RawBackend {
    pub(super) fn into_ref(self, namespace: &str) -> BackendRef {
        BackendRef {
            to: self.to.into_ref(Kind::Service.name(), namespace),
            port: self.port,
            weight: self.weight.unwrap_or(1),
        }
    }
}

/// A ReferenceGrant: who in other namespaces may refer to what in this one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Grant {
    from: Vec<GrantFrom>,
    to: Vec<GrantTo>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct GrantFrom {
    #[serde(default)]
    group: String,
    kind: String,
    namespace: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct GrantTo {
    #[serde(default)]
    group: String,
    kind: String,
    name: Option<String>,
}

impl Grant {
    /// Whether an object of kind `from` in `namespace` may refer to `to`; that `to` is in the grant's namespace is the
    /// caller's to see.
    pub fn allows(&self, from: Kind, namespace: &str, to: &ObjectRef) -> bool {
        let who = self
            .from
            .iter()
            .any(|one| one.group == from.group() && one.kind == from.name() && one.namespace == namespace);
        who && self.to.iter().any(|one| {
            // An empty name is no name, as in Go.
            let named = one
                .name
                .as_deref()
                .is_none_or(|name| name.is_empty() || name == to.name.name);
            one.group == to.group && one.kind == to.kind && named
        })
    }
}

pub(super) fn read_grant(object: &Value) -> Result<Grant, Unread<Grant>> {
    read::part(&object["spec"], "spec").map_err(read::unread)
}
