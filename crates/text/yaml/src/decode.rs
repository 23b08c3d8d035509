//! From the tree of a document to a JSON value, as `sigs.k8s.io/yaml` converts.

use base64::Engine;
use serde_json::{Map, Value};

use crate::error::{Error, Problem};
use crate::go_number::{GoNumber, format_g, json_number};
use crate::resolve::{Resolution, Scalar, resolve_plain};
use crate::tree::{Documents, Node, NodeId, NodeKind, Tagged, Tree};

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

const MAX_DUPLICATES: usize = 100;

/// Reads the first document of a text by the rules of YAML 1.1; null if there is none. As Go does, it does not look
/// at what follows the document.
pub fn from_str(text: &str, limits: Limits) -> Result<Value, Error> {
    Ok(from_str_with(text, limits, Resolution::Yaml11)?.value)
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
    };
    Ok(stream(text, limits, resolution)?
        .next()
        .transpose()?
        .unwrap_or(empty))
}

/// Reads every document of a text by the rules of YAML 1.1.
pub fn documents(text: &str, limits: Limits) -> Result<Vec<Value>, Error> {
    stream(text, limits, Resolution::Yaml11)?
        .map(|document| Ok(document?.value))
        .collect()
}

/// Reads every document of a text, with everything that is known of each.
pub fn documents_with(text: &str, limits: Limits, resolution: Resolution) -> Result<Vec<Document>, Error> {
    stream(text, limits, resolution)?.collect()
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

fn stream(
    text: &str,
    limits: Limits,
    resolution: Resolution,
) -> Result<impl Iterator<Item = Result<Document, Error>>, Error> {
    check_size(text.len(), limits)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(at) = text.find(is_forbidden) {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Error::at(line, Problem::ControlCharacter));
    }
    let mut trees = Documents::new(text, limits.depth);
    // The documents of one text share its budget.
    let mut budget = limits.aliased;
    Ok(std::iter::from_fn(move || {
        let tree = trees.next().transpose()?;
        Some(tree.and_then(|tree| {
            let mut decoder = Decoder {
                tree: &tree,
                resolution,
                depth: limits.depth,
                budget,
                expanding: false,
                duplicates: Vec::new(),
            };
            let value = match tree.nodes.is_empty() {
                true => Value::Null,
                false => decoder.value(tree.root, limits.depth)?,
            };
            budget = decoder.budget;
            let line = tree.nodes.get(tree.root).map_or(1, |node| node.line);
            Ok(Document {
                value,
                duplicates: decoder.duplicates,
                line,
            })
        }))
    }))
}

struct Decoder<'tree, 'input> {
    tree: &'tree Tree<'input>,
    resolution: Resolution,
    /// The limit, for the error.
    depth: usize,
    /// How many values aliases may still add.
    budget: usize,
    /// Whether an alias is being expanded.
    expanding: bool,
    duplicates: Vec<DuplicateKey>,
}

/// How a key meets one that is already there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precedence {
    /// The later one counts, and the repetition is reported.
    Last,
    /// The earlier one counts, silently: it is the mapping's own.
    Own,
}

impl<'tree, 'input> Decoder<'tree, 'input> {
    fn node(&self, id: NodeId) -> &'tree Node<'input> {
        &self.tree.nodes[id]
    }

    fn spend(&mut self, amount: usize, line: usize) -> Result<(), Error> {
        if !self.expanding {
            return Ok(());
        }
        match self.budget.checked_sub(amount) {
            Some(rest) => self.budget = rest,
            None => return Err(Error::at(line, Problem::ExcessiveAliasing)),
        }
        Ok(())
    }

    fn expand<T>(&mut self, make: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let outer = std::mem::replace(&mut self.expanding, true);
        let made = make(self);
        self.expanding = outer;
        made
    }

    fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, Error> {
        let node = self.node(id);
        self.spend(1, node.line)?;
        match &node.kind {
            NodeKind::Scalar { text, implicit, tag } => {
                self.spend(text.len() / 16, node.line)?;
                let scalar = resolve_scalar(text, *implicit, *tag, self.resolution);
                scalar
                    .and_then(|scalar| scalar.into_value(text))
                    .map_err(|problem| Error::at(node.line, problem))
            }
            NodeKind::Sequence(children) => {
                let depth = self.descend(depth, node.line)?;
                let items: Result<Vec<Value>, Error> =
                    children.iter().map(|id| self.value(*id, depth)).collect();
                items.map(Value::Array)
            }
            NodeKind::Mapping(_) => {
                let mut fields = Map::new();
                self.fill(&mut fields, id, depth, Precedence::Last)?;
                Ok(Value::Object(fields))
            }
            NodeKind::Alias(Some(target)) => self.expand(|decoder| decoder.value(*target, depth)),
            NodeKind::Alias(None) => Err(Error::at(node.line, Problem::SelfReference)),
        }
    }

    /// Aliases can nest what is flat in the text, so depth is counted here again.
    fn descend(&self, depth: usize, line: usize) -> Result<usize, Error> {
        depth
            .checked_sub(1)
            .ok_or_else(|| Error::at(line, Problem::TooDeep { limit: self.depth }))
    }

    /// Adds a mapping's entries to `fields`.
    fn fill(
        &mut self,
        fields: &mut Map<String, Value>,
        id: NodeId,
        depth: usize,
        precedence: Precedence,
    ) -> Result<(), Error> {
        let node = self.node(id);
        let NodeKind::Mapping(children) = &node.kind else {
            return Err(Error::at(node.line, Problem::BadMerge));
        };
        let depth = self.descend(depth, node.line)?;
        let mut merges = Vec::new();
        for pair in children.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            if is_merge(self.node(key)) {
                match self.resolution {
                    Resolution::Yaml11 => self.merge(fields, value, depth, precedence)?,
                    Resolution::Yaml12 => merges.push(value),
                }
                continue;
            }
            let key = self.key(key)?;
            let decoded = self.value(value, depth)?;
            if fields.contains_key(&key) {
                if precedence == Precedence::Own {
                    continue;
                }
                if self.duplicates.len() < MAX_DUPLICATES {
                    self.duplicates.push(DuplicateKey {
                        line: self.node(value).line,
                        key: key.clone(),
                    });
                }
            }
            fields.insert(key, decoded);
        }
        for value in merges {
            self.merge(fields, value, depth, Precedence::Own)?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        fields: &mut Map<String, Value>,
        id: NodeId,
        depth: usize,
        precedence: Precedence,
    ) -> Result<(), Error> {
        let node = self.node(id);
        self.spend(1, node.line)?;
        match &node.kind {
            NodeKind::Sequence(children) => {
                let depth = self.descend(depth, node.line)?;
                // The earlier of two merged mappings wins: it comes last where the last counts.
                let mut ordered = children.clone();
                if precedence == Precedence::Last {
                    ordered.reverse();
                }
                for child in ordered {
                    self.merge_mapping(fields, child, depth, precedence)?;
                }
                Ok(())
            }
            _ => self.merge_mapping(fields, id, depth, precedence),
        }
    }

    fn merge_mapping(
        &mut self,
        fields: &mut Map<String, Value>,
        id: NodeId,
        depth: usize,
        precedence: Precedence,
    ) -> Result<(), Error> {
        let node = self.node(id);
        match &node.kind {
            NodeKind::Mapping(_) => self.fill(fields, id, depth, precedence),
            NodeKind::Alias(Some(target)) => {
                self.expand(|decoder| decoder.fill(fields, *target, depth, precedence))
            }
            NodeKind::Alias(None) => Err(Error::at(node.line, Problem::SelfReference)),
            _ => Err(Error::at(node.line, Problem::BadMerge)),
        }
    }

    /// A key as text, since JSON has no others.
    fn key(&mut self, id: NodeId) -> Result<String, Error> {
        let node = self.node(id);
        self.spend(1, node.line)?;
        match &node.kind {
            NodeKind::Scalar { text, implicit, tag } => {
                self.spend(text.len() / 16, node.line)?;
                let scalar = resolve_scalar(text, *implicit, *tag, self.resolution);
                scalar
                    .and_then(|scalar| scalar.into_key(text))
                    .map_err(|problem| Error::at(node.line, problem))
            }
            NodeKind::Sequence(_) => Err(Error::at(node.line, Problem::UnsupportedKey("a sequence"))),
            NodeKind::Mapping(_) => Err(Error::at(node.line, Problem::UnsupportedKey("a mapping"))),
            NodeKind::Alias(None) => Err(Error::at(node.line, Problem::SelfReference)),
            NodeKind::Alias(Some(target)) => match self.node(*target).kind {
                // Anchors are set before their aliases, so this goes one step down and never around.
                NodeKind::Alias(_) => Err(Error::at(node.line, Problem::SelfReference)),
                _ => self.expand(|decoder| decoder.key(*target)),
            },
        }
    }
}

