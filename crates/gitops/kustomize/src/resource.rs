//! A resource on its way through the build: the object, and what has happened to it.
//!
//! The original keeps that history in annotations of the object, where patches and users can see it. Here it is fields;
//! [`Resource::with_history`] shows it as annotations to the few operations for which that makes a difference.

use std::borrow::Cow;

use fairway_text_yaml::Step;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::id::{Gvk, NOT_A_NAMESPACE, ResId, effective, split_api_version};
use crate::node::{is_empty, map_entry, set_plain, text};
use crate::openapi::OpenApi;
use crate::read::Blank;

const DOMAIN: &str = "internal.config.kubernetes.io/";
pub(crate) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(crate) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Annotations of tools that must not be seen in a result, beside those in [`DOMAIN`].
const FOREIGN: [&str; 3] = [
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
];
/// Those in the domain that are not kept as fields.
const UNUSED: [&str; 6] = [
    "refBy",
    "path",
    "index",
    "seqindent",
    "id",
    "annotations-migration-resource-id",
];

/// A resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resource {
    pub(crate) value: Value,
    /// What it was called before, oldest first.
    pub(crate) previous: Vec<Previous>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) suffixes: Vec<String>,
    /// What a generated resource does to one that is there.
    pub(crate) behavior: Option<String>,
    pub(crate) needs_hash: bool,
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
    pub(crate) helm_generated: bool,
    /// Vars that take their value from it.
    pub(crate) vars: Vec<String>,
    /// Nulls that were not written as such.
    pub(crate) blanks: Vec<Blank>,
}

/// What a resource was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) kind: String,
}

/// What a resource is or was called, without copies.
pub(crate) struct IdRef<'r> {
    pub(crate) group: &'r str,
    pub(crate) version: &'r str,
    pub(crate) kind: Cow<'r, str>,
    pub(crate) name: Cow<'r, str>,
    /// Effective: never empty.
    pub(crate) namespace: Cow<'r, str>,
}

impl IdRef<'_> {
    pub(crate) fn is(&self, id: &ResId) -> bool {
        self.name == id.name && self.is_gvk(&id.gvk) && self.namespace == id.effective_namespace()
    }

    pub(crate) fn is_gvk(&self, gvk: &Gvk) -> bool {
        self.kind == gvk.kind && self.group == gvk.group && self.version == gvk.version
    }

    pub(crate) fn is_selected(&self, selector: &Gvk) -> bool {
        crate::id::selects(selector, self.group, self.version, &self.kind)
    }
}

impl Resource {
    pub(crate) fn new(value: Value) -> Result<Self> {
        let mut resource = Self {
            value,
            ..Self::default()
        };
        resource.take_history()?;
        Ok(resource)
    }

