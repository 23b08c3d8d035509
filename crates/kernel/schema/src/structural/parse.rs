//! From a JSONSchemaProps object to the compiled form.
//!
//! This reads whatever is well-typed; whether the schema is structural and sensible is checked beforehand on the JSON.

use std::collections::HashMap;
use std::sync::Arc;

use fairway_text_cel::DeclType;
use serde_json::{Map, Value};

use super::formats::Format;
use super::node::{Additional, Check, Children, Flags, ListType, Node, Type};
use super::pattern::Pattern;
use super::rules::RuleSet;
use crate::field::{FieldError, Path};

/// Schemas nest at most this deep; JSON bodies do not get deeper than twice that.
pub(super) const MAX_DEPTH: usize = 100;

/// A schema in which every definition stands where it is referred to.
fn written_out(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    let inside = |part: &Value| written_out(part, definitions, depth + 1);
    match schema {
        Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
            Some(name) => definitions.get(name).map_or(Value::Null, inside),
            None => Value::Object(
                fields
                    .iter()
                    .map(|(key, part)| (key.clone(), inside(part)))
                    .collect(),
            ),
        },
        Value::Array(parts) => Value::Array(parts.iter().map(inside).collect()),
        other => other.clone(),
    }
}

/// State shared by all nodes of one schema.
#[derive(Default)]
pub(super) struct Parser<'d> {
    /// What `$ref` may name, in schemas that are part of the program. Those of clients cannot have it.
    pub(super) definitions: Option<&'d Map<String, Value>>,
    /// What is inside the definitions that were met, and what that means for whoever refers to them.
    shared: HashMap<&'d str, (Option<Arc<Children>>, Flags)>,
    /// What CEL sees of definitions with rules.
    declared: HashMap<&'d str, Option<Arc<DeclType>>>,
    /// Many fields of one definition share a few patterns.
    patterns: HashMap<String, Arc<Pattern>>,
    pub(super) errors: Vec<FieldError>,
}

impl<'d> Parser<'d> {
    /// Compiles a schema object. `decl` is what CEL sees of it by the rules of a schema further up.
    pub(super) fn node(
        &mut self,
        schema: &Value,
        path: &Path,
        depth: usize,
        decl: Option<&Arc<DeclType>>,
    ) -> Node {
        let mut node = Node {
            schema_type: Type::Any,
            format: Format::None,
            list_type: ListType::Atomic,
            flags: Flags::default(),
            children: None,
            checks: Box::default(),
            default: None,
        };
        let Some(object) = schema.as_object() else {
            self.errors.push(FieldError::invalid(
                path,
                schema.clone(),
                "must be a schema object",
            ));
            return node;
        };
        if depth > MAX_DEPTH {
            self.errors.push(FieldError::forbidden(
                path,
                "schemas must not be nested that deeply",
            ));
            return node;
        }
        if let Some(name) = object.get("$ref").and_then(Value::as_str)
            && let Some(definitions) = self.definitions
        {
            let Some((name, definition)) = definitions.get_key_value(name) else {
                self.errors.push(FieldError::not_found(path, name));
                return node;
            };
            return self.definition(name, definition, path, depth);
        }
        let mut fields = Fields {
            object,
            path,
            parser: self,
        };
        let type_name = fields.text("type");
        node.schema_type = Type::parse(type_name).unwrap_or(Type::Any);
        for (field, flag) in [
            ("nullable", Flags::NULLABLE),
            ("x-kubernetes-int-or-string", Flags::INT_OR_STRING),
            ("x-kubernetes-embedded-resource", Flags::EMBEDDED),
            ("x-kubernetes-preserve-unknown-fields", Flags::PRESERVE_UNKNOWN),
        ] {
            if fields.flag(field) {
                node.flags.set(flag);
            }
        }
        let integer_or_string = node.has(Flags::INT_OR_STRING);
        let format = fields.text("format");
        node.format = Format::parse(
            format,
            if integer_or_string {
                Type::Any
            } else {
                node.schema_type
            },
        );
        if node.format == Format::None && !format.is_empty() {
            node.flags.set(Flags::UNCHECKED_FORMAT);
        }
        if fields.text("x-kubernetes-map-type") == "atomic" {
            node.flags.set(Flags::ATOMIC_MAP);
        }
        node.list_type = match fields.text("x-kubernetes-list-type") {
            "set" => ListType::Set,
            "map" => ListType::Map,
            _ => ListType::Atomic,
        };
        if node.list_type != ListType::Atomic {
            node.flags.set(Flags::KEYED_LISTS_BELOW);
        }
        if node.has(Flags::EMBEDDED) {
            node.flags.set(Flags::EMBEDDED_BELOW);
        }
        node.default = fields.get("default").map(|v| Box::new(v.clone()));
        if node.default.is_some() {
            node.flags.set(Flags::DEFAULTS_BELOW);
        }
        let mut checks = fields.checks();
        let mut decl = decl.cloned().or_else(|| self.declare(schema, depth == 0));
        if let Some(rules) = RuleSet::parse(schema, decl.as_ref(), depth == 0) {
            node.flags.set(Flags::RULES_BELOW);
            decl = rules.decl().cloned();
            checks.push(Check::Rules(Box::new(rules)));
        }
        self.children(object, path, depth, decl.as_deref(), &mut node);
        self.junctors(object, path, depth, &mut checks);
        node.checks = checks.into_boxed_slice();
        node
    }

