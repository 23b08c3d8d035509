//! The little language of `--set` and its kin: `a.b[0].c=1,d={x,y}`.
//!
//! Values are put into a table as they are read, so that a line that breaks off leaves what came before it, as Helm
//! does.

mod literal;

use serde_json::{Map, Value as Json};

use fairway_text_gotemplate::text::{is_space, quote};

pub use literal::parse_literal_into;

/// The largest index of a list.
pub const MAX_INDEX: usize = 65_536;
/// How deep names may be nested.
pub const MAX_NESTING: usize = 30;

type Table = Map<String, Json>;

/// Why reading stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stop {
    /// The line is at its end.
    End,
    Error(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Error(message)
    }
}

type Step<T> = Result<T, Stop>;

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

fn set(table: &mut Table, key: &str, value: Json) {
    // Without a name there is nowhere to put it.
    if !key.is_empty() {
        table.insert(key.to_owned(), value);
    }
}

fn set_index(list: &mut Vec<Json>, index: usize, value: Json) -> Result<(), String> {
    if index > MAX_INDEX {
        return Err(format!(
            "index of {index} is greater than maximum supported index of {MAX_INDEX}"
        ));
    }
    if list.len() <= index {
        list.resize(index + 1, Json::Null);
    }
    list[index] = value;
    Ok(())
}

fn nesting_fault() -> Stop {
    let message = "value name nested level is greater than maximum supported nested level of";
    Stop::Error(format!("{message} {MAX_NESTING}"))
}

fn go_type(value: &Json) -> &'static str {
    match value {
        Json::Null => "nil",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn conversion_fault(found: &Json, wanted: &str) -> Stop {
    let found = go_type(found);
    Stop::Error(format!(
        "unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"
    ))
}

fn index(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        let quoted = quote(text.as_bytes());
        format!("error parsing index: strconv.Atoi: parsing {quoted}: invalid syntax")
    })
}

/// `['a' 'b']`, as Go quotes a list of characters.
fn quote_chars(text: &str) -> String {
    let quoted: Vec<String> = text.chars().map(|c| format!("'{c}'")).collect();
    format!("[{}]", quoted.join(" "))
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

    fn all(&mut self, into: &mut Table) -> Result<(), String> {
        loop {
            match self.key(into, 0) {
                Ok(()) => {}
                Err(Stop::End) => return Ok(()),
                Err(Stop::Error(message)) => return Err(message),
            }
        }
    }

    /// The text up to one of the characters, and which one it was; none at the end of the line.
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

    fn key(&mut self, table: &mut Table, nesting: usize) -> Step<()> {
        let (key, last) = self.until(&['=', '[', ',', '.']);
        match last {
            None if key.is_empty() => Err(Stop::End),
            None => Err(format!("key {} has no value", quote(key.as_bytes())).into()),
            Some('[') => {
                let at = self.index()?;
                let mut list = match table.get(&key) {
                    None => Vec::new(),
                    Some(Json::Array(list)) => list.clone(),
                    Some(other) => return Err(conversion_fault(other, "[]interface {}")),
                };
                let result = self.item(&mut list, at, nesting);
                set(table, &key, Json::Array(list));
                result
            }
            Some('=') => self.assign(|value| {
                set(table, &key, value);
                Ok(())
            }),
            Some(',') => {
                set(table, &key, Json::String(String::new()));
                Err(format!("key {} has no value (cannot end with ,)", quote(key.as_bytes())).into())
            }
            Some(_) => {
                if nesting + 1 > MAX_NESTING {
                    return Err(nesting_fault());
                }
                let mut inner = match table.get(&key) {
                    None => Table::new(),
                    Some(Json::Object(inner)) => inner.clone(),
                    Some(other) => return Err(conversion_fault(other, "map[string]interface {}")),
                };
                let result = self.key(&mut inner, nesting + 1);
                if result.is_ok() && inner.is_empty() {
                    return Err(format!("key map {} has no value", quote(key.as_bytes())).into());
                }
                if !inner.is_empty() {
                    set(table, &key, Json::Object(inner));
                }
                result
            }
        }
    }

    fn index(&mut self) -> Step<i64> {
        match self.until(&[']']) {
            (_, None) => Err("error parsing index: EOF".to_owned().into()),
            (text, Some(_)) => Ok(index(&text)?),
        }
    }

    fn item(&mut self, list: &mut Vec<Json>, at: i64, nesting: usize) -> Step<()> {
        let Ok(at) = usize::try_from(at) else {
            return Err(format!("negative {at} index not allowed").into());
        };
        let (between, last) = self.until(&['[', '.', '=']);
        if !between.is_empty() {
            let shown = quote_chars(&between);
            return Err(format!("unexpected data at end of array index: {shown}").into());
        }
        match last {
            None => Err(Stop::End),
            Some('=') => {
                // At the end of the line an item is empty, and reading goes on to find the end.
                let result = self.assign(|value| set_index(list, at, value));
                match result {
                    Err(Stop::End) => Ok(()),
                    other => other,
                }
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

    /// Reads what follows `=` and puts it in its place.
    fn assign(&mut self, mut put: impl FnMut(Json) -> Result<(), String>) -> Step<()> {
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

    fn assign_json(&mut self, mut put: impl FnMut(Json) -> Result<(), String>) -> Step<()> {
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
