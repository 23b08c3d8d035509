//! Field selectors: parsed once per request, matched per object. Those of labels are `fairway-text-selector`'s.

use crate::status::ApiError;

/// `metadata.name=a,spec.nodeName!=b`: all terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldTerm>);

/// One term of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldTerm {
    /// Path of the field.
    pub field: String,
    /// The value that it must, or must not, have.
    pub value: String,
    /// `=` or `!=`.
    pub equal: bool,
}

impl FieldSelector {
    /// Reads the text form; `\` escapes `,`, `=` and itself in values.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for term in split_unescaped(text) {
            if term.is_empty() {
                continue;
            }
            let invalid =
                || ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'"));
            let at = term.find(['=', '!']).ok_or_else(invalid)?;
            let (field, operator) = term.split_at(at);
            let (equal, value) = if let Some(value) = operator.strip_prefix("!=") {
                (false, value)
            } else if let Some(value) = operator.strip_prefix("==").or_else(|| operator.strip_prefix('=')) {
                (true, value)
            } else {
                return Err(invalid());
            };
            terms.push(FieldTerm {
                field: field.to_owned(),
                value: unescape(value)
                    .map_err(|why| ApiError::bad_request(format!("invalid field selector: {why}")))?,
                equal,
            });
        }
        Ok(Self(terms))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The terms.
    pub(crate) fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// The only name that can match, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.exact("metadata.name")
    }

    /// The only namespace that can match, if there is one.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.exact("metadata.namespace")
    }

    fn exact(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }

    /// Whether an object with these fields is selected; a field that is not there counts as empty.
    pub(crate) fn matches(&self, field: impl Fn(&str) -> Option<String>) -> bool {
        self.0
            .iter()
            .all(|t| (field(&t.field).unwrap_or_default() == t.value) == t.equal)
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid escape sequence: \\{other}"));
                }
            },
            '=' | ',' => return Err(format!("unescaped character in value: {}", u32::from(c))),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_selectors() {
        let selector = FieldSelector::parse("metadata.name=a,spec.x!=b\\,c").unwrap();
        assert_eq!(selector.name(), Some("a"));
        assert!(selector.matches(|f| Some(if f == "metadata.name" { "a" } else { "z" }.to_owned())));
        assert!(!selector.matches(|f| Some(if f == "metadata.name" { "a" } else { "b,c" }.to_owned())));
        for wrong in ["a", "a=b=c", "a!b", "a=b\\x"] {
            assert_eq!(
                FieldSelector::parse(wrong).map_err(|e| e.code),
                Err(400),
                "{wrong}"
            );
        }
    }
}
