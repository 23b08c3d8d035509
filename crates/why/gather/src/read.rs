//! Reads that remember what could not be read.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::Request;
use kube::{Client, Error};
use serde_json::Value;

/// The most objects of a list that are looked at.
const MOST: usize = 2000;

/// Reads objects as JSON.
pub(crate) struct Reader {
    pub(crate) client: Client,
    forbidden: Mutex<BTreeMap<&'static str, String>>,
    unreachable: Mutex<Option<String>>,
}

impl Reader {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            forbidden: Mutex::default(),
            unreachable: Mutex::default(),
        }
    }

    /// An object, if it is there and may be read. `what` is the plural of its kind.
    pub(crate) async fn get(&self, what: &'static str, path: &str) -> Option<Value> {
        let request = Request::get(path).body(Vec::new()).ok()?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Some(object),
            Err(error) => {
                self.note(what, &error);
                None
            }
        }
    }

    /// Objects of a kind, each with its kind written in.
    pub(crate) async fn list(&self, what: &'static str, path: &str) -> Option<Vec<Value>> {
        let mark = if path.contains('?') { '&' } else { '?' };
        let mut list = self.get(what, &format!("{path}{mark}limit={MOST}")).await?;
        let kind = list["kind"].as_str().unwrap_or_default();
        let kind = kind.strip_suffix("List").unwrap_or_default().to_owned();
        let Value::Array(mut items) = list["items"].take() else {
            return Some(Vec::new());
        };
        for item in items.iter_mut().filter(|it| it["kind"].is_null()) {
            item["kind"] = kind.as_str().into();
        }
        Some(items)
    }

    /// Objects of a namespace, or of all.
    pub(crate) async fn list_in(
        &self,
        what: &'static str,
        group: &str,
        namespace: &str,
    ) -> Option<Vec<Value>> {
        self.list(what, &collection(group, what, namespace)).await
    }

    fn note(&self, what: &'static str, error: &Error) {
        match error {
            Error::Api(status) if status.code == 403 => {
                let mut all = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
                all.insert(what, format!("forbidden: {}", status.message));
            }
            Error::Api(status) if status.code == 401 => self.lost(status.message.clone()),
            // What is not there, or not served, is not there.
            Error::Api(_) => {}
            other => self.lost(other.to_string()),
        }
    }

    fn lost(&self, why: String) {
        let mut lost = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(why);
    }

    pub(crate) fn unreadable(&self) -> BTreeMap<&'static str, String> {
        self.forbidden
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What was said when the API did not answer, if it did not.
    pub(crate) fn unreachable(&self) -> Option<String> {
        self.unreachable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Where objects of a kind are.
pub(crate) fn collection(group: &str, plural: &str, namespace: &str) -> String {
    let root = match group.contains('/') {
        true => format!("/apis/{group}"),
        false => format!("/api/{group}"),
    };
    match namespace {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    }
}

pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
