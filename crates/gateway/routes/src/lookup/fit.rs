//! Whether one match fits one request.

use std::borrow::Cow;
use std::cell::OnceCell;

use http::{HeaderMap, HeaderName, Method};

use crate::table::{Match, PathMatch, ValueMatch};

/// What of a request decides, beside its host.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: &'a Method,
    /// As it came, not decoded.
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    query: &'a str,
    /// Read when first asked for: most tables ask for none.
    pairs: OnceCell<Vec<(Cow<'a, str>, Cow<'a, str>)>>,
}

/// The first condition that a request does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    Path,
    Method,
    Header(HeaderName),
    Query(String),
}

impl<'a> Request<'a> {
    pub fn new(method: &'a Method, path: &'a str, query: Option<&'a str>, headers: &'a HeaderMap) -> Self {
        Self {
            method,
            path,
            headers,
            query: query.unwrap_or_default(),
            pairs: OnceCell::new(),
        }
    }

    /// Why it does not fit, if so.
    pub fn miss(&self, matches: &Match) -> Option<Miss> {
        if self.fits_path(&matches.path) {
            self.miss_but_path(matches)
        } else {
            Some(Miss::Path)
        }
    }

    pub(super) fn fits_path(&self, path: &PathMatch) -> bool {
        match path {
            PathMatch::Exact(path) => self.path == path,
            PathMatch::Prefix(prefix) if prefix == "/" => true,
            PathMatch::Prefix(prefix) => {
                let rest = self.path.strip_prefix(prefix.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            PathMatch::Regex(expression) => expression.is_match(self.path),
        }
    }

    pub(super) fn miss_but_path(&self, matches: &Match) -> Option<Miss> {
        if matches
            .method
            .as_ref()
            .is_some_and(|method| method != self.method)
        {
            return Some(Miss::Method);
        }
        for header in &matches.headers {
            let mut values = self.headers.get_all(&header.name).iter();
            if !values.any(|value| value.to_str().is_ok_and(|text| fits(&header.value, text))) {
                return Some(Miss::Header(header.name.clone()));
            }
        }
        for parameter in &matches.query {
            // Given twice, the first counts, as the specification recommends.
            let given = self.pairs().iter().find(|(name, _)| *name == parameter.name);
            if !given.is_some_and(|(_, value)| fits(&parameter.value, value)) {
                return Some(Miss::Query(parameter.name.clone()));
            }
        }
        None
    }

    fn pairs(&self) -> &[(Cow<'a, str>, Cow<'a, str>)] {
        self.pairs
            .get_or_init(|| form_urlencoded::parse(self.query.as_bytes()).collect())
    }
}

fn fits(wanted: &ValueMatch, value: &str) -> bool {
    match wanted {
        ValueMatch::Exact(text) => text == value,
        ValueMatch::Regex(expression) => expression.is_match(value),
    }
}
