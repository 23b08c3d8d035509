//! Label selectors: `app=x,tier in (a,b),!legacy`.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// Requirements that all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        parser.skip_blank();
        if parser.rest.is_empty() {
            return Ok(Self::default());
        }
        loop {
            requirements.push(parser.requirement().map_err(|why| {
                Error::new(format!("unable to parse requirement in selector {text:?}: {why}"))
            })?);
            parser.skip_blank();
            match parser.rest.strip_prefix(',') {
                Some(rest) => parser.rest = rest,
                None if parser.rest.is_empty() => return Ok(Self(requirements)),
                None => {
                    let rest = parser.rest;
                    return Err(Error::new(format!(
                        "unable to parse selector {text:?}: found {rest:?}, expected ',' or the end"
                    )));
                }
            }
        }
    }

    pub(crate) fn matches(&self, labels: &[(&str, Cow<'_, str>)]) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels
                .iter()
                .find(|(key, _)| *key == requirement.key)
                .map(|(_, value)| value.as_ref());
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match &requirement.operator {
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
                Operator::In(wanted) => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
                Operator::NotIn(unwanted) => {
                    value.is_none_or(|value| !unwanted.iter().any(|one| one == value))
                }
                Operator::Greater(bound) => number().is_some_and(|number| number > *bound),
                Operator::Less(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blank();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'t str {
        self.skip_blank();
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn requirement(&mut self) -> std::result::Result<Requirement, String> {
        let absent = self.take("!");
        let key = self.key()?;
        if absent {
            let operator = Operator::Absent;
            return Ok(Requirement { key, operator });
        }
        let operator = if self.take("==") || self.take("=") {
            Operator::In(vec![self.value()?])
        } else if self.take("!=") {
            Operator::NotIn(vec![self.value()?])
        } else if self.take(">") {
            Operator::Greater(self.number()?)
        } else if self.take("<") {
            Operator::Less(self.number()?)
        } else {
            self.skip_blank();
            if self.rest.is_empty() || self.rest.starts_with(',') {
                Operator::Exists
            } else {
                match self.word() {
                    "in" => Operator::In(self.set()?),
                    "notin" => Operator::NotIn(self.set()?),
                    other => return Err(format!("found {other:?}, expected an operator")),
                }
            }
        };
        Ok(Requirement { key, operator })
    }

    fn key(&mut self) -> std::result::Result<String, String> {
        let word = self.word();
        let name = word.rsplit('/').next().unwrap_or_default();
        if !is_name(name) || word.matches('/').count() > 1 {
            return Err(format!("{word:?} is not a label key"));
        }
        Ok(word.to_owned())
    }

    fn value(&mut self) -> std::result::Result<String, String> {
        let word = self.word();
        if !word.is_empty() && !is_name(word) {
            return Err(format!("{word:?} is not a label value"));
        }
        Ok(word.to_owned())
    }

    fn number(&mut self) -> std::result::Result<i64, String> {
        let word = self.word();
        word.parse().map_err(|_| format!("{word:?} is not an integer"))
    }

    fn set(&mut self) -> std::result::Result<Vec<String>, String> {
        if !self.take("(") {
            return Err("expected '(' after the operator".to_owned());
        }
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        match self.take(")") {
            true => Ok(values),
            false => Err("expected ')' at the end of the values".to_owned()),
        }
    }
}

/// Up to 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().all(|byte| inner(*byte)) && edge(bytes.first()) && edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::LabelSelector;

    #[test]
    fn selectors_select() {
        let labels = [("app", Cow::Borrowed("web")), ("weight", Cow::Borrowed("7"))];
        for (selector, selected) in [
            ("", true),
            ("app=web", true),
            ("app == web, weight", true),
            ("app!=web", false),
            ("app in (api, web)", true),
            ("app notin (api,web)", false),
            ("!legacy,weight>6", true),
            ("weight<7", false),
            ("missing!=x", true),
            ("missing notin (x)", true),
        ] {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&labels), selected, "{selector}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for selector in [
            "app in web",
            "a b",
            "=x",
            "app in (a",
            "a=b c",
            "a=!b",
            "-a",
            "x>y",
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
