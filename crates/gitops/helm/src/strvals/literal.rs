//! `--set-literal`: everything after `=` is the value, whatever it is.

use serde_json::Value as Json;

use super::{
    MAX_NESTING, Step, Stop, Table, conversion_fault, index, nesting_fault, quote_chars, set, set_index,
};
use fairway_text_gotemplate::text::quote;

/// `--set-literal`
pub fn parse_literal_into(line: &str, into: &mut Table) -> Result<(), String> {
    let mut parser = Literal { rest: line };
    loop {
        match parser.key(into, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Error(message)) => return Err(message),
        }
    }
}

struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn until(&mut self, stops: &[char]) -> (&'a str, Option<char>) {
        match self.rest.find(stops) {
            Some(at) => {
                let (text, rest) = self.rest.split_at(at);
                let last = rest.chars().next();
                self.rest = &rest[1..];
                (text, last)
            }
            None => (std::mem::take(&mut self.rest), None),
        }
    }

    fn index(&mut self) -> Step<i64> {
        match self.until(&[']']) {
            (_, None) => Err("error parsing index: EOF".to_owned().into()),
            (text, Some(_)) => Ok(index(text)?),
        }
    }

    fn value(&mut self) -> Json {
        Json::String(std::mem::take(&mut self.rest).to_owned())
    }

    fn key(&mut self, table: &mut Table, nesting: usize) -> Step<()> {
        let (key, last) = self.until(&['=', '[', '.']);
        match last {
            None if key.is_empty() => Err(Stop::End),
            None => Err(format!("key {} has no value", quote(key.as_bytes())).into()),
            Some('=') => {
                let value = self.value();
                set(table, key, value);
                Ok(())
            }
            Some('[') => {
                let at = self.index()?;
                let mut list = match table.get(key) {
                    None => Vec::new(),
                    Some(Json::Array(list)) => list.clone(),
                    Some(other) => return Err(conversion_fault(other, "[]interface {}")),
                };
                let result = self.item(&mut list, at, nesting);
                set(table, key, Json::Array(list));
                result
            }
            Some(_) => {
                if nesting + 1 > MAX_NESTING {
                    return Err(nesting_fault());
                }
                let mut inner = match table.get(key) {
                    None => Table::new(),
                    Some(Json::Object(inner)) => inner.clone(),
                    Some(other) => return Err(conversion_fault(other, "map[string]interface {}")),
                };
                let result = self.key(&mut inner, nesting + 1);
                if result.is_ok() && inner.is_empty() {
                    return Err(format!("key map {} has no value", quote(key.as_bytes())).into());
                }
                if !inner.is_empty() {
                    set(table, key, Json::Object(inner));
                }
                result
            }
        }
    }

    fn item(&mut self, list: &mut Vec<Json>, at: i64, nesting: usize) -> Step<()> {
        let Ok(at) = usize::try_from(at) else {
            return Err(format!("negative {at} index not allowed").into());
        };
        let (between, last) = self.until(&['[', '.', '=']);
        if !between.is_empty() {
            let shown = quote_chars(between);
            return Err(format!("unexpected data at end of array index: {shown}").into());
        }
        match last {
            None => Err(Stop::End),
            Some('=') => {
                let value = self.value();
                Ok(set_index(list, at, value)?)
            }
            Some('[') => {
                let next = self.index()?;
                let mut inner = match list.get(at) {
                    None | Some(Json::Null) => Vec::new(),
                    Some(Json::Array(inner)) => inner.clone(),
                    Some(other) => return Err(conversion_fault(other, "[]interface {}")),
                };
                self.item(&mut inner, next, nesting)?;
                Ok(set_index(list, at, Json::Array(inner))?)
            }
            Some(_) => {
                let mut inner = match list.get(at) {
                    Some(Json::Object(inner)) => inner.clone(),
                    _ => Table::new(),
                };
                self.key(&mut inner, nesting)?;
                Ok(set_index(list, at, Json::Object(inner))?)
            }
        }
    }
}
