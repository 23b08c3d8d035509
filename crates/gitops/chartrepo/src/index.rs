//! `index.yaml`: which charts a repository has, in which versions, and where they are. Everything else in it, which is most
//! of it, is forgotten.

use std::collections::HashMap;

use fairway_text_yaml::{Limits, from_slice};
use serde_json::Value;

use crate::{Unusable, version};

/// The largest index that is read. The largest public ones have half of that.
pub const MAX_INDEX: usize = 32 << 20;
/// How many versions of charts an index may have.
const MAX_ENTRIES: usize = 500_000;
const LIMITS: Limits = Limits {
    bytes: MAX_INDEX,
    depth: 64,
    aliased: 200_000,
};

/// A version of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As its author wrote it.
    pub version: String,
    /// Where it is, from the repository's address. Helm takes the first.
    pub url: String,
    /// The SHA-256 of its archive in hexadecimal digits, or nothing.
    pub digest: String,
}

/// An index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(HashMap<String, Vec<Entry>>);

impl Index {
    /// Reads an index in YAML or JSON. As in Helm, entries that make no sense are left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        if bytes.is_empty() {
            return Err(Unusable::new("empty index.yaml file"));
        }
        let document = match bytes.trim_ascii_start().starts_with(b"{") {
            true => serde_json::from_slice(bytes).ok(),
            false => None,
        };
        let document: Value = match document {
            Some(document) => document,
            None => from_slice(bytes, LIMITS)
                .map_err(|error| Unusable(format!("error decoding index: {error}")))?,
        };
        let entries = match &document["entries"] {
            Value::Object(entries) => entries,
            Value::Null if document.is_object() => return Ok(Self::default()),
            _ => return Err(Unusable::new("error decoding index: it has no entries")),
        };
        let mut index = Self::default();
        let mut count = 0;
        for (name, versions) in entries {
            let versions = versions.as_array().into_iter().flatten();
            let versions: Vec<Entry> = versions.filter_map(entry).collect();
            count += versions.len();
            if count > MAX_ENTRIES {
                return Err(Unusable(format!(
                    "error decoding index: it has more than {MAX_ENTRIES} versions of charts"
                )));
            }
            index.0.insert(name.clone(), versions);
        }
        Ok(index)
    }

    /// The versions of a chart, as they were written.
    pub fn versions(&self, chart: &str) -> Result<Vec<&str>, Unusable> {
        let entries = self.entries(chart)?;
        Ok(entries.iter().map(|entry| entry.version.as_str()).collect())
    }

    /// The entry that `helm pull --version` would take.
    pub fn find(&self, chart: &str, wanted: &str) -> Result<&Entry, Unusable> {
        let entries = self.entries(chart)?;
        let versions: Vec<&str> = entries.iter().map(|entry| entry.version.as_str()).collect();
        let place = version::pick(wanted, &versions)
            .ok_or_else(|| Unusable(format!("no chart version found for {chart}-{wanted}")))?;
        let entry = &entries[place];
        match entry.url.is_empty() {
            true => Err(Unusable(format!(
                "chart {chart:?} has no downloadable URLs in version {}",
                entry.version
            ))),
            false => Ok(entry),
        }
    }

    fn entries(&self, chart: &str) -> Result<&[Entry], Unusable> {
        let entries = self.0.get(chart);
        entries
            .map(Vec::as_slice)
            .ok_or_else(|| Unusable(format!("chart '{chart}' not found in index")))
    }
}

fn entry(value: &Value) -> Option<Entry> {
    let version = match &value["version"] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    if !version::is_version(&version) {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let digest = text(&value["digest"]);
    Some(Entry {
        version,
        url: text(&value["urls"][0]),
        digest: digest.strip_prefix("sha256:").unwrap_or(&digest).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
apiVersion: v1
entries:
  web:
  - name: web
    version: 1.2.0
    digest: sha256:AB
    urls: [web-1.2.0.tgz, https://mirror/web-1.2.0.tgz]
  - {name: web, version: 1.10.0, digest: cd, urls: [web-1.10.0.tgz]}
  - {name: web, version: 2.0.0-rc.1, urls: [web-2.tgz]}
  - {name: web, version: what, urls: [what.tgz]}
  - null
  - {name: web, version: 1.11.0}
  empty: []
generated: \"2024-01-01T00:00:00Z\"
";

    #[test]
    fn entries_are_found_as_helm_finds_them() {
        let index = Index::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(
            index.versions("web").unwrap(),
            ["1.2.0", "1.10.0", "2.0.0-rc.1", "1.11.0"]
        );
        for (wanted, expected) in [
            ("1.2.0", Ok("web-1.2.0.tgz")),
            ("1.2", Ok("web-1.2.0.tgz")),
            ("~1.10", Ok("web-1.10.0.tgz")),
            ("2.0.0-rc.1", Ok("web-2.tgz")),
            (
                "",
                Err("chart \"web\" has no downloadable URLs in version 1.11.0"),
            ),
            ("3", Err("no chart version found for web-3")),
        ] {
            let found = index.find("web", wanted).map(|entry| entry.url.as_str());
            assert_eq!(
                found.map_err(|error| error.0),
                expected.map_err(str::to_owned),
                "{wanted}"
            );
        }
        assert_eq!(index.find("web", "1.2.0").unwrap().digest, "AB");
        assert!(index.find("empty", "1").is_err());
        assert_eq!(
            index.versions("other").unwrap_err().0,
            "chart 'other' not found in index"
        );
    }

    #[test]
    fn json_is_an_index_too_and_other_things_are_none() {
        let json = br#"{"apiVersion":"v1","entries":{"a":[{"version":"1.0.0","urls":["a.tgz"]}]}}"#;
        assert_eq!(Index::parse(json).unwrap().versions("a").unwrap(), ["1.0.0"]);
        assert_eq!(Index::parse(b"apiVersion: v1\n").unwrap(), Index::default());
        for text in [
            "",
            "[]",
            "entries: [a]",
            "<html><body>Sign in</body></html>",
            "entries: {a: &a [*a]}",
        ] {
            assert!(Index::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let mut deep = "entries:\n  a:\n  - ".to_owned();
        deep.push_str(&"[".repeat(100_000));
        assert!(Index::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn aliases_do_not_multiply() {
        let mut bomb = "x0: &x0 {version: 1.0.0}\n".to_owned();
        for level in 1..30 {
            let below = level - 1;
            bomb.push_str(&format!(
                "x{level}: &x{level} [*x{below}, *x{below}, *x{below}, *x{below}]\n"
            ));
        }
        bomb.push_str("entries: {a: *x29}\n");
        assert!(Index::parse(bomb.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(entries|a|[-:{}\\[\\]&*!|>'\"#, \n0-9.]|version|urls){0,80}") {
            let _ = Index::parse(text.as_bytes());
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0..TEXT.len(), byte in any::<u8>()) {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(index) = Index::parse(&bytes) {
                let _ = index.find("web", "*");
            }
        }
    }
}
