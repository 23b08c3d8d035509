//! Schemas in structured-merge-diff's own notation, and the little YAML that the cases need.

use std::collections::BTreeMap;

use fairway_kernel_schema::shape::{
    Atom, Field, List, ListRelationship, Map, PatchStrategy, Scalar, ShapeId, Shapes,
};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

use super::text;

/// The shapes of a schema in structured-merge-diff's own notation.
pub(crate) fn shapes_of(schema: &Value) -> Result<Shapes, String> {
    let types = schema["types"].as_array().ok_or("schema without types")?;
    let mut builder = ShapeBuilder {
        shapes: Shapes::new(),
        types: BTreeMap::new(),
    };
    for definition in types {
        let id = builder.shapes.push(Atom::default());
        builder.shapes.name(text(definition, "name").to_owned(), id);
        builder.types.insert(text(definition, "name"), (id, definition));
    }
    for (id, definition) in builder.types.clone().into_values() {
        let atom = builder.atom(definition)?;
        builder.shapes.set(id, atom);
    }
    // A reference that overrides the relationship copies the type, which must be complete by then.
    for (id, definition) in builder.types.clone().into_values() {
        let atom = builder.atom(definition)?;
        builder.shapes.set(id, atom);
    }
    Ok(builder.shapes)
}

struct ShapeBuilder<'a> {
    shapes: Shapes,
    types: BTreeMap<&'a str, (ShapeId, &'a Value)>,
}

impl ShapeBuilder<'_> {
    fn atom(&mut self, definition: &Value) -> Result<Atom, String> {
        let scalar = match definition["scalar"].as_str() {
            None => None,
            Some("numeric") => Some(Scalar::Numeric),
            Some("string") => Some(Scalar::String),
            Some("boolean") => Some(Scalar::Boolean),
            Some("untyped") => Some(Scalar::Untyped),
            Some(other) => return Err(format!("unknown scalar {other}")),
        };
        let list = match &definition["list"] {
            Value::Null => None,
            list => Some(List {
                element: self
                    .reference(&list["elementType"])?
                    .ok_or("list without a type of elements")?,
                relationship: list_relationship(text(list, "elementRelationship"), &list["keys"]),
                patch: PatchStrategy::default(),
            }),
        };
        let map = match &definition["map"] {
            Value::Null => None,
            map => {
                let mut fields = Vec::new();
                for field in map["fields"].as_array().into_iter().flatten() {
                    fields.push(Field {
                        name: text(field, "name").to_owned().into(),
                        shape: self.reference(&field["type"])?.ok_or("field without a type")?,
                        default: field.get("default").cloned(),
                        patch: PatchStrategy::default(),
                    });
                }
                fields.sort_by(|l, r| l.name.cmp(&r.name));
                let atomic = text(map, "elementRelationship") == "atomic";
                Some(Map {
                    fields,
                    element: self.reference(&map["elementType"])?,
                    atomic,
                })
            }
        };
        Ok(Atom { scalar, list, map })
    }

    fn reference(&mut self, reference: &Value) -> Result<Option<ShapeId>, String> {
        let Some(map) = reference.as_object() else {
            return Ok(None);
        };
        let overridden = map.get("elementRelationship").and_then(Value::as_str);
        let mut keys = &reference["list"]["keys"];
        let mut atom = match map.get("namedType").and_then(Value::as_str) {
            None => self.atom(reference)?,
            Some(name) => {
                let (id, definition) = *self.types.get(name).ok_or_else(|| format!("no type {name}"))?;
                if overridden.is_none() {
                    return Ok(Some(id));
                }
                keys = &definition["list"]["keys"];
                self.shapes.get(id).clone()
            }
        };
        let Some(relationship) = overridden else {
            return Ok(Some(self.shapes.push(atom)));
        };
        if let Some(map) = &mut atom.map {
            map.atomic = relationship == "atomic";
        } else if let Some(list) = &mut atom.list {
            list.relationship = list_relationship(relationship, keys);
        }
        Ok(Some(self.shapes.push(atom)))
    }
}

fn list_relationship(relationship: &str, keys: &Value) -> ListRelationship {
    match (relationship, keys.as_array()) {
        ("associative", Some(keys)) if !keys.is_empty() => ListRelationship::Map(
            keys.iter()
                .filter_map(Value::as_str)
                .map(|key| key.to_owned().into())
                .collect(),
        ),
        ("associative", _) => ListRelationship::Set,
        _ => ListRelationship::Atomic,
    }
}

/// The one document of a YAML text, without anchors and tags, which no case has.
pub(crate) fn yaml(text: &str) -> Result<Value, String> {
    let mut events = Parser::new_from_str(text);
    let mut next = move || match events.next() {
        Some(Ok((event, _))) => Ok(event),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(Event::StreamEnd),
    };
    loop {
        match next()? {
            Event::StreamEnd => return Ok(Value::Null),
            Event::DocumentStart(_) => {
                let first = next()?;
                return yaml_value(first, &mut next);
            }
            _ => {}
        }
    }
}

fn yaml_value<'t>(
    event: Event<'t>,
    next: &mut dyn FnMut() -> Result<Event<'t>, String>,
) -> Result<Value, String> {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, ..) => Ok(plain_scalar(&text)),
        Event::Scalar(text, ..) => Ok(Value::from(text.into_owned())),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next()? {
                    Event::SequenceEnd => return Ok(Value::Array(items)),
                    event => items.push(yaml_value(event, next)?),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = serde_json::Map::new();
            loop {
                match next()? {
                    Event::MappingEnd => return Ok(Value::Object(map)),
                    Event::Scalar(key, ..) => {
                        let event = next()?;
                        map.insert(key.into_owned(), yaml_value(event, next)?);
                    }
                    other => return Err(format!("a key may not be {other:?}")),
                }
            }
        }
        other => Err(format!("unexpected {other:?}")),
    }
}

fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            if let (true, Ok(int)) = (numeric, text.parse::<i64>()) {
                return Value::from(int);
            }
            match (numeric, text.parse::<f64>()) {
                (true, Ok(float)) => Value::from(float),
                _ => Value::from(text),
            }
        }
    }
}
