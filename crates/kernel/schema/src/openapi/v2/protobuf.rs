//! The document as gnostic's message `openapi.v2.Document`, which is what `kubectl` asks for.
//!
//! Messages are written from JSON by tables: for each keyword its field number and the shape of its value. Keywords
//! without a field are left out, as the message has no place for them; extensions, defaults, enumerated values and
//! examples are of any form and are carried as YAML text.

use serde_json::Value;

/// The messages that occur.
#[derive(Clone, Copy)]
pub(super) enum Message {
    Document,
    Info,
    PathItem,
    Operation,
    ParametersItem,
    Parameter,
    BodyParameter,
    QueryParameter,
    PathParameter,
    JsonReference,
    Responses,
    ResponseValue,
    Response,
    SchemaItem,
    Schema,
    Properties,
    TypeItem,
    ItemsItem,
    AdditionalPropertiesItem,
    ExternalDocs,
    SecurityDefinitions,
    SecurityDefinitionsItem,
    ApiKeySecurity,
    SecurityRequirement,
    StringArray,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Flag,
    Integer,
    Number,
    Any,
    Anys,
    One(Message),
    Many(Message),
}

type Field = (&'static str, u32, Shape);

use Message as M;
use Shape::{Any, Anys, Flag, Integer, Many, Number, One, Text, Texts};

const DOCUMENT: &[Field] = &[
    ("swagger", 1, Text),
    ("info", 2, One(M::Info)),
    ("security", 12, Many(M::SecurityRequirement)),
    ("securityDefinitions", 13, One(M::SecurityDefinitions)),
];
const INFO: &[Field] = &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text)];
const PATH_ITEM: &[Field] = &[
    ("get", 2, One(M::Operation)),
    ("put", 3, One(M::Operation)),
    ("post", 4, One(M::Operation)),
    ("delete", 5, One(M::Operation)),
    ("options", 6, One(M::Operation)),
    ("head", 7, One(M::Operation)),
    ("patch", 8, One(M::Operation)),
    ("parameters", 9, Many(M::ParametersItem)),
];
const OPERATION: &[Field] = &[
    ("tags", 1, Texts),
    ("summary", 2, Text),
    ("description", 3, Text),
    ("operationId", 5, Text),
    ("produces", 6, Texts),
    ("consumes", 7, Texts),
    ("parameters", 8, Many(M::ParametersItem)),
    ("responses", 9, One(M::Responses)),
    ("schemes", 10, Texts),
    ("deprecated", 11, Flag),
];
const BODY_PARAMETER: &[Field] = &[
    ("description", 1, Text),
    ("name", 2, Text),
    ("in", 3, Text),
    ("required", 4, Flag),
    ("schema", 5, One(M::Schema)),
];
const QUERY_PARAMETER: &[Field] = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 6, Text),
    ("format", 7, Text),
    ("uniqueItems", 20, Flag),
];
const PATH_PARAMETER: &[Field] = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 5, Text),
    ("format", 6, Text),
    ("uniqueItems", 19, Flag),
];
const REFERENCE: &[Field] = &[("$ref", 1, Text), ("description", 2, Text)];
const RESPONSE: &[Field] = &[("description", 1, Text), ("schema", 2, One(M::SchemaItem))];
const SCHEMA: &[Field] = &[
    ("$ref", 1, Text),
    ("format", 2, Text),
    ("title", 3, Text),
    ("description", 4, Text),
    ("default", 5, Any),
    ("multipleOf", 6, Number),
    ("maximum", 7, Number),
    ("exclusiveMaximum", 8, Flag),
    ("minimum", 9, Number),
    ("exclusiveMinimum", 10, Flag),
    ("maxLength", 11, Integer),
    ("minLength", 12, Integer),
    ("pattern", 13, Text),
    ("maxItems", 14, Integer),
    ("minItems", 15, Integer),
    ("uniqueItems", 16, Flag),
    ("maxProperties", 17, Integer),
    ("minProperties", 18, Integer),
    ("required", 19, Texts),
    ("enum", 20, Anys),
    ("additionalProperties", 21, One(M::AdditionalPropertiesItem)),
    ("type", 22, One(M::TypeItem)),
    ("items", 23, One(M::ItemsItem)),
    ("properties", 25, One(M::Properties)),
    ("externalDocs", 29, One(M::ExternalDocs)),
    ("example", 30, Any),
];
const EXTERNAL_DOCS: &[Field] = &[("description", 1, Text), ("url", 2, Text)];
const API_KEY: &[Field] = &[
    ("type", 1, Text),
    ("name", 2, Text),
    ("in", 3, Text),
    ("description", 4, Text),
];

