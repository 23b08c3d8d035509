//! Source files as the checks see them: the text, and the product code in it, that is the text without comments,
//! literals and `#[cfg(test)]` items. What is taken out is replaced by spaces, so that offsets and lines stay true.
//!
//! A hand-written scanner instead of a parser: the checks ask for names, not for syntax trees, and the file has been
//! compiled by then, so it is known to be well-formed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(super) struct SourceFile {
    /// Relative to the repository's root.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) product_code: String,
    /// The whole file is compiled for tests, benchmarks or examples only.
    pub(super) is_test: bool,
    pub(super) is_generated: bool,
}

impl SourceFile {
    pub(super) fn new(path: PathBuf, text: String) -> Self {
        let code = without_comments_and_literals(&text);
        Self {
            is_test: is_test_path(&path),
            is_generated: text.lines().take(5).any(|line| line.contains("@generated")),
            product_code: without_test_items(&code),
            path,
            text,
        }
    }

    pub(super) fn load_all(root: &Path) -> Result<Vec<Self>> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let entries =
                std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
            for entry in entries {
                let entry = entry?;
                let path = entry.path();
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    if !name.starts_with('.') && name != "target" && name != "node_modules" {
                        folders.push(path);
                    }
                } else if kind.is_file() && name.ends_with(".rs") {
                    let text = std::fs::read_to_string(&path)
                        .with_context(|| format!("cannot read {}", path.display()))?;
                    let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
                    files.push(Self::new(relative, text));
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.text
            .as_bytes()
            .iter()
            .take(offset)
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1
    }
}

fn is_test_path(path: &Path) -> bool {
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let in_test_folder = path.parent().is_some_and(|folder| {
        folder
            .iter()
            .any(|part| part == "tests" || part == "benches" || part == "examples")
    });
    in_test_folder || stem == "tests" || stem.ends_with("_tests") || stem.ends_with("_test")
}

/// Blanks comments, strings and characters.
fn without_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => quoted_end(bytes, at + 1, b'"'),
            b'r' | b'b' | b'c' if !is_name_byte(at.checked_sub(1).map(|before| bytes[before])) => {
                match raw_string_end(bytes, at) {
                    Some(end) => end,
                    None => {
                        at += 1;
                        continue;
                    }
                }
            }
            b'\'' if is_char_literal(text, at) => quoted_end(bytes, at + 1, b'\''),
            _ => {
                at += 1;
                continue;
            }
        };
        blank(&mut out, at, end);
        at = end;
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Blanks items behind `#[cfg(test)]` and `#[test]`: up to the end of their braces, or to the semicolon.
fn without_test_items(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for mark in ["#[cfg(test)]", "#[cfg(all(test", "#[test]"] {
        for (start, _) in code.match_indices(mark) {
            let end = item_end(code.as_bytes(), start);
            blank(&mut out, start, end);
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

fn item_end(code: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    // Parentheses and brackets hide the semicolon of an array type and the attribute itself.
    let mut nested = 0_usize;
    for (offset, byte) in code.iter().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset + 1,
            b'}' => depth -= 1,
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b';' if depth == 0 && nested == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

fn blank(out: &mut [u8], start: usize, end: usize) {
    for byte in &mut out[start..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |length| at + length)
}

/// Block comments nest in Rust.
fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'/', b'*') => {
                depth += 1;
                at += 2;
            }
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `r"..."`, `r#"..."#`, `b"..."`, `br"..."`, `c"..."`, `b'.'`, when one starts here.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut raw = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'r' => raw = true,
            b'b' | b'c' if at == start => {}
            _ => break,
        }
        at += 1;
        if at > start + 2 {
            return None;
        }
    }
    let hashes = bytes[at..].iter().take_while(|&&byte| byte == b'#').count();
    if hashes > 0 && !raw {
        return None;
    }
    at += hashes;
    match bytes.get(at) {
        Some(b'"') if raw => {
            let mut closing = vec![b'"'];
            closing.resize(hashes + 1, b'#');
            let body = at + 1;
            let length = bytes[body..]
                .windows(closing.len())
                .position(|window| window == closing);
            Some(length.map_or(bytes.len(), |length| body + length + closing.len()))
        }
        Some(b'"') => Some(quoted_end(bytes, at + 1, b'"')),
        Some(b'\'') if !raw && bytes[start] == b'b' => Some(quoted_end(bytes, at + 1, b'\'')),
        _ => None,
    }
}

/// A quote opens a character unless it is a lifetime: `'a'` against `'a`.
fn is_char_literal(text: &str, at: usize) -> bool {
    let mut rest = text[at + 1..].chars();
    match rest.next() {
        Some('\\') => true,
        Some(_) => rest.next() == Some('\''),
        None => false,
    }
}

fn is_name_byte(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