    /// A node that refers to a definition: what is inside is compiled once.
    fn definition(&mut self, name: &'d str, schema: &'d Value, path: &Path, depth: usize) -> Node {
        let decl = match self.declared.get(name) {
            Some(decl) => decl.clone(),
            None => {
                let decl = self.declare(schema, depth == 0);
                self.declared.insert(name, decl.clone());
                decl
            }
        };
        let Some((children, below)) = self.shared.get(name).cloned() else {
            let node = self.node(schema, path, depth + 1, decl.as_ref());
            self.shared.insert(name, (node.children.clone(), node.flags));
            return node;
        };
        // Its own limits are few; the walk stops at the fields.
        const INSIDE: [&str; 3] = ["items", "properties", "additionalProperties"];
        let limits = schema.as_object().into_iter().flatten();
        let own = limits.filter(|(key, _)| !INSIDE.contains(&key.as_str()));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut node = self.node(&Value::Object(own), path, depth + 1, decl.as_ref());
        node.children = children;
        node.flags.inherit(below);
        node
    }

    /// What CEL sees of a schema with rules, where parts of it are definitions: rules see through those.
    fn declare(&self, schema: &Value, is_resource: bool) -> Option<Arc<DeclType>> {
        let definitions = self.definitions?;
        schema.get("x-kubernetes-validations")?;
        let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        DeclType::from_json_schema(&written_out(schema, definitions, 0), is_resource || embedded)
    }

    fn children(
        &mut self,
        object: &Map<String, Value>,
        path: &Path,
        depth: usize,
        decl: Option<&DeclType>,
        node: &mut Node,
    ) {
        let mut children = Children::default();
        match object.get("items") {
            // A list of schemas is refused elsewhere, with better words.
            None | Some(Value::Null | Value::Array(_)) => {}
            Some(items) => {
                let items = self.node(
                    items,
                    &path.child("items"),
                    depth + 1,
                    decl.and_then(DeclType::items),
                );
                node.flags.inherit(items.flags);
                children.items = Some(Box::new(items));
            }
        }
        match object.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(properties)) => {
                let base = path.child("properties");
                let mut parsed: Vec<(Box<str>, Node)> = Vec::with_capacity(properties.len());
                for (name, schema) in properties {
                    let child = self.node(
                        schema,
                        &base.key(name),
                        depth + 1,
                        decl.and_then(|d| d.field(name)),
                    );
                    node.flags.inherit(child.flags);
                    parsed.push((name.as_str().into(), child));
                }
                parsed.sort_by(|a, b| a.0.cmp(&b.0));
                children.properties = parsed.into_boxed_slice();
            }
            Some(other) => self.wrong_type(path, "properties", other, "an object"),
        }
        match object.get("additionalProperties") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(true)) => children.additional = Additional::Allowed,
            Some(Value::Bool(false)) => children.additional = Additional::Forbidden,
            Some(schema) => {
                let child = self.node(
                    schema,
                    &path.child("additionalProperties"),
                    depth + 1,
                    decl.and_then(DeclType::additional_properties),
                );
                node.flags.inherit(child.flags);
                children.additional = Additional::Schema(Box::new(child));
            }
        }
        children.map_keys = self.strings(object, path, "x-kubernetes-list-map-keys");
        let any = children.items.is_some()
            || !children.properties.is_empty()
            || !children.map_keys.is_empty()
            || !matches!(children.additional, Additional::Unset);
        if any {
            node.children = Some(Arc::new(children));
        }
    }

    fn junctors(&mut self, object: &Map<String, Value>, path: &Path, depth: usize, checks: &mut Vec<Check>) {
        type Wrap = fn(Box<[Node]>) -> Check;
        let junctors: [(&str, Wrap); 3] = [
            ("anyOf", Check::AnyOf),
            ("oneOf", Check::OneOf),
            ("allOf", Check::AllOf),
        ];
        for (field, wrap) in junctors {
            match object.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::Array(schemas)) => {
                    let base = path.child(field);
                    let nodes: Vec<Node> = schemas
                        .iter()
                        .enumerate()
                        .map(|(i, schema)| self.node(schema, &base.index(i), depth + 1, None))
                        .collect();
                    if !nodes.is_empty() {
                        checks.push(wrap(nodes.into_boxed_slice()));
                    }
                }
                Some(other) => self.wrong_type(path, field, other, "a list of schemas"),
            }
        }
        match object.get("not") {
            None | Some(Value::Null) => {}
            Some(schema) => {
                checks.push(Check::Not(Box::new(self.node(
                    schema,
                    &path.child("not"),
                    depth + 1,
                    None,
                ))));
            }
        }
    }

    fn wrong_type(&mut self, path: &Path, field: &str, value: &Value, expected: &str) {
        self.errors.push(FieldError::invalid(
            &path.child(field),
            value.clone(),
            format!("must be {expected}"),
        ));
    }

    fn strings(&mut self, object: &Map<String, Value>, path: &Path, field: &str) -> Box<[Box<str>]> {
        match object.get(field) {
            None | Some(Value::Null) => Box::default(),
            Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
                values.iter().filter_map(Value::as_str).map(Box::from).collect()
            }
            Some(other) => {
                self.wrong_type(path, field, other, "a list of strings");
                Box::default()
            }
        }
    }
}

