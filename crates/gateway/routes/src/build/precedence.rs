//! The order in which the matches of one host name are asked, as the specification has it.

use std::cmp::Reverse;

use crate::observed::{Kind, Meta, Name};
use crate::table::{Match, PathMatch};

/// Less comes first. The fields are in the order of the specification: the kind of the path and its length, a method, the number
/// of headers and of query parameters, the age of the route, its name, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank<'a> {
    path: (u8, Reverse<usize>),
    method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
    age: (&'a str, &'a Name),
    rule: usize,
    at: usize,
}

impl<'a> Rank<'a> {
    pub(super) fn new(kind: Kind, matches: &Match, meta: &'a Meta, rule: usize, at: usize) -> Self {
        // The specification leaves expressions to implementations: most put them between the two.
        let path = match &matches.path {
            PathMatch::Exact(path) => (0, Reverse(path.len())),
            // A GRPCRoute's method alone is one too, and comes after its services.
            PathMatch::Regex(expression) if kind == Kind::GrpcRoute => {
                (3, Reverse(expression.as_str().len()))
            }
            PathMatch::Regex(expression) => (1, Reverse(expression.as_str().len())),
            PathMatch::Prefix(prefix) => (2, Reverse(prefix.len())),
        };
        Self {
            path,
            method: Reverse(matches.method.is_some()),
            headers: Reverse(matches.headers.len()),
            query: Reverse(matches.query.len()),
            age: meta.age(),
            rule,
            at,
        }
    }
}
