//! Text as Go's standard library writes it.
//!
//! What Fairway stands in for is written in Go, and people and tests compare its words: the quotes in an error message, the
//! JSON inside an annotation, the hash of an object's JSON in a name. Each of these must come out to the letter.

pub mod duration;
pub mod json;
pub mod strings;
