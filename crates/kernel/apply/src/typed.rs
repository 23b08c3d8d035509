//! Values together with their shape, and what can be done with them.
//!
//! The walks live in a file each: [`validate`](Typed::validate), [`merge`](Typed::merge),
//! [`compare`](Typed::compare), [`to_field_set`](Typed::to_field_set), [`remove`](Typed::remove) and
//! [`extract`](Typed::extract), and [`reconcile`]. What they share is here: how a value picks one of the forms that
//! its type allows, and how an item of a list is identified.

mod compare;
mod errors;
mod fieldset;
mod item;
mod merge;
mod reconcile;
mod remove;
pub mod validate;

use std::borrow::Cow;

use fairway_kernel_schema::shape::{Atom, List, Map as MapShape, Scalar, ShapeId, Shapes};
use serde_json::{Map, Value};

pub use compare::Comparison;
pub use errors::{ValidationError, ValidationErrors};
pub use reconcile::reconcile;

/// A value of a known shape.
#[derive(Clone, Debug)]
pub struct Typed<'s, 'v> {
    /// Where the shape is.
    pub shapes: &'s Shapes,
    /// The shape of the value.
    pub shape: ShapeId,
    /// The value.
    pub value: Cow<'v, Value>,
    /// The value stands for a Go struct: declared fields whose default is a zero value are there even if absent.
    ///
    /// Kubernetes compares its built-in kinds as structs, in which a field that is neither a pointer nor omitted when
    /// empty always exists. That decides, for one, whether the writer of `.spec.replicas` owns `.spec` too.
    pub zero_values: bool,
}

impl<'s, 'v> Typed<'s, 'v> {
    /// A borrowed value.
    pub fn new(shapes: &'s Shapes, shape: ShapeId, value: &'v Value) -> Self {
        Self {
            shapes,
            shape,
            value: Cow::Borrowed(value),
            zero_values: false,
        }
    }

    /// The same, without a copy of the value.
    pub fn by_ref(&self) -> Typed<'s, '_> {
        Typed {
            shapes: self.shapes,
            shape: self.shape,
            value: Cow::Borrowed(&self.value),
            zero_values: self.zero_values,
        }
    }

    /// The same, with a value of its own.
    pub fn into_owned(self) -> Typed<'s, 'static> {
        Typed {
            value: Cow::Owned(self.value.into_owned()),
            ..self
        }
    }

    /// Another value of the same type.
    pub fn with_value(&self, value: Value) -> Typed<'s, 'static> {
        Typed {
            shapes: self.shapes,
            shape: self.shape,
            value: Cow::Owned(value),
            zero_values: self.zero_values,
        }
    }
}

/// The form in which a type is read.
#[derive(Clone, Copy)]
enum Form<'a> {
    Map(&'a MapShape),
    Scalar(Scalar),
    List(&'a List),
}

impl Form<'_> {
    fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Which form of its type a value has. A value of none of them, or no value, is read in the type's first form.
fn form<'a>(atom: &'a Atom, value: Option<&Value>) -> Option<Form<'a>> {
    let map = atom.map.as_ref().map(Form::Map);
    let scalar = atom.scalar.map(Form::Scalar);
    let list = atom.list.as_ref().map(Form::List);
    let own = match value {
        None | Some(Value::Null) => None,
        Some(Value::Object(_)) => map,
        Some(Value::Array(_)) => list,
        Some(_) => scalar,
    };
    own.or(map).or(scalar).or(list)
}

/// The message for a type that allows no form at all; a field that the schema does not know has such a type.
const INVALID_ATOM: &str = "schema error: invalid atom: inlined";

fn as_map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn as_list(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}

#[cfg(test)]
mod tests;
