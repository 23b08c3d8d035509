//! What must not reach Git: secrets of the run, private keys, and tokens that are known by their form.
//!
//! A key is found as it is, folded into one line, within quotes with `\n` in it, and in Base64, also twice, as a Secret holds one.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex::Regex;

use crate::files::Files;
use crate::secrets::Secrets;

/// How often Base64 is taken off.
const MAX_LAYERS: usize = 3;
/// Base64 that is shorter holds no key.
const SHORTEST: usize = 40;

/// Something that must not be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// In which file.
    pub path: String,
    /// What it is; never the thing itself.
    pub what: String,
}

impl std::fmt::Display for Leak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// Forms of tokens that some services give out. The parts of the patterns are fixed; nobody else writes them.
static TOKENS: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    let forms = [
        ("an access key of a cloud", r"\bAKIA[0-9A-Z]{16}\b"),
        ("a token of GitHub", r"\bgh[pousr]_[A-Za-z0-9]{36}"),
        ("a token of GitLab", r"\bglpat-[A-Za-z0-9_-]{20}"),
        ("a token of Slack", r"\bxox[baprs]-[A-Za-z0-9-]{10}"),
        (
            "a signed token",
            r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        ),
    ];
    let built = forms
        .into_iter()
        .filter_map(|(what, form)| Some((what, Regex::new(form).ok()?)));
    built.collect()
});

/// What of the files must not be published.
pub fn leaks(files: &Files, secrets: &Secrets) -> Vec<Leak> {
    let mut found = Vec::new();
    for (path, file) in files.iter() {
        // Bytes that are no text may hold text all the same.
        let text = String::from_utf8_lossy(&file.content);
        for part in [path, &*text] {
            if let Some(what) = leak(part, secrets, MAX_LAYERS) {
                found.push(Leak {
                    path: path.to_owned(),
                    what,
                });
                break;
            }
        }
    }
    found
}

fn leak(text: &str, secrets: &Secrets, layers: usize) -> Option<String> {
    if let Some(name) = secrets.found_in(text) {
        return Some(format!("it holds the secret {name:?} of this run"));
    }
    if has_private_key(text) {
        return Some("it holds a private key".to_owned());
    }
    if let Some((what, _)) = TOKENS.iter().find(|(_, form)| form.is_match(text)) {
        return Some(format!("it holds {what}"));
    }
    if layers == 0 {
        return None;
    }
    runs(text)
        .iter()
        .filter_map(|run| decoded(run))
        .find_map(|inner| leak(&inner, secrets, layers - 1))
        .map(|what| match what.ends_with("in Base64") {
            true => what,
            false => format!("{what}, in Base64"),
        })
}

/// The first line of a private key, whatever is put between its words by folding or quoting.
fn has_private_key(text: &str) -> bool {
    static BEGIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let gap = r#"(?:[\s"'\\+,]|\\n|\\r)*"#;
        let words = ["BEGIN", "(?:[A-Z0-9]+GAP)*?PRIVATE", "KEY"].join("GAP");
        Regex::new(&format!("-----GAP{words}").replace("GAP", gap)).ok()
    });
    if BEGIN.as_ref().is_some_and(|begin| begin.is_match(text)) {
        return true;
    }
    // The body of an OpenSSH key says what it is, also without its first line; and so do PuTTY's and age's keys.
    ["b3BlbnNzaC1rZXktdjE", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Texts that may be Base64: runs of its letters, also over line ends, as files are folded.
fn runs(text: &str) -> Vec<String> {
    static LETTERS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/_-]{20,}(?:(?:\s|\\n)+[A-Za-z0-9+/_-]{4,})*={0,2}").ok());
    let found = LETTERS.as_ref().map(|letters| letters.find_iter(text));
    let runs = found.into_iter().flatten().map(|run| {
        let run = run.as_str().replace("\\n", "");
        run.split_whitespace().collect::<String>()
    });
    runs.filter(|run| run.len() >= SHORTEST).collect()
}

fn decoded(run: &str) -> Option<String> {
    let run = run.trim_end_matches('=');
    // A run may have a word before it that belongs to something else; four places are all that differ.
    let engines = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
    for engine in engines {
        let whole = &run[..run.len() - usize::from(run.len() % 4 == 1)];
        if let Ok(bytes) = engine.decode(whole)
            && let Ok(text) = String::from_utf8(bytes)
        {
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::files::File;

    const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

    fn said(content: &str) -> Option<String> {
        let mut files = Files::default();
        files.write("f", File::new(content.as_bytes())).unwrap();
        let secrets = Secrets::new([("password".to_owned(), "hunter22!".to_owned())].into());
        leaks(&files, &secrets).first().map(|leak| leak.what.clone())
    }

    #[test]
    fn keys_and_secrets_are_found() {
        let folded = STANDARD
            .encode(KEY)
            .as_bytes()
            .chunks(60)
            .map(|c| String::from_utf8_lossy(c).into_owned())
            .collect::<Vec<_>>();
        let cases = [
            KEY.to_owned(),
            format!("key: |\n  {}", KEY.replace('\n', "\n  ")),
            format!("key: {}", serde_json::Value::String(KEY.to_owned())),
            format!("key: {}", KEY.replace('\n', " ")),
            format!("data:\n  key: {}", STANDARD.encode(KEY)),
            format!("data:\n  key: >-\n    {}", folded.join("\n    ")),
            format!("data:\n  key: {}", STANDARD.encode(STANDARD.encode(KEY))),
            "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN PRIVATE KEY-----".to_owned(),
            "-----BEGIN\n  EC\n  PRIVATE KEY-----".to_owned(),
            "password: hunter22!".to_owned(),
            format!("data: {{password: {}}}", STANDARD.encode("hunter22!")),
            format!(
                "x: {}",
                STANDARD.encode("some text around hunter22! and more of it")
            ),
            format!("t: gh{}_{}", "p", "a".repeat(36)),
        ];
        for content in cases {
            assert!(said(&content).is_some(), "{content}");
            assert!(!said(&content).unwrap().contains("hunter22"), "{content}");
        }
    }

    #[test]
    fn what_may_be_public_is_left_alone() {
        for content in [
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 me@example",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "passwd: $6$rounds=4096$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyz",
            "do not keep a PRIVATE KEY here",
            "",
        ] {
            assert_eq!(said(content), None, "{content}");
        }
    }
}
