//! One value by one verb.

use super::floats;
use crate::text::{Quoting, lossy, quote_with};
use crate::value::Value;

/// What stands between `%` and the verb.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
}

impl Flags {
    /// `%+v`
    fn names(self, verb: char) -> bool {
        self.plus && verb == 'v'
    }

    /// `%#v`
    fn syntax(self, verb: char) -> bool {
        self.sharp && verb == 'v'
    }
}

/// Deeper values are not printed; Go would print until its stack ends.
const MAX_DEPTH: usize = 200;

#[derive(Default)]
pub(super) struct Printer {
    pub(super) out: Vec<u8>,
    too_deep: bool,
}

impl Printer {
    pub(super) fn finish(self) -> Result<Vec<u8>, String> {
        match self.too_deep {
            true => Err(format!(
                "cannot print a value with more than {MAX_DEPTH} nested levels"
            )),
            false => Ok(self.out),
        }
    }

    fn text(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    /// Writes text in the width that was asked for.
    pub(super) fn pad(&mut self, text: &[u8], flags: Flags) {
        let Some(width) = flags.width else {
            self.text(text);
            return;
        };
        let missing = width.saturating_sub(lossy(text).chars().count());
        let fill = if flags.zero && !flags.minus { b'0' } else { b' ' };
        if !flags.minus {
            self.out.extend(std::iter::repeat_n(fill, missing));
        }
        self.text(text);
        if flags.minus {
            self.out.extend(std::iter::repeat_n(b' ', missing));
        }
    }

    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) {
        self.text(format!("%!{verb}("));
        match value {
            Value::Invalid | Value::Nil => self.text("<nil>"),
            other => {
                self.text(other.type_name());
                self.text("=");
                self.value(other, 'v', Flags::default(), 0);
            }
        }
        self.text(")");
    }

    pub(super) fn value(&mut self, value: &Value, verb: char, flags: Flags, depth: usize) {
        if depth > MAX_DEPTH {
            self.too_deep = true;
            return;
        }
        if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') && !flags.syntax(verb) {
            let shown = match value {
                Value::Time(time) => Some(time.display()),
                Value::Duration(nanos) => Some(fairway_text_gotext::duration::show(*nanos)),
                Value::Struct(value) => value.ty.display.map(|display| display(value)),
                _ => None,
            };
            if let Some(shown) = shown {
                self.string(&Value::from(shown.as_str()), shown.as_bytes(), verb, flags);
                return;
            }
        }
        match value {
            Value::Invalid | Value::Nil => match verb {
                'v' if depth == 0 => self.pad(b"<nil>", flags),
                'v' => self.text(if flags.syntax(verb) {
                    "interface {}(nil)"
                } else {
                    "<nil>"
                }),
                _ if depth > 0 => self.text("<nil>"),
                _ => self.bad_verb(value, verb),
            },
            Value::Bool(boolean) => match verb {
                't' | 'v' => self.pad(if *boolean { b"true" } else { b"false" }, flags),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(_, int) | Value::Duration(int) => {
                self.integer(value, int.unsigned_abs(), *int < 0, verb, flags);
            }
            Value::Uint(_, uint) => self.integer(value, *uint, false, verb, flags),
            Value::Float(float) => self.float(value, *float, verb, flags),
            Value::Str(text) => self.string(value, text, verb, flags),
            Value::Bytes(bytes) => self.bytes(value, bytes, verb, flags),
            Value::List(list) => {
                let (open, separator, close) = match flags.syntax(verb) {
                    true => ("{", ", ", "}"),
                    false => ("[", " ", "]"),
                };
                if flags.syntax(verb) {
                    self.text(list.ty.name);
                }
                self.text(open);
                for (at, item) in list.items.iter().enumerate() {
                    self.text(if at > 0 { separator } else { "" });
                    self.value(item, verb, flags, depth + 1);
                }
                self.text(close);
            }
            Value::Map(map) => {
                let syntax = flags.syntax(verb);
                self.text(if syntax { map.ty().name } else { "map" });
                self.text(if syntax { "{" } else { "[" });
                for (at, (key, item)) in map.entries().iter().enumerate() {
                    if at > 0 {
                        self.text(if syntax { ", " } else { " " });
                    }
                    self.value(&Value::Str(key.clone()), verb, flags, depth + 1);
                    self.text(":");
                    self.value(item, verb, flags, depth + 1);
                }
                self.text(if syntax { "}" } else { "]" });
            }
            Value::Struct(structure) => {
                let syntax = flags.syntax(verb);
                if structure.ty.pointer && depth > 0 {
                    self.text("0xc000000000");
                    return;
                }
                self.text(if structure.ty.pointer { "&" } else { "" });
                if syntax {
                    self.text(structure.ty.name.trim_start_matches('*'));
                }
                self.text("{");
                let embedded = structure.ty.embedded.as_ref();
                for (at, (field, item)) in structure.ty.fields.iter().zip(&structure.fields).enumerate() {
                    if embedded.is_some_and(|embedded| embedded.fields == at) {
                        self.text("}");
                    }
                    if at > 0 {
                        self.text(if syntax { ", " } else { " " });
                    } else if let Some(embedded) = embedded {
                        if syntax || flags.names(verb) {
                            self.text(embedded.name);
                            self.text(":");
                        }
                        self.text(if syntax { embedded.ty } else { "" });
                        self.text("{");
                    }
                    if syntax || flags.names(verb) {
                        self.text(field.name);
                        self.text(":");
                    }
                    self.value(item, verb, flags, depth + 1);
                }
                self.text("}");
            }
            Value::Time(time) => {
                let shown = time.display();
                self.string(value, shown.as_bytes(), verb, flags);
            }
        }
    }

