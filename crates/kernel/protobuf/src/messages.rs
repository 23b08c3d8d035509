//! The table as the decoder uses it: references resolved, kinds indexed.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::table::{Form, Presence, Repeats, Scalar, Table, Type};

const FACTS: &str = include_str!("../data/messages.facts");

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageId(u16);

/// All messages.
#[derive(Default)]
pub(crate) struct Messages {
    messages: Vec<Message>,
    /// By API version and kind; the API version is `*` for kinds of all of them.
    kinds: HashMap<(&'static str, &'static str), MessageId>,
}

/// A message.
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Sorted by number.
    pub(crate) fields: Vec<Field>,
    /// Those fields that JSON has even when they are not on the wire, and embedded messages, which may have some.
    pub(crate) always: Vec<u8>,
}

/// A field.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// `None` where the message is embedded.
    pub(crate) name: Option<&'static str>,
    pub(crate) presence: Presence,
    pub(crate) repeats: Repeats,
    pub(crate) ty: Kind,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Scalar(Scalar),
    Message(MessageId),
}

/// All messages, read from the table on first use.
pub(crate) fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    // The committed table is checked by this crate's tests, so it cannot fail here.
    MESSAGES.get_or_init(|| Messages::read(FACTS).unwrap_or_default())
}

impl Messages {
    fn read(facts: &'static str) -> Option<Self> {
        let rows = Table::parse(facts).ok()?.messages;
        let mut ids = HashMap::with_capacity(rows.len());
        let mut found = Self::default();
        for (index, row) in rows.iter().enumerate() {
            let id = MessageId(u16::try_from(index).ok()?);
            ids.insert(row.name, id);
            if let Some((api_version, kind)) = row.kind.and_then(|k| k.rsplit_once('/')) {
                found.kinds.insert((api_version, kind), id);
            }
        }
        for row in rows {
            let mut message =
                Message { name: row.name, form: row.form, fields: Vec::with_capacity(row.fields.len()), always: Vec::new() };
            for field in row.fields {
                if field.name.is_none() || matches!(field.presence, Presence::Always | Presence::AlwaysNull) {
                    message.always.push(u8::try_from(message.fields.len()).ok()?);
                }
                message.fields.push(Field {
                    number: field.number,
                    name: field.name,
                    presence: field.presence,
                    repeats: field.repeats,
                    ty: match field.ty {
                        Type::Scalar(scalar) => Kind::Scalar(scalar),
                        Type::Message(name) => Kind::Message(*ids.get(name)?),
                    },
                });
            }
            found.messages.push(message);
        }
        Some(found)
    }

    /// The message of a kind.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<MessageId> {
        self.kinds.get(&(api_version, kind)).or_else(|| self.kinds.get(&("*", kind))).copied()
    }

    /// A message.
    pub(crate) fn get(&self, id: MessageId) -> &Message {
        &self.messages[usize::from(id.0)]
    }

    #[cfg(test)]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().copied()
    }
}

impl Message {
    /// The field of a number.
    pub(crate) fn field(&self, number: u32) -> Option<&Field> {
        // Most messages number their fields from one without gaps.
        let guess = self.fields.get((number as usize).wrapping_sub(1)).filter(|f| f.number == number);
        guess.or_else(|| {
            let index = self.fields.binary_search_by_key(&number, |f| f.number).ok()?;
            self.fields.get(index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_reads() {
        let messages = Messages::read(FACTS).unwrap();
        for message in &messages.messages {
            assert!(message.fields.is_sorted_by_key(|f| f.number), "{}", message.name);
            for field in &message.fields {
                let embedded = field.name.is_none();
                assert!(!embedded || matches!(field.ty, Kind::Message(_)), "{} {}", message.name, field.number);
            }
        }
        assert!(messages.of_kind("v1", "Pod").is_some());
        assert!(messages.of_kind("apps/v1", "DeleteOptions").is_some());
        assert!(messages.of_kind("apps/v1", "Pod").is_none());
    }
}
