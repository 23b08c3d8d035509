//! YAML with the style that its author gave it, for documents within text that are changed in one place.
//!
//! A document is read with its quotes and its flow style, brought up to date with a changed value, and written again:
//! what has not changed keeps its style, and indentation becomes the usual one. Comments stay above the lines that they
//! were above, and behind the scalars that they were behind. Documents with anchors, tags or folded text are not read at
//! all.

mod write;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

use crate::node::plain;

/// A value with its style.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Scalar(String, Style),
    List(Vec<Item>, Flow),
    /// Keys are scalars.
    Map(Vec<(Item, Node)>, Flow),
}

/// An item of a list, or a key of a map, with the comments that belong to it.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    node: Node,
    /// The lines above.
    above: Vec<String>,
    /// What is behind the item or the key's value.
    behind: String,
}

impl Item {
    fn new(node: Node) -> Self {
        Self {
            node,
            above: Vec::new(),
            behind: String::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
    /// Plain, with its tag in front.
    Tagged,
}

/// Whether a list or map is written in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Block,
    Flow,
}

const MAX_DEPTH: usize = 100;

/// Marks a text that stands for a scalar with a tag that does not fit it.
const MISTAGGED: char = '\0';

/// A number or boolean whose text became another, as the original leaves it: with the tag that it had.
pub(crate) fn mistagged(was: &Value, text: &str) -> Value {
    let tag = match was {
        Value::Bool(_) => "!!bool",
        Value::Number(number) if number.is_f64() => "!!float",
        Value::Number(_) => "!!int",
        _ => "!!null",
    };
    Value::String(format!("{MISTAGGED}{tag} {text}"))
}

/// Whether there is such a scalar in a value.
pub(crate) fn has_mistagged(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(MISTAGGED),
        Value::Array(items) => items.iter().any(has_mistagged),
        Value::Object(fields) => fields.values().any(has_mistagged),
        _ => false,
    }
}

/// The text with a changed value in it; none if the text cannot be kept in its style.
pub(crate) fn rewrite(text: &str, changed: &Value) -> Option<String> {
    let mut reader = Reader {
        chars: text.char_indices().map(|(at, _)| at).collect(),
        text,
        parser: Parser::new_from_str(text),
        read_to: 0,
        behind: String::new(),
        last_end: 0,
    };
    let mut node = reader.document()?;
    let below = comments(&text[reader.read_to..]);
    update(&mut node, changed);
    Some(write::document(&node, &below))
}

/// The comments that have a line of their own.
fn comments(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

struct Reader<'t> {
    text: &'t str,
    /// Where each character begins, since the parser counts characters.
    chars: Vec<usize>,
    parser: Parser<'t, StrInput<'t>>,
    /// Up to where comments have been taken, in bytes.
    read_to: usize,
    /// The comment behind the last scalar, list or map that ended.
    behind: String,
    /// Where the last list or map ended, in characters.
    last_end: usize,
}

