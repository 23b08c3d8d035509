//! Parameters that stand once in the document and are referred to by the operations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The shared parameters by name.
#[derive(Default)]
pub(super) struct Shared(BTreeMap<String, Value>);

impl Shared {
    /// The parameter, or a reference to it if it is of those that are shared.
    pub(super) fn reference(&mut self, parameter: Value) -> Value {
        if stands_alone(&parameter) {
            return parameter;
        }
        let name = shared_name(&parameter);
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        self.0.entry(name).or_insert(parameter);
        reference
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, parameter)| (name.as_str(), parameter))
    }
}

/// Parameters that speak of the kind, and two that old clients look for in the operation itself.
fn stands_alone(parameter: &Value) -> bool {
    match (
        parameter["in"].as_str().unwrap_or_default(),
        parameter["name"].as_str().unwrap_or_default(),
    ) {
        (_, "name") | ("query", "fieldValidation" | "dryRun") => true,
        ("body", _) => !parameter["schema"]["$ref"]
            .as_str()
            .is_some_and(|r| r.starts_with("#/definitions/io.k8s.apimachinery")),
        _ => false,
    }
}

/// Its name, and a hash of what it says.
fn shared_name(parameter: &Value) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let name = parameter["name"].as_str().unwrap_or_default();
    let hash = parameter
        .to_string()
        .bytes()
        .fold(OFFSET, |h, b| h.wrapping_mul(PRIME) ^ u64::from(b));
    format!("{name}-{}", eight_letters(hash >> 16))
}

/// 48 bits in base 64, with the letters that are safe in URLs.
fn eight_letters(bits: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..8)
        .rev()
        .map(|place| {
            let index = usize::try_from((bits >> (6 * place)) & 63).unwrap_or_default();
            char::from(LETTERS[index])
        })
        .collect()
}
