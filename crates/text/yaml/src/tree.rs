//! A document as a tree of nodes, before it is known what the scalars are and what the aliases expand to.
//!
//! The tree is an arena, so that an alias is an index and no cycle can arise in memory.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use crate::error::{Error, Problem};

pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) struct Node<'input> {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) kind: NodeKind<'input>,
}

#[derive(Debug)]
pub(crate) enum NodeKind<'input> {
    Scalar {
        text: Cow<'input, str>,
        /// Whether the text decides what the scalar is.
        implicit: bool,
        tag: Option<Tagged>,
    },
    Sequence(Vec<NodeId>),
    /// Keys and values in turn.
    Mapping(Vec<NodeId>),
    /// None for an alias within its own value.
    Alias(Option<NodeId>),
}

/// The explicit tags that make a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tagged {
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
    /// A lone exclamation mark, which asks for no type in particular.
    NonSpecific,
    /// Any other tag: its text is taken as it is.
    Other,
}

#[derive(Debug, Default)]
pub(crate) struct Tree<'input> {
    pub(crate) nodes: Vec<Node<'input>>,
    pub(crate) root: NodeId,
}

/// Reads a stream document by document.
pub(crate) struct Documents<'input> {
    /// The length in characters of a text whose last line has something on it but no end.
    unterminated: Option<usize>,
    parser: Parser<'input, StrInput<'input>>,
    max_depth: usize,
    done: bool,
    stumbled: Option<Stumble>,
}

/// What the parser refuses and Go accepts. Places are counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stumble {
    /// A tab between a key's colon and its value.
    Tab {
        /// Where the value is.
        at: usize,
    },
    /// A text in quotes whose further lines are indented less than what it belongs to.
    Quoted {
        /// Where its opening quote is.
        at: usize,
        /// In which column that is.
        column: usize,
    },
}

/// A sequence or mapping that is still open.
struct Open {
    id: NodeId,
    anchor: usize,
}

impl<'input> Documents<'input> {
    pub(crate) fn new(text: &'input str, max_depth: usize) -> Self {
        let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
        let unterminated = (!last_line.trim().is_empty()).then(|| text.chars().count());
        Self {
            unterminated,
            parser: Parser::new_from_str(text),
            max_depth,
            done: false,
            stumbled: None,
        }
    }

    /// The next document; none at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<Tree<'input>>, Error> {
        let next = self.read();
        // A parser that failed has no defined state to go on from.
        if !matches!(next, Ok(Some(_))) {
            self.done = true;
        }
        next
    }

    fn read(&mut self) -> Result<Option<Tree<'input>>, Error> {
        let mut tree = Tree::default();
        let mut open: Vec<Open> = Vec::new();
        let mut anchors: HashMap<usize, NodeId> = HashMap::new();
        while !self.done {
            let Some(event) = self.parser.next_event() else {
                break;
            };
            let (event, span) = event.map_err(|error| self.syntax_error(&error))?;
            let line = span.start.line();
            let (kind, anchor) = match event {
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
                Event::StreamEnd => break,
                Event::DocumentEnd => return Ok(Some(tree)),
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(Open {
                        id,
                        anchor: anchor @ 1..,
                    }) = open.pop()
                    {
                        anchors.insert(anchor, id);
                    }
                    continue;
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let text = match style {
                        ScalarStyle::Literal | ScalarStyle::Folded => {
                            self.as_terminated(text, span.end.index())
                        }
                        _ => text,
                    };
                    (scalar(text, style, tag.as_deref()), anchor)
                }
                Event::SequenceStart(anchor, _) => (NodeKind::Sequence(Vec::new()), anchor),
                Event::MappingStart(anchor, _) => (NodeKind::Mapping(Vec::new()), anchor),
                Event::Alias(anchor) => (NodeKind::Alias(anchors.get(&anchor).copied()), 0),
            };
            let id = tree.nodes.len();
            let container = matches!(kind, NodeKind::Sequence(_) | NodeKind::Mapping(_));
            tree.nodes.push(Node { line, kind });
            match open
                .last()
                .and_then(|parent| tree.nodes.get_mut(parent.id))
                .map(|parent| &mut parent.kind)
            {
                Some(NodeKind::Sequence(children) | NodeKind::Mapping(children)) => children.push(id),
                _ => tree.root = id,
            }
            if container {
                if open.len() >= self.max_depth {
                    return Err(Error::at(
                        line,
                        Problem::TooDeep {
                            limit: self.max_depth,
                        },
                    ));
                }
                open.push(Open { id, anchor });
            } else if anchor != 0 {
                anchors.insert(anchor, id);
            }
        }
        Ok(None)
    }
}

impl<'input> Documents<'input> {
    /// What reading failed over, if Go would not have.
    pub(crate) fn stumbled(&self) -> Option<Stumble> {
        self.stumbled
    }

    fn syntax_error(&mut self, error: &ScanError) -> Error {
        let (at, column) = (error.marker().index(), error.marker().col());
        self.stumbled = match error.info() {
            info if info.starts_with("':' must be followed by") => Some(Stumble::Tab { at }),
            "invalid indentation in quoted scalar" => Some(Stumble::Quoted { at, column }),
            _ => None,
        };
        Error::at(error.marker().line(), Problem::Syntax(error.info().to_owned()))
    }

    /// The text of a block scalar that ends at the character `end`. The parser ends each of them in a line break, but
    /// where the stream ends within its last line there is none, and Go adds none.
    fn as_terminated(&self, scalar: Cow<'input, str>, end: usize) -> Cow<'input, str> {
        let unterminated = self.unterminated.is_some_and(|length| length <= end);
        match scalar.strip_suffix('\n') {
            Some(stripped) if unterminated => Cow::Owned(stripped.to_owned()),
            _ => scalar,
        }
    }
}

fn scalar<'input>(text: Cow<'input, str>, style: ScalarStyle, tag: Option<&Tag>) -> NodeKind<'input> {
    let Some(tag) = tag else {
        return NodeKind::Scalar {
            text,
            implicit: style == ScalarStyle::Plain,
            tag: None,
        };
    };
    if tag.handle.is_empty() && tag.suffix == "!" {
        let implicit = style == ScalarStyle::Plain;
        return NodeKind::Scalar {
            text,
            implicit,
            tag: Some(Tagged::NonSpecific),
        };
    }
    let full = format!("{}{}", tag.handle, tag.suffix);
    let tagged = match full.strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Tagged::Str,
        Some("bool") => Tagged::Bool,
        Some("int") => Tagged::Int,
        Some("float") => Tagged::Float,
        Some("null") => Tagged::Null,
        Some("timestamp") => Tagged::Timestamp,
        Some("binary") => Tagged::Binary,
        Some("merge") => Tagged::Merge,
        _ => Tagged::Other,
    };
    NodeKind::Scalar {
        text,
        implicit: false,
        tag: Some(tagged),
    }
}
