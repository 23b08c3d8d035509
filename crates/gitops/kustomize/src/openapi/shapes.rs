//! How the lists of kinds merge: an OpenAPI document reduced to what a strategic merge asks of it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// Deeper than any schema that people write; beyond it nothing is known.
const MAX_DEPTH: usize = 64;

/// The built-in table; see `xtask/src/codegen/merge_keys.rs` for its format.
const BUILTIN: &str = include_str!("../../data/merge_keys.table");

/// The schemas of one document, in one arena.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    /// Shapes by the name of their definition.
    names: HashMap<String, usize>,
    kinds: HashMap<(String, String), usize>,
    namespaced: HashMap<(String, String), bool>,
}

#[derive(Debug, Default)]
struct Shape {
    /// The definition that stands here, wherever the latest of that name is.
    reference: Option<String>,
    fields: HashMap<String, usize>,
    /// Of the keys that are not among the fields.
    others: Option<usize>,
    items: Option<usize>,
    merges: bool,
    keys: Vec<String>,
}

/// The documents that have been read, later ones over earlier ones.
pub(super) type Layers = Arc<Vec<Arc<Shapes>>>;

/// The schema of a value.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    layers: Layers,
    layer: usize,
    index: usize,
}

impl Schema {
    pub(super) fn of_kind(layers: &Layers, api_version: &str, kind: &str) -> Option<Self> {
        let kind = (api_version.to_owned(), kind.to_owned());
        let (layer, index) = layers
            .iter()
            .enumerate()
            .rev()
            .find_map(|(layer, shapes)| Some((layer, *shapes.kinds.get(&kind)?)))?;
        Some(Self {
            layers: layers.clone(),
            layer,
            index,
        })
    }

    /// The schema at a place of the same document, or of another that has the definition meant there.
    fn at(&self, index: usize) -> Option<Self> {
        let (mut layer, mut index) = (self.layer, index);
        // A definition that is nothing but a reference may lead to another one, and around.
        for _ in 0..MAX_DEPTH {
            let Some(name) = &self.layers.get(layer)?.shapes.get(index)?.reference else {
                return Some(Self {
                    layers: self.layers.clone(),
                    layer,
                    index,
                });
            };
            (layer, index) = self
                .layers
                .iter()
                .enumerate()
                .rev()
                .find_map(|(layer, shapes)| Some((layer, *shapes.names.get(name)?)))?;
        }
        None
    }

    fn shape(&self) -> Option<&Shape> {
        self.layers.get(self.layer)?.shapes.get(self.index)
    }

    /// The schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let shape = self.shape()?;
        let index = shape.fields.get(name).copied().or(shape.others)?;
        self.at(index)
    }

    /// The schema of the items of a list.
    pub(crate) fn items(&self) -> Option<Self> {
        self.at(self.shape()?.items?)
    }

    /// Whether lists merge by their items instead of replacing each other.
    pub(crate) fn merges(&self) -> bool {
        self.shape().is_some_and(|shape| shape.merges)
    }

    /// The fields by which items are told apart.
    pub(crate) fn keys(&self) -> &[String] {
        self.shape().map_or(&[], |shape| &shape.keys)
    }
}

/// The built-in table, read once.
pub(super) fn builtin() -> Arc<Shapes> {
    static SHAPES: OnceLock<Arc<Shapes>> = OnceLock::new();
    SHAPES
        .get_or_init(|| Arc::new(Shapes::from_table(BUILTIN)))
        .clone()
}

