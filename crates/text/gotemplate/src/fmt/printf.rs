//! The format of `printf`.

use super::verbs::{Flags, Printer};
use crate::value::Value;

/// Go's own bound on widths and precisions.
const MAX_NUMBER: usize = 1_000_000;

/// `fmt.Sprintf`.
pub fn sprintf(format: &[u8], args: &[Value]) -> Result<Vec<u8>, String> {
    let mut run = Run {
        format,
        at: 0,
        args,
        next: 0,
        reordered: false,
        good_index: true,
        printer: Printer::default(),
    };
    run.all();
    run.printer.finish()
}

struct Run<'a> {
    format: &'a [u8],
    at: usize,
    args: &'a [Value],
    next: usize,
    /// Whether an argument was chosen by its number; then missing and extra ones are not reported.
    reordered: bool,
    good_index: bool,
    printer: Printer,
}

impl Run<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn text(&mut self, text: impl AsRef<[u8]>) {
        self.printer.out.extend_from_slice(text.as_ref());
    }

    fn all(&mut self) {
        while self.at < self.format.len() {
            let rest = &self.format[self.at..];
            let length = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
            self.printer.out.extend_from_slice(&rest[..length]);
            self.at += length;
            if self.at < self.format.len() {
                self.at += 1;
                self.directive();
            }
        }
        if !self.reordered && self.next < self.args.len() {
            self.text("%!(EXTRA ");
            for (at, value) in self.args[self.next..].iter().enumerate() {
                if at > 0 {
                    self.text(", ");
                }
                match value {
                    Value::Invalid | Value::Nil => self.text("<nil>"),
                    other => {
                        self.text(other.type_name());
                        self.text("=");
                        self.printer.value(other, 'v', Flags::default(), 0);
                    }
                }
            }
            self.text(")");
        }
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut value = 0_usize;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if value > MAX_NUMBER {
                return None;
            }
            value = value * 10 + usize::from(digit - b'0');
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }

    /// `[n]`
    fn argument_number(&mut self) {
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let Some(length) = self.format[self.at..].iter().position(|&byte| byte == b']') else {
            self.good_index = false;
            self.at += 1;
            return;
        };
        let inner = std::str::from_utf8(&self.format[self.at + 1..self.at + length]).unwrap_or("");
        self.at += length + 1;
        match inner.parse::<usize>() {
            Ok(number) if number >= 1 && number <= self.args.len() => self.next = number - 1,
            _ => self.good_index = false,
        }
    }

    /// `*`
    fn star_argument(&mut self) -> Option<i64> {
        let value = self.args.get(self.next)?;
        self.next += 1;
        let number = match value {
            Value::Int(_, int) => *int,
            Value::Uint(_, uint) => i64::try_from(*uint).ok()?,
            _ => return None,
        };
        (number.unsigned_abs() <= MAX_NUMBER as u64).then_some(number)
    }

    fn directive(&mut self) {
        let mut flags = Flags::default();
        self.good_index = true;
        while let Some(flag) = self.peek() {
            match flag {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        self.argument_number();
        let mut after_index = self.reordered && self.format.get(self.at.wrapping_sub(1)) == Some(&b']');
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.star_argument() {
                Some(width) => {
                    flags.width = usize::try_from(width.abs()).ok();
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                }
                None => self.text("%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            flags.width = self.number();
            if after_index && flags.width.is_some() {
                self.good_index = false;
            }
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if after_index {
                self.good_index = false;
            }
            self.argument_number();
            if self.peek() == Some(b'*') {
                self.at += 1;
                match self.star_argument() {
                    Some(precision) => flags.precision = usize::try_from(precision).ok(),
                    None => self.text("%!(BADPREC)"),
                }
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        self.argument_number();
        self.verb(flags);
    }

    fn verb(&mut self, flags: Flags) {
        let rest = &self.format[self.at..];
        let Some(verb) = crate::text::lossy(&rest[..rest.len().min(4)]).chars().next() else {
            self.text("%!(NOVERB)");
            return;
        };
        self.at += match verb {
            char::REPLACEMENT_CHARACTER if !rest.starts_with("\u{fffd}".as_bytes()) => 1,
            verb => verb.len_utf8(),
        };
        if verb == '%' {
            self.text("%");
            return;
        }
        if !self.good_index {
            self.text(format!("%!{verb}(BADINDEX)"));
            return;
        }
        let Some(value) = self.args.get(self.next) else {
            self.text(format!("%!{verb}(MISSING)"));
            return;
        };
        self.next += 1;
        match verb {
            'T' => {
                let name = match value {
                    Value::Invalid | Value::Nil => "<nil>",
                    other => other.type_name(),
                };
                self.printer.pad(name.as_bytes(), flags);
            }
            'w' => self.printer.bad_verb(value, verb),
            _ => self.printer.value(value, verb, flags, 0),
        }
    }
}
