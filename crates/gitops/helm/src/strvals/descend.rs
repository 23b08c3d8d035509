//! The way down a line of names, `a.b[0].c=`, into tables and lists: the same for every flag. What the characters
//! mean on the way, and what follows `=`, is each flag's own.

use fairway_text_gotemplate::text::quote;
use serde_json::Value as Json;

use super::Table;

/// The largest index of a list.
pub const MAX_INDEX: usize = 65_536;
/// How deep names may be nested.
pub const MAX_NESTING: usize = 30;

/// Why reading stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// The line is at its end.
    End,
    Error(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Error(message)
    }
}

pub(super) type Step<T> = Result<T, Stop>;

/// A line that is being read.
pub(super) trait Descent {
    /// What ends a name.
    const KEY_ENDS: &'static [char];

    /// The text up to one of the characters, and which one it was; none at the end of the line.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>);

    /// Reads what follows `=` and puts it in its place.
    fn assign(&mut self, put: &mut dyn FnMut(Json) -> Result<(), String>) -> Step<()>;

    /// Reads the whole line.
    fn all(&mut self, into: &mut Table) -> Result<(), String> {
        loop {
            match self.key(into, 0) {
                Ok(()) => {}
                Err(Stop::End) => return Ok(()),
                Err(Stop::Error(message)) => return Err(message),
            }
        }
    }

    fn key(&mut self, table: &mut Table, nesting: usize) -> Step<()> {
        let (key, last) = self.until(Self::KEY_ENDS);
        match last {
            None if key.is_empty() => Err(Stop::End),
            None => Err(format!("key {} has no value", quote(key.as_bytes())).into()),
            Some('[') => {
                let at = self.index()?;
                let mut list = list_in(table.get(&key))?;
                let result = self.item(&mut list, at, nesting);
                set(table, &key, Json::Array(list));
                result
            }
            Some('=') => self.assign(&mut |value| {
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
                match self.assign(&mut |value| set_index(list, at, value)) {
                    Err(Stop::End) => Ok(()),
                    other => other,
                }
            }
            Some('[') => {
                let next = self.index()?;
                let mut inner = list_in(list.get(at).filter(|found| !found.is_null()))?;
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

/// The list that is there already.
fn list_in(found: Option<&Json>) -> Step<Vec<Json>> {
    match found {
        None => Ok(Vec::new()),
        Some(Json::Array(list)) => Ok(list.clone()),
        Some(other) => Err(conversion_fault(other, "[]interface {}")),
    }
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