    fn integer(&mut self, value: &Value, magnitude: u64, negative: bool, verb: char, flags: Flags) {
        let code = u32::try_from(magnitude)
            .ok()
            .filter(|_| !negative)
            .and_then(char::from_u32);
        let (radix, prefix) = match verb {
            'v' if flags.sharp && matches!(value, Value::Uint(..)) => {
                let shown = format!("0x{magnitude:x}");
                return self.pad(shown.as_bytes(), flags);
            }
            'v' | 'd' => (10, ""),
            'b' => (2, if flags.sharp { "0b" } else { "" }),
            'o' => (8, if flags.sharp { "0" } else { "" }),
            'O' => (8, "0o"),
            'x' => (16, if flags.sharp { "0x" } else { "" }),
            'X' => (16, if flags.sharp { "0X" } else { "" }),
            'c' => {
                let c = code.unwrap_or(char::REPLACEMENT_CHARACTER);
                return self.pad(c.encode_utf8(&mut [0; 4]).as_bytes(), flags);
            }
            'q' => {
                let c = code.unwrap_or(char::REPLACEMENT_CHARACTER);
                let quoting = if flags.plus {
                    Quoting::Ascii
                } else {
                    Quoting::Print
                };
                let shown = quote_with(c.encode_utf8(&mut [0; 4]).as_bytes(), '\'', quoting);
                return self.pad(shown.as_bytes(), flags);
            }
            'U' => {
                let mut shown = format!("U+{magnitude:04X}");
                if let (true, Some(c)) = (flags.sharp, code) {
                    shown.push_str(&format!(" '{c}'"));
                }
                return self.pad(shown.as_bytes(), Flags { zero: false, ..flags });
            }
            _ => return self.bad_verb(value, verb),
        };
        let mut digits = match (radix, verb) {
            (2, _) => format!("{magnitude:b}"),
            (8, _) => format!("{magnitude:o}"),
            (_, 'x') => format!("{magnitude:x}"),
            (_, 'X') => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        let sign = match (negative, flags.plus, flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        if let Some(precision) = flags.precision {
            if precision == 0 && magnitude == 0 {
                return self.pad(b"", Flags { zero: false, ..flags });
            }
            digits = format!("{digits:0>precision$}");
        } else if let (true, false, Some(width)) = (flags.zero, flags.minus, flags.width) {
            let width = width.saturating_sub(sign.len());
            digits = format!("{digits:0>width$}");
        }
        // A leading zero is all that octal's prefix is for.
        let prefix = if prefix == "0" && digits.starts_with('0') {
            ""
        } else {
            prefix
        };
        let shown = format!("{sign}{prefix}{digits}");
        self.pad(shown.as_bytes(), Flags { zero: false, ..flags });
    }

    fn float(&mut self, value: &Value, number: f64, verb: char, flags: Flags) {
        let (verb, precision) = match verb {
            'v' => ('g', flags.precision),
            'e' | 'E' | 'f' | 'F' => (verb, Some(flags.precision.unwrap_or(6))),
            'g' | 'G' | 'b' | 'x' | 'X' => (verb, flags.precision),
            _ => return self.bad_verb(value, verb),
        };
        let mut shown = floats::format(number, verb, precision);
        if flags.plus && !shown.starts_with(['+', '-']) {
            shown.insert(0, '+');
        } else if flags.space && !shown.starts_with(['+', '-']) {
            shown.insert(0, ' ');
        } else if !flags.plus && shown == "+Inf" {
            shown = if flags.space {
                " Inf".to_owned()
            } else {
                "+Inf".to_owned()
            };
        }
        let finite = number.is_finite();
        if let (true, false, true, Some(width)) = (flags.zero, flags.minus, finite, flags.width) {
            // The sign comes before the zeros.
            let (sign, digits) = match shown.starts_with(['+', '-', ' ']) {
                true => shown.split_at(1),
                false => ("", shown.as_str()),
            };
            let width = width.saturating_sub(sign.len());
            shown = format!("{sign}{digits:0>width$}");
        }
        self.pad(shown.as_bytes(), Flags { zero: false, ..flags });
    }

    fn string(&mut self, value: &Value, text: &[u8], verb: char, flags: Flags) {
        match verb {
            'v' if flags.sharp => {
                let quoted = quote_with(text, '"', Quoting::Print);
                self.pad(quoted.as_bytes(), flags);
            }
            'v' | 's' => self.pad(truncate(text, flags.precision), flags),
            'q' => {
                let text = truncate(text, flags.precision);
                let plain = lossy(text);
                let shown = match flags.sharp && !plain.contains('`') && plain.chars().all(raw_quotable) {
                    true => format!("`{plain}`"),
                    false => {
                        let quoting = if flags.plus {
                            Quoting::Ascii
                        } else {
                            Quoting::Print
                        };
                        quote_with(text, '"', quoting)
                    }
                };
                self.pad(shown.as_bytes(), flags);
            }
            'x' | 'X' => self.hex(text, verb, flags),
            _ => self.bad_verb(value, verb),
        }
    }

    fn hex(&mut self, text: &[u8], verb: char, flags: Flags) {
        let text = &text[..flags
            .precision
            .map_or(text.len(), |precision| precision.min(text.len()))];
        let prefix = match (flags.sharp, verb) {
            (false, _) => "",
            (true, 'x') => "0x",
            (true, _) => "0X",
        };
        let mut shown = String::new();
        for (at, byte) in text.iter().enumerate() {
            if at == 0 {
                shown.push_str(prefix);
            } else if flags.space {
                shown.push(' ');
                shown.push_str(prefix);
            }
            shown.push_str(&match verb {
                'x' => format!("{byte:02x}"),
                _ => format!("{byte:02X}"),
            });
        }
        self.pad(shown.as_bytes(), flags);
    }

    fn bytes(&mut self, value: &Value, bytes: &[u8], verb: char, flags: Flags) {
        match verb {
            'v' | 'd' if flags.sharp => {
                let items: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:x}")).collect();
                self.text(format!("[]byte{{{}}}", items.join(", ")));
            }
            'v' | 'd' => {
                let items: Vec<String> = bytes.iter().map(u8::to_string).collect();
                self.text(format!("[{}]", items.join(" ")));
            }
            _ => self.string(value, bytes, verb, flags),
        }
    }
}

/// The first characters of a text.
fn truncate(text: &[u8], precision: Option<usize>) -> &[u8] {
    let Some(precision) = precision else {
        return text;
    };
    let mut left = precision;
    let mut end = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return &text[..end];
            }
            left -= 1;
            end += c.len_utf8();
        }
        for _ in chunk.invalid() {
            if left == 0 {
                return &text[..end];
            }
            left -= 1;
            end += 1;
        }
    }
    text
}

fn raw_quotable(c: char) -> bool {
    c == '\t' || (c != '\u{feff}' && c != '\x7f' && c >= ' ' && c != char::REPLACEMENT_CHARACTER)
}
