//! `--set-literal`: everything after `=` is the value, whatever it is.

use serde_json::Value as Json;

use super::Table;
use super::descend::{Descent, Step};

/// `--set-literal`
pub fn parse_literal_into(line: &str, into: &mut Table) -> Result<(), String> {
    Literal { rest: line }.all(into)
}

struct Literal<'a> {
    rest: &'a str,
}

impl Descent for Literal<'_> {
    const KEY_ENDS: &'static [char] = &['=', '[', '.'];

    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        match self.rest.find(stops) {
            Some(at) => {
                let (text, rest) = self.rest.split_at(at);
                let last = rest.chars().next();
                self.rest = &rest[1..];
                (text.to_owned(), last)
            }
            None => (std::mem::take(&mut self.rest).to_owned(), None),
        }
    }

    fn assign(&mut self, put: &mut dyn FnMut(Json) -> Result<(), String>) -> Step<()> {
        Ok(put(Json::String(std::mem::take(&mut self.rest).to_owned()))?)
    }
}
