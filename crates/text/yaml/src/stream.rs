//! Reading a text: its bounds, its documents, and two things on which the parser must be helped.

use std::borrow::Cow;

use serde_json::Value;

use crate::block;
use crate::decode::decode;
use crate::error::{Error, Problem};
use crate::resolve::Resolution;
use crate::tree::{Documents, Stumble};

/// The bounds within which a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of the text in bytes.
    pub bytes: usize,
    /// How deep sequences and mappings may be nested, counted after aliases are expanded.
    pub depth: usize,
    /// How many values aliases may add to a text; 16 bytes of their text count as one value more. What is written out
    /// is bounded by the size of the text.
    pub aliased: usize,
}

impl Default for Limits {
    /// The size of the largest request body, and more aliases than people write.
    fn default() -> Self {
        Self {
            bytes: 3 * 1024 * 1024,
            depth: 100,
            aliased: 100_000,
        }
    }
}

/// A document and what is questionable in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value. Of keys that occur twice, the last one counts.
    pub value: Value,
    /// Keys that occur twice, at most a hundred of them.
    pub duplicates: Vec<DuplicateKey>,
    /// The line on which the document's content starts, counted from 1.
    pub line: usize,
    /// Values whose text was more than what is left of it, in the order of the document.
    pub spellings: Vec<Spelling>,
}

/// A plain scalar whose text cannot be told from its value: `1.10`, `0x1F`, `~`, nothing at all where null is meant, or
/// a time. Programs that take such a value as text need it as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// Where the value is.
    pub path: Vec<Step>,
    /// What was written.
    pub text: String,
}

/// A step from a value to one within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To the value of a key.
    Key(String),
    /// To an item of a sequence.
    Item(usize),
}

/// A key that occurs twice in a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The line of the later value, counted from 1.
    pub line: usize,
    /// The key.
    pub key: String,
}

impl std::fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: key {:?} already set in map", self.line, self.key)
    }
}

/// Reads the first document of a text by the rules of YAML 1.1; null if there is none. As Go does, it does not look
/// at what follows the document.
pub fn from_str(text: &str, limits: Limits) -> Result<Value, Error> {
    check_size(text.len(), limits)?;
    if let Some(value) = block::read(text, Resolution::Yaml11, limits.depth) {
        return Ok(value);
    }
    Ok(from_str_with(text, limits, Resolution::Yaml11)?.value)
}

/// As [`from_str`], for those who want some keys of a mapping only: the others may be missing from the result. What they
/// hold must be readable all the same.
pub fn keys_from_str(text: &str, limits: Limits, keys: &[&str]) -> Result<Value, Error> {
    check_size(text.len(), limits)?;
    match block::read_keys(text, Resolution::Yaml11, limits.depth, keys) {
        Some(value) => Ok(value),
        None => Ok(from_str_with(text, limits, Resolution::Yaml11)?.value),
    }
}

/// As [`from_str`], for bytes.
pub fn from_slice(bytes: &[u8], limits: Limits) -> Result<Value, Error> {
    check_size(bytes.len(), limits)?;
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new(Problem::NotUtf8))?;
    from_str(text, limits)
}

/// Reads the first document of a text, with everything that is known of it.
pub fn from_str_with(text: &str, limits: Limits, resolution: Resolution) -> Result<Document, Error> {
    let empty = Document {
        value: Value::Null,
        duplicates: Vec::new(),
        line: 1,
        spellings: Vec::new(),
    };
    Ok(read(text, limits, resolution, true)?.pop().unwrap_or(empty))
}

/// Reads every document of a text by the rules of YAML 1.1.
pub fn documents(text: &str, limits: Limits) -> Result<Vec<Value>, Error> {
    let documents = read(text, limits, Resolution::Yaml11, false)?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// Reads every document of a text, with everything that is known of each.
pub fn documents_with(text: &str, limits: Limits, resolution: Resolution) -> Result<Vec<Document>, Error> {
    read(text, limits, resolution, false)
}

fn check_size(size: usize, limits: Limits) -> Result<(), Error> {
    if size > limits.bytes {
        return Err(Error::new(Problem::TooLarge {
            size,
            limit: limits.bytes,
        }));
    }
    Ok(())
}

fn is_forbidden(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => true,
        _ => false,
    }
}

