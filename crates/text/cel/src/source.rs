//! Source positions and the errors that point at them.

use std::fmt;
use std::sync::Arc;

/// A mistake found while parsing or checking, printed as upstream prints it:
///
/// ```text
/// ERROR: <input>:1:5: undefined field 'foo'
///  | self.foo
///  | ....^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Line, from 1.
    pub line: usize,
    /// Column in code points, from 1.
    pub column: usize,
    /// What is wrong, without position.
    pub message: String,
    /// The source line the error is in.
    pub snippet: Arc<str>,
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERROR: <input>:{}:{}: {}",
            self.line, self.column, self.message
        )?;
        if self.snippet.is_empty() {
            return Ok(());
        }
        let snippet = self.snippet.replace('\t', " ");
        write!(f, "\n | {snippet}\n | ")?;
        for character in snippet.chars().take(self.column.saturating_sub(1)) {
            // Wide characters get a wide dot so that the caret stays below its column.
            f.write_str(if character.len_utf8() > 1 { "．" } else { "." })?;
        }
        let wide = snippet
            .chars()
            .nth(self.column.saturating_sub(1))
            .is_some_and(|c| c.len_utf8() > 1);
        f.write_str(if wide { "＾" } else { "^" })
    }
}

/// Builds the error for an offset (in code points) into `source`.
pub(crate) fn error_at(source: &str, position: u32, message: impl Into<String>) -> CompileError {
    let (mut line, mut line_start, mut line_start_byte) = (1, 0, 0);
    for (index, (byte, character)) in source.char_indices().enumerate() {
        if index >= position as usize {
            break;
        }
        if character == '\n' {
            line += 1;
            line_start = index + 1;
            line_start_byte = byte + 1;
        }
    }
    let snippet = source[line_start_byte..].lines().next().unwrap_or_default();
    CompileError {
        line,
        column: position as usize - line_start + 1,
        message: message.into(),
        snippet: snippet.into(),
    }
}
