//! The answer in the making: JSON or protocol buffers, written entry by entry.

use serde_json::Value;

use super::protobuf::{self, Message};
use super::{head, tail};

/// How the document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON.
    Json,
    /// The message `openapi.v2.Document` of gnostic.
    Protobuf,
}

/// A part of the document that has many entries.
#[derive(Clone, Copy)]
pub(super) enum Section {
    Paths,
    Definitions,
    Parameters,
}

impl Section {
    fn key(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Definitions => "definitions",
            Self::Parameters => "parameters",
        }
    }

    /// Field numbers of the section in the document and of an entry in it, and what an entry is.
    fn message(self) -> (u32, u32, Message) {
        match self {
            Self::Paths => (8, 2, Message::PathItem),
            Self::Definitions => (9, 1, Message::Schema),
            Self::Parameters => (10, 1, Message::Parameter),
        }
    }
}

/// The document so far.
pub(super) struct Output {
    form: Form,
    out: Vec<u8>,
    section: Section,
    /// Where the section's entries begin.
    start: usize,
}

impl Output {
    pub(super) fn new(form: Form) -> Self {
        let mut out = Vec::new();
        match form {
            Form::Json => {
                json(&mut out, &head());
                // The closing brace comes at the end.
                out.pop();
            }
            Form::Protobuf => protobuf::encode(&mut out, Message::Document, &head()),
        }
        Self {
            form,
            out,
            section: Section::Paths,
            start: 0,
        }
    }

    pub(super) fn begin(&mut self, section: Section) {
        if self.form == Form::Json {
            self.out.push(b',');
            json(&mut self.out, &section.key().into());
            self.out.extend_from_slice(b":{");
        }
        self.section = section;
        self.start = self.out.len();
    }

    pub(super) fn entry(&mut self, name: &str, value: &Value) {
        match self.form {
            Form::Json => {
                if self.out.len() > self.start {
                    self.out.push(b',');
                }
                json(&mut self.out, &name.into());
                self.out.push(b':');
                json(&mut self.out, value);
            }
            Form::Protobuf => {
                let (_, number, message) = self.section.message();
                protobuf::named(&mut self.out, number, name, message, value);
            }
        }
    }

    pub(super) fn end(&mut self) {
        match self.form {
            Form::Json => self.out.push(b'}'),
            Form::Protobuf => protobuf::enclose(&mut self.out, self.start, self.section.message().0),
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        match self.form {
            Form::Json => {
                let mut rest = Vec::new();
                json(&mut rest, &tail());
                self.out.push(b',');
                self.out.extend_from_slice(&rest[1..]);
            }
            Form::Protobuf => protobuf::encode(&mut self.out, Message::Document, &tail()),
        }
        self.out
    }
}

fn json(out: &mut Vec<u8>, value: &Value) {
    // Writing a JSON value into memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}
