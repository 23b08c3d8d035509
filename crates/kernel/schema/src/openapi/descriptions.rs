//! Descriptions of types, fields and query parameters: compressed in the binary, unpacked for the time of a request.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// The compressed text.
pub(super) const DATA: &[u8] = include_bytes!("../../data/descriptions.zlib");

/// The text; empty if it cannot be read, which this crate's tests rule out.
pub(super) fn text() -> String {
    let mut text = String::new();
    match ZlibDecoder::new(DATA).read_to_string(&mut text) {
        Ok(_) => text,
        Err(_) => String::new(),
    }
}

/// The descriptions, found by type and field.
pub(super) struct Descriptions<'t> {
    /// The lines of each type.
    blocks: HashMap<&'t str, &'t str>,
}

impl<'t> Descriptions<'t> {
    /// Finds the types in the text: their names stand at the beginning of a line, all else is indented.
    pub(super) fn new(text: &'t str) -> Self {
        let mut blocks = HashMap::new();
        let mut rest = text;
        while let Some((name, tail)) = rest.split_once('\n') {
            let end = indented(tail);
            blocks.insert(name, &tail[..end]);
            rest = &tail[end..];
        }
        Self { blocks }
    }

    /// The description of a type.
    pub(super) fn of_type(&self, name: &str) -> Option<String> {
        self.of_field(name, "")
    }

    /// The description of a field, or of a query parameter.
    pub(super) fn of_field(&self, owner: &str, field: &str) -> Option<String> {
        let line = self.blocks.get(owner)?.lines().find_map(|line| {
            let (name, literal) = line.strip_prefix(' ')?.split_once(' ')?;
            (name == field).then_some(literal)
        })?;
        serde_json::from_str(line).ok()
    }
}

/// How much of a text is indented lines.
fn indented(text: &str) -> usize {
    text.split_inclusive('\n')
        .take_while(|line| line.starts_with(' '))
        .map(str::len)
        .sum()
}
