//! A Voyage, read from its object, and written back.

use fairway_api::fairway::VOYAGE;
use fairway_controller::{Failure, Requests, WorkspaceId};
use fairway_portal_template::run::{Run, Wish};
use fairway_portal_template::template::Template;
use serde_json::{Map, Value, json};

use crate::ports::Person;
use crate::who::collection;

/// A Voyage.
#[derive(Clone, Debug)]
pub(crate) struct Voyage {
    pub(crate) workspace: WorkspaceId,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// `template:default/virtual-machine`.
    pub(crate) template: String,
    pub(crate) values: Map<String, Value>,
    pub(crate) secret: Option<String>,
    pub(crate) person: Person,
    pub(crate) decommissioned_by: Option<Person>,
    pub(crate) wish: Wish,
    /// As it was written down.
    pub(crate) run: Run,
    /// The template as it was when the run began, and beside it whatever else the status holds.
    pub(crate) frozen: Option<Value>,
    pub(crate) notices: Vec<Value>,
    pub(crate) reservations: Vec<Value>,
    /// The object, for writing.
    object: Value,
}

impl Voyage {
    pub(crate) fn read(workspace: &WorkspaceId, object: Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let flag = |pointer: &str| object.pointer(pointer) == Some(&Value::Bool(true));
        let person = |pointer: &str| {
            let value = object.pointer(pointer)?;
            serde_json::from_value::<Person>(value.clone()).ok()
        };
        let items = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let attempt = object
            .pointer("/spec/attempt")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let status = object.get("status").cloned().unwrap_or_default();
        Self {
            workspace: workspace.clone(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            template: text("/spec/template"),
            values: object
                .pointer("/spec/values")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            secret: Some(text("/spec/secretRef/name")).filter(|name| !name.is_empty()),
            person: person("/spec/requestedBy").unwrap_or_default(),
            decommissioned_by: person("/spec/decommissionedBy"),
            wish: Wish {
                cancel: flag("/spec/cancel"),
                keep: flag("/spec/keepOnFailure"),
                decommission: flag("/spec/decommission"),
                attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
            },
            // What cannot be read was never begun.
            run: serde_json::from_value(status.clone()).unwrap_or_default(),
            frozen: status.get("template").cloned(),
            notices: items("/status/notices"),
            reservations: items("/status/reservations"),
            object,
        }
    }

    /// Where the object is.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", collection(VOYAGE, &self.namespace), self.name)
    }

    /// The template that the run has, read again.
    pub(crate) fn template(&self) -> Option<Template> {
        Template::read(self.frozen.as_ref()?).ok()
    }

    /// Writes down where the run is. A conflict is an error: somebody has written in between, and must be heard first.
    pub(crate) async fn write(&mut self, requests: &Requests) -> Result<(), Failure> {
        let mut status = serde_json::to_value(&self.run).unwrap_or_default();
        status["observedGeneration"] = self
            .object
            .pointer("/metadata/generation")
            .cloned()
            .unwrap_or(json!(0));
        if let Some(frozen) = &self.frozen {
            status["template"] = frozen.clone();
        }
        if !self.notices.is_empty() {
            status["notices"] = Value::Array(self.notices.clone());
        }
        if !self.reservations.is_empty() {
            status["reservations"] = Value::Array(self.reservations.clone());
        }
        let written = requests
            .replace_status(&self.path(), &self.object, &status)
            .await?;
        if let Some(written) = written {
            // People's wishes come with every answer, so that stopping does not wait for a watch.
            let seen = Self::read(&self.workspace, written.clone());
            self.wish = seen.wish;
            self.decommissioned_by = seen.decommissioned_by;
            self.object = written;
        }
        Ok(())
    }

    /// Who takes back what was made: who asked for it, else who made it.
    pub(crate) fn undoer(&self) -> &Person {
        match (&self.decommissioned_by, self.wish.decommission) {
            (Some(person), true) => person,
            _ => &self.person,
        }
    }
}
