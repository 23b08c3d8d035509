//! Writes nodes with two spaces of indentation, and lists not indented under their keys.

use fairway_text_yaml::{EmitOptions, to_string_with};
use serde_json::Value;

use super::{Flow, Item, Node, Style};
use crate::node::plain;

/// The text of a document, with the comments below it.
pub(super) fn document(node: &Node, below: &[String]) -> String {
    let mut out = String::new();
    block(node, 0, &mut out);
    end_line(&mut out);
    for line in below {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The comments above an item, whose own first line is already indented.
fn above(item: &Item, indent: usize, out: &mut String) {
    for line in &item.above {
        out.push_str(line);
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
}

fn behind(item: &Item, out: &mut String) {
    if !item.behind.is_empty() && !out.ends_with('\n') {
        out.push(' ');
        out.push_str(&item.behind);
    }
}

fn is_block(node: &Node) -> bool {
    match node {
        Node::List(items, Flow::Block) => !items.is_empty(),
        Node::Map(entries, Flow::Block) => !entries.is_empty(),
        _ => false,
    }
}

/// A node whose first line is already indented.
fn block(node: &Node, indent: usize, out: &mut String) {
    let pad = |out: &mut String| out.push_str(&" ".repeat(indent));
    match node {
        Node::Map(entries, _) if is_block(node) => {
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    pad(out);
                }
                above(key, indent, out);
                inline(&key.node, out, indent);
                out.push(':');
                if is_block(value) {
                    behind(key, out);
                    out.push('\n');
                    let inner = match value {
                        Node::List(..) => indent,
                        _ => indent + 2,
                    };
                    out.push_str(&" ".repeat(inner));
                    block(value, inner, out);
                } else {
                    if !matches!(value, Node::Scalar(text, Style::Plain) if text.is_empty()) {
                        out.push(' ');
                    }
                    inline(value, out, indent);
                    behind(key, out);
                    end_line(out);
                }
            }
        }
        Node::List(items, _) if is_block(node) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(out);
                }
                above(item, indent, out);
                out.push_str("- ");
                if is_block(&item.node) {
                    block(&item.node, indent + 2, out);
                } else {
                    inline(&item.node, out, indent);
                    behind(item, out);
                    end_line(out);
                }
            }
        }
        other => {
            inline(other, out, indent);
            end_line(out);
        }
    }
}

fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// A node within a line; literal text goes on in the lines below.
fn inline(node: &Node, out: &mut String, indent: usize) {
    match node {
        Node::Scalar(text, style) => scalar(text, *style, out, indent),
        Node::List(items, _) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                inline(&item.node, out, indent);
            }
            out.push(']');
        }
        Node::Map(entries, _) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                inline(&key.node, out, indent);
                out.push_str(": ");
                inline(value, out, indent);
            }
            out.push('}');
        }
    }
}

fn scalar(text: &str, style: Style, out: &mut String, indent: usize) {
    match style {
        Style::Tagged => out.push_str(text),
        // What stood there plainly may again; what is new is quoted if it has to be.
        Style::Plain if !matches!(plain(text), Value::String(_)) || text.is_empty() => out.push_str(text),
        Style::Plain => {
            let options = EmitOptions {
                sort_keys: false,
                width: None,
            };
            let quoted = to_string_with(&Value::String(text.to_owned()), options);
            let quoted = quoted.trim_end_matches('\n');
            // The writer also quotes the booleans of older YAML, which are text here.
            match quoted.trim_matches('"') == text && quoted.starts_with('"') {
                true => out.push_str(text),
                false => out.push_str(quoted),
            }
        }
        Style::Single if !text.contains('\n') => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
        Style::Literal if !text.trim().is_empty() && !text.starts_with([' ', '\n']) => {
            out.push('|');
            match (text.ends_with("\n\n"), text.ends_with('\n')) {
                (true, _) => out.push('+'),
                (false, true) => {}
                (false, false) => out.push('-'),
            }
            for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                out.push('\n');
                if !line.is_empty() {
                    out.push_str(&" ".repeat(indent + 2));
                    out.push_str(line);
                }
            }
            out.push('\n');
        }
        _ => double(text, out),
    }
}

fn double(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            other => out.push(other),
        }
    }
    out.push('"');
}
