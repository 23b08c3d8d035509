//! A field name that needs no allocation when it is short.
//!
//! Every write decodes, combines and encodes a few hundred of these; nearly all names in Kubernetes objects are
//! shorter than the 22 bytes that fit in place.

use std::cmp::Ordering;
use std::fmt;

const INLINE: usize = 22;

/// The name of a field.
#[derive(Clone)]
pub struct FieldName(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<str>),
}

impl FieldName {
    /// Copies a name.
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; INLINE];
        match bytes.get_mut(..name.len()) {
            Some(prefix) => {
                prefix.copy_from_slice(name.as_bytes());
                Self(Repr::Inline {
                    len: name.len() as u8,
                    bytes,
                })
            }
            None => Self(Repr::Heap(name.into())),
        }
    }

    /// The name's UTF-8, which sorts as the text does.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Heap(name) => name.as_bytes(),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Inline { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Repr::Heap(name) => name,
        }
    }
}

impl Ord for FieldName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for FieldName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FieldName {}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::FieldName;

    #[test]
    fn names_of_any_length_keep_their_text_and_order() {
        let long = "n".repeat(23);
        let names = [
            "",
            "a",
            "exactly-twenty-two-byt",
            "exactly-twenty-three-by",
            &long,
            "é",
        ];
        for name in names {
            assert_eq!(FieldName::new(name).as_str(), name);
        }
        for left in names {
            for right in names {
                assert_eq!(
                    FieldName::new(left).cmp(&FieldName::new(right)),
                    left.cmp(right),
                    "{left} {right}"
                );
            }
        }
    }
}
