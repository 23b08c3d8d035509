//! From facts to definitions: the head of a kind, its schema with what repeats written once, and the whole.

mod unlisted;

use serde_json::{Map, Value, json};

use crate::facts::{Field, Form, KindFacts, PERCENT, QUANTITY, Rule, Simple, Table, TypeFacts, kinds};
use crate::{argoproj, backstage, fairway, gateway, identity, kubevirt};

/// What a file of facts is about.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) group: &'static str,
    pub(crate) facts: &'static str,
    /// `Kind.path.of.field: what it is`, a line each.
    pub(crate) words: &'static str,
    /// What the definitions of the group say of themselves.
    pub(crate) annotations: &'static [(&'static str, &'static str)],
}

static SOURCES: [Source; 4] = [
    Source {
        group: argoproj::GROUP,
        facts: include_str!("../data/argoproj.facts"),
        words: include_str!("../data/argoproj.words"),
        annotations: &[],
    },
    Source {
        group: argoproj::GROUP,
        facts: include_str!("../data/argocd_operator.facts"),
        words: include_str!("../data/argocd_operator.words"),
        annotations: &[],
    },
    Source {
        group: fairway::GROUP,
        facts: include_str!("../data/fairway.facts"),
        words: include_str!("../data/fairway.words"),
        annotations: &[],
    },
    Source {
        group: backstage::GROUP,
        facts: include_str!("../data/backstage_scaffolder.facts"),
        words: include_str!("../data/backstage_scaffolder.words"),
        annotations: &[],
    },
];

/// The definition of a kind.
#[derive(Clone, Debug)]
pub struct Definition {
    source: &'static Source,
    kind: KindFacts<'static>,
}

/// The definitions of GitOps' kinds and of Fairway's own.
pub fn definitions() -> Vec<Definition> {
    of_sources(&SOURCES)
}

/// The definitions of virtual machines' kinds. They are not among [`definitions`]: whoever serves them also completes and
/// judges their objects.
pub fn machine_definitions() -> Vec<Definition> {
    of_sources(&kubevirt::SOURCES)
}

/// The definitions of what publishes services: Gateway API's kinds, OpenShift's Route, Kuadrant's policies.
pub fn gateway_definitions() -> Vec<Definition> {
    of_sources(&gateway::SOURCES)
}

/// The definitions of what identity consists of: users, groups, clients, sessions.
pub fn identity_definitions() -> Vec<Definition> {
    of_sources(&identity::SOURCES)
}

fn of_sources(sources: &'static [Source]) -> Vec<Definition> {
    let mut found = Vec::new();
    for source in sources {
        // The text is part of the program, and tests read each.
        for kind in kinds(source.facts).unwrap_or_default() {
            found.push(Definition { source, kind });
        }
    }
    found
}

impl Definition {
    /// API group.
    pub fn group(&self) -> &'static str {
        self.source.group
    }

    /// What is known of the kind beside its fields.
    pub fn kind(&self) -> &KindFacts<'static> {
        &self.kind
    }

    /// Changes when the definition does.
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a: no secret, only a change must be seen. Long tables say in their first line what they sum up to, so
        // that they need not be read for this.
        let facts = self.source.facts;
        let first = facts.lines().next().unwrap_or_default();
        let read = if first.contains(" sum=") { first } else { facts };
        let bytes = read.bytes().chain(self.source.words.bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The definition in the form of a CustomResourceDefinition, without its schema.
    pub fn head(&self) -> Value {
        let kind = &self.kind;
        let mut names = json!({
            "plural": kind.plural,
            "singular": kind.singular,
            "kind": kind.kind,
            "listKind": format!("{}List", kind.kind),
        });
        if !kind.short_names.is_empty() {
            names["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            names["categories"] = json!(kind.categories);
        }
        let mut version = json!({"name": kind.version, "served": true, "storage": true});
        if kind.status {
            version["subresources"] = json!({"status": {}});
        }
        if !kind.columns.is_empty() {
            let columns = kind.columns.iter().map(|column| {
                let mut shown = json!({
                    "name": column.name, "type": column.column_type, "jsonPath": column.path,
                });
                if column.priority != 0 {
                    shown["priority"] = json!(column.priority);
                }
                shown
            });
            version["additionalPrinterColumns"] = columns.collect();
        }
        let others = kind.also.iter().map(|name| {
            let mut other = version.clone();
            other["name"] = json!(name);
            other["storage"] = json!(false);
            other
        });
        let versions: Vec<Value> = std::iter::once(version.clone()).chain(others).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", kind.plural, self.source.group)},
            "spec": {
                "group": self.source.group,
                "names": names,
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "versions": versions,
            },
        })
    }

    /// The schema: `$ref` names an entry of `$defs`.
    pub fn schema(&self) -> Value {
        let Ok(table) = Table::parse(self.source.facts) else {
            return Value::Null;
        };
        let by_name = |name: &str| json!({ "$ref": name });
        let mut definitions = Map::new();
        // What this kind uses, found from its own type on.
        let mut wanted = vec![self.kind.kind];
        while let Some(name) = wanted.pop() {
            let Some(facts) = table.types.get(name) else {
                continue;
            };
            if definitions.contains_key(name) {
                continue;
            }
            definitions.insert(name.to_owned(), structure(facts, &by_name));
            wanted.extend(facts.fields.iter().filter_map(|field| field.form.type_name()));
        }
        json!({"$ref": self.kind.kind, "$defs": definitions})
    }

    /// The whole CustomResourceDefinition, every structure written out wherever it is used.
    pub fn crd(&self) -> Value {
        let mut whole = self.head();
        for (key, value) in self.source.annotations {
            whole["metadata"]["annotations"][key] = json!(value);
        }
        let Ok(table) = Table::parse(self.source.facts) else {
            return whole;
        };
        let mut schema = written_out(&table, self.kind.kind);
        for line in self.source.words.lines() {
            if let Some((path, words)) = line.split_once(": ") {
                let mut path = path.split('.');
                if path.next() == Some(self.kind.kind) {
                    describe(&mut schema, path, words);
                }
            }
        }
        for version in whole["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["schema"] = json!({ "openAPIV3Schema": schema });
        }
        whole
    }
}

