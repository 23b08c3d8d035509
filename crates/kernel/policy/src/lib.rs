//! Admission policies in CEL: ValidatingAdmissionPolicy.
//!
//! A [`Policy`] is compiled once from its object. [`matching::matches`] says whether a request is its business,
//! [`Policy::judge`] what it says of one. What expressions may refer to is said where they are validated, in `kernel/kinds`. Who finds bindings, parameters and namespaces, and what a denial becomes, is the server's affair.

mod judge;
pub mod matching;
mod policy;

pub use judge::{Failure, Input, Verdict};
pub use matching::{Resource, Target, matches};
pub use policy::{ParamKind, Policy};
