//! Paths are made plain before anything is decided by them, so that what is matched and judged is what the backend gets.
//!
//! As Envoy does when it is told to normalise (and Envoy Gateway and Istio tell it to): dot segments, also when they are
//! percent-encoded, are resolved, and slashes in a row become one. Encoded slashes stay as they are, as in Envoy, because
//! names with slashes are common in APIs; but where decoding them would make a dot segment, or where a path leaves the root,
//! or has an encoded NUL, the request is refused.

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
    if escaped {
        check_escapes(bytes)?;
    }
    let suspicious =
        escaped || memchr::memchr_iter(b'/', bytes).any(|at| matches!(bytes.get(at + 1), Some(b'/' | b'.')));
    if !suspicious {
        return Ok(Cow::Borrowed(path));
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
        return Ok(Cow::Borrowed(path));
    }
    let mut plain = String::with_capacity(path.len());
    for segment in kept {
        plain.push('/');
        plain.push_str(segment);
    }
    if plain.is_empty() {
        plain.push('/');
    }
    Ok(Cow::Owned(plain))
}

fn check_escapes(bytes: &[u8]) -> Result<(), BadPath> {
    for at in memchr::memchr_iter(b'%', bytes) {
        match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(b'0'), Some(b'0')) => return Err(BadPath("the path has an encoded NUL")),
            (Some(one), Some(two)) if one.is_ascii_hexdigit() && two.is_ascii_hexdigit() => {}
            _ => return Err(BadPath("the path has a percent sign without two digits")),
        }
    }
    Ok(())
}

enum Kind {
    Plain,
    Here,
    Up,
}

fn kind(segment: &str) -> Result<Kind, BadPath> {
    if !segment.contains('%') {
        return Ok(match segment {
            "." => Kind::Here,
            ".." => Kind::Up,
            _ => Kind::Plain,
        });
    }
    let lower = segment.to_ascii_lowercase().replace("%2e", ".");
    match lower.as_str() {
        "." => return Ok(Kind::Here),
        ".." => return Ok(Kind::Up),
        _ => {}
    }
    let slashed = lower.replace("%2f", "/").replace("%5c", "/");
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
        proptest!(|(path in "/[a-z./%2efEF]{0,24}")| {
            if let Ok(plain) = normalise(&path) {
                prop_assert_eq!(normalise(&plain), Ok(Cow::Borrowed(&*plain)));
                prop_assert!(plain.starts_with('/') && !plain.contains("//") && !plain.contains("/../"));
            }
        });
    }
}
