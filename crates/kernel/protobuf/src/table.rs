//! The table of messages: its rows, and the text they are kept in.
//!
//! One fact per line, so that a new Kubernetes version shows up as a readable diff. The generator writes the table with
//! [`Table::render`] and the decoder reads it with [`Table::parse`]; both live here so that the format has one home.
//!
//! ```text
//! message core.v1.Volume
//!  1 name+ string
//!  2 . core.v1.VolumeSource
//! message apps.v1.Deployment kind=apps/v1/Deployment
//!  1 metadata+ meta.v1.ObjectMeta
//! message authentication.v1.ExtraValue list
//!  1 items []string
//! ```
//!
//! A field has its number, its JSON name (`.` where Go embeds the struct, so that its fields appear beside those around
//! it), then when Go writes it (`~` when it is not empty, `?` when it is not zero, `+` always, `-` always and null when
//! it is not set, nothing: when it is set) and its type; `[]T` is a list, `{}T` a map with string keys. A message is
//! referred to by the last three segments of its name. `list` marks a message that stands for a list in JSON, `choice`
//! one that stands for whichever of its fields is set; `kind=*/X` is a kind of every API version.

use std::fmt::Write as _;

use thiserror::Error;

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table<'a> {
    /// Messages, sorted by name.
    pub messages: Vec<MessageRow<'a>>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow<'a> {
    /// The last three segments of its name, such as `core.v1.Pod`.
    pub name: &'a str,
    /// What it is in JSON.
    pub form: Form,
    /// The kinds it stands for, such as `apps/v1/Deployment`, `v1/Pod` or `*/DeleteOptions`.
    pub kind: Option<&'a str>,
    /// Fields, sorted by number.
    pub fields: Vec<FieldRow<'a>>,
}

/// What a message is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object.
    Struct,
    /// The list that is its only field.
    List,
    /// The first of its fields that is set: a list, an object, or else a boolean.
    Choice,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow<'a> {
    /// Its number on the wire.
    pub number: u32,
    /// Its JSON name; `None` where the struct is embedded.
    pub name: Option<&'a str>,
    /// When Go writes it.
    pub presence: Presence,
    /// How often it occurs.
    pub repeats: Repeats,
    /// Its type, or that of its elements.
    pub ty: Type<'a>,
}

/// When Go writes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// When it is set: it is held by pointer.
    Set,
    /// When it is not empty: zero, false, empty text, list and map are left out.
    NotEmpty,
    /// When it is not zero, which may leave out structs too.
    NotZero,
    /// Always, if need be with its zero value.
    Always,
    /// Always, if need be as null.
    AlwaysNull,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Once.
    One,
    /// It is a list.
    List,
    /// It is a map with string keys.
    Map,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type<'a> {
    /// A value without fields.
    Scalar(Scalar),
    /// A message, by name.
    Message(&'a str),
}

/// A value without fields in JSON. The last five are messages on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// Floating point number.
    Double,
    /// Boolean.
    Bool,
    /// Bytes; base64 in JSON.
    Bytes,
    /// Time in seconds.
    Time,
    /// Time in microseconds.
    MicroTime,
    /// Quantity.
    Quantity,
    /// 32-bit integer or text.
    IntOrString,
    /// JSON within.
    Raw,
}

const SCALARS: [(Scalar, &str); 11] = [
    (Scalar::String, "string"),
    (Scalar::Int32, "int32"),
    (Scalar::Int64, "int64"),
    (Scalar::Double, "double"),
    (Scalar::Bool, "bool"),
    (Scalar::Bytes, "bytes"),
    (Scalar::Time, "time"),
    (Scalar::MicroTime, "micro-time"),
    (Scalar::Quantity, "quantity"),
    (Scalar::IntOrString, "int-or-string"),
    (Scalar::Raw, "raw"),
];
const PRESENCES: [(Presence, &str); 5] = [
    (Presence::NotEmpty, "~"),
    (Presence::NotZero, "?"),
    (Presence::Always, "+"),
    (Presence::AlwaysNull, "-"),
    (Presence::Set, ""),
];
const REPEATS: [(Repeats, &str); 3] = [(Repeats::List, "[]"), (Repeats::Map, "{}"), (Repeats::One, "")];
const EMBEDDED: &str = ".";