impl Message {
    /// Its fields, and the number of the one for extensions.
    fn fields(self) -> (&'static [Field], u32) {
        match self {
            M::Document => (DOCUMENT, 16),
            M::Info => (INFO, 7),
            M::PathItem => (PATH_ITEM, 10),
            M::Operation => (OPERATION, 13),
            M::BodyParameter => (BODY_PARAMETER, 6),
            M::QueryParameter => (QUERY_PARAMETER, 23),
            M::PathParameter => (PATH_PARAMETER, 22),
            M::Response => (RESPONSE, 5),
            M::Schema => (SCHEMA, 31),
            M::ExternalDocs => (EXTERNAL_DOCS, 3),
            M::ApiKeySecurity => (API_KEY, 5),
            // It has none; a reference with extensions does not occur.
            M::JsonReference => (REFERENCE, 0),
            _ => (&[], 0),
        }
    }
}

/// Writes the fields of a message.
pub(super) fn encode(out: &mut Vec<u8>, message: Message, value: &Value) {
    match message {
        M::ParametersItem if value.get("$ref").is_some() => one(out, 2, M::JsonReference, value),
        M::ParametersItem => one(out, 1, M::Parameter, value),
        M::Parameter => parameter(out, value),
        M::Responses => entries(out, M::ResponseValue, value),
        M::ResponseValue => one(out, 1, M::Response, value),
        M::SchemaItem | M::ItemsItem => one(out, 1, M::Schema, value),
        M::Properties => entries(out, M::Schema, value),
        M::TypeItem | M::StringArray => texts(out, 1, value),
        M::AdditionalPropertiesItem => match value {
            Value::Bool(allowed) => flag(out, 2, *allowed),
            schema => one(out, 1, M::Schema, schema),
        },
        M::SecurityDefinitions => entries(out, M::SecurityDefinitionsItem, value),
        M::SecurityDefinitionsItem => one(out, 2, M::ApiKeySecurity, value),
        M::SecurityRequirement => entries(out, M::StringArray, value),
        plain => fields(out, plain, value),
    }
}

/// A parameter is of the kind that its place says; the places that a form or a header would be do not occur.
fn parameter(out: &mut Vec<u8>, value: &Value) {
    match value["in"].as_str() {
        Some("body") => one(out, 1, M::BodyParameter, value),
        place => {
            let start = out.len();
            match place {
                Some("path") => one(out, 4, M::PathParameter, value),
                _ => one(out, 3, M::QueryParameter, value),
            }
            enclose(out, start, 2);
        }
    }
}

fn entries(out: &mut Vec<u8>, message: Message, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten() {
        named(out, 1, name, message, value);
    }
}

/// Fields go in the order of their numbers, extensions last, as in gnostic's own encoding.
fn fields(out: &mut Vec<u8>, message: Message, value: &Value) {
    let (fields, extensions) = message.fields();
    let entries = value.as_object();
    let mut known: Vec<(u32, Shape, &Value)> = entries
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let (_, number, shape) = fields.iter().find(|(name, ..)| name == key)?;
            Some((*number, *shape, value))
        })
        .collect();
    known.sort_unstable_by_key(|(number, ..)| *number);
    for (number, shape, value) in known {
        field(out, number, shape, value);
    }
    if extensions == 0 {
        return;
    }
    for (key, value) in entries
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with("x-"))
    {
        let start = out.len();
        text(out, 1, key);
        any(out, 2, value);
        enclose(out, start, extensions);
    }
}

