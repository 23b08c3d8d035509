//! YAML as Go's libraries read and write it, and strict JSON, with bounds.
//!
//! Kubernetes and its tools read YAML with two Go libraries whose rules differ from YAML 1.2 and from each other: `n`
//! is false to Helm and to the API server, and a string to kustomize. [`from_str`] reads with either set of rules
//! ([`Resolution`]) and gives JSON values; [`to_string`] writes as `sigs.k8s.io/yaml` does, byte for byte.
//! [`parse_json`] reads a request's JSON body and reports repeated fields.
//!
//! All readers end in bounded time and memory on any input ([`Limits`]). The crate must not know what the documents
//! mean.

#[cfg(test)]
mod baseline;
mod block;
mod decode;
mod emit;
mod error;
mod go_number;
mod json_fault;
mod json_strict;
mod key_order;
mod resolve;
mod stream;
mod tree;

pub use decode::plain_scalar;
pub use emit::{EmitOptions, to_string, to_string_with};
pub use error::{Error, Problem};
pub use json_fault::json_fault;
pub use json_strict::{DuplicateField, JsonError, MAX_REPORTED, parse_json};
pub use key_order::compare as compare_keys;
pub use resolve::Resolution;
pub use stream::{
    Document, DuplicateKey, Limits, Spelling, Step, documents, documents_with, from_slice, from_str,
    from_str_with, keys_from_str,
};
