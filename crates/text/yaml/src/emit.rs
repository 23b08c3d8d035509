//! Writes JSON values as `sigs.k8s.io/yaml` writes them.
//!
//! Where breaks, spaces and indents go depends on a few facts about what was written last. They are kept under the
//! names that libyaml's emitter gives them, because its behaviour in odd cases (a sequence as the value of a long
//! key) follows from nothing else.

use serde_json::{Map, Number, Value};

use crate::go_number::{format_g, json_number};
use crate::key_order;
use crate::resolve::{Resolution, Scalar, is_base60, resolve_plain};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmitOptions {
    /// Whether keys are sorted as Go sorts them, instead of kept in their order.
    pub sort_keys: bool,
    /// The column after which long text goes on in the next line, at its next space.
    pub width: Option<usize>,
}

impl Default for EmitOptions {
    /// As `sigs.k8s.io/yaml` writes.
    fn default() -> Self {
        Self {
            sort_keys: true,
            width: Some(80),
        }
    }
}

/// Writes a value as YAML, as `sigs.k8s.io/yaml` does.
pub fn to_string(value: &Value) -> String {
    to_string_with(value, EmitOptions::default())
}

/// Writes a value as YAML.
pub fn to_string_with(value: &Value, options: EmitOptions) -> String {
    let mut emitter = Emitter {
        options,
        out: String::new(),
        column: 0,
        indent: None,
        whitespace: true,
        indention: true,
    };
    emitter.node(value, Context::Root);
    emitter.write_indent();
    emitter.out
}

const INDENT: usize = 2;
/// Longer keys are written with an explicit question mark, since readers need not look further for the colon.
const MAX_SIMPLE_KEY: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Item,
    Key,
    SimpleKey,
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

struct Emitter {
    options: EmitOptions,
    out: String,
    /// In characters.
    column: usize,
    /// None outside of any node.
    indent: Option<usize>,
    /// Whether what was written last separates what comes next.
    whitespace: bool,
    /// Whether only indentation was written on this line.
    indention: bool,
}

impl Emitter {
    fn node(&mut self, value: &Value, context: Context) {
        match value {
            Value::Null => self.scalar("null"),
            Value::Bool(true) => self.scalar("true"),
            Value::Bool(false) => self.scalar("false"),
            Value::Number(number) => self.scalar(&number_text(number)),
            Value::String(text) => self.text(text, context),
            Value::Array(items) if items.is_empty() => self.empty("[", "]"),
            Value::Object(fields) if fields.is_empty() => self.empty("{", "}"),
            Value::Array(items) => self.sequence(items, context),
            Value::Object(fields) => self.mapping(fields),
        }
    }

    fn empty(&mut self, open: &str, close: &str) {
        self.write_indicator(open, true, true, false);
        self.write_indicator(close, false, false, false);
    }

    fn sequence(&mut self, items: &[Value], context: Context) {
        let outer = self.indent;
        let in_mapping = matches!(context, Context::Key | Context::SimpleKey | Context::Value);
        self.increase_indent(false, in_mapping && !self.indention);
        for item in items {
            self.write_indent();
            self.write_indicator("-", true, false, true);
            self.node(item, Context::Item);
        }
        self.indent = outer;
    }

    fn mapping(&mut self, fields: &Map<String, Value>) {
        let outer = self.indent;
        self.increase_indent(false, false);
        if self.options.sort_keys {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_by(|left, right| key_order::compare(left.0, right.0));
            for (key, value) in sorted {
                self.entry(key, value);
            }
        } else {
            for (key, value) in fields {
                self.entry(key, value);
            }
        }
        self.indent = outer;
    }

    fn entry(&mut self, key: &str, value: &Value) {
        self.write_indent();
        if key.len() <= MAX_SIMPLE_KEY && !key.chars().any(is_break) {
            self.text(key, Context::SimpleKey);
            self.write_indicator(":", false, false, false);
        } else {
            self.write_indicator("?", true, false, true);
            self.text(key, Context::Key);
            self.write_indent();
            self.write_indicator(":", true, false, true);
        }
        self.node(value, Context::Value);
    }

    fn text(&mut self, text: &str, context: Context) {
        let simple_key = context == Context::SimpleKey;
        // Go writes the key `<<` without quotes and then reads it as a merge key. Here it stays what it is.
        let style = match text {
            "<<" if simple_key => Style::DoubleQuoted,
            _ => choose_style(text, simple_key),
        };
        let width = self.options.width.filter(|_| !simple_key).unwrap_or(usize::MAX);
        self.styled(text, style, width);
    }

    fn scalar(&mut self, text: &str) {
        self.styled(text, Style::Plain, usize::MAX);
    }