fn is_merge(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Scalar { text, implicit, tag } => {
            text == "<<" && (*implicit || *tag == Some(Tagged::Merge))
        }
        _ => false,
    }
}

/// A scalar with its tag taken into account.
enum Resolved {
    Plain(Scalar),
    Binary(Vec<u8>),
}

fn resolve_scalar(
    text: &str,
    implicit: bool,
    tag: Option<Tagged>,
    resolution: Resolution,
) -> Result<Resolved, Problem> {
    let Some(tag) = tag else {
        let plain = if implicit {
            resolve_plain(text, resolution, true)
        } else {
            Scalar::Text
        };
        return Ok(Resolved::Plain(plain));
    };
    let wanted = match tag {
        Tagged::NonSpecific if implicit && resolution == Resolution::Yaml12 => {
            return Ok(Resolved::Plain(resolve_plain(text, resolution, true)));
        }
        Tagged::Str | Tagged::Other | Tagged::Merge | Tagged::NonSpecific => {
            return Ok(Resolved::Plain(Scalar::Text));
        }
        Tagged::Binary => {
            // Go's decoder skips line breaks within the text.
            let packed: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            return bytes.map(Resolved::Binary).map_err(|_| Problem::BadBinary);
        }
        Tagged::Bool => "!!bool",
        Tagged::Int => "!!int",
        Tagged::Float => "!!float",
        Tagged::Null => "!!null",
        Tagged::Timestamp => "!!timestamp",
    };
    let found = resolve_plain(text, resolution, tag == Tagged::Timestamp);
    match found {
        Scalar::Number(GoNumber::Int(value)) if tag == Tagged::Float => {
            Ok(Resolved::Plain(Scalar::Number(GoNumber::Float(value as f64))))
        }
        found if found.tag() == wanted => Ok(Resolved::Plain(found)),
        found => Err(Problem::WrongTag {
            found: found.tag(),
            text: text.to_owned(),
            tag: wanted,
        }),
    }
}

impl Resolved {
    fn into_value(self, text: &str) -> Result<Value, Problem> {
        Ok(match self {
            Self::Plain(Scalar::Null) => Value::Null,
            Self::Plain(Scalar::Bool(value)) => Value::Bool(value),
            Self::Plain(Scalar::Number(GoNumber::Int(value))) => value.into(),
            Self::Plain(Scalar::Number(GoNumber::Uint(value))) => value.into(),
            Self::Plain(Scalar::Number(GoNumber::Float(value))) => {
                json_number(value).ok_or_else(|| Problem::NotFinite(non_finite(value)))?
            }
            Self::Plain(Scalar::Timestamp | Scalar::Text) => Value::String(text.to_owned()),
            Self::Binary(bytes) => Value::String(lossy(&bytes)),
        })
    }

    fn into_key(self, text: &str) -> Result<String, Problem> {
        Ok(match self {
            Self::Plain(Scalar::Null) => return Err(Problem::UnsupportedKey("null")),
            Self::Plain(Scalar::Bool(value)) => value.to_string(),
            Self::Plain(Scalar::Number(GoNumber::Int(value))) => value.to_string(),
            Self::Plain(Scalar::Number(GoNumber::Uint(_))) => {
                return Err(Problem::UnsupportedKey("an integer above 9223372036854775807"));
            }
            Self::Plain(Scalar::Number(GoNumber::Float(value))) => match format_g(value, true).as_str() {
                "+Inf" => ".inf".to_owned(),
                "-Inf" => "-.inf".to_owned(),
                "NaN" => ".nan".to_owned(),
                finite => finite.to_owned(),
            },
            Self::Plain(Scalar::Timestamp | Scalar::Text) => text.to_owned(),
            Self::Binary(bytes) => lossy(&bytes),
        })
    }
}

fn non_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    }
}

/// Bytes as text, with one replacement character for each byte that is none, as Go's JSON writer has it.
fn lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

#[cfg(test)]
mod tests;
