//! Writers whose every step is known in advance, so that after a kill it is known what must be there.
//!
//! Step `n` of writer `w` creates the ConfigMap `w<w>-<n>` and then sets the counter of `w<w>` to `n`. Every object
//! carries text that follows from its step, so that half of one cannot pass for a whole.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

/// What one writer knows of its own writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    /// Steps whose creation was acknowledged, with the version that was acknowledged.
    pub(crate) created: BTreeMap<u64, u64>,
    /// Steps whose counter was acknowledged, with the version that was acknowledged.
    pub(crate) counted: BTreeMap<u64, u64>,
    /// The first step that has not been tried.
    pub(crate) next: u64,
}

/// The text of a step: long enough to span pages, different in every step.
pub(crate) fn filler(writer: usize, step: u64) -> String {
    format!("{writer}/{step};").repeat(60 + usize::try_from(step % 300).unwrap_or(0))
}

/// Version of an object as a number.
pub(crate) fn version(object: &ConfigMap) -> u64 {
    object
        .metadata
        .resource_version
        .as_deref()
        .unwrap()
        .parse()
        .unwrap()
}

fn data(writer: usize, step: u64) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("n".to_owned(), step.to_string()),
        ("text".to_owned(), filler(writer, step)),
    ])
}

/// Checks that an object is whole and returns its step.
pub(crate) fn step_of(object: &ConfigMap, writer: usize) -> u64 {
    let data = object.data.as_ref().unwrap();
    let step: u64 = data["n"].parse().unwrap();
    assert_eq!(
        data["text"],
        filler(writer, step),
        "{:?} is torn",
        object.metadata.name
    );
    step
}

impl Writer {
    /// Writes until the server is gone, and counts what is acknowledged.
    pub(crate) async fn run(&mut self, api: &Api<ConfigMap>, writer: usize, acknowledged: &AtomicU64) {
        loop {
            let step = self.next;
            self.next += 1;
            let mut object = ConfigMap {
                data: Some(data(writer, step)),
                ..ConfigMap::default()
            };
            object.metadata.name = Some(format!("w{writer}-{step}"));
            match api.create(&PostParams::default(), &object).await {
                Ok(made) => self.created.insert(step, version(&made)),
                Err(error) => return assert_gone(&error),
            };
            acknowledged.fetch_add(1, Ordering::Relaxed);
            let count = json!({"data": data(writer, step)});
            match api
                .patch(
                    &format!("w{writer}"),
                    &PatchParams::default(),
                    &Patch::Merge(&count),
                )
                .await
            {
                Ok(made) => self.counted.insert(step, version(&made)),
                Err(error) => return assert_gone(&error),
            };
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A killed server leaves broken connections, not answers.
fn assert_gone(error: &kube::Error) {
    assert!(
        !matches!(error, kube::Error::Api(_)),
        "an answer from a server that should work: {error}"
    );
}
