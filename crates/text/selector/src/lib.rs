//! Label selectors as people write them: `app=web,tier in (a,b),!legacy`.
//!
//! One reader for requests, kustomizations and notifications, because upstream has one: what it accepts and the words in which
//! it refuses are part of the interface. Selectors as objects (`matchLabels`, `matchExpressions`) are the kinds' own.

use fairway_kernel_scalar::names::{is_label_value, is_qualified_name};
use fairway_text_gotext::strings::quoted;

/// The longest selector that is read; a URL or a file could hold more.
const MAX_LENGTH: usize = 64 * 1024;

/// Why a selector cannot be read, in the words of upstream's parser.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

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
    pub fn require(&mut self, key: &str, value: &str) {
        self.0.push(Requirement {
            key: key.to_owned(),
            test: Test::In(vec![value.to_owned()]),
        });
    }

    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`, and refuses in the words of upstream's parser.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_LENGTH {
            return Err(refuse(format!(
                "the selector has {} bytes, more than the limit of {MAX_LENGTH}",
                text.len()
            )));
        }
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
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
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

fn refuse(why: String) -> Refusal {
    Refusal(why)
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
        let faults = is_qualified_name(key);
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
        let found = is_label_value(value);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_pick() {
        let labels = [("app", "web"), ("tier", "2"), ("example.com/x", "")];
        let find = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
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
            ("app>1", false),
            ("example.com/x=", true),
            ("example.com/x in ()", true),
            ("app = web , tier = 2", true),
            ("zone!=x", true),
        ] {
            let read = LabelSelector::parse(selector).unwrap();
            assert_eq!(read.matches(find), expected, "{selector}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_upstreams_words() {
        for (wrong, words) in [
            ("a=b,", "found '', expected: identifier after ','"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (
                "a in (b",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            (
                "a=!b",
                "unable to parse requirement: found '!', expected: identifier",
            ),
        ] {
            let refusal = LabelSelector::parse(wrong).unwrap_err();
            assert_eq!(refusal.to_string(), words, "{wrong}");
        }
        for wrong in ["-x=1", "a>z", "x/y/z=1", "a=-b"] {
            assert!(LabelSelector::parse(wrong).is_err(), "{wrong}");
        }
        assert!(LabelSelector::parse(&"a,".repeat(MAX_LENGTH)).is_err());
    }
}
