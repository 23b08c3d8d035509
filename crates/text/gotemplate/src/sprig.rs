//! The function library sprig, version 3.3, which Helm and Argo CD give their templates.
//!
//! One file per family, each with its table. Where Go would panic within a function, the message of the panic is the
//! error; where it would ask the clock or chance, the machine's host is asked.

pub mod cast;
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
pub mod environment;
mod equal;
mod letters;
mod lists;
mod merge;
mod numbers;
mod paths;
mod random;
pub mod regexes;
pub mod semver;
mod strings;
mod urls;

pub use equal::deep_equal;
pub use merge::merge_maps;

use crate::functions::Functions;

/// Adds every function of sprig's text function map, except those of [`environment`].
pub fn add(functions: &mut Functions) {
    for table in [
        strings::TABLE,
        letters::TABLE,
        numbers::TABLE,
        lists::TABLE,
        dicts::TABLE,
        defaults::TABLE,
        encoding::TABLE,
        dates::TABLE,
        regexes::TABLE,
        semver::TABLE,
        urls::TABLE,
        paths::TABLE,
        random::TABLE,
    ] {
        functions.add(table);
    }
    crypto::add(functions);
}

/// What answers otherwise each time, for callers whose templates must always say the same: by the clock or by chance.
pub const DIFFERS_EACH_TIME: &[&str] = &[
    "ago",
    "bcrypt",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "htpasswd",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
];

#[cfg(test)]
mod tests;
