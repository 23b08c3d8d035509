//! Which rule a request belongs to, in a time that does not grow with the number of rules.
//!
//! Of one host name's entries, which are in order of precedence, the first that fits is wanted. Exact paths are one look-up,
//! prefixes one for each segment of the request's path, expressions are tried one after the other; in each of these lists
//! entries are in order, so the first fit of the best list wins.

use std::collections::HashMap;
use std::sync::Arc;

use fairway_gateway_routes::table::{Entry, Match, PathMatch, ValueMatch};
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

/// What is looked at beside the host.
pub(crate) struct Sought<'a> {
    pub(crate) method: &'a Method,
    /// Normalised.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
}

/// The entries of one host name.
pub(crate) struct Matcher<T> {
    exact: HashMap<String, Vec<usize>>,
    prefix: HashMap<String, Vec<usize>>,
    regex: Vec<usize>,
    /// The length of the longest prefix and exact path.
    longest: usize,
    entries: Arc<Vec<Entry>>,
    values: Vec<Arc<T>>,
}

impl<T> Matcher<T> {
    /// `values` are what entries lead to, in the same order.
    pub(crate) fn new(entries: Arc<Vec<Entry>>, values: Vec<Arc<T>>) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut prefix: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut regex, mut longest) = (Vec::new(), 0);
        for (at, entry) in entries.iter().enumerate() {
            match &entry.matches.path {
                PathMatch::Exact(path) => exact.entry(path.clone()).or_default().push(at),
                PathMatch::Prefix(path) => {
                    let path = path.trim_end_matches('/');
                    longest = longest.max(path.len());
                    prefix.entry(path.to_owned()).or_default().push(at);
                }
                PathMatch::Regex(_) => regex.push(at),
            }
        }
        Self {
            exact,
            prefix,
            regex,
            longest,
            entries,
            values,
        }
    }

    pub(crate) fn find(&self, sought: &Sought<'_>) -> Option<(&Entry, &Arc<T>)> {
        let mut best = usize::MAX;
        let mut try_all = |candidates: &[usize]| {
            for at in candidates {
                if *at >= best {
                    return;
                }
                if self
                    .entries
                    .get(*at)
                    .is_some_and(|entry| fits_rest(&entry.matches, sought))
                {
                    best = *at;
                    return;
                }
            }
        };
        if let Some(candidates) = self.exact.get(sought.path) {
            try_all(candidates);
        }
        if !self.prefix.is_empty() {
            let path = sought.path;
            // `/a/b` has the prefixes ``, `/a` and `/a/b`; a slash at the end makes no difference.
            let ends = memchr::memchr_iter(b'/', path.as_bytes()).chain([path.len()]);
            for end in ends.take_while(|end| *end <= self.longest) {
                if let Some(candidates) = self.prefix.get(&path[..end]) {
                    try_all(candidates);
                }
            }
        }
        for at in &self.regex {
            if *at >= best {
                break;
            }
            let entry = self.entries.get(*at)?;
            if let PathMatch::Regex(regex) = &entry.matches.path {
                if whole(regex, sought.path) && fits_rest(&entry.matches, sought) {
                    best = *at;
                    break;
                }
            }
        }
        self.entries.get(best).zip(self.values.get(best))
    }
}

/// The expression fits the text from its beginning to its end.
fn whole(regex: &regex::Regex, text: &str) -> bool {
    regex
        .find(text)
        .is_some_and(|found| found.start() == 0 && found.end() == text.len())
}

fn fits_rest(matches: &Match, sought: &Sought<'_>) -> bool {
    matches
        .method
        .as_ref()
        .is_none_or(|method| method == sought.method)
        && matches.headers.iter().all(|wanted| {
            sought.headers.get(&wanted.name).is_some_and(|first| {
                let mut values = sought.headers.get_all(&wanted.name).iter();
                values.next();
                if values.next().is_none() {
                    return first.to_str().is_ok_and(|value| fits(&wanted.value, value));
                }
                // Several of one name are one with commas between (RFC 9110, 5.3).
                let all: Option<Vec<&str>> = sought
                    .headers
                    .get_all(&wanted.name)
                    .iter()
                    .map(|value| value.to_str().ok())
                    .collect();
                all.is_some_and(|all| fits(&wanted.value, &all.join(",")))
            })
        })
        && matches.query.iter().all(|wanted| {
            // Of several of one name the first counts.
            query(sought.query.unwrap_or_default())
                .find(|(name, _)| *name == *wanted.name)
                .is_some_and(|(_, value)| fits(&wanted.value, &value))
        })
}

fn fits(wanted: &ValueMatch, value: &str) -> bool {
    match wanted {
        ValueMatch::Exact(text) => text == value,
        ValueMatch::Regex(regex) => whole(regex, value),
    }
}

fn query(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8_lossy()
                .into_owned()
        };
        (decode(name), decode(value))
    })
}
