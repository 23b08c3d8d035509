//! Host names as listeners and routes write them, and what two of them have in common.

use crate::table::HostPattern;

/// Longer ones do not exist in DNS.
const LONGEST: usize = 253;

/// Empty means any. A `*` may only be the whole first label.
pub fn read(text: &str) -> Result<HostPattern, String> {
    if text.is_empty() {
        return Ok(HostPattern::Any);
    }
    let (wildcard, rest) = match text.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if let Some(fault) = fault(rest) {
        return Err(format!("host name {text:?} {fault}"));
    }
    let name = rest.to_ascii_lowercase();
    Ok(if wildcard {
        HostPattern::Wildcard(name)
    } else {
        HostPattern::Exact(name)
    })
}

fn fault(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return Some("is longer than 253 characters");
    }
    let ascii = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    for label in name.split('.') {
        if label.is_empty() {
            return Some("has an empty label");
        }
        if label.len() > 63 {
            return Some("has a label of more than 63 characters");
        }
        if label.contains('*') {
            return Some("may have a * only as its whole first label, before a dot");
        }
        if !label.bytes().all(ascii) || label.starts_with('-') || label.ends_with('-') {
            return Some("is not a DNS name");
        }
    }
    let numeric = name.split('.').count() == 4
        && name
            .split('.')
            .all(|label| label.bytes().all(|c| c.is_ascii_digit()));
    numeric.then_some("is an IP address; requests are told apart by names")
}

/// The names that fit both, which is the narrower of the two, if any.
pub fn intersect(one: &HostPattern, two: &HostPattern) -> Option<HostPattern> {
    if covers(one, two) {
        Some(two.clone())
    } else if covers(two, one) {
        Some(one.clone())
    } else {
        None
    }
}

/// Whether every name of `inner` is one of `outer`.
pub fn covers(outer: &HostPattern, inner: &HostPattern) -> bool {
    match (outer, inner) {
        (HostPattern::Any, _) => true,
        (HostPattern::Exact(one), HostPattern::Exact(two)) => one == two,
        (HostPattern::Wildcard(suffix), HostPattern::Exact(name)) => below(name, suffix),
        (HostPattern::Wildcard(one), HostPattern::Wildcard(two)) => one == two || below(two, one),
        _ => false,
    }
}

fn below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// As manifests write it; empty for any.
pub fn show(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(suffix) => format!("*.{suffix}"),
        HostPattern::Any => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{covers, intersect, read, show};

    #[test]
    fn what_two_names_have_in_common() {
        let cases = [
            (
                "a.example.com",
                "a.example.com",
                Some("a.example.com"),
                "the same",
            ),
            (
                "A.Example.com",
                "a.example.com",
                Some("a.example.com"),
                "case does not matter",
            ),
            ("", "a.example.com", Some("a.example.com"), "any and one"),
            ("", "", Some(""), "any and any"),
            ("*.example.com", "", Some("*.example.com"), "a wildcard and any"),
            (
                "*.example.com",
                "a.example.com",
                Some("a.example.com"),
                "a wildcard and a name below it",
            ),
            (
                "*.example.com",
                "b.a.example.com",
                Some("b.a.example.com"),
                "several labels below",
            ),
            (
                "*.example.com",
                "example.com",
                None,
                "a wildcard does not stand for nothing",
            ),
            ("*.example.com", "aexample.com", None, "labels are whole"),
            (
                "*.example.com",
                "*.a.example.com",
                Some("*.a.example.com"),
                "the narrower wildcard",
            ),
            (
                "*.example.com",
                "*.example.com",
                Some("*.example.com"),
                "the same wildcard",
            ),
            ("*.example.com", "*.example.net", None, "other suffixes"),
            ("a.example.com", "b.example.com", None, "other names"),
        ];
        for (one, two, expected, why) in cases {
            for (one, two) in [(one, two), (two, one)] {
                let got = intersect(&read(one).unwrap(), &read(two).unwrap());
                assert_eq!(
                    got.as_ref().map(show).as_deref(),
                    expected,
                    "{why}: {one} and {two}"
                );
            }
        }
    }

    #[test]
    fn names_that_are_none() {
        let long = "a.".repeat(130) + "com";
        let label = format!("{}.com", "a".repeat(64));
        let cases = [
            ("*", "a bare star has no suffix"),
            ("*.", "nothing after the star"),
            ("a.*.com", "a star in the middle"),
            ("*.*.com", "two stars"),
            ("a*.com", "a star within a label"),
            ("*a.com", "a star that is not a whole label"),
            ("a..com", "an empty label"),
            (".com", "an empty first label"),
            ("a.com.", "a dot at the end"),
            ("-a.com", "a dash first"),
            ("a_b.com", "an underscore"),
            ("a.com:80", "a port"),
            ("ä.com", "not ASCII"),
            ("1.2.3.4", "an address"),
            (&long, "too long"),
            (&label, "a label too long"),
        ];
        for (text, why) in cases {
            assert!(read(text).is_err(), "{why}: {text}");
        }
    }

    #[test]
    fn any_covers_all_and_nothing_else_covers_any() {
        let any = read("").unwrap();
        for text in ["a.com", "*.com", ""] {
            let pattern = read(text).unwrap();
            assert!(covers(&any, &pattern));
            assert_eq!(covers(&pattern, &any), text.is_empty());
        }
    }
}
