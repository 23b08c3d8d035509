//! The small texts of the API: quantities, and the names that DNS and labels allow.
//!
//! Schemas, kinds, expressions and wire formats all read them, and must agree on every one; so there is one reader.
//! Nothing here knows of objects.

pub mod borrowed;
pub mod names;
pub mod quantity;
