//! The YAML that programs write, and people most of the time, read in one pass: block mappings and sequences, scalars
//! of every style, and brackets within a line.
//!
//! Renderers read every manifest they make, and most of their time went into that. This reader never judges: whatever
//! it is not sure of (anchors, tags, directives, tabs, keys that are no text or occur twice, errors) it leaves to the
//! full reader by giving up ([`None`]). What it does read, both read alike; the tests hold it to that.

mod flow;
mod make;
mod scalar;

use serde_json::{Map, Value};

use self::make::{Make, Skimmed, Write};
use crate::resolve::{Resolution, Scalar, resolve_plain};

/// The value of a text that is one block mapping or sequence; none if the full reader must look at it.
pub(crate) fn read(text: &str, resolution: Resolution, depth: usize) -> Option<Value> {
    let (mut reader, line) = Reader::begin(text, resolution)?;
    let value = match reader.is_item(line) {
        true => reader.sequence(line.indent, depth)?,
        false => {
            reader.key_end(line.start, line.end)?;
            reader.mapping(line.indent, depth)?
        }
    };
    reader.current.is_none().then_some(value)
}

/// As [`read`] of a text that is a mapping, with these keys only; the others are read, and what they hold is not kept.
pub(crate) fn read_keys(text: &str, resolution: Resolution, depth: usize, keys: &[&str]) -> Option<Value> {
    let (mut reader, first) = Reader::begin(text, resolution)?;
    if reader.is_item(first) {
        return None;
    }
    let indent = first.indent;
    let depth = depth.checked_sub(1)?;
    let mut fields = Map::new();
    while let Some(line) = reader.at(indent)? {
        let (key, colon) = reader.key::<Value>(line)?;
        let rest = Line {
            start: colon + 1,
            ..line
        };
        if keys.contains(&key.as_str()) {
            let value = reader.value(rest, indent, true, depth)?;
            Value::insert(&mut fields, key, value)?;
        } else {
            reader.value::<Skimmed>(rest, indent, true, depth)?;
        }
    }
    reader.current.is_none().then_some(Value::Object(fields))
}

/// Control characters, line breaks other than line feeds, and marks: the full reader knows what they mean.
fn has_rare_characters(bytes: &[u8]) -> bool {
    // Texts are long and nearly always free of them: the first look is one that the compiler makes of wide instructions.
    const PIECE: usize = 64;
    let is_suspicious = |byte: &u8| {
        let control = (*byte < 0x20) & (*byte != b'\n') & (*byte != b'\t');
        control | (*byte == 0x7f) | (*byte == 0xc2) | (*byte == 0xe2) | (*byte == 0xef)
    };
    let piece_has_some = |(at, piece): (usize, &[u8])| {
        piece
            .iter()
            .fold(false, |found, byte| found | is_suspicious(byte))
            && (at * PIECE..at * PIECE + piece.len()).any(|at| is_rare(bytes, at))
    };
    bytes.chunks(PIECE).enumerate().any(piece_has_some)
}

fn is_rare(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\n' | b'\t' => false,
        0..=0x1f | 0x7f => true,
        // U+0080 to U+009F, U+2028 and U+2029, U+FEFF, U+FFFE and U+FFFF.
        0xc2 => bytes.get(at + 1).is_some_and(|next| *next < 0xa0),
        0xe2 => matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])),
        0xef => matches!(
            bytes.get(at + 1..at + 3),
            Some([0xbb, 0xbf] | [0xbf, 0xbe | 0xbf])
        ),
        _ => false,
    }
}

/// A line with something on it; where a dash has been read, the rest of one.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The column of its first character.
    indent: usize,
    /// Where its first character is.
    start: usize,
    /// Where it ends, without the line feed.
    end: usize,
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// Where the line after the current one begins.
    next: usize,
    /// The line that is being read; none at the end.
    current: Option<Line>,
    resolution: Resolution,
    /// Whether there is a tab anywhere, so that lines need be searched for them.
    has_tabs: bool,
}

impl<'t> Reader<'t> {
    /// A reader at the first line of a text.
    fn begin(text: &'t str, resolution: Resolution) -> Option<(Self, Line)> {
        if has_rare_characters(text.as_bytes()) {
            return None;
        }
        let mut reader = Self {
            text,
            bytes: text.as_bytes(),
            next: 0,
            current: None,
            resolution,
            has_tabs: memchr::memchr(b'\t', text.as_bytes()).is_some(),
        };
        reader.skip_mark();
        reader.advance()?;
        let line = reader.current?;
        Some((reader, line))
    }

    /// Steps over a mark at the very beginning.
    fn skip_mark(&mut self) {
        if self.text.starts_with("---\n") {
            self.next = 4;
        }
    }

    /// The next line, be it blank, without reading it: where it begins and ends.
    fn peek(&self) -> Option<(usize, usize)> {
        if self.next >= self.bytes.len() {
            return None;
        }
        let length = memchr::memchr(b'\n', &self.bytes[self.next..]);
        Some((
            self.next,
            length.map_or(self.bytes.len(), |length| self.next + length),
        ))
    }

    fn indent_of(&self, start: usize, end: usize) -> usize {
        self.bytes[start..end]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count()
    }

    /// Goes to the next line that is neither blank nor a comment. Gives up where another document begins.
    fn advance(&mut self) -> Option<()> {
        loop {
            let Some((start, end)) = self.peek() else {
                self.current = None;
                return Some(());
            };
            self.next = end + 1;
            let indent = self.indent_of(start, end);
            let first = start + indent;
            if first == end || self.bytes[first] == b'#' {
                continue;
            }
            let line = &self.bytes[first..end];
            if self.has_tab(line) {
                return None;
            }
            if indent == 0 && (line.starts_with(b"---") || line.starts_with(b"...") || line[0] == b'%') {
                return None;
            }
            self.current = Some(Line {
                indent,
                start: first,
                end,
            });
            return Some(());
        }
    }

