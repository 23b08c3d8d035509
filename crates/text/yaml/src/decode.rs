//! From the tree of a document to a JSON value, as `sigs.k8s.io/yaml` converts.

use std::borrow::Cow;

use base64::Engine;
use serde_json::{Map, Value};

use crate::error::{Error, Problem};
use crate::go_number::{GoNumber, format_g, json_number};
use crate::resolve::{Resolution, Scalar, resolve_plain};
use crate::stream::{Document, DuplicateKey, Spelling, Step};
use crate::tree::{Node, NodeId, NodeKind, Tagged, Tree};

const MAX_DUPLICATES: usize = 100;
/// More than documents have that people write; the rest is told by value alone.
const MAX_SPELLINGS: usize = 10_000;

/// Converts one document. `aliased` is what aliases may still add to the text, and is reduced by what they did.
pub(crate) fn decode(
    tree: &Tree<'_>,
    resolution: Resolution,
    depth: usize,
    aliased: &mut usize,
) -> Result<Document, Error> {
    let mut decoder = Decoder {
        tree,
        resolution,
        depth,
        budget: *aliased,
        expanding: false,
        duplicates: Vec::new(),
        spellings: Vec::new(),
    };
    let value = match tree.nodes.is_empty() {
        true => Value::Null,
        false => decoder.value(tree.root, depth)?,
    };
    *aliased = decoder.budget;
    let line = tree.nodes.get(tree.root).map_or(1, |node| node.line);
    // Paths were put together from their ends.
    for spelling in &mut decoder.spellings {
        spelling.path.reverse();
    }
    Ok(Document {
        value,
        duplicates: decoder.duplicates,
        line,
        spellings: decoder.spellings,
    })
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
    /// With their paths backwards: a step is added where a value is put into its parent.
    spellings: Vec<Spelling>,
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
                let scalar = resolve_scalar(text, *implicit, *tag, self.resolution)
                    .map_err(|problem| Error::at(node.line, problem))?;
                let is_time = matches!(scalar, Resolved::Plain(Scalar::Timestamp));
                let value = scalar
                    .into_value(text)
                    .map_err(|problem| Error::at(node.line, problem))?;
                if is_time || loses_spelling(&value, text) {
                    self.keep_spelling(text);
                }
                Ok(value)
            }
            NodeKind::Sequence(children) => {
                let depth = self.descend(depth, node.line)?;
                let mut items = Vec::with_capacity(children.len());
                for (at, id) in children.iter().enumerate() {
                    let spelled = self.spellings.len();
                    items.push(self.value(*id, depth)?);
                    self.step(spelled, || Step::Item(at));
                }
                Ok(Value::Array(items))
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

    fn keep_spelling(&mut self, text: &str) {
        if self.spellings.len() < MAX_SPELLINGS {
            self.spellings.push(Spelling {
                path: Vec::new(),
                text: text.to_owned(),
            });
        }
    }

    /// Adds a step to the spellings found since there were `from` of them.
    fn step(&mut self, from: usize, step: impl Fn() -> Step) {
        for spelling in self.spellings.iter_mut().skip(from) {
            spelling.path.push(step());
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
            let spelled = self.spellings.len();
            let decoded = self.value(value, depth)?;
            self.step(spelled, || Step::Key(key.clone()));
            if fields.contains_key(&key) {
                if precedence == Precedence::Own {
                    self.spellings.truncate(spelled);
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

/// Whether the text of a scalar is not what its value would be written as.
fn loses_spelling(value: &Value, text: &str) -> bool {
    match value {
        Value::Null => text != "null",
        // Most numbers are short integers: their digits are compared without writing them out.
        Value::Number(number) => match number.as_i64() {
            Some(value) => text.len() > 1 && !is_plain_integer(text) || text.parse() != Ok(value),
            None => number.to_string() != text,
        },
        _ => false,
    }
}

fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.starts_with(['0', '+']) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a plain scalar with this text is; text if it is a time, or a number that JSON does not have.
pub fn plain_scalar(text: &str, resolution: Resolution) -> Value {
    Resolved::Plain(resolve_plain(text, resolution, true))
        .into_value(text)
        .unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// As [`plain_scalar`]; none for a number that JSON does not have.
pub(crate) fn plain_value(text: Cow<'_, str>, resolution: Resolution) -> Option<Value> {
    match resolve_plain(&text, resolution, true) {
        Scalar::Timestamp | Scalar::Text => Some(Value::String(text.into_owned())),
        scalar => Resolved::Plain(scalar).into_value(&text).ok(),
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