/// Zero, false and the empty string are what an absent field says, so they are left out.
fn field(out: &mut Vec<u8>, number: u32, shape: Shape, value: &Value) {
    match shape {
        Text => {
            if let Some(value) = value.as_str().filter(|v| !v.is_empty()) {
                text(out, number, value);
            }
        }
        Texts => texts(out, number, value),
        Flag => {
            if value == true {
                flag(out, number, true);
            }
        }
        Integer => {
            if let Some(integer) = value.as_i64().filter(|i| *i != 0) {
                tag(out, number, 0);
                // Negative numbers take all ten bytes, by the rules of the format.
                varint(out, integer.cast_unsigned());
            }
        }
        Number => {
            if let Some(value) = value.as_f64().filter(|v| *v != 0.0) {
                tag(out, number, 1);
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        Any => any(out, number, value),
        Anys => {
            for value in value.as_array().into_iter().flatten() {
                any(out, number, value);
            }
        }
        One(message) => one(out, number, message, value),
        Many(message) => {
            for value in value.as_array().into_iter().flatten() {
                one(out, number, message, value);
            }
        }
    }
}

fn one(out: &mut Vec<u8>, number: u32, message: Message, value: &Value) {
    let start = out.len();
    encode(out, message, value);
    enclose(out, start, number);
}

/// A pair of a name and a message.
pub(super) fn named(out: &mut Vec<u8>, number: u32, name: &str, message: Message, value: &Value) {
    let start = out.len();
    text(out, 1, name);
    one(out, 2, message, value);
    enclose(out, start, number);
}

/// Makes what was written since `start` the value of a field. The length stands before the value and is known only now,
/// so the value moves by some bytes; that is cheaper than to measure everything first.
pub(super) fn enclose(out: &mut Vec<u8>, start: usize, number: u32) {
    let end = out.len();
    tag(out, number, 2);
    varint(out, (end - start) as u64);
    let head = out.len() - end;
    out[start..].rotate_right(head);
}

fn text(out: &mut Vec<u8>, number: u32, value: &str) {
    tag(out, number, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A list of strings; a single one counts as such.
fn texts(out: &mut Vec<u8>, number: u32, value: &Value) {
    match value {
        Value::String(single) => text(out, number, single),
        list => list
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .for_each(|item| text(out, number, item)),
    }
}

fn flag(out: &mut Vec<u8>, number: u32, value: bool) {
    tag(out, number, 0);
    out.push(u8::from(value));
}

/// A value of any form as YAML, of which JSON is a part.
fn any(out: &mut Vec<u8>, number: u32, value: &Value) {
    let start = out.len();
    text(out, 2, &yaml(value));
    enclose(out, start, number);
}

/// JSON, with everything escaped that YAML takes for a control character or the end of a line.
fn yaml(value: &Value) -> String {
    let mut text = value.to_string();
    let special = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    if text.contains(special) {
        text = text.chars().fold(String::new(), |mut text, c| {
            if special(c) {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            } else {
                text.push(c);
            }
            text
        });
    }
    text.push('\n');
    text
}

fn tag(out: &mut Vec<u8>, number: u32, wire_type: u32) {
    varint(out, u64::from(number << 3 | wire_type));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make_baseline.sh` beside the sample lets gnostic itself encode it.
    #[test]
    fn messages_are_those_of_gnostic() {
        let sample: Value =
            serde_json::from_str(include_str!("../../../testdata/gnostic/sample.json")).unwrap();
        let baseline = include_str!("../../../testdata/gnostic/baseline.txt");
        let mut cases = 0;
        for line in baseline.lines() {
            let [section, name, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let message = match section {
                "paths" => M::PathItem,
                "definitions" => M::Schema,
                _ => M::Parameter,
            };
            let mut out = Vec::new();
            encode(&mut out, message, &sample[section][name]);
            let actual: String = out.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(actual, expected, "{section} {name}");
            cases += 1;
        }
        let entries = ["paths", "definitions", "parameters"].map(|s| sample[s].as_object().unwrap().len());
        assert_eq!(cases, entries.into_iter().sum::<usize>());
    }
}