/// How many bytes may be read again: enough for some hundred stumbles over a manifest of ordinary size,
/// and little enough that nobody can keep a server busy.
const REREAD_BUDGET: usize = 4 * 1024 * 1024;

fn read(
    text: &str,
    limits: Limits,
    resolution: Resolution,
    only_first: bool,
) -> Result<Vec<Document>, Error> {
    check_size(text.len(), limits)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(at) = text.find(is_forbidden) {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Error::at(line, Problem::ControlCharacter));
    }
    let mut text = Cow::Borrowed(text);
    let mut budget = REREAD_BUDGET;
    loop {
        let mut trees = Documents::new(&text, limits.depth);
        let error = match read_documents(&mut trees, limits, resolution, only_first) {
            Ok(documents) => return Ok(documents),
            Err(error) => error,
        };
        // The parser refuses a tab between a key's colon and its value, where Go takes it for a space, and lines of a
        // text in quotes that are not indented, which Go does not ask for. Only the parser knows that this colon is a
        // key's and this quote a value's, so what it stumbled over is replaced, and it starts again.
        let patched = trees.stumbled().and_then(|stumble| match stumble {
            Stumble::Tab { at } => with_space_before(&text, at),
            Stumble::Quoted { at, column } => with_lines_indented(&text, at, column),
        });
        let (Some(patched), Some(rest)) = (patched, budget.checked_sub(text.len())) else {
            return Err(error);
        };
        budget = rest;
        text = Cow::Owned(patched);
    }
}

fn read_documents(
    trees: &mut Documents<'_>,
    limits: Limits,
    resolution: Resolution,
    only_first: bool,
) -> Result<Vec<Document>, Error> {
    // The documents of one text share what aliases may add.
    let mut aliased = limits.aliased;
    let mut documents = Vec::new();
    while let Some(tree) = trees.next()? {
        documents.push(decode(&tree, resolution, limits.depth, &mut aliased)?);
        if only_first {
            break;
        }
    }
    Ok(documents)
}

/// Where the `at`th character of a text begins.
fn byte_of(text: &str, at: usize) -> usize {
    text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
}

/// The text with the further lines of the scalar whose opening quote is the `at`th character moved beyond its column: how
/// far they are indented does not count. None if there are no such lines.
fn with_lines_indented(text: &str, at: usize, column: usize) -> Option<String> {
    let start = byte_of(text, at);
    let bytes = text.as_bytes();
    let quote = *bytes.get(start)?;
    let mut patched = String::from(&text[..start]);
    let (mut from, mut at) = (start, start + 1);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if quote == b'"' && bytes.get(at) != Some(&b'\n') => at += 1,
            b'\n' => {
                patched.push_str(&text[from..at]);
                from = at;
                let rest = &text[at..];
                // A document ends there, whatever is open.
                let is_mark = rest.starts_with("---") || rest.starts_with("...");
                if is_mark && rest[3..].chars().next().is_none_or(char::is_whitespace) {
                    return None;
                }
                if !rest.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) {
                    patched.extend(std::iter::repeat_n(' ', column + 1));
                }
            }
            // Two of them stand for one within single quotes; then the next one opens what goes on.
            byte if byte == quote && !(quote == b'\'' && bytes.get(at) == Some(&quote)) => {
                let is_changed = from > start;
                patched.push_str(&text[from..]);
                return is_changed.then_some(patched);
            }
            byte if byte == quote => at += 1,
            _ => {}
        }
    }
    None
}

/// The text with spaces in place of the tabs before its `at`th character; none if there are none.
fn with_space_before(text: &str, at: usize) -> Option<String> {
    let end = byte_of(text, at);
    let before = text[..end].trim_end_matches(['\t', ' ']);
    let blank = &text[before.len()..end];
    blank
        .contains('\t')
        .then(|| format!("{before}{}{}", " ".repeat(blank.len()), &text[end..]))
}

#[cfg(test)]
mod tests;
