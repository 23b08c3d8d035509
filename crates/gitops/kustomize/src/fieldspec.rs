//! Field specs: which field of which kinds a transformer works on, and how it gets there.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::decode::Fields;
use crate::error::{Error, Result};
use crate::id::{Gvk, selects, split_api_version};
use crate::node::{split_path, text};
use crate::order::kind_rank;

/// A field of the resources of some kinds. Copies share it: every kustomization has hundreds of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSpec(Arc<Spec>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) gvk: Gvk,
    pub(crate) path: String,
    pub(crate) create: bool,
    /// The path in its parts, split once.
    parts: Vec<String>,
}

impl Deref for FieldSpec {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        &self.0
    }
}

impl FieldSpec {
    pub(crate) fn new(gvk: Gvk, path: &str, create: bool) -> Self {
        Self(Arc::new(Spec {
            gvk,
            create,
            parts: split_path(path, '/'),
            path: path.to_owned(),
        }))
    }

    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        let path = fields.string("path")?;
        Ok(Self::new(Gvk::decode(fields)?, &path, fields.bool("create")?))
    }

    /// The specs in a list.
    pub(crate) fn decode_list(fields: &Fields<'_>, name: &'static str) -> Result<Vec<Self>> {
        fields.list(name, Self::decode)
    }

    /// Whether the spec is about this object.
    pub(crate) fn fits(&self, object: &Value) -> bool {
        let part = |key: &str| object.get(key).map(text).unwrap_or_default();
        if self.gvk.kind.is_empty() && self.gvk.group.is_empty() && self.gvk.version.is_empty() {
            return true;
        }
        let api_version = part("apiVersion");
        let (group, version) = split_api_version(&api_version);
        selects(&self.gvk, group, version, &part("kind"))
    }

    /// Calls `set` with every field of the object that the spec means.
    pub(crate) fn apply(
        &self,
        object: &mut Value,
        make: Make,
        set: &mut dyn FnMut(&mut Value) -> Result<()>,
    ) -> Result<()> {
        if !self.fits(object) {
            return Ok(());
        }
        self.apply_unchecked(object, make, set)
    }

    /// As [`Self::apply`], whatever kind the object is of.
    pub(crate) fn apply_unchecked(
        &self,
        object: &mut Value,
        make: Make,
        set: &mut dyn FnMut(&mut Value) -> Result<()>,
    ) -> Result<()> {
        let make = match self.create {
            true => make,
            false => Make::Nothing,
        };
        visit(object, &self.parts, make, set).map_err(|error| {
            let part = |value: Option<&Value>| value.map(text).unwrap_or_default().into_owned();
            let metadata = object.get("metadata");
            error.within(format!(
                "considering field '{}' of object {} {}",
                self.path,
                part(object.get("kind")),
                part(metadata.and_then(|metadata| metadata.get("name")))
            ))
        })
    }
}

/// What becomes of a field that is not there, or null, at the end of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    Nothing,
    Scalar,
    Map,
}

fn visit(
    value: &mut Value,
    path: &[String],
    make: Make,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<()> {
    let Some((first, rest)) = path.split_first() else {
        return set(value);
    };
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(|item| visit(item, path, make, set)),
        Value::Object(fields) => visit_field(fields, first, rest, make, set),
        _ => Err(Error::new("expected sequence or mapping node")),
    }
}

fn visit_field(
    fields: &mut Map<String, Value>,
    first: &str,
    rest: &[String],
    make: Make,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<()> {
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    if name.is_empty() {
        return Err(Error::new("cannot set or create an empty field name"));
    }
    let last = rest.is_empty();
    if make != Make::Nothing && !is_list && !fields.contains_key(name) {
        fields.insert(name.to_owned(), Value::Null);
    }
    let Some(field) = fields.get_mut(name) else {
        return Ok(());
    };
    if field.is_null() {
        match (is_list, make) {
            (true, _) => *field = Value::Array(Vec::new()),
            (false, Make::Nothing) => {}
            (false, Make::Scalar) if last => {}
            (false, _) => *field = Value::Object(Map::new()),
        }
    }
    visit(field, rest, make, set)
}

/// Adds specs that are not there yet. Two that differ only in whether they create contradict each other.
pub(crate) fn merge_all(specs: &mut Vec<FieldSpec>, incoming: &[FieldSpec]) -> Result<()> {
    incoming.iter().try_for_each(|spec| merge_one(specs, spec))
}

pub(crate) fn merge_one(specs: &mut Vec<FieldSpec>, spec: &FieldSpec) -> Result<()> {
    let known = specs
        .iter()
        .find(|known| known.path == spec.path && known.gvk.is_selected(&spec.gvk));
    match known {
        Some(known) if known.create != spec.create => Err(Error::new(format!(
            "conflicting fieldspecs for path '{}'",
            spec.path
        ))),
        Some(_) => Ok(()),
        None => {
            specs.push(spec.clone());
            Ok(())
        }
    }
}

/// The order in which configurations list kinds.
pub(crate) fn compare_gvk(left: &Gvk, right: &Gvk) -> Ordering {
    kind_rank(&left.kind)
        .cmp(&kind_rank(&right.kind))
        .then_with(|| sort_text(left).cmp(&sort_text(right)))
}

/// A text by which kinds are sorted; what is empty comes late.
pub(crate) fn sort_text(gvk: &Gvk) -> String {
    let or = |text: &str, otherwise: &str| match text.is_empty() {
        true => otherwise.to_owned(),
        false => text.to_owned(),
    };
    format!(
        "{}_{}_{}",
        or(&gvk.group, "~G"),
        or(&gvk.version, "~V"),
        or(&gvk.kind, "~K")
    )
}
