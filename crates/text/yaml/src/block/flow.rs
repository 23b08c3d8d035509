//! Lists and tables in brackets that end on their line, of words, numbers and quoted texts.

use super::Reader;
use super::make::Make;

impl Reader<'_> {
    /// The value in the brackets at `start`, and where it ends.
    pub(super) fn flow<M: Make>(&self, start: usize, end: usize, depth: usize) -> Option<(M, usize)> {
        let depth = depth.checked_sub(1)?;
        let is_table = self.bytes[start] == b'{';
        let close = if is_table { b'}' } else { b']' };
        let (mut items, mut fields) = (M::Items::default(), M::Fields::default());
        let mut at = self.skip_spaces(start + 1, end);
        if self.byte(at, end)? != close {
            loop {
                if is_table {
                    let (key, after) = self.flow_item::<M>(at, end, 0)?;
                    let key = key.into_text()?;
                    if self.byte(after, end)? != b':' || self.byte(after + 1, end)? != b' ' {
                        return None;
                    }
                    let (value, after) = self.flow_item(self.skip_spaces(after + 1, end), end, depth)?;
                    at = after;
                    M::insert(&mut fields, key, value)?;
                } else {
                    let (value, after) = self.flow_item(at, end, depth)?;
                    at = after;
                    M::push(&mut items, value);
                }
                at = self.skip_spaces(at, end);
                match self.byte(at, end)? {
                    b',' => at = self.skip_spaces(at + 1, end),
                    byte if byte == close => break,
                    _ => return None,
                }
            }
        }
        let value = match is_table {
            true => M::mapping(fields),
            false => M::sequence(items),
        };
        Some((value, at + 1))
    }

    fn byte(&self, at: usize, end: usize) -> Option<u8> {
        (at < end).then(|| self.bytes[at])
    }

    fn flow_item<M: Make>(&self, start: usize, end: usize, depth: usize) -> Option<(M, usize)> {
        match self.byte(start, end)? {
            b'[' | b'{' => self.flow(start, end, depth),
            quote @ (b'"' | b'\'') => {
                let (text, after) = self.quoted(start, end, quote)?;
                Some((M::text(text), after))
            }
            first if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/') => {
                let is_word =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'.' | b'-');
                let length = self.bytes[start..end]
                    .iter()
                    .take_while(|byte| is_word(byte))
                    .count();
                let text = &self.text[start..start + length];
                Some((M::plain(text.into(), self.resolution)?, start + length))
            }
            _ => None,
        }
    }
}
