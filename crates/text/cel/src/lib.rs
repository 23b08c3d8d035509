//! CEL with Kubernetes' libraries and a run-time cost budget.
//!
//! An [`Env`] declares variables and compiles expressions; a [`Program`] is evaluated with an [`Activation`] and a
//! budget. JSON is read lazily through a [`DeclType`], so a rule costs what it touches and not what the object weighs.

mod activation;
mod ast;
mod checker;
mod cost;
mod decl;
mod env;
mod error;
mod escaping;
mod eval;
mod functions;
mod lexer;
mod library;
pub mod limits;
mod meter;
mod parser;
mod plan;
mod source;
mod types;
mod value;

pub use activation::Activation;
pub use cost::estimate::CostEstimate;
pub use decl::DeclType;
pub use env::{Env, Program, eval};
pub use error::Error;
pub use escaping::{escape, unescape};
pub use functions::Library;
pub use library::authorizer::{AccessCheck, AccessTarget, Authorizer, Decision, ResourceAttributes};
pub use source::CompileError;
pub use types::{ObjectType, OpaqueType, Type};
pub use value::{Duration, List, Map, Str, Timestamp, Value};