impl Shapes {
    pub(super) fn is_namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self.namespaced
            .get(&(api_version.to_owned(), kind.to_owned()))
            .copied()
    }

    /// Reads the generated table. Shape 0 is of everything that has no list to merge in it.
    fn from_table(table: &str) -> Self {
        let mut shapes = Self {
            shapes: vec![Shape::default()],
            ..Self::default()
        };
        let mut names: HashMap<&str, usize> = HashMap::new();
        for line in table.lines() {
            if let Some(name) = line.strip_prefix("type ") {
                names.insert(name, shapes.shapes.len());
                shapes.names.insert(name.to_owned(), shapes.shapes.len());
                shapes.shapes.push(Shape::default());
            }
        }
        let mut current = 0;
        for line in table.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["type", name] => current = names.get(name).copied().unwrap_or(0),
                ["object", field, name] => {
                    let target = names.get(name).copied().unwrap_or(0);
                    shapes.set_field(current, field, target);
                }
                ["list", field, keys, name] => {
                    let list = Shape {
                        items: Some(names.get(name).copied().unwrap_or(0)),
                        merges: true,
                        keys: match keys {
                            "-" => Vec::new(),
                            keys => keys.split(',').map(str::to_owned).collect(),
                        },
                        ..Shape::default()
                    };
                    let index = shapes.shapes.len();
                    shapes.shapes.push(list);
                    shapes.set_field(current, field, index);
                }
                ["kind", api_version, kind, name] => {
                    let index = names.get(name).copied().unwrap_or(0);
                    shapes
                        .kinds
                        .insert((api_version.to_owned(), kind.to_owned()), index);
                }
                _ => {}
            }
        }
        // Fields that are not in the table are known to have nothing to merge in them.
        for index in names.into_values() {
            shapes.shapes[index].others = Some(0);
        }
        shapes
    }

    fn set_field(&mut self, shape: usize, field: &str, target: usize) {
        if let Some(shape) = self.shapes.get_mut(shape) {
            shape.fields.insert(field.to_owned(), target);
        }
    }

    /// Reads an OpenAPI document.
    pub(super) fn from_openapi(document: &Value) -> Self {
        let empty = serde_json::Map::new();
        let definitions = document
            .get("definitions")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let mut shapes = Self::default();
        for (index, name) in definitions.keys().enumerate() {
            shapes.names.insert(name.clone(), index);
            shapes.shapes.push(Shape::default());
        }
        for (index, definition) in definitions.values().enumerate() {
            shapes.fill(index, definition, MAX_DEPTH);
            let kinds = definition
                .get("x-kubernetes-group-version-kind")
                .and_then(Value::as_array);
            for kind in kinds.into_iter().flatten() {
                if let Some(kind) = type_of(kind) {
                    shapes.kinds.insert(kind, index);
                }
            }
        }
        let paths = document.get("paths").and_then(Value::as_object).unwrap_or(&empty);
        for (path, item) in paths {
            let Some(kind) = item
                .pointer("/get/x-kubernetes-group-version-kind")
                .and_then(type_of)
            else {
                continue;
            };
            let namespaced = path.contains("namespaces/{namespace}");
            let known = shapes.namespaced.entry(kind).or_insert(namespaced);
            *known |= namespaced;
        }
        shapes
    }

    fn fill(&mut self, index: usize, schema: &Value, depth: usize) {
        let mut shape = Shape::default();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.strip_prefix("#/definitions/").unwrap_or(reference);
            shape.reference = Some(name.to_owned());
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                if let Some(target) = self.reference(property, depth) {
                    shape.fields.insert(name.clone(), target);
                }
            }
        }
        if let Some(others @ Value::Object(_)) = schema.get("additionalProperties") {
            shape.others = self.reference(others, depth);
        }
        if schema.get("type").and_then(Value::as_str) == Some("array")
            && let Some(items) = schema.get("items")
        {
            shape.items = self.reference(items, depth);
        }
        if let Some(strategy) = schema.get("x-kubernetes-patch-strategy").and_then(Value::as_str) {
            shape.merges = strategy.split(',').any(|part| part == "merge");
            let one = schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
            let several = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            shape.keys = match (several, one) {
                (Some(keys), _) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                (None, Some(key)) => vec![key.to_owned()],
                (None, None) => Vec::new(),
            };
        }
        if let Some(slot) = self.shapes.get_mut(index) {
            *slot = shape;
        }
    }

    fn reference(&mut self, schema: &Value, depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        let index = self.shapes.len();
        self.shapes.push(Shape::default());
        self.fill(index, schema, depth);
        Some(index)
    }
}

fn type_of(kind: &Value) -> Option<(String, String)> {
    let part = |name: &str| kind.get(name).and_then(Value::as_str);
    let (version, kind) = (part("version")?, part("kind")?);
    let api_version = match part("group") {
        None | Some("") => version.to_owned(),
        Some(group) => format!("{group}/{version}"),
    };
    Some((api_version, kind.to_owned()))
}
