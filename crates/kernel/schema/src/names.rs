//! The rules for names: DNS labels, subdomains, label keys and values, path segments.
//!
//! Each function returns what is wrong with the value, in the words kubectl users know; an empty list means that it is
//! right. The checks are hand-written scanners because they run on every write of every object.

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The explanation that goes with a failed pattern.
fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    let mut text = message.to_owned();
    if examples.is_empty() {
        text.push_str(" (");
    } else {
        text.push_str(" (e.g. ");
        for (i, example) in examples.iter().enumerate() {
            if i > 0 {
                text.push_str(" or ");
            }
            text.push('\'');
            text.push_str(example);
            text.push_str("', ");
        }
    }
    text.push_str("regex used for validation is '");
    text.push_str(pattern);
    text.push_str("')");
    text
}

fn max_length(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_label(value: &[u8]) -> bool {
    match (value.first(), value.last()) {
        (Some(&first), Some(&last)) => {
            lower_alphanumeric(first)
                && lower_alphanumeric(last)
                && value.iter().all(|&b| lower_alphanumeric(b) || b == b'-')
        }
        _ => false,
    }
}

fn is_subdomain(value: &str) -> bool {
    value.as_bytes().split(|&b| b == b'.').all(is_label)
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_qualified_part(value: &[u8]) -> bool {
    match (value.first(), value.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && value
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// A DNS label that may begin with a digit: names of namespaces.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(max_length(63));
    }
    if !is_label(value.as_bytes()) {
        errors.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                LABEL_FMT,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// A DNS subdomain: names of most objects, API groups.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 253 {
        errors.push(max_length(253));
    }
    if !is_subdomain(value) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            &format!("{LABEL_FMT}(\\.{LABEL_FMT})*"),
            &["example.com"],
        ));
    }
    errors
}

/// A DNS label that begins with a letter: names of services, resources, kinds in lower case.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(max_length(63));
    }
    let begins_with_letter = value.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !begins_with_letter || !is_label(value.as_bytes()) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// A label key, which is also the form of finalizers and (in lower case) of annotation keys.
pub fn label_key(value: &str) -> Vec<String> {
    const MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    let explain = || regex_error(MESSAGE, QUALIFIED_FMT, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, rest)) if rest.contains('/') => {
            errors.push(format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                explain()
            ));
            return errors;
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(
                dns1123_subdomain(prefix)
                    .into_iter()
                    .map(|e| format!("prefix part {e}")),
            );
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", max_length(63)));
    }
    if !is_qualified_part(name.as_bytes()) {
        errors.push(format!("name part {}", explain()));
    }
    errors
}

/// A label value; empty is fine.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(max_length(63));
    }
    if !value.is_empty() && !is_qualified_part(value.as_bytes()) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({QUALIFIED_FMT})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A name that can stand in a URL path; `prefix` says that more will be appended (`generateName`).
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && (value == "." || value == "..") {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|c| value.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "ab", "a-b", "0a", &"a".repeat(63)] {
            assert!(dns1123_label(good).is_empty(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", &"a".repeat(64)] {
            assert_eq!(dns1123_label(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        for good in ["a", "a.b", "0.1", "a-b.c"] {
            assert!(dns1123_subdomain(good).is_empty(), "{good}");
        }
        for bad in ["", "a..b", ".a", "a.", "A.b", "a_b.c"] {
            assert!(!dns1123_subdomain(bad).is_empty(), "{bad}");
        }
        assert!(dns1035_label("a0").is_empty());
        assert_eq!(
            dns1035_label("0a"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
              character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
              validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
    }

    #[test]
    fn keys_and_values() {
        for good in [
            "simple",
            "now-with-dashes",
            "1-starts-with-num",
            "example.com/a_b",
            "A.b",
        ] {
            assert!(label_key(good).is_empty(), "{good}");
        }
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key("a/b/c").len(), 1);
        assert_eq!(label_key("a/").len(), 2);
        assert_eq!(label_key("Ex.com/a").len(), 1);
        assert!(label_value("").is_empty());
        assert!(label_value("a_b.c").is_empty());
        assert!(!label_value("-a").is_empty());
        assert!(!label_value("a b").is_empty());
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert!(path_segment("..", true).is_empty());
        assert_eq!(path_segment("a/%", false).len(), 2);
    }
}
