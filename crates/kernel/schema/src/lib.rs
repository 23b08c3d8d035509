//! Types of the API: shapes, built-in facts, structural schemas, field errors.
//!
//! Pure: no tokio, no file system, no clock.

pub mod builtin;
pub mod crd;
pub mod field;
mod json_type;
pub mod jsonpath;
pub mod openapi;
pub mod shape;
pub mod structural;

pub use json_type::json_type;
