//! Which objects of a kind a list or watch is about: label and field selectors, resolved against the kind; and for a node what is its
//! own.

use std::sync::Arc;

use fairway_kernel_authz::node;
use fairway_text_selector::LabelSelector;
use serde_json::Value;

use crate::cache::Sheet;
use crate::key::split_suffix;
use crate::object::Object;
use crate::registry::ResourceDef;
use crate::rest::call::Call;
use crate::selector::FieldSelector;
use crate::status::ApiError;

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether a term needs more of the object than its name and namespace.
    needs_value: bool,
    /// The node whose objects alone are shown.
    node: Option<Box<str>>,
}

const META_FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

impl Filter {
    /// Parses the selectors, and refuses fields that the kind does not offer.
    pub(crate) fn read(call: &Call<'_>, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let mut labels =
            LabelSelector::parse(labels).map_err(|why| ApiError::bad_request(why.to_string()))?;
        for (key, value) in call.visit.into_iter().flat_map(|visit| &visit.labels) {
            labels.require(key, value);
        }
        let fields = FieldSelector::parse(fields)?;
        let offered = offered_fields(&call.def);
        let mut needs_value = false;
        for term in fields.terms() {
            let meta = META_FIELDS.contains(&term.field.as_str())
                && (call.def.namespaced || term.field != "metadata.namespace");
            if !meta && !offered.iter().any(|f| f == &term.field) {
                return Err(ApiError::bad_request(not_offered(
                    &call.def,
                    &offered,
                    &term.field,
                )));
            }
            needs_value |= !meta;
        }
        let node = node::name_of(call.user).filter(|_| node::is_limited(&call.def.group, &call.def.resource));
        Ok(Self {
            labels,
            fields,
            needs_value: needs_value || node.is_some(),
            node: node.map(Into::into),
        })
    }

    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.node.is_none()
    }

    /// The field selector.
    pub(crate) fn fields(&self) -> &FieldSelector {
        &self.fields
    }

    /// The one name that can match: from the URL (a watch on an object) or from the selector.
    pub(crate) fn only_name<'a>(&'a self, call: &'a Call<'_>) -> Option<&'a str> {
        if call.path.name.is_empty() {
            self.fields.name()
        } else {
            Some(&call.path.name)
        }
    }

    /// What is selected of a list.
    pub(crate) fn select(&self, def: &ResourceDef, sheet: Arc<Sheet>) -> Arc<Sheet> {
        if self.is_empty() {
            return sheet;
        }
        let selected = sheet.iter().filter(|object| self.matches(def, object));
        Arc::new(selected.cloned().collect())
    }

    /// Whether an object is selected, whose key says its namespace and name: most field selectors ask for nothing else, and
    /// a watch asks for every change of its kind.
    pub(crate) fn matches_key(&self, def: &ResourceDef, suffix: &str, object: &Object) -> bool {
        if self.needs_value || self.fields.is_empty() {
            return self.matches(def, object);
        }
        let (_, namespace, name) = split_suffix(suffix);
        let selected = self
            .fields
            .matches(|path| Some(if path == "metadata.name" { name } else { namespace }.to_owned()));
        selected && self.labels_match(object)
    }

    fn labels_match(&self, object: &Object) -> bool {
        self.labels.is_empty() || self.labels.matches(|key| object.label(key))
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, def: &ResourceDef, object: &Object) -> bool {
        if !self.labels_match(object) {
            return false;
        }
        if self.fields.is_empty() && self.node.is_none() {
            return true;
        }
        let Ok(value) = object.value() else { return false };
        let is_shown = |node: &str| node::is_own(node, &def.group, &def.resource, &value);
        if !self.node.as_deref().is_none_or(is_shown) {
            return false;
        }
        let fields = if self.needs_value {
            selectable_fields(def, &value)
        } else {
            Vec::new()
        };
        self.fields.matches(|path| field(&value, &fields, path))
    }
}

fn field(object: &Value, fields: &[(String, String)], path: &str) -> Option<String> {
    match path {
        "metadata.name" => object["metadata"]["name"].as_str().map(str::to_owned),
        "metadata.namespace" => object["metadata"]["namespace"].as_str().map(str::to_owned),
        _ => fields
            .iter()
            .find(|(name, _)| name == path)
            .map(|(_, value)| value.clone()),
    }
}

fn selectable_fields(def: &ResourceDef, object: &Value) -> Vec<(String, String)> {
    match (def.strategy(), def.custom()) {
        (Some(strategy), _) => strategy
            .selectable_fields(object)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        (None, Some(custom)) => custom.selectable_fields(object),
        (None, None) => Vec::new(),
    }
}

fn not_offered(def: &ResourceDef, offered: &[String], field: &str) -> String {
    if offered.is_empty() {
        let meta = if def.namespaced {
            "\"metadata.name\", \"metadata.namespace\""
        } else {
            "\"metadata.name\""
        };
        format!("{field:?} is not a known field selector: only {meta}")
    } else {
        format!("field label not supported: {field}")
    }
}

/// The fields that a kind lets itself be selected by, beyond name and namespace.
fn offered_fields(def: &ResourceDef) -> Vec<String> {
    selectable_fields(def, &Value::Null)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}
