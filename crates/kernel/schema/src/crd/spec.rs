//! The parsed view of a definition.

use std::sync::Arc;

use serde_json::Value;

use super::scale::Scale;
use super::{flag, list, present, text};
use crate::field::{FieldError, Path};
use crate::jsonpath::JsonPath;
use crate::structural::Structural;

/// What a definition defines.
#[derive(Clone, Debug)]
pub struct CrdSpec {
    /// API group.
    pub group: String,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Names asked for; those in the status are the ones that may be used.
    pub names: Names,
    /// Versions in the order of the definition.
    pub versions: Vec<Version>,
    /// How objects are converted between versions.
    pub conversion: Conversion,
}

/// `spec.scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects live outside of namespaces.
    Cluster,
}

/// `spec.conversion.strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts; Fairway does not call it yet and treats it as `None`.
    Webhook,
}

/// `spec.names` or `status.acceptedNames`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// In URLs.
    pub plural: String,
    /// On the command line.
    pub singular: String,
    /// Abbreviations for the command line.
    pub short_names: Vec<String>,
    /// `kind` of objects.
    pub kind: String,
    /// `kind` of lists.
    pub list_kind: String,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
}

/// One version of the API.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its name, such as `v1`.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether its use is warned of.
    pub deprecated: bool,
    /// The warning, if it is not the usual one.
    pub deprecation_warning: Option<String>,
    /// The schema, shared by versions that have the same.
    pub schema: Option<Arc<Structural>>,
    /// `status` and `scale`.
    pub subresources: Subresources,
    /// Columns of tables, beside the name.
    pub printer_columns: Vec<PrinterColumn>,
    /// Fields that field selectors may use.
    pub selectable_fields: Vec<SelectableField>,
}

/// `subresources` of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subresources {
    /// There is `/status`.
    pub status: bool,
    /// There is `/scale`.
    pub scale: Option<Scale>,
}

/// One of `additionalPrinterColumns`.
#[derive(Clone, Debug)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub column_type: String,
    /// Format of the type.
    pub format: String,
    /// What it means.
    pub description: String,
    /// Columns above 0 are shown on demand only.
    pub priority: i64,
    /// Where the value is found, as written.
    pub json_path: String,
    /// The same, parsed; `None`: the expression is malformed and the column stays empty.
    pub path: Option<JsonPath>,
}

/// One of `selectableFields`.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// The path as written, such as `.spec.color`.
    pub json_path: String,
    /// The name in field selectors, such as `spec.color`.
    pub name: String,
    path: JsonPath,
}

impl SelectableField {
    /// The value that field selectors compare; empty if there is none.
    pub fn value(&self, object: &Value) -> String {
        match self.path.first(object) {
            None | Some(Value::Null) => String::new(),
            Some(value) => crate::jsonpath::text(value),
        }
    }
}

