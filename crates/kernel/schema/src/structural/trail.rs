//! The way from the root to the value under validation, kept on the stack.
//!
//! Nearly all values are valid, so paths are spelled out only when something is wrong.

use crate::field::Path;

/// One step of the way.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    /// A declared field.
    Field(&'a str),
    /// A key of a map.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
}

/// The way to a value.
#[derive(Clone, Copy)]
pub(super) struct Trail<'a> {
    last: Option<(&'a Trail<'a>, Step<'a>)>,
}

impl<'a> Trail<'a> {
    /// The value that was handed in.
    pub(super) const ROOT: Trail<'static> = Trail { last: None };

    pub(super) fn is_root(&self) -> bool {
        self.last.is_none()
    }

    pub(super) fn then(&'a self, step: Step<'a>) -> Trail<'a> {
        Trail {
            last: Some((self, step)),
        }
    }

    /// Spelled with dots for fields and keys alike, as the messages of schema validation are.
    pub(super) fn dotted(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, true);
        out
    }

    /// Spelled with brackets for keys, below `prefix`.
    pub(super) fn path(&self, prefix: &Path) -> Path {
        let mut out = prefix.as_str().to_owned();
        self.write(&mut out, false);
        Path::new(&out)
    }

    fn write(&self, out: &mut String, keys_as_fields: bool) {
        let Some((parent, step)) = self.last else { return };
        parent.write(out, keys_as_fields);
        match step {
            Step::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
            Step::Key(key) if !keys_as_fields => {
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
            Step::Field(name) | Step::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
        }
    }
}
