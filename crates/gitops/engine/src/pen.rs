//! Writes an Application: only what has changed, and nothing if nothing has.

use fairway_controller::commit::difference;
use fairway_controller::{Failure, Requests};
use serde_json::{Map, Value, json};

use crate::application::Application;
use crate::operation::{Record, Remember, Seen};

/// The Application as it was last read or written.
pub(crate) struct Pen {
    requests: Requests,
    path: String,
    object: Value,
    application: Application,
    /// The version that the last write made.
    pub(crate) written: Option<String>,
}

impl Pen {
    pub(crate) fn new(requests: Requests, application: &Application) -> Self {
        Self {
            requests,
            path: application.path(),
            object: application.object.clone(),
            application: application.clone(),
            written: None,
        }
    }

    /// The Application as it was last seen.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// The status as it was last seen.
    pub(crate) fn status(&self) -> &Value {
        &self.object["status"]
    }

    /// The version that was last seen: a patch that carries it fails if somebody was quicker.
    pub(crate) fn version(&self) -> Value {
        self.object["metadata"]["resourceVersion"].clone()
    }

    pub(crate) fn has_operation(&self) -> bool {
        self.object
            .get("operation")
            .is_some_and(|operation| !operation.is_null())
    }

    /// Writes a status and other changes as one merge patch; whether there was anything to write. What is gone cannot be
    /// written, which is no failure.
    pub(crate) async fn write(
        &mut self,
        status: &Value,
        mut more: Map<String, Value>,
    ) -> Result<bool, Failure> {
        if let Some(change) = difference(self.status(), status) {
            more.insert("status".to_owned(), change);
        }
        if more.is_empty() {
            return Ok(false);
        }
        let expected = more.get("status").cloned();
        let Some(mut written) = self.requests.merge(&self.path, &Value::Object(more)).await? else {
            return Ok(true);
        };
        // Argo CD's definition has no status subresource. Where there is one, a status has to be written there.
        if let Some(change) = expected
            && difference(&written["status"], status).is_some()
            && written["status"] == self.object["status"]
        {
            let patch = json!({"status": change});
            match self
                .requests
                .merge(&format!("{}/status", self.path), &patch)
                .await?
            {
                Some(again) => written = again,
                None => return Ok(true),
            }
        }
        self.written = written["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        self.object = written;
        Ok(true)
    }

    fn is_deleting(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_null()
    }

    fn seen(&self) -> Seen {
        let phase = &self.status()["operationState"]["phase"];
        match () {
            () if self.is_deleting() != self.application.is_deleting() => Seen::Gone,
            () if phase == "Terminating" => Seen::Terminating,
            () => Seen::Unchanged,
        }
    }
}

impl Remember for Pen {
    async fn remember(&mut self, record: &Record) -> Result<Seen, Failure> {
        let mut status = match self.status() {
            Value::Object(fields) => fields.clone(),
            _ => Map::new(),
        };
        status.insert("operationState".to_owned(), record.write(&self.application));
        let mut more = Map::new();
        if !self.has_operation() {
            // Whoever looks sees that somebody is at work, as with Argo CD.
            more.insert("operation".to_owned(), record.operation.clone());
        }
        self.write(&Value::Object(status), more).await?;
        Ok(self.seen())
    }
}
