//! Texts that are read without being copied.
//!
//! At a start every object comes by, and of most only a few fields are looked at. These types read JSON text in place where
//! it has no escapes; serde alone does so only for fields that are there and not for lists, maps and optional ones.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// A text; `null` is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Reader<'a> {
            type Value = Text<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<Text<'a>, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// A map of texts, such as labels, in the order in which it was read; `null` is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Pairs<'_> {
    /// The value of a key; the last, if it is there twice.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(it, _)| it.as_str() == key);
        found.map(|(_, value)| value.as_str())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Reader<'a> {
            type Value = Pairs<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_unit<E: Error>(self) -> Result<Pairs<'a>, E> {
                Ok(Pairs::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'a>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::{Pairs, Text};

    #[test]
    fn what_has_no_escapes_is_not_copied() {
        let json = r#"{"a": "plain", "b": "two\nlines", "c": null}"#;
        let pairs: Pairs<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(pairs.get("a"), Some("plain"));
        assert_eq!(pairs.get("b"), Some("two\nlines"));
        assert_eq!(pairs.get("c"), Some(""));
        assert_eq!(pairs.get("d"), None);
        assert_eq!((pairs.len(), pairs.is_empty()), (3, false));
        let inside = |text: &str| json.as_bytes().as_ptr_range().contains(&text.as_ptr());
        assert!(inside(pairs.get("a").unwrap()));
        assert!(!inside(pairs.get("b").unwrap()));
        assert_eq!(pairs.iter().map(|(key, _)| key).collect::<String>(), "abc");
        assert!(serde_json::from_str::<Pairs<'_>>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<Text<'_>>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<Text<'_>>("1").is_err());
        assert!(serde_json::from_str::<Pairs<'_>>(r#"{"a": 1}"#).is_err());
        let value = serde_json::json!({"a": "x"});
        assert_eq!(Pairs::deserialize(&value).unwrap().get("a"), Some("x"));
    }
}