    fn styled(&mut self, text: &str, style: Style, width: usize) {
        let outer = self.indent;
        self.increase_indent(true, false);
        match style {
            Style::Plain => self.plain(text, width),
            Style::SingleQuoted => self.single_quoted(text, width),
            Style::DoubleQuoted => self.double_quoted(text, width),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    /// Whether the space at `at` becomes a line break. Only single spaces within the text do.
    fn folds(&self, text: &str, at: usize, width: usize) -> bool {
        let bytes = text.as_bytes();
        self.column > width && at > 0 && at + 1 < bytes.len() && bytes[at - 1] != b' '
    }

    fn plain(&mut self, text: &str, width: usize) {
        if !self.whitespace {
            self.put(' ');
        }
        // Analysis leaves only text without breaks to this style.
        for (at, c) in text.char_indices() {
            if c == ' ' && self.folds(text, at, width) && text.as_bytes()[at + 1] != b' ' {
                self.write_indent();
                continue;
            }
            self.put(c);
            self.indention = self.indention && c == ' ';
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, width: usize) {
        self.write_indicator("'", true, false, false);
        // As in plain style there are no breaks: text with them is written as a literal or in double quotes.
        for (at, c) in text.char_indices() {
            if c == ' ' && self.folds(text, at, width) && text.as_bytes()[at + 1] != b' ' {
                self.write_indent();
                continue;
            }
            if c == '\'' {
                self.put('\'');
            }
            self.put(c);
        }
        self.write_indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, text: &str, width: usize) {
        self.write_indicator("\"", true, false, false);
        // Go looks for a byte order mark at the beginning of the text when it should look at the character at hand.
        let escape_all = text.starts_with('\u{feff}');
        for (at, c) in text.char_indices() {
            if c == ' ' && !escape_all && self.folds(text, at, width) {
                self.write_indent();
                if text.as_bytes()[at + 1] == b' ' {
                    self.put('\\');
                }
            } else if is_printable(c) && !is_break(c) && !matches!(c, '"' | '\\') && !escape_all {
                self.put(c);
            } else {
                let escaped = escape(c);
                self.column += escaped.len();
                self.out.push_str(&escaped);
            }
        }
        self.write_indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn literal(&mut self, text: &str) {
        self.write_indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.write_indicator("2", false, false, false);
        }
        let mut ends = text.chars().rev();
        match (
            ends.next().is_some_and(is_break),
            ends.next().is_none_or(is_break),
        ) {
            (false, _) => self.write_indicator("-", false, false, false),
            (true, true) => self.write_indicator("+", false, false, false),
            (true, false) => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
                continue;
            }
            if breaks {
                self.write_indent();
            }
            self.put(c);
            self.indention = false;
            breaks = false;
        }
    }

    fn increase_indent(&mut self, flow: bool, indentless: bool) {
        self.indent = Some(match self.indent {
            None if flow => INDENT,
            None => 0,
            Some(indent) if indentless => indent,
            Some(indent) => indent + INDENT,
        });
    }

    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || self.column == indent && !self.whitespace {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn write_indicator(
        &mut self,
        text: &str,
        need_whitespace: bool,
        is_whitespace: bool,
        is_indention: bool,
    ) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }
}

/// A number, which Go first writes as JSON: there integral floats have no point.
fn number_text(number: &Number) -> String {
    match number
        .as_f64()
        .filter(|_| number.is_f64())
        .map(|value| (value, json_number(value)))
    {
        Some((value, Some(Value::Number(number)))) if number.is_f64() => format_g(value, false),
        Some((_, Some(integer))) => integer.to_string(),
        _ => number.to_string(),
    }
}

/// A character as double quotes show it where it cannot stand for itself.
fn escape(c: char) -> String {
    let short = match c {
        '\0' => "\\0",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\x0b' => "\\v",
        '\x0c' => "\\f",
        '\r' => "\\r",
        '\x1b' => "\\e",
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{85}' => "\\N",
        '\u{a0}' => "\\_",
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        _ => "",
    };
    match u32::from(c) {
        _ if !short.is_empty() => short.to_owned(),
        code @ 0..=0xff => format!("\\x{code:02X}"),
        code @ 0x100..=0xffff => format!("\\u{code:04X}"),
        code => format!("\\U{code:08X}"),
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// Characters that end a line in YAML 1.1 and are text in YAML 1.2. Go writes them as they are, and only a reader of
/// its own version gets them back; escaped, every reader does.
fn is_break_of_old(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What can be written as it is. As for libyaml, characters beyond the basic plane cannot.
fn is_printable(c: char) -> bool {
    let printable = matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}');
    printable && !is_break_of_old(c)
}

fn choose_style(text: &str, simple_key: bool) -> Style {
    let facts = Facts::of(text);
    if text.contains('\n') {
        return if facts.literal && !simple_key {
            Style::Literal
        } else {
            Style::DoubleQuoted
        };
    }
    let reads_as_text = resolve_plain(text, Resolution::Yaml11, true) == Scalar::Text && !is_base60(text);
    if !reads_as_text {
        return Style::DoubleQuoted;
    }
    if simple_key && facts.breaks {
        return Style::DoubleQuoted;
    }
    match (facts.plain, facts.single_quoted) {
        (true, _) => Style::Plain,
        (false, true) => Style::SingleQuoted,
        (false, false) => Style::DoubleQuoted,
    }
}

/// In which styles a text can be written.
struct Facts {
    breaks: bool,
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Facts {
    fn of(text: &str) -> Self {
        let mut indicator = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let mut previous: Option<char> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let before_blank = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            let after_blank = previous.is_none_or(|c| matches!(c, ' ' | '\t' | '\0') || is_break(c));
            indicator |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if previous.is_none() =>
                {
                    true
                }
                '?' | '-' => previous.is_none() && before_blank,
                ':' => before_blank,
                '#' => after_blank,
                _ => false,
            };
            special |= !is_printable(c);
            if is_break(c) {
                breaks = true;
                space_break |= previous == Some(' ');
            } else if c == ' ' {
                break_space |= previous.is_some_and(is_break);
            }
            previous = Some(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let edges = edge(text.chars().next()) || edge(previous);
        Self {
            breaks,
            plain: !(edges || indicator || special || breaks),
            single_quoted: !(break_space || space_break || special),
            literal: !(previous == Some(' ') || space_break || special),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
