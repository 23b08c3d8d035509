//! Label selectors as people write them: `team in (a,b),!quiet`.

use serde_json::{Map, Value};

/// The longest selector.
const MAX_LENGTH: usize = 4096;

/// Requirements that all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector(Vec<(String, Wanted)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl Selector {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("the selector {text:?} cannot be read: {why}");
        if text.len() > MAX_LENGTH {
            return Err(format!("a selector is longer than {MAX_LENGTH} bytes"));
        }
        let mut requirements = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (requirement, after) = requirement(rest).map_err(wrong)?;
            requirements.push(requirement);
            rest = after.trim_start();
            if !rest.is_empty() {
                rest = rest
                    .strip_prefix(',')
                    .ok_or_else(|| wrong("a comma is missing"))?
                    .trim_start();
                if rest.is_empty() {
                    return Err(wrong("it ends in a comma"));
                }
            }
        }
        Ok(Self(requirements))
    }

    pub(crate) fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.0.iter().all(|(name, wanted)| {
            let value = labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match wanted {
                Wanted::Exists => value.is_some(),
                Wanted::Absent => value.is_none(),
                Wanted::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
                Wanted::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
                Wanted::Greater(bound) => number().is_some_and(|number| number > *bound),
                Wanted::Less(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./".contains(c)
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    (word, after.trim_start())
}

fn requirement(text: &str) -> Result<((String, Wanted), &str), &'static str> {
    let (is_absent, text) = match text.strip_prefix('!') {
        Some(after) => (true, after.trim_start()),
        None => (false, text),
    };
    let (name, rest) = word(text);
    if name.is_empty() {
        return Err("a label's name is missing");
    }
    let with = |wanted: Wanted, rest| Ok(((name.to_owned(), wanted), rest));
    if is_absent {
        return with(Wanted::Absent, rest);
    }
    for (sign, is_equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some(after) = rest.strip_prefix(sign) {
            let (value, rest) = word(after.trim_start());
            let values = vec![value.to_owned()];
            return with(
                if is_equal {
                    Wanted::In(values)
                } else {
                    Wanted::NotIn(values)
                },
                rest,
            );
        }
    }
    for (sign, is_greater) in [(">", true), ("<", false)] {
        if let Some(after) = rest.strip_prefix(sign) {
            let (value, rest) = word(after.trim_start());
            let bound = value.parse().map_err(|_| "a bound is not a number")?;
            return with(
                if is_greater {
                    Wanted::Greater(bound)
                } else {
                    Wanted::Less(bound)
                },
                rest,
            );
        }
    }
    let (operator, after) = word(rest);
    if operator.is_empty() {
        return with(Wanted::Exists, rest);
    }
    let list = after.strip_prefix('(').and_then(|list| list.split_once(')'));
    let (list, rest) = list.ok_or("after in and notin comes a list in parentheses")?;
    let values: Vec<String> = list.split(',').map(|value| value.trim().to_owned()).collect();
    if values.iter().any(|value| !value.chars().all(is_word)) {
        return Err("a value in a list is wrong");
    }
    match operator {
        "in" => with(Wanted::In(values), rest),
        "notin" => with(Wanted::NotIn(values), rest),
        _ => Err("there is an operator that does not exist"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_pick() {
        let labels = json!({"a": "1", "b": "two", "x.io/c": ""});
        for (text, expected) in [
            ("", Ok(true)),
            ("a", Ok(true)),
            ("!a", Ok(false)),
            ("c", Ok(false)),
            ("! c", Ok(true)),
            ("a=1", Ok(true)),
            ("a == 1 , b=two", Ok(true)),
            ("a=2", Ok(false)),
            ("a!=2,c!=1", Ok(true)),
            ("x.io/c=", Ok(true)),
            ("a in (1, 3),b notin (one)", Ok(true)),
            ("a in (2)", Ok(false)),
            ("c notin (1)", Ok(true)),
            ("a>0,a<2", Ok(true)),
            ("b>0", Ok(false)),
            ("a in 1", Err(())),
            ("a like (1)", Err(())),
            ("=1", Err(())),
            ("a=1,", Err(())),
            ("a b", Err(())),
            ("a>x", Err(())),
        ] {
            let found = Selector::parse(text).map(|selector| selector.matches(labels.as_object()));
            assert_eq!(found.map_err(|_| ()), expected, "{text}");
        }
        assert!(Selector::parse(&"a,".repeat(4000)).is_err());
    }
}