impl Reader<'_> {
    fn byte(&self, at: usize) -> usize {
        self.chars.get(at).copied().unwrap_or(self.text.len())
    }

    /// The comments between what was read last and a place, which are above what begins there.
    fn comments_before(&mut self, at: usize) -> Vec<String> {
        let end = self.byte(at).max(self.read_to);
        let above = comments(&self.text[self.read_to..end]);
        self.read_to = end;
        above
    }

    /// Takes note of where something ended, and of the comment behind it in the same line.
    fn ended(&mut self, at: usize) {
        let at = self.byte(at).max(self.read_to);
        // The parser may have looked at the blank and the lines behind a plain scalar.
        let end = self.text[..at].trim_end().len().max(self.read_to);
        let line = self.text[end..].lines().next().unwrap_or_default();
        self.behind = match line.trim_start().strip_prefix('#') {
            Some(_) if line.starts_with([' ', '\t']) => line.trim().to_owned(),
            _ => String::new(),
        };
        self.read_to = match self.behind.is_empty() {
            true => end,
            false => end + line.len(),
        };
    }

    fn next(&mut self) -> Option<(Event<'static>, usize, usize)> {
        let (event, span) = self.parser.next_event()?.ok()?;
        let owned = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| std::borrow::Cow::Owned(tag.into_owned()));
                Event::Scalar(text.into_owned().into(), style, anchor, tag)
            }
            Event::SequenceStart(anchor, None) => Event::SequenceStart(anchor, None),
            Event::MappingStart(anchor, None) => Event::MappingStart(anchor, None),
            Event::SequenceEnd => Event::SequenceEnd,
            Event::MappingEnd => Event::MappingEnd,
            Event::DocumentStart(explicit) => Event::DocumentStart(explicit),
            Event::StreamStart | Event::Nothing => Event::Nothing,
            _ => return None,
        };
        Some((owned, span.start.index(), span.end.index()))
    }

    fn document(&mut self) -> Option<Node> {
        loop {
            if let (Event::DocumentStart(_), ..) = self.next()? {
                let Item { mut node, above, .. } = self.item(MAX_DEPTH)??;
                push_above(&mut node, above);
                return Some(node);
            }
        }
    }

    /// The next node with its comments; the inner none at the end of a list or map, the outer one for what is not
    /// understood.
    #[expect(clippy::option_option, reason = "an end is not a failure")]
    fn item(&mut self, depth: usize) -> Option<Option<Item>> {
        let depth = depth.checked_sub(1)?;
        let (event, start, end) = self.next()?;
        let is_list = match event {
            Event::Scalar(text, style, 0, None) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => return None,
                };
                let is_written = !text.is_empty() || style != Style::Plain;
                let mut item = Item::new(Node::Scalar(text.into_owned(), style));
                // Where nothing was written, the parser is already at what follows.
                if is_written {
                    item.above = self.comments_before(start);
                    self.ended(end);
                    item.behind = std::mem::take(&mut self.behind);
                }
                return Some(Some(item));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.last_end = end;
                return Some(None);
            }
            Event::SequenceStart(0, None) => true,
            Event::MappingStart(0, None) => false,
            _ => return None,
        };
        let flow = match self.text[self.byte(start)..].chars().next() {
            Some('[' | '{') => Flow::Flow,
            _ => Flow::Block,
        };
        let above = self.comments_before(start);
        let mut children = Vec::new();
        while let Some(child) = self.item(depth)? {
            children.push(child);
        }
        let behind = match flow {
            Flow::Flow => {
                self.ended(self.last_end);
                std::mem::take(&mut self.behind)
            }
            Flow::Block => String::new(),
        };
        if is_list {
            // What is above the first item was read as above the list.
            let mut node = Item::new(Node::List(children, flow));
            (node.above, node.behind) = (above, behind);
            return Some(Some(node));
        }
        let mut entries = Vec::with_capacity(children.len() / 2);
        let mut children = children.into_iter();
        while let (Some(mut key), Some(value)) = (children.next(), children.next()) {
            // A comment between a key and its value in the lines below is above the value's first line.
            if key.behind.is_empty() {
                key.behind = value.behind;
            }
            let mut inner = value.node;
            push_above(&mut inner, value.above);
            entries.push((key, inner));
        }
        let mut node = Item::new(Node::Map(entries, flow));
        (node.above, node.behind) = (above, behind);
        Some(Some(node))
    }
}

/// Puts comments above the first line of a list or map.
fn push_above(node: &mut Node, mut above: Vec<String>) {
    let first = match node {
        Node::List(items, _) => items.first_mut(),
        Node::Map(entries, _) => entries.first_mut().map(|(key, _)| key),
        Node::Scalar(..) => None,
    };
    if let Some(first) = first {
        above.append(&mut first.above);
        first.above = above;
    }
}