fn strings(value: &Value, field: &str) -> Vec<String> {
    list(value, field)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

impl Names {
    /// Reads `spec.names` or `status.acceptedNames`.
    pub fn parse(value: &Value) -> Self {
        Self {
            plural: text(value, "plural").to_owned(),
            singular: text(value, "singular").to_owned(),
            short_names: strings(value, "shortNames"),
            kind: text(value, "kind").to_owned(),
            list_kind: text(value, "listKind").to_owned(),
            categories: strings(value, "categories"),
        }
    }

    /// As it stands in the object.
    pub fn to_value(&self) -> Value {
        let mut out = serde_json::Map::new();
        let mut set = |name: &str, value: Value| {
            if !crate::structural::is_zero(&value) || name == "plural" || name == "kind" {
                out.insert(name.to_owned(), value);
            }
        };
        set("plural", self.plural.as_str().into());
        set("singular", self.singular.as_str().into());
        set("shortNames", self.short_names.clone().into());
        set("kind", self.kind.as_str().into());
        set("listKind", self.list_kind.as_str().into());
        set("categories", self.categories.clone().into());
        Value::Object(out)
    }
}

impl CrdSpec {
    /// Reads a definition that was accepted before, with its defaults filled in.
    ///
    /// # Errors
    /// A schema is malformed, which cannot happen for a definition that passed [`super::validate`].
    pub fn parse(crd: &Value) -> Result<Self, Vec<FieldError>> {
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        let mut versions: Vec<Version> = Vec::new();
        let mut schemas: Vec<(&Value, Arc<Structural>)> = Vec::new();
        for version in list(spec, "versions") {
            let schema = match version.get("schema").and_then(|s| present(s, "openAPIV3Schema")) {
                None => None,
                Some(raw) => Some(match schemas.iter().find(|(known, _)| *known == raw) {
                    Some((_, schema)) => Arc::clone(schema),
                    None => {
                        let schema = Arc::new(Structural::load(raw)?);
                        schemas.push((raw, Arc::clone(&schema)));
                        schema
                    }
                }),
            };
            versions.push(Version::parse(version, schema));
        }
        let conversion = match spec.get("conversion").map(|c| text(c, "strategy")) {
            Some("Webhook") => Conversion::Webhook,
            _ => Conversion::None,
        };
        let scope = if text(spec, "scope") == "Namespaced" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let group = text(spec, "group").to_owned();
        if group.is_empty() {
            return Err(vec![FieldError::required(&Path::new("spec.group"), "")]);
        }
        let names = Names::parse(spec.get("names").unwrap_or(&Value::Null));
        Ok(Self {
            group,
            scope,
            names,
            versions,
            conversion,
        })
    }

    /// The version of that name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.name == name)
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|v| v.storage)
    }

    /// The versions that are served, the preferred one first.
    pub fn served_versions(&self) -> Vec<&Version> {
        let mut served: Vec<&Version> = self.versions.iter().filter(|v| v.served).collect();
        served.sort_by(|a, b| super::versions::compare(&b.name, &a.name));
        served
    }

    /// The warning that goes with each answer of a deprecated version.
    pub fn deprecation_warning(&self, version: &str) -> Option<String> {
        let version = self.version(version).filter(|v| v.deprecated)?;
        if let Some(warning) = &version.deprecation_warning {
            return Some(warning.clone());
        }
        let (group, kind) = (&self.group, &self.names.kind);
        let mut warning = format!("{group}/{} {kind} is deprecated", version.name);
        let newer = self.served_versions().into_iter().find(|v| {
            !v.deprecated && super::versions::compare(&version.name, &v.name) == std::cmp::Ordering::Less
        });
        if let Some(newer) = newer {
            warning.push_str(&format!("; use {group}/{} {kind}", newer.name));
        }
        Some(warning)
    }
}

impl Version {
    fn parse(version: &Value, schema: Option<Arc<Structural>>) -> Self {
        let subresources = version.get("subresources").unwrap_or(&Value::Null);
        let printer_columns = list(version, "additionalPrinterColumns")
            .iter()
            .map(|column| {
                let json_path = text(column, "jsonPath").to_owned();
                PrinterColumn {
                    name: text(column, "name").to_owned(),
                    column_type: text(column, "type").to_owned(),
                    format: text(column, "format").to_owned(),
                    description: text(column, "description").to_owned(),
                    priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                    path: JsonPath::parse(&json_path).ok(),
                    json_path,
                }
            })
            .collect();
        let selectable_fields = list(version, "selectableFields")
            .iter()
            .filter_map(|field| {
                let json_path = text(field, "jsonPath");
                Some(SelectableField {
                    path: JsonPath::parse(json_path).ok()?,
                    name: json_path.trim_start_matches('.').to_owned(),
                    json_path: json_path.to_owned(),
                })
            })
            .collect();
        Self {
            name: text(version, "name").to_owned(),
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            deprecated: flag(version, "deprecated"),
            deprecation_warning: present(version, "deprecationWarning")
                .and_then(Value::as_str)
                .map(str::to_owned),
            schema,
            subresources: Subresources {
                status: present(subresources, "status").is_some(),
                scale: present(subresources, "scale").map(Scale::parse),
            },
            printer_columns,
            selectable_fields,
        }
    }
}
