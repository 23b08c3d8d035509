//! Bringing an owner's record up to date after the schema changed.
//!
//! A map or list that used to be granular and is atomic now is owned as a whole by everyone who owned a part of it.
//! The other way round nothing can be told, and nothing changes.

use fairway_kernel_schema::shape::{ListRelationship, Map as MapShape, Scalar, ShapeId, Shapes};

use super::{Form, form};
use crate::fieldpath::set::Node;
use crate::fieldpath::{PathElement, Set};

/// Makes the set fit the schema.
pub fn reconcile(shapes: &Shapes, shape: ShapeId, set: &mut Set) {
    match form(shapes.get(shape), None) {
        Some(Form::Map(map)) if !is_free_form(shapes, map) => {
            for node in &mut set.nodes {
                let child = match &node.element {
                    PathElement::Field(name) => map.shape_of(name.as_str()),
                    _ => map.element,
                };
                if let Some(child) = child {
                    reconcile_node(shapes, child, node);
                }
            }
        }
        Some(Form::List(list)) => {
            for node in &mut set.nodes {
                reconcile_node(shapes, list.element, node);
            }
        }
        _ => {}
    }
}

fn reconcile_node(shapes: &Shapes, shape: ShapeId, node: &mut Node) {
    if node.children.is_empty() {
        return;
    }
    let atomic = match form(shapes.get(shape), None) {
        Some(Form::Map(map)) => map.atomic && !is_free_form(shapes, map),
        Some(Form::List(list)) => list.relationship == ListRelationship::Atomic,
        _ => false,
    };
    if atomic {
        node.member = true;
        node.children = Set::new();
    } else {
        reconcile(shapes, shape, &mut node.children);
    }
}

/// A map without declared fields whose entries may be anything: its type says nothing about ownership.
fn is_free_form(shapes: &Shapes, map: &MapShape) -> bool {
    map.fields.is_empty()
        && map.element.is_some_and(|element| {
            let atom = shapes.get(element);
            atom.scalar == Some(Scalar::Untyped) && !atom.map.as_ref().is_some_and(|m| m.atomic)
        })
}
