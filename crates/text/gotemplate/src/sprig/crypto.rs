//! Passwords, encryption, keys and certificates. Chance and the date come from the host, so that the same rendering
//! gives the same certificate.

mod passwords;

use crate::functions::Func;

pub(super) const TABLE: &[Func] = passwords::TABLE;
