//! Objects as rows: what `kubectl get` shows.

use std::sync::Arc;

use serde_json::{Value, json};

use super::metadata;
use crate::chance::Clock;
use crate::registry::{Nature, ResourceDef};
use crate::rest::call::Call;
use crate::status::ApiError;

/// What a row carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// A table that is being filled.
pub(crate) struct Table {
    def: Arc<ResourceDef>,
    include: Include,
    clock: Clock,
    rows: Vec<Value>,
    headings_sent: bool,
}

impl Table {
    /// An empty table of the call's kind.
    pub(crate) fn new(call: &Call<'_>) -> Result<Self, ApiError> {
        let include = match call.query.get("includeObject").unwrap_or("") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::Nothing,
            "Object" => Include::Object,
            other => {
                return Err(ApiError::bad_request(format!(
                    "unrecognized includeObject value: {other:?}; it can be None, Metadata or Object"
                )));
            }
        };
        Ok(Self {
            def: Arc::clone(&call.def),
            include,
            clock: call.kernel.clock,
            rows: Vec::new(),
            headings_sent: false,
        })
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, object: &Value) {
        let row = self.row(object);
        self.rows.push(row);
    }

    fn row(&self, object: &Value) -> Value {
        // Watches last: ages are those of the moment when a row is made.
        let now = self.clock.unix();
        let cells = match &self.def.nature {
            Nature::BuiltIn { .. } => {
                fairway_kernel_table::row(&self.def.group, &self.def.resource, object, now)
            }
            Nature::Custom(custom) => custom.columns.row(object, now, |column, object| {
                let at = custom
                    .columns
                    .columns()
                    .iter()
                    .position(|c| std::ptr::eq(c, column))?;
                custom.paths.get(at - 1)?.as_ref()?.first(object)
            }),
        };
        let mut row = json!({ "cells": cells });
        match self.include {
            Include::Nothing => {}
            Include::Metadata => row["object"] = metadata(object),
            Include::Object => row["object"] = object.clone(),
        }
        row
    }

    fn headings(&self) -> Value {
        match &self.def.nature {
            Nature::BuiltIn { .. } => {
                fairway_kernel_table::columns(&self.def.group, &self.def.version, &self.def.resource)
                    .iter()
                    .map(|c| {
                        json!({
                            "name": c.name, "type": c.kind, "format": c.format,
                            "description": c.description, "priority": c.priority,
                        })
                    })
                    .collect()
            }
            Nature::Custom(custom) => custom
                .columns
                .columns()
                .iter()
                .map(|c| {
                    json!({
                        "name": c.name, "type": c.kind, "format": c.format,
                        "description": c.description, "priority": c.priority,
                    })
                })
                .collect(),
        }
    }

    /// The table, with the list's metadata.
    pub(crate) fn finish(self, meta: &Value) -> Value {
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
            "columnDefinitions": self.headings(), "rows": self.rows,
        })
    }

    /// One row as the object of a watch event; the headings come with the first.
    pub(crate) fn event(&mut self, object: &Value) -> Value {
        let headings = if self.headings_sent {
            Value::Null
        } else {
            self.headings()
        };
        self.headings_sent = true;
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or("");
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
            "columnDefinitions": headings, "rows": [self.row(object)],
        })
    }
}