/// Makes the node's value the given one, and keeps the style of what stays.
fn update(node: &mut Node, value: &Value) {
    match (&mut *node, value) {
        (Node::Map(entries, _), Value::Object(fields)) => {
            entries.retain(|(key, _)| fields.contains_key(key_text(key)));
            for (name, field) in fields {
                match entries.iter_mut().find(|(key, _)| key_text(key) == name) {
                    Some((_, entry)) => update(entry, field),
                    None => entries.push((new_key(name), new_node(field))),
                }
            }
        }
        (Node::List(items, _), Value::Array(values)) => {
            items.truncate(values.len());
            for (at, value) in values.iter().enumerate() {
                match items.get_mut(at) {
                    Some(item) => update(&mut item.node, value),
                    None => items.push(Item::new(new_node(value))),
                }
            }
        }
        (Node::Scalar(text, style), value) if !value.is_object() && !value.is_array() => {
            let was = match style {
                Style::Plain => plain(text),
                _ => Value::String(text.clone()),
            };
            if was != *value {
                *node = match (*style, value) {
                    (style @ (Style::Single | Style::Double | Style::Literal), Value::String(new)) => {
                        Node::Scalar(new.clone(), style)
                    }
                    _ => new_node(value),
                };
            }
        }
        _ => *node = new_node(value),
    }
}

fn new_key(name: &str) -> Item {
    Item::new(new_node(&Value::String(name.to_owned())))
}

fn key_text(key: &Item) -> &str {
    match &key.node {
        Node::Scalar(text, _) => text,
        _ => "",
    }
}

fn new_node(value: &Value) -> Node {
    match value {
        Value::Array(items) => Node::List(
            items.iter().map(|item| Item::new(new_node(item))).collect(),
            Flow::Block,
        ),
        Value::Object(fields) => Node::Map(entries(fields), Flow::Block),
        Value::String(text) if text.starts_with(MISTAGGED) => {
            Node::Scalar(text[MISTAGGED.len_utf8()..].to_owned(), Style::Tagged)
        }
        Value::String(text) if !matches!(plain(text), Value::String(_)) => {
            Node::Scalar(text.clone(), Style::Double)
        }
        Value::String(text) if text.contains('\n') => Node::Scalar(text.clone(), Style::Literal),
        Value::String(text) => Node::Scalar(text.clone(), Style::Plain),
        Value::Null => Node::Scalar("null".to_owned(), Style::Plain),
        other => Node::Scalar(other.to_string(), Style::Plain),
    }
}

fn entries(fields: &Map<String, Value>) -> Vec<(Item, Node)> {
    fields
        .iter()
        .map(|(key, value)| (new_key(key), new_node(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use fairway_text_yaml::{Limits, Resolution, from_str_with};

    use super::rewrite;

    fn changed(text: &str, pointer: &str, new: serde_json::Value) -> Option<String> {
        let mut value = from_str_with(text, Limits::default(), Resolution::Yaml12)
            .unwrap()
            .value;
        *value.pointer_mut(pointer).unwrap() = new;
        rewrite(text, &value)
    }

    #[test]
    fn style_is_kept() {
        let text = "a: {\n  b: \"x\",\n  c: [1, 'two']\n}\nd:\n    - e: \"f\"\n      g: |\n        h\n        i\n    - j\n";
        assert_eq!(
            changed(text, "/a/b", "new".into()).unwrap(),
            "a: {b: \"new\", c: [1, 'two']}\nd:\n- e: \"f\"\n  g: |\n    h\n    i\n- j\n"
        );
        assert_eq!(
            changed("a: b\nc: d\n", "/a", "1".into()).unwrap(),
            "a: \"1\"\nc: d\n"
        );
    }

    #[test]
    fn comments_stay() {
        let text = "# head\na: 1  # line\nlist:\n  # first\n  - x # behind\n  # second\n  - name: y # n\n    v: \"q\"\ns: 'single'\nnul:\n# end\n";
        assert_eq!(
            changed(text, "/s", "t".into()).unwrap(),
            "# head\na: 1 # line\nlist:\n# first\n- x # behind\n# second\n- name: y # n\n  v: \"q\"\ns: 't'\nnul:\n# end\n"
        );
    }

    #[test]
    fn what_is_not_understood_is_left_to_others() {
        assert_eq!(changed("a: &x b\nc: *x\n", "/a", "y".into()), None);
        assert_eq!(changed("a: >\n  folded\nb: c\n", "/b", "y".into()), None);
    }
}
