//! Paths are made plain before anything is decided by them, so that what is matched and judged is what the backend gets.
//!
//! As Envoy does when it is told to normalise (and Envoy Gateway and Istio tell it to): dot segments are resolved, and slashes
//! in a row become one. Before that, letters, digits and `-._~` that are percent-encoded are decoded (RFC 3986, 6.2.2.2): every
//! backend takes `/%61dmin` for `/admin`, so a guard of the one must be a guard of the other. Encoded slashes stay as they are,
//! as in Envoy, because names with slashes are common in APIs; but where decoding them would make a dot segment, or where a
//! path leaves the root, or has an encoded NUL, the request is refused.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadPath(pub(crate) &'static str);

/// Most paths are plain and come back as they are.
pub(crate) fn normalise(path: &str) -> Result<Cow<'_, str>, BadPath> {
    let bytes = path.as_bytes();
    if bytes
        .iter()
        .any(|byte| *byte == b'\\' || !byte.is_ascii_graphic())
    {
        return Err(BadPath("the path has characters that no path has"));
    }
    let escaped = memchr::memchr(b'%', bytes).is_some();
    if !escaped {
        return Ok(resolved(path)?.map_or(Cow::Borrowed(path), Cow::Owned));
    }
    check_escapes(bytes)?;
    let decoded = decode_unreserved(path);
    Ok(resolved(&decoded)?.map_or(decoded, Cow::Owned))
}

/// The same path to everybody: only what never has a meaning of its own is decoded (RFC 3986, 2.3). Malformed escapes stay.
pub(crate) fn decode_unreserved(path: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'%', path.as_bytes()) {
        let Some(character) = escaped_at(path.as_bytes(), at).filter(|byte| is_unreserved(*byte)) else {
            continue;
        };
        plain.push_str(path.get(copied..at).unwrap_or_default());
        plain.push(char::from(character));
        copied = at + 3;
    }
    if copied == 0 {
        return Cow::Borrowed(path);
    }
    plain.push_str(path.get(copied..).unwrap_or_default());
    Cow::Owned(plain)
}

