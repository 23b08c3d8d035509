//! Label and field selectors: parsed once per request, matched per object.

use crate::status::ApiError;

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut reader = Reader { rest: text };
        let mut requirements = Vec::new();
        reader.skip_space();
        while !reader.rest.is_empty() {
            requirements.push(reader.requirement()?);
            reader.skip_space();
            if reader.rest.is_empty() {
                break;
            }
            if !reader.eat(",") {
                return Err(reader.unexpected("',' or end of string"));
            }
            reader.skip_space();
            if reader.rest.is_empty() {
                return Err(reader.unexpected("an identifier after ','"));
            }
        }
        Ok(Self(requirements))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|r| {
            let value = label(&r.key);
            match &r.test {
                Test::In(values) => value.is_some_and(|v| values.iter().any(|w| w == v)),
                Test::NotIn(values) => value.is_none_or(|v| values.iter().all(|w| w != v)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Greater(bound) => value
                    .and_then(|v| v.parse::<i64>().ok())
                    .is_some_and(|v| v > *bound),
                Test::Less(bound) => value
                    .and_then(|v| v.parse::<i64>().ok())
                    .is_some_and(|v| v < *bound),
            }
        })
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn unexpected(&self, wanted: &str) -> ApiError {
        let found: String = self.rest.chars().take(20).collect();
        ApiError::bad_request(format!(
            "unable to parse requirement: found '{found}', expected: {wanted}"
        ))
    }

    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || "=!,()<>".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn requirement(&mut self) -> Result<Requirement, ApiError> {
        let absent = self.eat("!");
        self.skip_space();
        let key = self.word();
        check_key(key)?;
        let key = key.to_owned();
        self.skip_space();
        if absent {
            return Ok(Requirement {
                key,
                test: Test::Absent,
            });
        }
        let test = if self.rest.is_empty() || self.rest.starts_with(',') {
            Test::Exists
        } else if self.eat("==") || self.eat("=") {
            Test::In(vec![self.value()?])
        } else if self.eat("!=") {
            Test::NotIn(vec![self.value()?])
        } else if self.eat(">") {
            Test::Greater(self.bound()?)
        } else if self.eat("<") {
            Test::Less(self.bound()?)
        } else {
            match self.word() {
                "in" => Test::In(self.values()?),
                "notin" => Test::NotIn(self.values()?),
                "" => return Err(self.unexpected("in, notin, =, ==, !=, gt, lt")),
                other => {
                    return Err(ApiError::bad_request(format!(
                        "unable to parse requirement: found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                    )));
                }
            }
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self) -> Result<String, ApiError> {
        self.skip_space();
        let value = self.word();
        check_value(value)?;
        Ok(value.to_owned())
    }

    fn bound(&mut self) -> Result<i64, ApiError> {
        let text = self.value()?;
        text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "for 'Gt', 'Lt' operators, the value must be an integer, found {text:?}"
            ))
        })
    }

    fn values(&mut self) -> Result<Vec<String>, ApiError> {
        self.skip_space();
        if !self.eat("(") {
            let found = self.word();
            return Err(ApiError::bad_request(format!(
                "unable to parse requirement: found '{found}' expected: '('"
            )));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            self.skip_space();
            if self.eat(")") {
                return Ok(values);
            }
            if !self.eat(",") {
                return Err(self.unexpected("',' or ')'"));
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), ApiError> {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    let name_ok = !name.is_empty() && name.len() <= 63 && is_label_word(name);
    let prefix_ok = key == name
        || (!prefix.is_empty()
            && prefix.len() <= 253
            && prefix.split('.').all(|p| {
                !p.is_empty()
                    && p.bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                    && !p.starts_with('-')
                    && !p.ends_with('-')
            }));
    if name_ok && prefix_ok {
        Ok(())
    } else {
        Err(ApiError::bad_request(format!(
            "unable to parse requirement: <nil>: Invalid value: {key:?}: name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc')"
        )))
    }
}

fn check_value(value: &str) -> Result<(), ApiError> {
    if value.is_empty() || (value.len() <= 63 && is_label_word(value)) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "unable to parse requirement: values[0][]: Invalid value: {value:?}: a valid label must be an empty string or \
         consist of at most 63 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character"
    )))
}

fn is_label_word(text: &str) -> bool {
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    ends(text.bytes().next())
        && ends(text.bytes().last())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

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
                || ApiError::bad_request(format!("invalid selector: {text:?}; can't understand {term:?}"));
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
                value: unescape(value).ok_or_else(invalid)?,
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

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('\\' | ',' | '=') => out.push(escaped),
                _ => return None,
            },
            '=' | ',' => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let find = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        LabelSelector::parse(selector).unwrap().matches(find)
    }

    #[test]
    fn label_selectors() {
        let labels = [("app", "web"), ("tier", "2"), ("example.com/x", "")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=3", true),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("zone notin (a)", true),
            ("zone", false),
            ("!zone", true),
            ("! app", false),
            ("tier>1,tier<3", true),
            ("example.com/x=", true),
            ("app = web , tier = 2", true),
        ] {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn wrong_label_selectors_are_refused() {
        for wrong in [
            "a=b,", "=b", "a in b", "a in (b", "a b", "a=b c", "-x=1", "a>z", "x/y/z=1", "a=-b",
        ] {
            assert_eq!(
                LabelSelector::parse(wrong).map_err(|e| e.code),
                Err(400),
                "{wrong}"
            );
        }
    }

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
