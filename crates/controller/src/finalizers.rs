//! Finalizers: whoever has something to do before an object may go holds one.

use kube::api::ObjectMeta;
use serde_json::{Value, json};

/// Whether the object has the finalizer.
pub fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers
        .as_ref()
        .is_some_and(|all| all.iter().any(|f| f == finalizer))
}

/// Whether the object is being deleted.
pub fn is_deleting(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// A merge patch that adds the finalizer; `None` if it is there. The patch fails if the object has changed meanwhile,
/// since a list in a merge patch replaces what others have written.
pub fn adding(meta: &ObjectMeta, finalizer: &str) -> Option<Value> {
    if has(meta, finalizer) {
        return None;
    }
    let mut all = meta.finalizers.clone().unwrap_or_default();
    all.push(finalizer.to_owned());
    Some(patch(meta, &all))
}

/// A merge patch that removes the finalizer; `None` if it is not there. Fails like [`adding`]'s on a changed object.
pub fn removing(meta: &ObjectMeta, finalizer: &str) -> Option<Value> {
    if !has(meta, finalizer) {
        return None;
    }
    let all: Vec<String> = meta
        .finalizers
        .iter()
        .flatten()
        .filter(|f| *f != finalizer)
        .cloned()
        .collect();
    Some(patch(meta, &all))
}

fn patch(meta: &ObjectMeta, finalizers: &[String]) -> Value {
    json!({"metadata": {
        "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers,
    }})
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::{adding, removing};

    #[test]
    fn only_what_changes_is_patched() {
        let meta = ObjectMeta {
            finalizers: Some(vec!["a".to_owned(), "b".to_owned()]),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        };
        assert!(adding(&meta, "a").is_none());
        assert!(removing(&meta, "c").is_none());
        let added = adding(&meta, "c").unwrap();
        assert_eq!(
            added["metadata"]["finalizers"],
            serde_json::json!(["a", "b", "c"])
        );
        let removed = removing(&meta, "a").unwrap();
        assert_eq!(removed["metadata"]["finalizers"], serde_json::json!(["b"]));
        assert_eq!(removed["metadata"]["resourceVersion"], "7");
    }
}