/// What the escape at a percent sign stands for.
fn escaped_at(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Without dot segments and empty ones; none if there are none.
fn resolved(path: &str) -> Result<Option<String>, BadPath> {
    let bytes = path.as_bytes();
    let suspicious = memchr::memchr(b'%', bytes).is_some()
        || memchr::memchr_iter(b'/', bytes).any(|at| matches!(bytes.get(at + 1), Some(b'/' | b'.')));
    if !suspicious {
        return Ok(None);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    let mut changed = false;
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match kind(segment)? {
            Kind::Plain if segment.is_empty() && !last => changed = true,
            Kind::Plain => kept.push(segment),
            Kind::Here => {
                changed = true;
                if last {
                    kept.push("");
                }
            }
            Kind::Up => {
                changed = true;
                if kept.pop().is_none() {
                    return Err(BadPath("the path leads out of the root"));
                }
                if last {
                    kept.push("");
                }
            }
        }
    }
    if !changed {
        return Ok(None);
    }
    let mut plain = String::with_capacity(path.len());
    for segment in kept {
        plain.push('/');
        plain.push_str(segment);
    }
    if plain.is_empty() {
        plain.push('/');
    }
    Ok(Some(plain))
}

fn check_escapes(bytes: &[u8]) -> Result<(), BadPath> {
    for at in memchr::memchr_iter(b'%', bytes) {
        match escaped_at(bytes, at) {
            Some(0) => return Err(BadPath("the path has an encoded NUL")),
            Some(_) => {}
            None => return Err(BadPath("the path has a percent sign without two digits")),
        }
    }
    Ok(())
}

enum Kind {
    Plain,
    Here,
    Up,
}

/// Of a segment whose dots are decoded.
fn kind(segment: &str) -> Result<Kind, BadPath> {
    match segment {
        "." => return Ok(Kind::Here),
        ".." => return Ok(Kind::Up),
        _ if !segment.contains('%') => return Ok(Kind::Plain),
        _ => {}
    }
    let slashed = segment
        .to_ascii_lowercase()
        .replace("%2f", "/")
        .replace("%5c", "/");
    if slashed.split('/').count() > 1 && slashed.split('/').any(|part| part == "." || part == "..") {
        return Err(BadPath("an encoded slash hides a dot segment"));
    }
    Ok(Kind::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, expected, reason) in [
            ("/", Some("/"), "the root"),
            ("/a/b", Some("/a/b"), "plain"),
            ("/a/", Some("/a/"), "the last slash stays"),
            ("/a//b", Some("/a/b"), "slashes become one"),
            ("//a", Some("/a"), "also the first"),
            ("/a//", Some("/a/"), "and the last"),
            ("/a/./b", Some("/a/b"), "here"),
            ("/a/../b", Some("/b"), "up"),
            ("/a/b/..", Some("/a/"), "up at the end"),
            ("/a/.", Some("/a/"), "here at the end"),
            ("/a/..", Some("/"), "up to the root"),
            ("/a/%2e%2e/b", Some("/b"), "encoded"),
            ("/a/.%2E/b", Some("/b"), "half encoded"),
            ("/%2e/a", Some("/a"), "encoded here"),
            (
                "/.well-known/x",
                Some("/.well-known/x"),
                "a name that begins with a dot",
            ),
            ("/a/...", Some("/a/..."), "three dots are a name"),
            ("/a%2fb", Some("/a%2fb"), "an encoded slash is part of a name"),
            ("/a%20b", Some("/a%20b"), "other escapes stay"),
            ("/%61dmin", Some("/admin"), "an encoded letter is a letter"),
            (
                "/%41%5A%7a%30%39",
                Some("/AZz09"),
                "all letters and digits, and case stays",
            ),
            (
                "/a%2Db%2ec%5Fd%7e",
                Some("/a-b.c_d~"),
                "the marks that mean nothing",
            ),
            ("/a%2Eb/%2e%2e%2e", Some("/a.b/..."), "dots that are no segments"),
            ("/%2e%2f%61", None, "a dot segment that two escapes hide"),
            (
                "/%2561dmin",
                Some("/%2561dmin"),
                "what is encoded twice is decoded once, by nobody here",
            ),
            ("/%25%36%31", Some("/%2561"), "and does not become an escape"),
            (
                "/%40%3a%2F%3B%c3%a4",
                Some("/%40%3a%2F%3B%c3%a4"),
                "what may have a meaning stays",
            ),
            ("/%61/..//%62", Some("/b"), "both at once"),
            ("/..", None, "out of the root"),
            ("/a/../../b", None, "out of the root and back"),
            ("/%2e%2e/b", None, "out of the root, encoded"),
            ("/a/..%2fb", None, "an encoded slash that hides a dot segment"),
            ("/a%2f..%2fb", None, "in the middle"),
            ("/a/..%5cb", None, "an encoded backslash"),
            ("/a%00b", None, "NUL"),
            ("/a\\..\\b", None, "a slash to some servers"),
            ("/\u{e4}", None, "not ASCII"),
            ("/a%", None, "an escape without digits"),
            ("/a%zz", None, "an escape with other digits"),
        ] {
            let got = normalise(path);
            assert_eq!(got.as_deref().ok(), expected, "{reason}: {path}");
        }
    }

    #[test]
    fn what_is_plain_stays_plain() {
        use proptest::prelude::*;
        proptest!(|(path in "/([a-z./%2efEF]|%[2-7][0-9a-fA-F]){0,24}")| {
            if let Ok(plain) = normalise(&path) {
                prop_assert_eq!(normalise(&plain), Ok(Cow::Borrowed(&*plain)));
                prop_assert!(plain.starts_with('/') && !plain.contains("//") && !plain.contains("/../"));
            }
        });
    }
}
