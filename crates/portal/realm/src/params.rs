//! Parameters of a request, from its query or its form: bounded, and none twice (RFC 6749, section 3.1).

use std::collections::BTreeMap;

/// The most bytes of all.
pub const MAX: usize = 16 * 1024;

/// Why parameters are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadParams {
    /// Too many bytes.
    #[error("the parameters are longer than {MAX} bytes")]
    TooLong,
    /// One is there twice.
    #[error("the parameter {0} is there twice")]
    Twice(String),
}

/// The parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// Reads `application/x-www-form-urlencoded`. An empty value is as good as none.
    pub fn parse(text: &str) -> Result<Self, BadParams> {
        if text.len() > MAX {
            return Err(BadParams::TooLong);
        }
        let mut all = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if value.is_empty() {
                continue;
            }
            if all.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(BadParams::Twice(name.chars().take(64).collect()));
            }
        }
        Ok(Self(all))
    }

    /// One of them; none if it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// One of them, or nothing.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

/// Parameters as a query.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if !value.is_empty() {
            out.append_pair(name, value);
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_once_each() {
        let params = Params::parse("a=1&b=x%20y&c=&c=2").unwrap();
        assert_eq!((params.get("a"), params.text("b")), (Some("1"), "x y"));
        assert_eq!((params.text("c"), params.get("d")), ("2", None));
        assert_eq!(Params::parse("a=1&a=1"), Err(BadParams::Twice("a".to_owned())));
        assert_eq!(Params::parse(&"x".repeat(MAX + 1)), Err(BadParams::TooLong));
        assert_eq!(query([("a", "x y"), ("b", ""), ("c", "&")]), "a=x+y&c=%26");
    }
}
