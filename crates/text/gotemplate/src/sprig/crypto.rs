//! Passwords, encryption, keys and certificates. Chance and the date come from the host, so that the same rendering
//! gives the same certificate.

mod certificates;
mod curve;
mod der;
mod keys;
mod passwords;
mod primes;

use crate::functions::Functions;

/// Adds the functions of this family.
pub(super) fn add(functions: &mut Functions) {
    functions.add(passwords::TABLE);
    functions.add(keys::TABLE);
    functions.add(certificates::TABLE);
}
