//! What reading makes of a text: its value, or nothing at all where it only matters that it can be read.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::decode::plain_value;
use crate::resolve::{Resolution, Scalar, resolve_plain};

/// Something that values are put together as.
pub(super) trait Make: Sized {
    /// A text in the making.
    type Text: Write;
    /// A mapping in the making.
    type Fields: Default;
    /// A sequence in the making.
    type Items: Default;

    fn null() -> Self;
    fn text(text: Self::Text) -> Self;
    /// What a plain scalar is; none for a number that JSON does not have.
    fn plain(text: Cow<'_, str>, resolution: Resolution) -> Option<Self>;
    /// The text that this is, if it is one.
    fn into_text(self) -> Option<Self::Text>;
    /// None if the key is there already, and that matters.
    fn insert(fields: &mut Self::Fields, key: Self::Text, value: Self) -> Option<()>;
    fn push(items: &mut Self::Items, item: Self);
    fn mapping(fields: Self::Fields) -> Self;
    fn sequence(items: Self::Items) -> Self;
}

/// A text that grows.
pub(super) trait Write: Default {
    fn put(&mut self, text: &str);
    fn put_char(&mut self, c: char);
    fn put_breaks(&mut self, count: usize);
}

impl Write for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    fn put_char(&mut self, c: char) {
        self.push(c);
    }

    fn put_breaks(&mut self, count: usize) {
        self.extend(std::iter::repeat_n('\n', count));
    }
}

impl Write for () {
    fn put(&mut self, _: &str) {}

    fn put_char(&mut self, _: char) {}

    fn put_breaks(&mut self, _: usize) {}
}

impl Make for Value {
    type Text = String;
    type Fields = Map<String, Value>;
    type Items = Vec<Value>;

    fn null() -> Self {
        Self::Null
    }

    fn text(text: String) -> Self {
        Self::String(text)
    }

    fn plain(text: Cow<'_, str>, resolution: Resolution) -> Option<Self> {
        plain_value(text, resolution)
    }

    fn into_text(self) -> Option<String> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    fn insert(fields: &mut Self::Fields, key: String, value: Self) -> Option<()> {
        fields.insert(key, value).is_none().then_some(())
    }

    fn push(items: &mut Self::Items, item: Self) {
        items.push(item);
    }

    fn mapping(fields: Self::Fields) -> Self {
        Self::Object(fields)
    }

    fn sequence(items: Self::Items) -> Self {
        Self::Array(items)
    }
}

/// Nothing of a value but whether it is text, which keys must be. That a key occurs twice is no error, so nobody looks.
pub(super) struct Skimmed {
    is_text: bool,
}

impl Make for Skimmed {
    type Text = ();
    type Fields = ();
    type Items = ();

    fn null() -> Self {
        Self { is_text: false }
    }

    fn text((): ()) -> Self {
        Self { is_text: true }
    }

    fn plain(text: Cow<'_, str>, resolution: Resolution) -> Option<Self> {
        let is_text = match resolve_plain(&text, resolution, true) {
            Scalar::Timestamp | Scalar::Text => true,
            Scalar::Null | Scalar::Bool(_) => false,
            // Only now: few scalars are numbers.
            Scalar::Number(_) => return plain_value(text, resolution).map(|_| Self { is_text: false }),
        };
        Some(Self { is_text })
    }

    fn into_text(self) -> Option<()> {
        self.is_text.then_some(())
    }

    fn insert((): &mut (), (): (), _: Self) -> Option<()> {
        Some(())
    }

    fn push((): &mut (), _: Self) {}

    fn mapping((): ()) -> Self {
        Self { is_text: false }
    }

    fn sequence((): ()) -> Self {
        Self { is_text: false }
    }
}
