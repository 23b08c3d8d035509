//! What names, keys and values may look like, as upstream's validators have it.

use serde_json::Value;

/// The longest name.
const MAX_NAME: usize = 63;
/// The longest prefix of a key.
const MAX_PREFIX: usize = 253;

/// What a text should have been, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of entities, and values of labels, which may be empty.
    ObjectName,
    /// Values of labels.
    LabelValue,
    /// Of namespaces.
    Namespace,
    /// Keys of labels and annotations, `apiVersion`.
    Key,
    /// `apiVersion`.
    ApiVersion,
    /// `kind`.
    Kind,
    /// Tags.
    Tag,
    /// Any text.
    Text,
    /// A text with something in it.
    NonEmpty,
    /// An address.
    Url,
}

impl Form {
    /// Whether a value has this form.
    pub fn fits(self, value: &Value) -> bool {
        let Some(text) = value.as_str() else {
            return false;
        };
        match self {
            Self::ObjectName => is_object_name(text),
            Self::LabelValue => text.is_empty() || is_object_name(text),
            Self::Namespace => is_dns_label(text),
            Self::Key => prefix_and_suffix(text, is_object_name),
            Self::ApiVersion => prefix_and_suffix(text, |suffix| {
                is_short(suffix) && suffix.bytes().all(|b| b.is_ascii_alphanumeric())
            }),
            Self::Kind => {
                is_short(text)
                    && text.bytes().all(|b| b.is_ascii_alphanumeric())
                    && text.starts_with(|first: char| first.is_ascii_alphabetic())
            }
            Self::Tag => is_tag(text),
            Self::Text => true,
            Self::NonEmpty => !text.is_empty(),
            Self::Url => is_url(text),
        }
    }

    /// What was expected, in upstream's words.
    pub fn expected(self) -> &'static str {
        match self {
            Self::ObjectName | Self::LabelValue => {
                "a string that is sequences of [a-zA-Z0-9] separated by any of [-_.], at most 63 characters in total"
            }
            Self::Namespace => {
                "a string that is sequences of [a-z0-9] separated by [-], at most 63 characters in total"
            }
            Self::Key | Self::ApiVersion => "a valid prefix and/or suffix",
            Self::Kind => {
                "a string that is a sequence of [a-zA-Z][a-z0-9A-Z], at most 63 characters in total"
            }
            Self::Tag => {
                "a string that is sequences of [a-z0-9+#] separated by [-], at most 63 characters in total"
            }
            Self::Text => "a string",
            Self::NonEmpty => "a non empty string",
            Self::Url => "a string that is a valid url",
        }
    }
}

fn is_short(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
}

fn is_object_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_short(text) && bytes.iter().all(|b| inner(*b)) && ends(bytes.first()) && ends(bytes.last())
}

/// Lower-case letters, digits and inner dashes.
pub fn is_dns_label(text: &str) -> bool {
    is_short(text)
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Labels with dots between.
pub fn is_dns_subdomain(text: &str) -> bool {
    (1..=MAX_PREFIX).contains(&text.len()) && text.split('.').all(is_dns_label)
}

fn prefix_and_suffix(text: &str, suffix: impl Fn(&str) -> bool) -> bool {
    match text.split_once('/') {
        None => suffix(text),
        Some((prefix, rest)) => is_dns_subdomain(prefix) && suffix(rest),
    }
}

/// Sequences of `[a-z0-9:+#]` with single dashes between.
fn is_tag(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b':' | b'+' | b'#'))
    };
    is_short(text) && text.split('-').all(word)
}

/// Enough to be an address: a scheme, and something after it.
fn is_url(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let mut letters = scheme.bytes();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.trim_start_matches('/').is_empty()
            && !rest.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let long = "a".repeat(64);
        for (form, text, fits) in [
            (Form::ObjectName, "Web_1.x-y", true),
            (Form::ObjectName, "a..b", true),
            (Form::ObjectName, "-a", false),
            (Form::ObjectName, "a b", false),
            (Form::ObjectName, "", false),
            (Form::ObjectName, &long, false),
            (Form::LabelValue, "", true),
            (Form::Namespace, "team-a", true),
            (Form::Namespace, "Team", false),
            (Form::Key, "backstage.io/kubernetes-id", true),
            (Form::Key, "plain", true),
            (Form::Key, "a/b/c", false),
            (Form::Key, "UPPER.io/x", false),
            (Form::ApiVersion, "backstage.io/v1alpha1", true),
            (Form::ApiVersion, "v1-x", false),
            (Form::Kind, "Component", true),
            (Form::Kind, "1a", false),
            (Form::Tag, "c++", true),
            (Form::Tag, "java-11", true),
            (Form::Tag, "Java", false),
            (Form::Tag, "a--b", false),
            (Form::Url, "https://example.com", true),
            (Form::Url, "mailto:a@b", true),
            (Form::Url, "nothing", false),
            (Form::Url, "https://", false),
        ] {
            assert_eq!(form.fits(&Value::from(text)), fits, "{form:?} {text}");
        }
        assert!(!Form::Text.fits(&Value::from(1)));
    }
}
