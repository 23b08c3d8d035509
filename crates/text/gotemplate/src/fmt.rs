//! Go's `fmt`: what values look like when they are printed, by default and by the verbs of `printf`.

mod floats;
mod printf;
mod verbs;

use crate::text::lossy;
use crate::value::Value;

pub(crate) use floats::float_g;
pub use printf::sprintf;
use verbs::{Flags, Printer};

/// A value as `%v` prints it; an error if it is nested too deeply to be printed.
pub fn print(value: &Value) -> Result<Vec<u8>, String> {
    if let Value::Str(text) = value {
        return Ok(text.to_vec());
    }
    let mut printer = Printer::default();
    printer.value(value, 'v', Flags::default(), 0);
    printer.finish()
}

/// A float as `%v` prints it.
pub fn float(value: f64) -> String {
    float_g(value)
}

/// A value as `%v` prints it, for messages: never fails, and is cut where it is long.
pub fn print_bounded(value: &Value) -> String {
    const MAX: usize = 1000;
    let text = print(value).unwrap_or_else(|error| error.into_bytes());
    let text = lossy(&text);
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

/// `fmt.Sprint`: a space between two values of which neither is text.
pub fn sprint(values: &[Value]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut after_text = true;
    for (at, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Str(_));
        if at > 0 && !is_text && !after_text {
            out.push(b' ');
        }
        out.append(&mut print_argument(value)?);
        after_text = is_text;
    }
    Ok(out)
}

/// `fmt.Sprintln`: a space between all values, and a line feed.
pub fn sprintln(values: &[Value]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        out.append(&mut print_argument(value)?);
    }
    out.push(b'\n');
    Ok(out)
}

fn print_argument(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::Invalid | Value::Nil => Ok(b"<nil>".to_vec()),
        other => print(other),
    }
}

#[cfg(test)]
mod tests;
