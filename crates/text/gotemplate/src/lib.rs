//! Go's `text/template`, and the function library sprig, with bounds.
//!
//! [`parse`] reads templates, [`Templates`] holds those that may call each other, and a [`Machine`] executes them with
//! [`Functions`]: Go's own, [`sprig`]'s, and the caller's. Clock and chance come from the [`Host`], so that the same
//! input gives the same bytes. Error messages are Go's: file, line, column, the expression, the reason.
//!
//! Everything that a template can make grow is bounded: nesting, steps, output ([`Limits`]). The crate must not know
//! charts or manifests.

pub mod arg;
mod ast;
mod builtins;
mod error;
mod exec;
pub mod fmt;
pub mod formats;
mod functions;
pub mod json_text;
mod lex;
mod machine;
mod parse;
pub mod sprig;
pub mod time;
pub mod value;

pub use ast::Template;
pub use error::{ExecError, Fault, ParseError};
pub use fairway_text_gotext::strings as text;
pub use functions::{Call, Func, Functions, Param};
pub use machine::{Host, Limits, Machine, MissingKey, NoHost, Templates, TextFault};
pub use parse::{parse, parse_bytes};
pub use value::{Entries, Map, Str, Value};

#[cfg(test)]
mod tests;
