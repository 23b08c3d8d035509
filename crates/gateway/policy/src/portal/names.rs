//! What things are called that are made for an APIKey, as upstream calls them.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The longest name of an object, and the longest value of a label.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Namespace and name of an object.
pub fn names(object: &Value) -> (&str, &str) {
    let metadata = &object["metadata"];
    (
        metadata["namespace"].as_str().unwrap_or(""),
        metadata["name"].as_str().unwrap_or(""),
    )
}

/// Namespace and name of the product that a key is for.
pub fn product_of(key: &Value) -> (String, String) {
    let reference = &key["spec"]["apiProductRef"];
    let namespace = reference["namespace"].as_str().filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or(names(key).0);
    (
        namespace.to_owned(),
        reference["name"].as_str().unwrap_or("").to_owned(),
    )
}

/// The name of the request that stands for a key in the product's namespace.
pub fn request_name(namespace: &str, name: &str) -> String {
    let suffix = digest(&format!("{namespace}/{name}"));
    ended(&format!("{namespace}-{name}"), &suffix, MAX_NAME)
}

/// The name of the Secret that lets a key in.
pub fn enforcement_name(namespace: &str, name: &str) -> String {
    let suffix = digest(&format!("{namespace}/{name}"));
    ended(&format!("devportal-{namespace}-{name}"), &suffix, MAX_NAME)
}

/// The name of the consumer's Secret: the one that the key refers to, or else one that is made for it.
pub fn secret_name(key: &Value) -> String {
    match referenced_secret(key) {
        Some(name) => name.to_owned(),
        None => ended(names(key).1, "api-key", MAX_NAME),
    }
}

/// The consumer's own Secret, if there is one.
pub fn referenced_secret(key: &Value) -> Option<&str> {
    let name = key["spec"]["secretRef"]["name"].as_str();
    name.filter(|name| !name.is_empty())
}

/// A name as the value of a label; one that is too long is cut and told apart by a digest.
pub(super) fn label(name: &str) -> String {
    match name.len() <= MAX_LABEL {
        true => name.to_owned(),
        false => ended(name, &digest(name), MAX_LABEL),
    }
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// `begin-end`, with as much of the beginning as there is room for.
fn ended(begin: &str, end: &str, room: usize) -> String {
    let room = room.saturating_sub(end.len() + 1);
    let begin: String = begin.chars().take(room).collect();
    format!("{}-{end}", begin.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams_and_fit() {
        // As upstream's guide shows it.
        let request = request_name("consumer-app", "gamestore-apikey");
        assert_eq!(request, "consumer-app-gamestore-apikey-8dee3e06");
        assert_ne!(request_name("foo-bar", "baz"), request_name("foo", "bar-baz"));
        let long = "x".repeat(253);
        for name in [request_name("n", &long), enforcement_name("n", &long)] {
            assert_eq!(name.len(), 253);
        }
        assert_eq!(label(&long).len(), 63);
        assert_eq!(label("short"), "short");
    }
}
