//! An answer, and what tests ask of it.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// What is said of a path that nobody serves.
pub(crate) const NO_PAGE: &str = "404 page not found\n";

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Method and path, for messages.
    pub(crate) request: String,
    /// HTTP code.
    pub(crate) code: u16,
    /// Headers.
    pub(crate) headers: HeaderMap,
    /// Body.
    pub(crate) body: Bytes,
}

impl Reply {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{}: {e}: {}", self.request, String::from_utf8_lossy(&self.body)))
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, of an answer that must have this code.
    #[track_caller]
    pub(crate) fn expect(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}: {}", self.request, self.text());
        self.json()
    }

    /// A refusal that must have this code and reason (none if it is empty), and these words in its message.
    #[track_caller]
    pub(crate) fn refused(&self, code: u16, reason: &str, words: &str) -> Value {
        let status = self.expect(code);
        assert_eq!(status["kind"], "Status", "{}: {status}", self.request);
        assert_eq!(status["code"], code, "{}: {status}", self.request);
        let given = status
            .get("reason")
            .map_or("", |r| r.as_str().unwrap_or("not a text"));
        assert_eq!(given, reason, "{}: {status}", self.request);
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains(words),
            "{}: {message:?} does not say {words:?}",
            self.request
        );
        status
    }

    /// Asserts the answer to a path that nobody serves: text and not a `Status`, as in Kubernetes.
    #[track_caller]
    pub(crate) fn no_page(&self) {
        assert_eq!(self.code, 404, "{}: {}", self.request, self.text());
        assert_eq!(self.text(), NO_PAGE, "{}", self.request);
        assert_eq!(
            self.header("content-type"),
            "text/plain; charset=utf-8",
            "{}",
            self.request
        );
    }

    /// A header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    /// All warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.headers
            .get_all("warning")
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect()
    }
}

/// The resourceVersion of an object or list.
#[track_caller]
pub(crate) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"]
        .as_str()
        .expect("a resourceVersion")
        .to_owned()
}

/// The names of a list's items.
#[track_caller]
pub(crate) fn names(list: &Value) -> Vec<String> {
    list["items"]
        .as_array()
        .unwrap_or_else(|| panic!("a list: {list}"))
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}
