//! Bodies of the media type `application/vnd.kubernetes.protobuf`, read as JSON.
//!
//! Kubernetes' own clients (kubectl, controllers in Go) send built-in objects in this form. [`decode`] turns such a body
//! into the JSON that Go's types would write after reading it, so that everything behind it knows one form only. What
//! messages consist of comes from a generated table (`data/messages.facts`, see [`table`]), read once on first use.
//!
//! Time and memory are bounded by the input: lengths are checked before anything is copied, nesting is limited as it is
//! for JSON bodies, and the number of values may not exceed what an honest writer needs that many bytes for.

mod decode;
mod messages;
mod scalar;
mod wire;

pub mod table;

use serde_json::{Map, Value};
use thiserror::Error;

use decode::Decoder;
use messages::messages;
use wire::{Reader, Wire};

/// What every body begins with.
pub const MAGIC: &[u8] = b"k8s\0";
/// How deep the JSON may nest.
pub const MAX_DEPTH: usize = 100;

/// Why a body cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// There is nothing.
    #[error("empty data")]
    Empty,
    /// It does not begin as it must.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// It says no `kind` or no `apiVersion`.
    #[error("Object '{0}' is missing")]
    Missing(&'static str),
    /// It is of a kind that has no message.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind {
        /// `apiVersion`.
        api_version: String,
        /// `kind`.
        kind: String,
    },
    /// It ends within a field.
    #[error("unexpected EOF")]
    Truncated,
    /// An integer has more than 64 bits.
    #[error("an integer of the protobuf message overflows")]
    Varint,
    /// A tag has no field number or an unknown wire type, or ends a group that was not begun.
    #[error("the protobuf message has an illegal tag")]
    Tag,
    /// A field is written in another way than its type is.
    #[error("wrong wire type of field {field} of {message}")]
    WireType {
        /// The message.
        message: &'static str,
        /// Number of the field.
        field: u32,
    },
    /// Text is not UTF-8.
    #[error("field {field} of {message} is not valid UTF-8")]
    Utf8 {
        /// The message.
        message: &'static str,
        /// Number of the field.
        field: u32,
    },
    /// A value is not one of its type.
    #[error("field {field} of {message}: {reason}")]
    Value {
        /// The message.
        message: &'static str,
        /// Number of the field.
        field: u32,
        /// What is wrong.
        reason: String,
    },
    /// It nests too deep.
    #[error("the protobuf message is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// It has far more values than bytes to describe them.
    #[error("the protobuf message has too many values for its size")]
    TooMany,
}

/// Reads a body, and returns it as JSON with `kind` and `apiVersion`.
pub fn decode(bytes: &[u8]) -> Result<Value, Error> {
    envelope(&mut Decoder::new(bytes.len()), bytes, 1)
}

/// The body within its envelope, upstream's `runtime.Unknown`.
fn envelope(decoder: &mut Decoder, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    const MESSAGE: &str = "runtime.Unknown";
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let bytes = bytes.strip_prefix(MAGIC).ok_or(Error::Magic)?;
    let (mut api_version, mut kind, mut raw) = ("", "", &[][..]);
    let mut reader = Reader::new(bytes);
    while let Some((field, wire)) = reader.tag()? {
        match (field, wire) {
            (1, Wire::Bytes) => {
                let mut type_meta = Reader::new(reader.bytes()?);
                while let Some((field, wire)) = type_meta.tag()? {
                    let target = match field {
                        1 => &mut api_version,
                        2 => &mut kind,
                        _ => {
                            type_meta.skip(wire)?;
                            continue;
                        }
                    };
                    if wire != Wire::Bytes {
                        return Err(Error::WireType {
                            message: "runtime.TypeMeta",
                            field,
                        });
                    }
                    *target = std::str::from_utf8(type_meta.bytes()?).map_err(|_| Error::Utf8 {
                        message: "runtime.TypeMeta",
                        field,
                    })?;
                }
            }
            (2, Wire::Bytes) => raw = reader.bytes()?,
            (1 | 2, _) => {
                return Err(Error::WireType {
                    message: MESSAGE,
                    field,
                });
            }
            // Upstream does not look at the type and the encoding of the content either.
            _ => reader.skip(wire)?,
        }
    }
    for (value, name) in [(kind, "Kind"), (api_version, "apiVersion")] {
        if value.is_empty() {
            return Err(Error::Missing(name));
        }
    }
    let id = messages().of_kind(api_version, kind).ok_or_else(|| Error::Kind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })?;
    let mut object = Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    decoder.message(id, raw, &mut object, depth)?;
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests;
