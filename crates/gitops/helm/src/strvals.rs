//! The little language of `--set` and its kin: `a.b[0].c=1,d={x,y}`.
//!
//! Values are put into a table as they are read, so that a line that breaks off leaves what came before it, as Helm
//! does.

mod descend;
mod literal;

use fairway_text_gotemplate::text::is_space;
use serde_json::{Map, Value as Json};

use self::descend::{Descent, Step, Stop};

pub use descend::{MAX_INDEX, MAX_NESTING};
pub use literal::parse_literal_into;

type Table = Map<String, Json>;

/// How the text of a value becomes one.
enum Reading<'a> {
    Typed,
    Text,
    Json,
    File(&'a mut dyn FnMut(&str) -> Result<String, String>),
}

/// `--set`
pub fn parse_into(line: &str, into: &mut Table) -> Result<(), String> {
    Parser::new(line, Reading::Typed).all(into)
}

/// `--set-string`
pub fn parse_string_into(line: &str, into: &mut Table) -> Result<(), String> {
    Parser::new(line, Reading::Text).all(into)
}

/// `--set-json`
pub fn parse_json_into(line: &str, into: &mut Table) -> Result<(), String> {
    Parser::new(line, Reading::Json).all(into)
}

/// `--set-file`; `read` gives the text of a file.
pub fn parse_file_into(
    line: &str,
    into: &mut Table,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), String> {
    Parser::new(line, Reading::File(read)).all(into)
}

struct Parser<'a> {
    rest: std::str::Chars<'a>,
    reading: Reading<'a>,
}

impl<'a> Parser<'a> {
    fn new(line: &'a str, reading: Reading<'a>) -> Self {
        Self {
            rest: line.chars(),
            reading,
        }
    }

    fn assign_json(&mut self, put: &mut dyn FnMut(Json) -> Result<(), String>) -> Step<()> {
        if self.skip_empty() {
            return Ok(put(Json::Null)?);
        }
        let text = self.rest.as_str();
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Json>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) if error.is_eof() => return Err("unexpected EOF".to_owned().into()),
            Some(Err(error)) => return Err(error.to_string().into()),
            None => return Err("unexpected EOF".to_owned().into()),
        };
        let used = stream.byte_offset();
        put(crate::values::float(value))?;
        self.rest = text[used..].chars();
        self.skip_empty();
        Ok(())
    }

    /// Skips spaces and one comma; true if there was nothing else.
    fn skip_empty(&mut self) -> bool {
        loop {
            let mut ahead = self.rest.clone();
            match ahead.next() {
                None => return true,
                Some(',') => {
                    self.rest = ahead;
                    return true;
                }
                Some(c) if is_space(c) => self.rest = ahead,
                Some(_) => return false,
            }
        }
    }

    fn list(&mut self) -> Step<Vec<Json>> {
        let mut list = Vec::new();
        loop {
            let (text, last) = self.until(&[',', '}']);
            match last {
                None => return Err("list must terminate with '}'".to_owned().into()),
                Some('}') => {
                    let mut ahead = self.rest.clone();
                    if ahead.next() == Some(',') {
                        self.rest = ahead;
                    }
                    list.push(self.read(&text)?);
                    return Ok(list);
                }
                Some(_) => list.push(self.read(&text)?),
            }
        }
    }

    fn read(&mut self, text: &str) -> Result<Json, String> {
        match &mut self.reading {
            Reading::Text | Reading::Json => Ok(Json::String(text.to_owned())),
            Reading::File(read) => Ok(Json::String(read(text)?)),
            Reading::Typed => Ok(typed(text)),
        }
    }
}

impl Descent for Parser<'_> {
    const KEY_ENDS: &'static [char] = &['=', '[', ',', '.'];

    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.rest.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            match c {
                '\\' => match self.rest.next() {
                    Some(escaped) => text.push(escaped),
                    None => return (text, None),
                },
                c => text.push(c),
            }
        }
        (text, None)
    }

    fn assign(&mut self, put: &mut dyn FnMut(Json) -> Result<(), String>) -> Step<()> {
        if let Reading::Json = self.reading {
            return self.assign_json(put);
        }
        let mut ahead = self.rest.clone();
        match ahead.next() {
            None => {
                put(Json::String(String::new()))?;
                Err(Stop::End)
            }
            Some('{') => {
                self.rest = ahead;
                let list = self.list()?;
                Ok(put(Json::Array(list))?)
            }
            Some(_) => {
                let (text, _) = self.until(&[',']);
                let value = self.read(&text)?;
                Ok(put(value)?)
            }
        }
    }
}

/// What unquoted text means.
fn typed(text: &str) -> Json {
    match text.to_ascii_lowercase().as_str() {
        "true" => return Json::Bool(true),
        "false" => return Json::Bool(false),
        "null" => return Json::Null,
        "0" => return 0_i64.into(),
        _ => {}
    }
    // Leading zeros stay, in numbers of accounts for example.
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => number.into(),
        _ => Json::String(text.to_owned()),
    }
}
