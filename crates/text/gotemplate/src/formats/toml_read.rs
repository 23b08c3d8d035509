//! Reads TOML 1.0, with bounds. The values are those of the Go library: `int64`, `float64`, `time.Time`.

use std::rc::Rc;

use crate::parse::number::{parse_float, parse_int};
use crate::time::{Zone, parse_layout};
use crate::value::{Entries, Map, Value};

const MAX_DEPTH: usize = 100;

/// The table that a document is; an error that names the line.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let root = Map::new(Entries::new());
    let mut reader = Reader { rest: text, line: 1 };
    reader
        .document(&root)
        .map_err(|problem| format!("toml: line {}: {problem}", reader.line))?;
    Ok(Value::Map(root))
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

type Step<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.line += text.matches('\n').count();
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Step<()> {
        match self.eat(text) {
            true => Ok(()),
            false => Err(format!(
                "expected {text:?}, found {:?}",
                self.rest.chars().take(10).collect::<String>()
            )),
        }
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Spaces, line ends and comments.
    fn blank(&mut self) {
        loop {
            self.spaces();
            match self.peek() {
                Some('#') => self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]),
                Some('\n') => {
                    self.next();
                }
                Some('\r') if self.rest.starts_with("\r\n") => {
                    self.next();
                }
                _ => return,
            }
        }
    }

    fn line_end(&mut self) -> Step<()> {
        self.spaces();
        if let Some('#') = self.peek() {
            self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
        }
        match self.rest.is_empty() || self.eat("\r\n") || self.eat("\n") {
            true => Ok(()),
            false => Err("expected the end of the line".to_owned()),
        }
    }

    fn document(&mut self, root: &Map) -> Step<()> {
        let mut table = root.clone();
        loop {
            self.blank();
            match self.peek() {
                None => return Ok(()),
                Some('[') => {
                    let is_list = self.rest.starts_with("[[");
                    let (open, close) = if is_list { ("[[", "]]") } else { ("[", "]") };
                    self.expect(open)?;
                    let path = self.key_path()?;
                    self.expect(close)?;
                    self.line_end()?;
                    table = header(root, &path, is_list)?;
                }
                Some(_) => {
                    self.pair(&table, 0)?;
                    self.line_end()?;
                }
            }
        }
    }

    fn pair(&mut self, table: &Map, depth: usize) -> Step<()> {
        let path = self.key_path()?;
        self.expect("=")?;
        self.spaces();
        let value = self.value(depth + 1)?;
        let Some((last, parents)) = path.split_last() else {
            return Err("a key is missing".to_owned());
        };
        let mut at = table.clone();
        for name in parents {
            at = descend(&at, name)?;
        }
        if at.contains(last.as_bytes()) {
            return Err(format!("key {last:?} has already been defined"));
        }
        at.set(last.as_bytes(), value);
        Ok(())
    }

    fn key_path(&mut self) -> Step<Vec<String>> {
        let mut path = Vec::new();
        loop {
            self.spaces();
            path.push(match self.peek() {
                Some('"') => self.quoted()?,
                Some('\'') => self.literal()?,
                _ => {
                    let end = self
                        .rest
                        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                    let (key, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                    if key.is_empty() {
                        return Err("a key is missing".to_owned());
                    }
                    self.rest = rest;
                    key.to_owned()
                }
            });
            self.spaces();
            if path.len() > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} nested tables"));
            }
            if !self.eat(".") {
                return Ok(path);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Step<Value> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} nested values"));
        }
        match self.peek() {
            Some('"') if self.rest.starts_with("\"\"\"") => Ok(self.multi_line('"')?.into()),
            Some('\'') if self.rest.starts_with("'''") => Ok(self.multi_line('\'')?.into()),
            Some('"') => Ok(self.quoted()?.into()),
            Some('\'') => Ok(self.literal()?.into()),
            Some('[') => {
                self.next();
                let mut items = Vec::new();
                loop {
                    self.blank();
                    if self.eat("]") {
                        return Ok(Value::list(items));
                    }
                    items.push(self.value(depth + 1)?);
                    self.blank();
                    if !self.eat(",") {
                        self.expect("]")?;
                        return Ok(Value::list(items));
                    }
                }
            }
            Some('{') => {
                self.next();
                let table = Map::new(Entries::new());
                self.spaces();
                if self.eat("}") {
                    return Ok(Value::Map(table));
                }
                loop {
                    self.pair(&table, depth)?;
                    self.spaces();
                    if !self.eat(",") {
                        self.expect("}")?;
                        return Ok(Value::Map(table));
                    }
                }
            }
            _ => self.bare(),
        }
    }

    fn bare(&mut self) -> Step<Value> {
        let ends = |c: char| matches!(c, ',' | ']' | '}' | '#' | '\n' | '\r' | '\t' | ' ');
        let mut end = self.rest.find(ends).unwrap_or(self.rest.len());
        // A date and a time may have a space between them.
        let after: Vec<char> = self.rest[end..].chars().take(4).collect();
        if let [' ', first, second, ':'] = after.as_slice()
            && first.is_ascii_digit()
            && second.is_ascii_digit()
        {
            end += 1 + self.rest[end + 1..]
                .find(ends)
                .unwrap_or(self.rest.len() - end - 1);
        }
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        scalar(text).ok_or_else(|| format!("expected a value, found {text:?}"))
    }

    fn quoted(&mut self) -> Step<String> {
        self.expect("\"")?;
        let mut out = String::new();
        loop {
            match self.next() {
                None | Some('\n') => return Err("strings cannot contain newlines".to_owned()),
                Some('"') => return Ok(out),
                Some('\\') => out.push(self.escape()?),
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Step<char> {
        let kind = self.next();
        let digits = match kind {
            Some('b') => return Ok('\x08'),
            Some('t') => return Ok('\t'),
            Some('n') => return Ok('\n'),
            Some('f') => return Ok('\x0c'),
            Some('r') => return Ok('\r'),
            Some('e') => return Ok('\x1b'),
            Some(c @ ('"' | '\\')) => return Ok(c),
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err("invalid escape character".to_owned()),
        };
        let code = self
            .rest
            .get(..digits)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let c = code.and_then(char::from_u32).ok_or("invalid unicode escape")?;
        self.rest = &self.rest[digits..];
        Ok(c)
    }

    fn literal(&mut self) -> Step<String> {
        self.expect("'")?;
        match self.rest.split_once('\'') {
            Some((text, rest)) if !text.contains('\n') => {
                self.rest = rest;
                Ok(text.to_owned())
            }
            _ => Err("a string does not end".to_owned()),
        }
    }

    fn multi_line(&mut self, mark: char) -> Step<String> {
        let fence: String = std::iter::repeat_n(mark, 3).collect();
        self.expect(&fence)?;
        let _ = self.eat("\r\n") || self.eat("\n");
        let mut out = String::new();
        loop {
            if self.eat(&fence) {
                // Two more marks belong to the text.
                for _ in 0..2 {
                    if self.peek() == Some(mark) {
                        self.next();
                        out.push(mark);
                    }
                }
                return Ok(out);
            }
            match self.next() {
                None => return Err("a string does not end".to_owned()),
                Some('\\') if mark == '"' => {
                    let trimmed = self.rest.trim_start_matches([' ', '\t']);
                    match trimmed.starts_with(['\n', '\r']) {
                        true => {
                            let rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
                            self.line += self.rest[..self.rest.len() - rest.len()].matches('\n').count();
                            self.rest = rest;
                        }
                        false => out.push(self.escape()?),
                    }
                }
                Some(c) => out.push(c),
            }
        }
    }
}

fn scalar(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "inf" | "+inf" => return Some(Value::Float(f64::INFINITY)),
        "-inf" => return Some(Value::Float(f64::NEG_INFINITY)),
        "nan" | "+nan" | "-nan" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-']);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if !leading_zero && let Some(int) = parse_int(text) {
        return Some(Value::int64(int));
    }
    let layouts = [
        "2006-01-02T15:04:05Z07:00",
        "2006-01-02 15:04:05Z07:00",
        "2006-01-02T15:04:05",
        "2006-01-02 15:04:05",
        "2006-01-02",
        "15:04:05",
    ];
    if digits.contains(['-', ':']) || text.len() == 10 {
        let time = layouts
            .iter()
            .find_map(|layout| parse_layout(layout, text, &Zone::Utc).ok());
        if let Some(time) = time {
            return Some(Value::Time(Rc::new(time)));
        }
    }
    let is_float = !leading_zero && digits.contains(['.', 'e', 'E']) && !digits.ends_with('.');
    is_float.then(|| parse_float(text)).flatten().map(Value::Float)
}

/// The table of a name, made if it is not there; of a list of tables the last one.
fn descend(table: &Map, name: &str) -> Step<Map> {
    match table.get(name.as_bytes()) {
        None => {
            let inner = Map::new(Entries::new());
            table.set(name.as_bytes(), Value::Map(inner.clone()));
            Ok(inner)
        }
        Some(Value::Map(inner)) => Ok(inner),
        Some(Value::List(list)) => match list.items.last() {
            Some(Value::Map(inner)) => Ok(inner.clone()),
            _ => Err(format!("key {name:?} is not a table")),
        },
        Some(_) => Err(format!("key {name:?} is not a table")),
    }
}

fn header(root: &Map, path: &[String], is_list: bool) -> Step<Map> {
    let Some((last, parents)) = path.split_last() else {
        return Err("a key is missing".to_owned());
    };
    let mut at = root.clone();
    for name in parents {
        at = descend(&at, name)?;
    }
    if !is_list {
        return descend(&at, last);
    }
    let inner = Map::new(Entries::new());
    let mut items = match at.get(last.as_bytes()) {
        None => Vec::new(),
        Some(Value::List(list)) => list.items.clone(),
        Some(_) => return Err(format!("key {last:?} has already been defined")),
    };
    items.push(Value::Map(inner.clone()));
    at.set(last.as_bytes(), Value::list(items));
    Ok(inner)
}