/// The scalar fields of one schema object.
struct Fields<'a, 'p, 'd> {
    object: &'a Map<String, Value>,
    path: &'p Path,
    parser: &'p mut Parser<'d>,
}

impl<'a> Fields<'a, '_, '_> {
    fn get(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|v| !v.is_null())
    }

    fn typed<T>(&mut self, field: &str, expected: &str, read: fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.get(field)?;
        let read = read(value);
        if read.is_none() {
            self.parser.wrong_type(self.path, field, value, expected);
        }
        read
    }

    fn text(&mut self, field: &str) -> &'a str {
        self.typed(field, "a string", Value::as_str).unwrap_or("")
    }

    fn flag(&mut self, field: &str) -> bool {
        self.typed(field, "a boolean", Value::as_bool).unwrap_or(false)
    }

    fn number(&mut self, field: &str) -> Option<f64> {
        self.typed(field, "a number", Value::as_f64)
    }

    fn integer(&mut self, field: &str) -> Option<i64> {
        self.typed(field, "an integer", Value::as_i64)
    }

    fn checks(&mut self) -> Vec<Check> {
        let mut checks = Vec::new();
        checks.extend(self.number("multipleOf").map(Check::MultipleOf));
        let exclusive = self.flag("exclusiveMinimum");
        checks.extend(
            self.number("minimum")
                .map(|limit| Check::Minimum { limit, exclusive }),
        );
        let exclusive = self.flag("exclusiveMaximum");
        checks.extend(
            self.number("maximum")
                .map(|limit| Check::Maximum { limit, exclusive }),
        );
        checks.extend(self.integer("maxLength").map(Check::MaxLength));
        checks.extend(self.integer("minLength").map(Check::MinLength));
        let pattern = self.text("pattern");
        if !pattern.is_empty() {
            let shared = match self.parser.patterns.get(pattern) {
                Some(known) => Arc::clone(known),
                None => {
                    let new = Arc::new(Pattern::new(pattern));
                    self.parser.patterns.insert(pattern.to_owned(), Arc::clone(&new));
                    new
                }
            };
            checks.push(Check::Pattern(shared));
        }
        checks.extend(self.integer("minItems").map(Check::MinItems));
        checks.extend(self.integer("maxItems").map(Check::MaxItems));
        if self.flag("uniqueItems") {
            checks.push(Check::UniqueItems);
        }
        checks.extend(self.integer("minProperties").map(Check::MinProperties));
        checks.extend(self.integer("maxProperties").map(Check::MaxProperties));
        let required = self.parser.strings(self.object, self.path, "required");
        if !required.is_empty() {
            checks.push(Check::Required(required));
        }
        match self.get("enum") {
            None => {}
            Some(Value::Array(values)) if values.is_empty() => {}
            Some(Value::Array(values)) => checks.push(Check::Enum(values.clone().into_boxed_slice())),
            Some(other) => self.parser.wrong_type(self.path, "enum", other, "a list"),
        }
        checks
    }
}