fn written_out(table: &Table<'_>, name: &str) -> Value {
    match table.types.get(name) {
        Some(facts) => structure(facts, &|name| written_out(table, name)),
        None => json!({}),
    }
}

fn structure(facts: &TypeFacts<'_>, of_type: &dyn Fn(&str) -> Value) -> Value {
    let mut schema = json!({"type": "object"});
    let mut properties = Map::new();
    for field in &facts.fields {
        properties.insert(field.name.to_owned(), value_of(field, of_type));
    }
    schema["properties"] = Value::Object(properties);
    let required: Vec<&str> = facts
        .fields
        .iter()
        .filter(|f| f.required)
        .map(|f| f.name)
        .collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if facts.atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if facts.open {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if facts.nullable {
        schema["nullable"] = json!(true);
    }
    if let Some(more) = facts.more {
        lay_over(&mut schema, &read(more));
    }
    schema
}

/// JSON that is part of the program; tests read each.
fn read(more: &str) -> Value {
    serde_json::from_str(more).unwrap_or_default()
}

/// Puts what has no word of its own on a schema.
fn lay_over(schema: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        if value.is_object() && schema[key].is_object() {
            lay_over(&mut schema[key], value);
        } else {
            schema[key] = value.clone();
        }
    }
}

fn value_of(field: &Field<'_>, of_type: &dyn Fn(&str) -> Value) -> Value {
    let mut schema = form(&field.form, of_type);
    for rule in &field.rules {
        let (key, value) = match rule {
            Rule::More(more) => {
                lay_over(&mut schema, &read(more));
                continue;
            }
            Rule::Atomic if matches!(field.form, Form::List(_)) => {
                ("x-kubernetes-list-type", json!("atomic"))
            }
            Rule::Atomic => ("x-kubernetes-map-type", json!("atomic")),
            Rule::Set => ("x-kubernetes-list-type", json!("set")),
            Rule::Key(keys) => {
                schema["x-kubernetes-list-type"] = json!("map");
                ("x-kubernetes-list-map-keys", keys.split(',').collect())
            }
            Rule::Nullable => ("nullable", json!(true)),
            Rule::MaxItems(limit) => ("maxItems", json!(limit)),
            Rule::Minimum(limit) => ("minimum", json!(limit)),
            Rule::Maximum(limit) => ("maximum", json!(limit)),
            Rule::Default(text) => ("default", json!(text)),
            Rule::Check(message, expression) => (
                "x-kubernetes-validations",
                json!([{"message": message, "rule": expression}]),
            ),
            Rule::Enum(values) => ("enum", values.split('|').collect()),
            Rule::MinLength(limit) => ("minLength", json!(limit)),
            Rule::MaxLength(limit) => ("maxLength", json!(limit)),
            Rule::Pattern(pattern) => ("pattern", json!(pattern)),
        };
        schema[key] = value;
    }
    schema
}

fn form(form_of: &Form<'_>, of_type: &dyn Fn(&str) -> Value) -> Value {
    match form_of {
        Form::Simple(simple) => simple_schema(*simple),
        Form::List(element) => json!({"type": "array", "items": form(element, of_type)}),
        Form::Map(element) => json!({"type": "object", "additionalProperties": form(element, of_type)}),
        Form::Type(name) => of_type(name),
    }
}

fn simple_schema(simple: Simple) -> Value {
    match simple {
        Simple::String => json!({"type": "string"}),
        Simple::Boolean => json!({"type": "boolean"}),
        Simple::Integer => json!({"type": "integer"}),
        Simple::Int64 => json!({"type": "integer", "format": "int64"}),
        Simple::Int32 => json!({"type": "integer", "format": "int32"}),
        Simple::Number => json!({"type": "number"}),
        Simple::Time => json!({"type": "string", "format": "date-time"}),
        Simple::IntOrString => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
        }),
        Simple::Quantity => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "pattern": QUANTITY,
        }),
        Simple::Percent => json!({"type": "string", "pattern": PERCENT}),
        Simple::Object => json!({"type": "object"}),
        Simple::Open => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Simple::Any => json!({"x-kubernetes-preserve-unknown-fields": true}),
    }
}

impl<'t> Form<'t> {
    /// The type that the form leads to.
    fn type_name(&self) -> Option<&'t str> {
        match self {
            Self::Simple(_) => None,
            Self::List(element) | Self::Map(element) => element.type_name(),
            Self::Type(name) => Some(name),
        }
    }
}

/// Puts words on the field that a path leads to; lists are walked through.
fn describe<'p>(schema: &mut Value, mut path: impl Iterator<Item = &'p str>, words: &str) {
    let Some(name) = path.next() else {
        schema["description"] = json!(words);
        return;
    };
    let holder = if schema.get("items").is_some() {
        &mut schema["items"]
    } else {
        schema
    };
    if let Some(field) = holder.get_mut("properties").and_then(|all| all.get_mut(name)) {
        describe(field, path, words);
    }
}

#[cfg(test)]
mod gateway_tests;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod tests;