/// A line that is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line} of the table of messages is not understood")]
pub struct TableError {
    line: usize,
}

impl<'a> Table<'a> {
    /// Reads a table.
    pub fn parse(text: &'a str) -> Result<Self, TableError> {
        let mut table = Self::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = TableError { line: index + 1 };
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            if let Some(field) = line.strip_prefix(' ') {
                let (Some(message), Some(field)) = (table.messages.last_mut(), FieldRow::parse(field)) else {
                    return Err(wrong);
                };
                message.fields.push(field);
            } else {
                table.messages.push(MessageRow::parse(line).ok_or(wrong)?);
            }
        }
        Ok(table)
    }

    /// Writes the table.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for message in &self.messages {
            let form = match message.form {
                Form::Struct => "",
                Form::List => " list",
                Form::Choice => " choice",
            };
            // Writing to a string cannot fail.
            let _ = write!(out, "message {}{form}", message.name);
            if let Some(kind) = message.kind {
                let _ = write!(out, " kind={kind}");
            }
            out.push('\n');
            for field in &message.fields {
                let ty = match field.ty {
                    Type::Scalar(scalar) => mark(&SCALARS, scalar),
                    Type::Message(name) => name,
                };
                let name = field.name.unwrap_or(EMBEDDED);
                let (presence, repeats) = (mark(&PRESENCES, field.presence), mark(&REPEATS, field.repeats));
                let _ = writeln!(out, " {} {name}{presence} {repeats}{ty}", field.number);
            }
        }
        out
    }
}

impl<'a> MessageRow<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix("message ")?.split(' ');
        let mut row = Self { name: words.next()?, form: Form::Struct, kind: None, fields: Vec::new() };
        for word in words {
            match word {
                "list" => row.form = Form::List,
                "choice" => row.form = Form::Choice,
                _ => row.kind = Some(word.strip_prefix("kind=")?),
            }
        }
        Some(row)
    }
}

impl<'a> FieldRow<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (number, rest) = line.split_once(' ')?;
        let (name, ty) = rest.split_once(' ')?;
        let (presence, name) =
            PRESENCES.iter().find_map(|(p, mark)| Some((*p, name.strip_suffix(mark)?)))?;
        let (repeats, ty) = REPEATS.iter().find_map(|(r, mark)| Some((*r, ty.strip_prefix(mark)?)))?;
        let ty = match SCALARS.iter().find(|(_, word)| *word == ty) {
            Some((scalar, _)) => Type::Scalar(*scalar),
            None if ty.contains('.') => Type::Message(ty),
            None => return None,
        };
        let name = (name != EMBEDDED).then_some(name);
        Some(Self { number: number.parse().ok()?, name, presence, repeats, ty })
    }
}

fn mark<T: PartialEq>(marks: &[(T, &'static str)], of: T) -> &'static str {
    marks.iter().find(|(known, _)| *known == of).map_or("", |(_, mark)| mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "message authentication.v1.ExtraValue list\n 1 items []string\n\
        message core.v1.Volume kind=v1/Volume\n 1 name+ string\n 2 . core.v1.VolumeSource\n 3 at? time\n 4 m- {}quantity\n";

    #[test]
    fn text_and_rows_are_the_same() {
        let table = Table::parse(TEXT).unwrap();
        assert_eq!(table.render(), TEXT);
        assert_eq!(table.messages[1].kind, Some("v1/Volume"));
        assert_eq!(table.messages[1].fields[1].name, None);
        assert_eq!(table.messages[1].fields[3].repeats, Repeats::Map);
    }

    #[test]
    fn lines_that_are_not_understood_are_refused() {
        for (text, line) in [
            (" 1 a string", 1),
            ("message a.b.C\n x a string", 2),
            ("message a.b.C\n 1 a text", 2),
            ("#\nmess", 2),
        ] {
            assert_eq!(Table::parse(text), Err(TableError { line }), "{text}");
        }
    }
}