    fn has_tab(&self, line: &[u8]) -> bool {
        self.has_tabs && memchr::memchr(b'\t', line).is_some()
    }

    fn is_item(&self, line: Line) -> bool {
        self.bytes[line.start] == b'-' && (line.start + 1 == line.end || self.bytes[line.start + 1] == b' ')
    }

    /// The current line if it lies at this indentation; none if the block has ended. Gives up on a deeper one.
    fn at(&self, indent: usize) -> Option<Option<Line>> {
        match self.current {
            Some(line) if line.indent > indent => None,
            Some(line) if line.indent == indent => Some(Some(line)),
            _ => Some(None),
        }
    }

    fn mapping<M: Make>(&mut self, indent: usize, depth: usize) -> Option<M> {
        let depth = depth.checked_sub(1)?;
        let mut fields = M::Fields::default();
        while let Some(line) = self.at(indent)? {
            let (key, colon) = self.key::<M>(line)?;
            let value = self.value(
                Line {
                    start: colon + 1,
                    ..line
                },
                indent,
                true,
                depth,
            )?;
            M::insert(&mut fields, key, value)?;
        }
        Some(M::mapping(fields))
    }

    fn sequence<M: Make>(&mut self, indent: usize, depth: usize) -> Option<M> {
        let depth = depth.checked_sub(1)?;
        let mut items = M::Items::default();
        while let Some(line) = self.at(indent)? {
            // At the end of a sequence that is not indented, the mapping around it goes on.
            if !self.is_item(line) {
                break;
            }
            let start = self.skip_spaces(line.start + 1, line.end);
            let rest = Line {
                indent: line.indent + (start - line.start),
                start,
                end: line.end,
            };
            let is_empty = start == line.end || self.bytes[start] == b'#';
            let item = if is_empty {
                self.value(rest, indent, false, depth)?
            } else if self.is_item(rest) {
                self.current = Some(rest);
                self.sequence(rest.indent, depth)?
            } else if self.key_end(rest.start, rest.end).is_some() {
                self.current = Some(rest);
                self.mapping(rest.indent, depth)?
            } else {
                self.value(rest, indent, false, depth)?
            };
            M::push(&mut items, item);
        }
        Some(M::sequence(items))
    }

    /// The value of which `rest` is the first line, below something at `indent`. A key's sequence may lie at the key's
    /// own indentation.
    fn value<M: Make>(&mut self, rest: Line, indent: usize, of_key: bool, depth: usize) -> Option<M> {
        let start = self.skip_spaces(rest.start, rest.end);
        if start < rest.end && self.bytes[start] != b'#' {
            return self.scalar(start, rest.end, indent, depth);
        }
        self.advance()?;
        let Some(line) = self.current else {
            return Some(M::null());
        };
        if line.indent == indent && of_key && self.is_item(line) {
            return self.sequence(indent, depth);
        }
        if line.indent <= indent {
            return Some(M::null());
        }
        if self.is_item(line) {
            return self.sequence(line.indent, depth);
        }
        match self.key_end(line.start, line.end) {
            Some(_) => self.mapping(line.indent, depth),
            None => self.scalar(line.start, line.end, indent, depth),
        }
    }

    fn skip_spaces(&self, start: usize, end: usize) -> usize {
        start + self.indent_of(start, end)
    }

    /// The key of a line, and where its colon is.
    fn key<M: Make>(&self, line: Line) -> Option<(M::Text, usize)> {
        let colon = self.key_end(line.start, line.end)?;
        let key = match self.bytes[line.start] {
            quote @ (b'"' | b'\'') => {
                let (text, end) = self.quoted(line.start, line.end, quote)?;
                (end == colon).then_some(text)?
            }
            _ => {
                let text = &self.text[line.start..colon];
                match resolve_plain(text, self.resolution, true) {
                    Scalar::Text => {
                        let mut key = M::Text::default();
                        key.put(text);
                        key
                    }
                    _ => return None,
                }
            }
        };
        Some((key, colon))
    }

    /// Where the colon after a line's key is; none if it has no key, or none that is plain to see.
    fn key_end(&self, start: usize, end: usize) -> Option<usize> {
        const LONGEST: usize = 256;
        let ends_key = |at: usize| self.bytes[at] == b':' && (at + 1 == end || self.bytes[at + 1] == b' ');
        let colon = match self.bytes[start] {
            quote @ (b'"' | b'\'') => {
                let ((), after) = self.quoted(start, end, quote)?;
                (after < end && ends_key(after)).then_some(after)?
            }
            _ if !self.begins_plain(start, end) => return None,
            _ => {
                let nearest = end.min(start + LONGEST + 1);
                let colons = memchr::memchr_iter(b':', &self.bytes[start..nearest]);
                let colon = colons.map(|at| start + at).find(|at| ends_key(*at))?;
                let key = &self.bytes[start..colon];
                if key.ends_with(b" ") || key.windows(2).any(|pair| pair == b" #") || key == b"<<" {
                    return None;
                }
                colon
            }
        };
        (colon - start <= LONGEST).then_some(colon)
    }

    /// Whether a plain scalar begins here, beyond doubt.
    fn begins_plain(&self, start: usize, end: usize) -> bool {
        match self.bytes[start] {
            b'-' => start + 1 < end && self.bytes[start + 1] != b' ',
            b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>'
            | b'\'' | b'"' | b'%' | b'@' | b'`' | b' ' => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
