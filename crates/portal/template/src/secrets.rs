//! Secrets of a run: seen by expressions of inputs, and hidden wherever something is shown or kept.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What stands where a secret was.
pub const HIDDEN: &str = "***";
/// What is shorter cannot be told from other text.
const SHORTEST: usize = 3;

/// A part of a text that is kept without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// As it is.
    Text(String),
    /// A secret: its name, and in which form it stood there.
    Secret(String, usize),
}

/// Secrets by name.
#[derive(Clone, Default)]
pub struct Secrets {
    by_name: BTreeMap<String, String>,
    /// Every form in which one may be shown, the longest first.
    forms: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Secrets {
    /// Takes secrets.
    pub fn new(by_name: BTreeMap<String, String>) -> Self {
        let mut forms = Vec::new();
        for secret in by_name.values().filter(|secret| secret.len() >= SHORTEST) {
            forms.extend(shown_as(secret));
            // A key is often shown line by line.
            forms.extend(
                secret
                    .lines()
                    .map(str::trim)
                    .filter(|line| line.len() >= 16)
                    .map(str::to_owned),
            );
        }
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self { by_name, forms }
    }

    /// As expressions see them.
    pub fn to_json(&self) -> Value {
        let fields: Map<String, Value> = self
            .by_name
            .iter()
            .map(|(name, secret)| (name.clone(), Value::String(secret.clone())))
            .collect();
        Value::Object(fields)
    }

    /// The secrets, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name
            .iter()
            .map(|(name, secret)| (name.as_str(), secret.as_str()))
    }

    /// A text without them.
    pub fn hide(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        for form in &self.forms {
            if hidden.contains(form.as_str()) {
                hidden = hidden.replace(form.as_str(), HIDDEN);
            }
        }
        hidden
    }

    /// A value without them, in whatever part they are.
    pub fn hide_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Array(items) => items.iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(fields) => {
                let hidden = fields
                    .iter()
                    .map(|(key, field)| (self.hide(key), self.hide_in(field)));
                Value::Object(hidden.collect())
            }
            other => other.clone(),
        }
    }

    /// A text in parts that can be kept for all to read, and be put together again by who has the secrets. Nothing, if a secret would
    /// be left in it.
    pub fn seal(&self, text: &str) -> Option<Vec<Part>> {
        let mut forms: Vec<(&str, usize, String)> = Vec::new();
        for (name, secret) in self.iter().filter(|(_, secret)| secret.len() >= SHORTEST) {
            let each = shown_as(secret).into_iter().enumerate();
            forms.extend(each.map(|(at, form)| (name, at, form)));
        }
        forms.sort_by_key(|(_, _, form)| std::cmp::Reverse(form.len()));
        let mut parts = vec![Part::Text(text.to_owned())];
        for (name, at, form) in &forms {
            let split = parts.into_iter().flat_map(|part| match part {
                Part::Text(text) => split(&text, form, &Part::Secret((*name).to_owned(), *at)),
                secret @ Part::Secret(..) => vec![secret],
            });
            parts = split.collect();
        }
        let is_clean = |part: &Part| match part {
            Part::Text(text) => self.hide(text) == *text,
            Part::Secret(..) => true,
        };
        parts.iter().all(is_clean).then_some(parts)
    }

    /// What was sealed, as it was. Nothing, if a secret of it is not known any more.
    pub fn unseal(&self, parts: &[Part]) -> Option<String> {
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Text(text) => whole.push_str(text),
                Part::Secret(name, at) => whole.push_str(shown_as(self.by_name.get(name)?).get(*at)?),
            }
        }
        Some(whole)
    }

    /// The name of a secret that is in a text in one of its forms.
    pub fn found_in(&self, text: &str) -> Option<&str> {
        let found = self.by_name.iter().find(|(_, secret)| {
            // Short words are in many texts; a secret that must not be in Git is one that could be guessed at by nobody.
            secret.len() >= 6 && shown_as(secret).iter().any(|form| text.contains(form.as_str()))
        });
        found.map(|(name, _)| name.as_str())
    }
}

/// A text around every place of a form.
fn split(text: &str, form: &str, secret: &Part) -> Vec<Part> {
    let mut parts = Vec::new();
    for (at, piece) in text.split(form).enumerate() {
        if at > 0 {
            parts.push(secret.clone());
        }
        if !piece.is_empty() {
            parts.push(Part::Text(piece.to_owned()));
        }
    }
    parts
}

/// A secret as it is, in Base64, and as it stands in JSON and in addresses.
fn shown_as(secret: &str) -> Vec<String> {
    let quoted = Value::String(secret.to_owned()).to_string();
    let encoded =
        percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
    let mut forms = vec![
        secret.to_owned(),
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        STANDARD.encode(format!("{secret}\n")),
        quoted[1..quoted.len() - 1].to_owned(),
        encoded,
    ];
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_sealed_is_put_together_again_by_who_has_the_secret() {
        let secrets = Secrets::new(
            [
                ("hook".to_owned(), "T0/B0/a b".to_owned()),
                ("key".to_owned(), "xyz".to_owned()),
            ]
            .into(),
        );
        for (text, count) in [
            ("https://hooks.example/x", 1),
            ("https://hooks.example/T0/B0/a b?k=xyz", 4),
            ("https://hooks.example/T0%2FB0%2Fa%20b/end", 3),
            ("xyzxyz", 2),
            ("", 0),
        ] {
            let parts = secrets.seal(text).unwrap();
            assert_eq!(parts.len(), count, "{text}: {parts:?}");
            let kept = serde_json::to_string(&parts).unwrap();
            assert_eq!(secrets.hide(&kept), kept, "{text}");
            let read: Vec<Part> = serde_json::from_str(&kept).unwrap();
            assert_eq!(secrets.unseal(&read).as_deref(), Some(text));
            if count > 1 {
                assert_eq!(Secrets::default().unseal(&read), None, "{text}");
            }
        }
        // A line of a key alone is not one of the forms that can be put together again.
        let lines = Secrets::new([("key".to_owned(), "0123456789abcdefgh\nsecond".to_owned())].into());
        assert_eq!(lines.seal("https://x/0123456789abcdefgh"), None);
    }

    #[test]
    fn secrets_are_hidden_in_every_form() {
        let secrets = Secrets::new([("token".to_owned(), "s3cr\"et/x".to_owned())].into());
        for text in [
            "s3cr\"et/x".to_owned(),
            STANDARD.encode("s3cr\"et/x"),
            json!("s3cr\"et/x").to_string(),
            "s3cr%22et%2Fx".to_owned(),
        ] {
            let hidden = secrets.hide(&format!("a {text} b"));
            assert!(
                hidden.contains(HIDDEN) && !hidden.contains("s3cr"),
                "{text}: {hidden}"
            );
        }
        let hidden = secrets.hide_in(&json!({"a": ["xs3cr\"et/x"], "s3cr\"et/x": 1}));
        assert_eq!(hidden, json!({"a": ["x***"], "***": 1}));
        assert!(!format!("{secrets:?}").contains("s3cr"));
        assert_eq!(secrets.found_in("x s3cr\"et/x"), Some("token"));
        assert_eq!(secrets.found_in("nothing"), None);
    }
}
