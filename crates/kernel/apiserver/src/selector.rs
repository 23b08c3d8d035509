//! Label and field selectors: parsed once per request, matched per object.

use fairway_kernel_kinds::validation;
use fairway_kernel_schema::field::quoted;

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
    /// Demands one more label.
    pub(crate) fn require(&mut self, key: &str, value: &str) {
        self.0.push(Requirement {
            key: key.to_owned(),
            test: Test::In(vec![value.to_owned()]),
        });
    }

    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`, and refuses in the words of upstream's parser.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                Token::End => return Ok(Self(requirements)),
                Token::Word(_) | Token::Symbol("!") => {}
                Token::Symbol(found) => {
                    return Err(refuse(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
            let requirement = parser
                .requirement()
                .map_err(|why| refuse(format!("unable to parse requirement: {why}")))?;
            requirements.push(requirement);
            match parser.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Symbol(",") => match parser.peek() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    other => {
                        return Err(refuse(format!(
                            "found '{}', expected: identifier after ','",
                            other.text()
                        )));
                    }
                },
                other => {
                    return Err(refuse(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        other.text()
                    )));
                }
            }
        }
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

fn refuse(why: String) -> ApiError {
    ApiError::bad_request(why)
}

/// What a label selector is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Symbol(text) => text,
            Token::End => "",
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let end = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"]
            .iter()
            .find(|symbol| self.rest.starts_with(**symbol))
            .map(|symbol| symbol.len());
        let (length, is_word) = match end {
            Some(length) => (length, false),
            None => (
                self.rest
                    .find(|c: char| " \t\r\n=!(),<>".contains(c))
                    .unwrap_or(self.rest.len()),
                true,
            ),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        match (token, is_word) {
            ("", _) => Token::End,
            (word, true) => Token::Word(word),
            (symbol, false) => Token::Symbol(symbol),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let absent = token == Token::Symbol("!");
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let faults = validation::is_qualified_name(key);
        if !faults.is_empty() {
            return Err(format!(
                "<nil>: Invalid value: {}: {}",
                quoted(key),
                faults.join("; ")
            ));
        }
        let test = match self.peek() {
            _ if absent => Test::Absent,
            Token::End | Token::Symbol(",") => Test::Exists,
            _ => self.test(key)?,
        };
        Ok(Requirement {
            key: key.to_owned(),
            test,
        })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        match operator {
            Token::Word("in") => Ok(Test::In(check_values(key, self.values()?)?)),
            Token::Word("notin") => Ok(Test::NotIn(check_values(key, self.values()?)?)),
            Token::Symbol("=" | "==") => Ok(Test::In(check_values(key, vec![self.value()?])?)),
            Token::Symbol("!=") => Ok(Test::NotIn(check_values(key, vec![self.value()?])?)),
            Token::Symbol(sign @ (">" | "<")) => {
                let value = self.value()?;
                let bound = value.parse().map_err(|_| {
                    format!(
                        "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                        quoted(&value)
                    )
                })?;
                Ok(if sign == ">" {
                    Test::Greater(bound)
                } else {
                    Test::Less(bound)
                })
            }
            other => Err(format!(
                "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                other.text()
            )),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(value) => {
                self.next();
                Ok(value.to_owned())
            }
            Token::Symbol(found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Word(_) | Token::Symbol(",") => {}
            Token::Symbol(")") => {
                self.next();
                return Ok(vec![String::new()]);
            }
            other => {
                return Err(format!(
                    "found '{}', expected: ',', ')' or identifier",
                    other.text()
                ));
            }
        }
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    match self.peek() {
                        Token::Symbol("," | ")") => {}
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || matches!(self.peek(), Token::Symbol(")" | ",")) {
                        values.push(String::new());
                    }
                }
                Token::Symbol(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }
}

fn check_values(key: &str, values: Vec<String>) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let found = validation::is_label_value(value);
        if !found.is_empty() {
            faults.push(format!(
                "values[{i}][{key}]: Invalid value: {}: {}",
                quoted(value),
                found.join("; ")
            ));
        }
    }
    match faults.as_slice() {
        [] => Ok(values),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
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
