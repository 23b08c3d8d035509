//! What was told already: an annotation of the Application, in the form that the original writes, so that neither tells again what
//! the other has told.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairway_text_gotemplate::Value;
use fairway_text_gotemplate::json_text::{self, Style};
use sha1::{Digest as _, Sha1};

use crate::subscription::Destination;

/// The annotation.
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
/// The most that is remembered of an Application.
const MAX_REMEMBERED: usize = 100;

/// Keys of what was told, and when, in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, i64>);

impl Record {
    /// Reads the annotation; one that cannot be read is empty.
    pub fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// Whether something was told.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(crate) fn remember(&mut self, key: &str, seconds: i64) {
        self.0.insert(key.to_owned(), seconds);
    }

    /// The annotation's value; none if there is nothing to remember. The oldest is forgotten.
    pub fn annotation(&self) -> Option<String> {
        let mut kept = self.0.clone();
        let surplus = kept.len().saturating_sub(MAX_REMEMBERED);
        let mut by_age: Vec<(i64, &String)> = self.0.iter().map(|(key, at)| (*at, key)).collect();
        by_age.sort_unstable();
        for (_, key) in by_age.into_iter().take(surplus) {
            kept.remove(key);
        }
        if kept.is_empty() {
            return None;
        }
        let entries = kept
            .into_iter()
            .map(|(key, at)| (key.into_bytes().into(), Value::int64(at)));
        json_text::write(&Value::map(entries.collect()), Style::default()).ok()
    }
}

/// What a condition is called: its place and what it says, so that a changed condition is another one.
pub(crate) fn condition_key(place: usize, when: &str) -> String {
    let digest = Sha1::digest(when.as_bytes());
    format!("[{place}].{}", URL_SAFE_NO_PAD.encode(digest))
}

/// As what it is remembered that somebody was told of a condition.
pub(crate) fn key(trigger: &str, condition: &str, to: &Destination, once_per: &str) -> String {
    let plain = format!("{trigger}:{condition}:{}:{}", to.service, to.recipient);
    match once_per {
        "" => plain,
        once_per => format!("{once_per}:{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_originals() {
        let to = Destination {
            service: "slack".to_owned(),
            recipient: "ops".to_owned(),
        };
        // The digest is what Go's sha1 and base64.RawURLEncoding make of the text.
        let condition = condition_key(1, "true");
        assert_eq!(condition, "[1].X_5TO4MPCKAyY0ipFgr6_IraRNs");
        let plain = key("on-deployed", &condition, &to, "");
        assert_eq!(plain, "on-deployed:[1].X_5TO4MPCKAyY0ipFgr6_IraRNs:slack:ops");
        assert_eq!(key("t", "c", &to, "abc"), "abc:t:c:slack:ops");
        let mut record = Record::parse("{\"b<\":2,\"a\":1}");
        assert_eq!(record.annotation().unwrap(), "{\"a\":1,\"b\\u003c\":2}");
        record.forget("a");
        record.forget("b<");
        assert_eq!(record.annotation(), None);
        assert_eq!(Record::parse("nonsense"), Record::default());
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut record = Record::default();
        for number in 0..150 {
            record.remember(&format!("k{number:03}"), number);
        }
        let kept = Record::parse(&record.annotation().unwrap());
        assert_eq!(
            (kept.0.len(), kept.has("k049"), kept.has("k050")),
            (100, false, true)
        );
    }
}
