//! YAML with the style that its author gave it, for documents within text that are changed in one place.
//!
//! A document is read with its quotes and its flow style, brought up to date with a changed value, and written again:
//! what has not changed keeps its style, and indentation becomes the usual one. Comments are lost, and documents with
//! anchors, tags or folded text are not read at all.

mod write;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

use crate::node::plain;

/// A value with its style.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Scalar(String, Style),
    List(Vec<Node>, Flow),
    /// Keys are scalars.
    Map(Vec<(Node, Node)>, Flow),
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
    };
    let mut node = reader.document()?;
    update(&mut node, changed);
    Some(write::document(&node))
}

struct Reader<'t> {
    text: &'t str,
    /// Where each character begins, since the parser counts characters.
    chars: Vec<usize>,
    parser: Parser<'t, StrInput<'t>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<(Event<'_>, usize)> {
        let (event, span) = self.parser.next_event()?.ok()?;
        Some((event, span.start.index()))
    }

    fn document(&mut self) -> Option<Node> {
        loop {
            match self.next()? {
                (Event::Nothing | Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return None,
                _ => break,
            }
        }
        // The first event of the content has been taken: start again and stop before it.
        self.parser = Parser::new_from_str(self.text);
        loop {
            if let (Event::DocumentStart(_), _) = self.next()? {
                return self.node(MAX_DEPTH).flatten();
            }
        }
    }

    /// The next node; the inner none at the end of a list or map, the outer one for what is not understood.
    #[expect(clippy::option_option, reason = "an end is not a failure")]
    fn node(&mut self, depth: usize) -> Option<Option<Node>> {
        let depth = depth.checked_sub(1)?;
        let (event, at) = self.next()?;
        let (is_list, anchor, tagged) = match event {
            Event::Scalar(text, style, 0, None) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => return None,
                };
                return Some(Some(Node::Scalar(text.into_owned(), style)));
            }
            Event::SequenceEnd | Event::MappingEnd => return Some(None),
            Event::SequenceStart(anchor, tag) => (true, anchor, tag.is_some()),
            Event::MappingStart(anchor, tag) => (false, anchor, tag.is_some()),
            _ => return None,
        };
        if anchor != 0 || tagged {
            return None;
        }
        let flow = match self.chars.get(at).and_then(|at| self.text[*at..].chars().next()) {
            Some('[' | '{') => Flow::Flow,
            _ => Flow::Block,
        };
        let mut children = Vec::new();
        while let Some(child) = self.node(depth)? {
            children.push(child);
        }
        if is_list {
            return Some(Some(Node::List(children, flow)));
        }
        let mut entries = Vec::with_capacity(children.len() / 2);
        let mut children = children.into_iter();
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            entries.push((key, value));
        }
        Some(Some(Node::Map(entries, flow)))
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
                    None => entries.push((new_node(&Value::String(name.clone())), new_node(field))),
                }
            }
        }
        (Node::List(items, _), Value::Array(values)) => {
            items.truncate(values.len());
            for (at, value) in values.iter().enumerate() {
                match items.get_mut(at) {
                    Some(item) => update(item, value),
                    None => items.push(new_node(value)),
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

fn key_text(key: &Node) -> &str {
    match key {
        Node::Scalar(text, _) => text,
        _ => "",
    }
}

fn new_node(value: &Value) -> Node {
    match value {
        Value::Array(items) => Node::List(items.iter().map(new_node).collect(), Flow::Block),
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

fn entries(fields: &Map<String, Value>) -> Vec<(Node, Node)> {
    fields
        .iter()
        .map(|(key, value)| (new_node(&Value::String(key.clone())), new_node(value)))
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
    fn what_is_not_understood_is_left_to_others() {
        assert_eq!(changed("a: &x b\nc: *x\n", "/a", "y".into()), None);
        assert_eq!(changed("a: >\n  folded\nb: c\n", "/b", "y".into()), None);
    }
}
