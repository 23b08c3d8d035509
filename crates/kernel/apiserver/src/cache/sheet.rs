//! The objects of a whole list, shared by every list that finds the same.
//!
//! A list of ten thousand objects that takes and drops a reference to each, and adds up their lengths, fetches each of them from
//! memory three times more than sending them does. Clients list in crowds, after a restart or a lost connection, and most
//! kinds do not change in between: so the last whole list of a kind is kept until the next change.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::object::Object;

/// Fewer objects are found again as quickly as remembered.
const KEPT_FROM: usize = 64;

/// Objects, in order of their keys.
#[derive(Debug)]
pub struct Sheet {
    objects: Box<[Arc<Object>]>,
    lengths: OnceLock<Lengths>,
}

/// What the objects come to, in bytes.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    whole: usize,
    untyped: usize,
}

impl Sheet {
    fn lengths(&self) -> Lengths {
        *self.lengths.get_or_init(|| Lengths {
            whole: self.objects.iter().map(|object| object.bytes().len()).sum(),
            untyped: self.objects.iter().map(|object| object.untyped().len()).sum(),
        })
    }

    /// The sum of [`Object::bytes`].
    pub fn bytes(&self) -> usize {
        self.lengths().whole
    }

    /// The sum of [`Object::untyped`].
    pub fn untyped_bytes(&self) -> usize {
        self.lengths().untyped
    }
}

impl FromIterator<Arc<Object>> for Sheet {
    fn from_iter<I: IntoIterator<Item = Arc<Object>>>(objects: I) -> Self {
        Self {
            objects: objects.into_iter().collect(),
            lengths: OnceLock::new(),
        }
    }
}

impl Deref for Sheet {
    type Target = [Arc<Object>];

    fn deref(&self) -> &Self::Target {
        &self.objects
    }
}

/// The last whole list of a kind, and the prefix of the keys that are on it.
#[derive(Default)]
pub(super) struct LastSheet(Mutex<Option<(Box<str>, Arc<Sheet>)>>);

impl LastSheet {
    /// The last list, if it was this one, or else the one that `make` finds.
    pub(super) fn get_or(&self, prefix: &str, make: impl FnOnce() -> Sheet) -> Arc<Sheet> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, sheet)) = &*kept()
            && **of == *prefix
        {
            return Arc::clone(sheet);
        }
        let sheet = Arc::new(make());
        if sheet.len() >= KEPT_FROM {
            *kept() = Some((prefix.into(), Arc::clone(&sheet)));
        }
        sheet
    }

    /// Something has changed.
    pub(super) fn forget(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