    pub(crate) fn kind(&self) -> Cow<'_, str> {
        self.value.get("kind").map(text).unwrap_or_default()
    }

    /// Borrowed in nearly all cases: an apiVersion is text.
    pub(crate) fn api_version(&self) -> &str {
        self.value
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn gvk(&self) -> Gvk {
        let (group, version) = split_api_version(self.api_version());
        Gvk::new(group, version, &self.kind())
    }

    fn metadata(&self, field: &str) -> Option<&Value> {
        self.value.get("metadata")?.get(field)
    }

    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.metadata("name").map(text).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Cow<'_, str> {
        self.metadata("namespace").map(text).unwrap_or_default()
    }

    pub(crate) fn is_cluster_scoped(&self, api: &OpenApi) -> bool {
        api.is_cluster_scoped(self.api_version(), &self.kind())
    }

    /// What it is called now.
    pub(crate) fn id_ref(&self, api: &OpenApi) -> IdRef<'_> {
        let (group, version) = split_api_version(self.api_version());
        let namespace = match self.is_cluster_scoped(api) {
            true => Cow::Borrowed(NOT_A_NAMESPACE),
            false => match self.namespace() {
                namespace if namespace.is_empty() => Cow::Borrowed(effective("")),
                namespace => namespace,
            },
        };
        IdRef {
            group,
            version,
            kind: self.kind(),
            name: self.name(),
            namespace,
        }
    }

    /// What it was called before. The group and version are always today's.
    pub(crate) fn previous_refs(&self) -> impl Iterator<Item = IdRef<'_>> {
        let (group, version) = split_api_version(self.api_version());
        self.previous.iter().map(move |previous| IdRef {
            group,
            version,
            kind: Cow::Borrowed(&previous.kind),
            name: Cow::Borrowed(&previous.name),
            namespace: Cow::Borrowed(effective(&previous.namespace)),
        })
    }

    /// Whether it is or was called so.
    pub(crate) fn any_id(&self, api: &OpenApi, matches: impl Fn(&IdRef<'_>) -> bool) -> bool {
        self.previous_refs().any(|id| matches(&id)) || matches(&self.id_ref(api))
    }

    pub(crate) fn current_id(&self, api: &OpenApi) -> ResId {
        let namespace = match self.is_cluster_scoped(api) {
            true => NOT_A_NAMESPACE.to_owned(),
            false => self.namespace().into_owned(),
        };
        ResId {
            gvk: self.gvk(),
            name: self.name().into_owned(),
            namespace,
        }
    }

    /// What it was called first.
    pub(crate) fn original_id(&self, api: &OpenApi) -> ResId {
        self.previous_ids().next().unwrap_or_else(|| self.current_id(api))
    }

    pub(crate) fn previous_ids(&self) -> impl Iterator<Item = ResId> {
        let (group, version) = split_api_version(self.api_version());
        self.previous.iter().map(move |previous| ResId {
            gvk: Gvk::new(group, version, &previous.kind),
            name: previous.name.clone(),
            namespace: previous.namespace.clone(),
        })
    }

    /// Notes what it is called now, because that is about to change.
    pub(crate) fn store_previous_id(&mut self, api: &OpenApi) {
        let id = self.id_ref(api);
        let previous = Previous {
            name: id.name.into_owned(),
            namespace: id.namespace.into_owned(),
            kind: id.kind.into_owned(),
        };
        self.previous.push(previous);
    }

    pub(crate) fn set_name(&mut self, name: &str) -> Result<()> {
        self.set_metadata("name", name)
    }

    /// An empty namespace removes the field.
    pub(crate) fn set_namespace(&mut self, namespace: &str) -> Result<()> {
        if !namespace.is_empty() {
            return self.set_metadata("namespace", namespace);
        }
        if let Some(Value::Object(metadata)) = self.value.get_mut("metadata") {
            metadata.shift_remove("namespace");
        }
        Ok(())
    }

    fn set_metadata(&mut self, field: &str, new: &str) -> Result<()> {
        if self.metadata(field).map(text).as_deref() == Some(new) {
            return Ok(());
        }
        let slot = self.metadata_mut()?.entry(field).or_insert(Value::Null);
        set_plain(slot, new);
        Ok(())
    }

    pub(crate) fn set_kind(&mut self, kind: &str) {
        if let Value::Object(fields) = &mut self.value {
            fields.insert("kind".to_owned(), Value::String(kind.to_owned()));
        }
    }

    pub(crate) fn set_api_version(&mut self, api_version: &str) {
        if let Value::Object(fields) = &mut self.value {
            fields.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
        }
    }

    fn metadata_mut(&mut self) -> Result<&mut Map<String, Value>> {
        match &mut self.value {
            Value::Object(fields) => map_entry(fields, "metadata"),
            _ => Err(Error::new("the object is not a map")),
        }
    }

    /// Labels or annotations as text.
    pub(crate) fn string_map(&self, field: &str) -> Vec<(&str, Cow<'_, str>)> {
        match self.metadata(field) {
            Some(Value::Object(entries)) => entries
                .iter()
                .map(|(key, value)| (key.as_str(), spelled(&self.blanks, field, key, value)))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.metadata("annotations")?.get(key).map(text)
    }

    pub(crate) fn set_annotation(&mut self, key: &str, value: &str) -> Result<()> {
        let annotations = map_entry(self.metadata_mut()?, "annotations")?;
        annotations.insert(key.to_owned(), Value::String(value.to_owned()));
        Ok(())
    }

    /// Removes an annotation.
    pub(crate) fn remove_annotation(&mut self, key: &str) {
        if let Some(Value::Object(annotations)) = self
            .value
            .get_mut("metadata")
            .and_then(|metadata| metadata.get_mut("annotations"))
        {
            annotations.shift_remove(key);
        }
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_gone(&self) -> bool {
        is_empty(&self.value)
    }

    /// Replaces labels or annotations; nothing is left of an empty map.
    pub(crate) fn set_string_map(&mut self, field: &str, entries: Map<String, Value>) -> Result<()> {
        let metadata = self.metadata_mut()?;
        if entries.is_empty() {
            metadata.shift_remove(field);
        } else {
            metadata.insert(field.to_owned(), Value::Object(entries));
        }
        Ok(())
    }

    /// Makes labels or annotations text, nulls included; nothing is left of what is no map or empty.
    pub(crate) fn settle_strings(&mut self, field: &str) {
        let Some(Value::Object(metadata)) = self.value.get_mut("metadata") else {
            return;
        };
        match metadata.get_mut(field) {
            None => {}
            Some(Value::Object(entries)) if !entries.is_empty() => {
                for (key, value) in entries.iter_mut().filter(|(_, value)| !value.is_string()) {
                    let text = spelled(&self.blanks, field, key, value).into_owned();
                    *value = Value::String(text);
                }
            }
            Some(_) => {
                metadata.shift_remove(field);
            }
        }
    }

    /// Makes annotations what the API wants: text, and none rather than an empty map.
    pub(crate) fn tidy_annotations(&mut self) {
        self.settle_strings("annotations");
    }

    /// Runs an operation that sees the history as annotations, and can change it.
    pub(crate) fn with_history<T>(&mut self, run: impl FnOnce(&mut Value) -> Result<T>) -> Result<T> {
        self.show_history()?;
        let done = run(&mut self.value);
        self.forget();
        if !self.is_gone() {
            self.take_history()?;
        }
        done
    }

    fn forget(&mut self) {
        self.previous.clear();
        self.prefixes.clear();
        self.suffixes.clear();
        self.behavior = None;
        self.needs_hash = false;
        self.allow_name_change = false;
        self.allow_kind_change = false;
        self.helm_generated = false;
    }

    fn show_history(&mut self) -> Result<()> {
        let list = |part: fn(&Previous) -> &String| {
            let parts: Vec<&str> = self
                .previous
                .iter()
                .map(|previous| part(previous).as_str())
                .collect();
            parts.join(",")
        };
        let flag = |set: bool, value: &str| if set { value.to_owned() } else { String::new() };
        let shown = [
            ("previousNames", list(|previous| &previous.name)),
            ("previousNamespaces", list(|previous| &previous.namespace)),
            ("previousKinds", list(|previous| &previous.kind)),
            ("prefixes", self.prefixes.join(",")),
            ("suffixes", self.suffixes.join(",")),
            ("generatorBehavior", self.behavior.clone().unwrap_or_default()),
            ("needsHashSuffix", flag(self.needs_hash, "enabled")),
            ("allowNameChange", flag(self.allow_name_change, "enabled")),
            ("allowKindChange", flag(self.allow_kind_change, "enabled")),
            ("helm-generated", flag(self.helm_generated, "true")),
        ];
        for (key, value) in shown.iter().filter(|(_, value)| !value.is_empty()) {
            self.set_annotation(&format!("{DOMAIN}{key}"), value)?;
        }
        Ok(())
    }

    /// Moves what is known of the past from annotations to fields.
    fn take_history(&mut self) -> Result<()> {
        let Some(Value::Object(annotations)) = self
            .value
            .get_mut("metadata")
            .and_then(|metadata| metadata.get_mut("annotations"))
        else {
            return Ok(());
        };
        if !annotations
            .keys()
            .any(|key| key.starts_with(DOMAIN) || FOREIGN.contains(&key.as_str()))
        {
            return Ok(());
        }
        let mut take = |key: &str| {
            let taken = annotations.shift_remove(&format!("{DOMAIN}{key}"));
            taken.map(|value| text(&value).into_owned())
        };
        let mut list = |key: &str| -> Vec<String> {
            let taken = take(key).unwrap_or_default();
            match taken.is_empty() {
                true => Vec::new(),
                false => taken.split(',').map(str::to_owned).collect(),
            }
        };
        let (names, namespaces, kinds) = (
            list("previousNames"),
            list("previousNamespaces"),
            list("previousKinds"),
        );
        let (prefixes, suffixes) = (list("prefixes"), list("suffixes"));
        if names.len() != namespaces.len() || names.len() != kinds.len() {
            return Err(Error::new(
                "number of previous names, number of previous namespaces, number of previous kinds not equal",
            ));
        }
        let previous = names.into_iter().zip(namespaces).zip(kinds);
        self.previous
            .extend(previous.map(|((name, namespace), kind)| Previous {
                name,
                namespace,
                kind,
            }));
        self.prefixes.extend(prefixes);
        self.suffixes.extend(suffixes);
        self.behavior = take("generatorBehavior").or(self.behavior.take());
        self.needs_hash |= take("needsHashSuffix").as_deref() == Some("enabled");
        self.allow_name_change |= take("allowNameChange").as_deref() == Some("enabled");
        self.allow_kind_change |= take("allowKindChange").as_deref() == Some("enabled");
        self.helm_generated |= take("helm-generated").as_deref() == Some("true");
        for key in UNUSED {
            take(key);
        }
        for key in FOREIGN {
            annotations.shift_remove(key);
        }
        // Whoever wrote nothing else wrote no annotations.
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = self.value.get_mut("metadata")
        {
            metadata.shift_remove("annotations");
        }
        Ok(())
    }
}

/// The text of a label or annotation. Null has the text that it was written with.
fn spelled<'v>(blanks: &'v [Blank], field: &str, key: &str, value: &'v Value) -> Cow<'v, str> {
    if !value.is_null() {
        return text(value);
    }
    let path = ["metadata", field, key].map(|part| Step::Key(part.to_owned()));
    let blank = blanks.iter().find(|blank| blank.path == path);
    Cow::Borrowed(blank.map_or("null", |blank| &blank.text))
}
