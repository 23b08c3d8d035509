//! PEM as Go reads it: text between blocks is skipped, headers are told, a block that is broken ends nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its type, for instance `CERTIFICATE`.
    pub label: String,
    /// Whether it has headers.
    pub headers: bool,
    /// Its content.
    pub der: Vec<u8>,
}

/// The blocks of a text, in order. Time and memory are linear in its length.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(&str, bool, String)> = None;
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(label) = line.strip_prefix(BEGIN).and_then(|l| l.strip_suffix(DASHES)) {
            open = Some((label, false, String::new()));
        } else if let Some(end) = line.strip_prefix(END).and_then(|l| l.strip_suffix(DASHES)) {
            if let Some((label, headers, body)) = open.take()
                && label == end
                && let Ok(der) = STANDARD.decode(body.as_bytes())
            {
                found.push(Block {
                    label: label.to_owned(),
                    headers,
                    der,
                });
            }
        } else if let Some((_, headers, body)) = &mut open {
            if body.is_empty() && line.contains(':') {
                *headers = true;
            } else {
                body.extend(line.chars().filter(|c| !c.is_whitespace()));
            }
        }
    }
    found
}

/// A block as text.
pub fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("{BEGIN}{label}{DASHES}\n");
    for start in (0..body.len()).step_by(64) {
        text.push_str(&body[start..body.len().min(start + 64)]);
        text.push('\n');
    }
    text.push_str(END);
    text.push_str(label);
    text.push_str(DASHES);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::{blocks, encode};

    #[test]
    fn blocks_are_found_between_other_text() {
        let one = encode("CERTIFICATE", &[7; 100]);
        for (name, text, want) in [
            ("nothing", String::new(), vec![]),
            ("one", one.clone(), vec![("CERTIFICATE", false, 100)]),
            (
                "text around",
                format!("a\n{one}b\n"),
                vec![("CERTIFICATE", false, 100)],
            ),
            (
                "carriage returns",
                one.replace('\n', "\r\n"),
                vec![("CERTIFICATE", false, 100)],
            ),
            (
                "two",
                format!("{one}{}", encode("X", &[1])),
                vec![("CERTIFICATE", false, 100), ("X", false, 1)],
            ),
            (
                "headers",
                "-----BEGIN X-----\nA: b\n\nAQ==\n-----END X-----\n".to_owned(),
                vec![("X", true, 1)],
            ),
            ("no end", "-----BEGIN X-----\nAQ==\n".to_owned(), vec![]),
            (
                "another end",
                "-----BEGIN X-----\nAQ==\n-----END Y-----\n".to_owned(),
                vec![],
            ),
            (
                "not base64",
                "-----BEGIN X-----\n!!\n-----END X-----\n".to_owned(),
                vec![],
            ),
        ] {
            let found: Vec<_> = blocks(&text)
                .into_iter()
                .map(|b| (b.label, b.headers, b.der.len()))
                .collect();
            let want: Vec<_> = want.into_iter().map(|(l, h, n)| (l.to_owned(), h, n)).collect();
            assert_eq!(found, want, "{name}");
        }
    }
}
