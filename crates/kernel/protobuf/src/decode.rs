//! From messages to JSON objects, by the table.

use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::messages::{Field, Kind, Message, MessageId, Messages, messages};
use crate::scalar::{self, Wrong};
use crate::table::{Form, Presence, Repeats, Scalar};
use crate::wire::{Reader, Wire};
use crate::{Error, MAGIC, MAX_DEPTH};

/// Values that any body may have, however short.
const FREE_VALUES: usize = 16_384;
/// No honest writer needs less than this many bytes for a value.
const BYTES_PER_VALUE: usize = 2;
/// What it costs to say a singular message once more, which honest writers do not do.
const MERGE_COST: usize = 8;

/// A decoder of one body.
pub(crate) struct Decoder {
    messages: &'static Messages,
    /// How many more values there may be. Without such a limit a list of empty messages, two bytes each, would become
    /// a hundred times as large in memory.
    budget: usize,
}

impl Decoder {
    /// A decoder for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { messages: messages(), budget: FREE_VALUES + bytes / BYTES_PER_VALUE }
    }

    fn spend(&mut self, values: usize) -> Result<(), Error> {
        self.budget = self.budget.checked_sub(values).ok_or(Error::TooMany)?;
        Ok(())
    }

    /// Reads a message into an object at that depth. Fields that are there already are replaced or, if they are lists,
    /// maps or messages, added to: a message may be written in pieces.
    pub(crate) fn message(
        &mut self,
        id: MessageId,
        bytes: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let messages = self.messages;
        let message = messages.get(id);
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match message.field(number) {
                Some(field) => self.field(message, field, wire, &mut reader, object, depth)?,
                None => reader.skip(wire)?,
            }
        }
        self.complete(message, object)
    }

    fn field(
        &mut self,
        message: &Message,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        self.spend(1)?;
        let wrong_wire = || Error::WireType { message: message.name, field: field.number };
        let Some(name) = field.name else {
            let Kind::Message(embedded) = field.ty else { return Ok(()) };
            return match wire {
                Wire::Bytes => self.message(embedded, reader.bytes()?, object, depth),
                _ => Err(wrong_wire()),
            };
        };
        match field.repeats {
            Repeats::One => {
                // Text that JSON leaves out when it is empty is the most common field of all.
                let value = match (field.ty, object.get_mut(name)) {
                    (Kind::Message(id), Some(Value::Object(existing))) if self.messages.get(id).form == Form::Struct => {
                        if wire != Wire::Bytes {
                            return Err(wrong_wire());
                        }
                        self.spend(MERGE_COST)?;
                        return self.message(id, reader.bytes()?, existing, depth + 1);
                    }
                    _ => self.value(message, field, wire, reader, depth)?,
                };
                let left_out = match field.presence {
                    Presence::NotEmpty => is_empty(&value),
                    Presence::NotZero => value == self.zero(field.ty)?,
                    Presence::Set | Presence::Always | Presence::AlwaysNull => false,
                };
                if left_out {
                    object.shift_remove(name);
                } else {
                    object.insert(name.to_owned(), value);
                }
            }
            Repeats::List => {
                let list = child(object, name, || Value::Array(Vec::new()));
                let Value::Array(list) = list else { return Ok(()) };
                match field.ty {
                    Kind::Scalar(scalar) if wire == Wire::Bytes && scalar::wire_of(scalar) != Wire::Bytes => {
                        let mut packed = Reader::new(reader.bytes()?);
                        while !packed.is_empty() {
                            self.spend(1)?;
                            list.push(self.scalar(message, field, scalar, &mut packed, depth + 1)?);
                        }
                    }
                    _ => list.push(self.value(message, field, wire, reader, depth + 1)?),
                }
            }
            Repeats::Map => {
                if wire != Wire::Bytes {
                    return Err(wrong_wire());
                }
                let (key, value) = self.entry(message, field, reader.bytes()?, depth + 1)?;
                if let Value::Object(map) = child(object, name, || Value::Object(Map::new())) {
                    map.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// An entry of a map: a message of a key and a value, each of which may be missing.
    fn entry(
        &mut self,
        message: &Message,
        field: &Field,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(String, Value), Error> {
        let (mut key, mut value) = ("", None);
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match (number, wire) {
                (1, Wire::Bytes) => {
                    key = std::str::from_utf8(reader.bytes()?)
                        .map_err(|_| Error::Utf8 { message: message.name, field: field.number })?;
                }
                (1, _) => return Err(Error::WireType { message: message.name, field: field.number }),
                (2, _) => {
                    self.spend(1)?;
                    value = Some(self.value(message, field, wire, &mut reader, depth)?);
                }
                _ => reader.skip(wire)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.zero(field.ty)?,
        };
        Ok((key.to_owned(), value))
    }

    /// One value of a field's type.
    fn value(
        &mut self,
        message: &Message,
        field: &Field,
        wire: Wire,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Value, Error> {
        let expected = match field.ty {
            Kind::Scalar(scalar) => scalar::wire_of(scalar),
            Kind::Message(_) => Wire::Bytes,
        };
        if wire != expected {
            return Err(Error::WireType { message: message.name, field: field.number });
        }
        match field.ty {
            Kind::Scalar(scalar) => self.scalar(message, field, scalar, reader, depth),
            Kind::Message(id) => {
                let mut object = Map::new();
                self.message(id, reader.bytes()?, &mut object, depth + 1)?;
                Ok(formed(self.messages.get(id).form, object))
            }
        }
    }

    fn scalar(
        &mut self,
        message: &Message,
        field: &Field,
        scalar: Scalar,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Value, Error> {
        let found = match scalar {
            Scalar::Raw => self.raw(reader, depth),
            _ => scalar::read(scalar, reader),
        };
        let (message, field) = (message.name, field.number);
        found.map_err(|wrong| match wrong {
            Wrong::Wire(error) => error,
            Wrong::WireType => Error::WireType { message, field },
            Wrong::Utf8 => Error::Utf8 { message, field },
            Wrong::Value(reason) => Error::Value { message, field, reason },
        })
    }

    /// A message whose first field is JSON, or another body.
    fn raw(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<Value, Wrong> {
        let mut reader = Reader::new(reader.bytes()?);
        let mut raw = &[][..];
        while let Some((number, wire)) = reader.tag()? {
            match (number, wire) {
                (1, Wire::Bytes) => raw = reader.bytes()?,
                (1, _) => return Err(Wrong::WireType),
                _ => reader.skip(wire)?,
            }
        }
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        if raw.starts_with(MAGIC) {
            return Ok(crate::envelope(self, raw, depth + 1)?);
        }
        match fairway_text_yaml::parse_json(raw, MAX_DEPTH.saturating_sub(depth)) {
            Ok((value, _)) => Ok(value),
            Err(error) => Err(Wrong::Value(format!("not valid JSON: {error}"))),
        }
    }

    /// Puts in what Go always writes.
    fn complete(&mut self, message: &Message, object: &mut Map<String, Value>) -> Result<(), Error> {
        for index in &message.always {
            let field = message.fields[usize::from(*index)];
            let Some(name) = field.name else {
                if let Kind::Message(embedded) = field.ty {
                    let messages = self.messages;
                    self.complete(messages.get(embedded), object)?;
                }
                continue;
            };
            if object.contains_key(name) {
                continue;
            }
            let value = match field.presence {
                Presence::Always => self.zero(field.ty)?,
                _ => Value::Null,
            };
            self.spend(1)?;
            object.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// What Go writes for a value that was never set.
    fn zero(&mut self, ty: Kind) -> Result<Value, Error> {
        match ty {
            Kind::Scalar(scalar) => Ok(scalar::zero(scalar)),
            Kind::Message(id) => {
                let messages = self.messages;
                let message = messages.get(id);
                let mut object = Map::new();
                // Go's structs cannot contain themselves, so that this ends.
                self.complete(message, &mut object)?;
                Ok(formed(message.form, object))
            }
        }
    }
}

/// The list or map of that name, made if it is missing.
fn child<'o>(object: &'o mut Map<String, Value>, name: &str, make: fn() -> Value) -> &'o mut Value {
    let slot = match object.entry(name) {
        Entry::Vacant(slot) => slot.insert(make()),
        Entry::Occupied(slot) => slot.into_mut(),
    };
    if slot.is_null() {
        *slot = make();
    }
    slot
}

/// A message as what it is in JSON.
fn formed(form: Form, mut object: Map<String, Value>) -> Value {
    let mut take = |of: fn(&Value) -> bool| object.values_mut().find(|v| of(v)).map(Value::take);
    match form {
        Form::Struct => Value::Object(object),
        Form::List => take(Value::is_array).unwrap_or_else(|| Value::Array(Vec::new())),
        Form::Choice => take(Value::is_array)
            .or_else(|| take(Value::is_object))
            .or_else(|| take(Value::is_boolean))
            .unwrap_or(Value::Null),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
