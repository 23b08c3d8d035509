//! Admission policies in CEL: ValidatingAdmissionPolicy.
//!
//! A [`Policy`] is compiled once from its object. [`matching::matches`] says whether a request is its business,
//! [`Policy::judge`] what it says of one, and [`expression_errors`] what is wrong with the expressions of a policy that
//! somebody wants to store. Who finds bindings, parameters and namespaces, and what a denial becomes, is the server's affair.

mod environment;
mod expressions;
mod judge;
pub mod matching;
mod policy;

pub use expressions::expression_errors;
pub use judge::{Failure, Input, Verdict};
pub use matching::{Resource, Target, matches};
pub use policy::{ParamKind, Policy};
