//! NetworkAttachmentDefinitions: networks beside the one that everything has.

use fairway_admission::{Admission, Impact, Operation, Refusal, Request, Verdict};
use serde_json::Value;

use super::{name, same, text};
use crate::{attachment, impact};

/// Multus' own webhook, which installations may have.
const VALIDATOR: &str = "net-attach-def-admission-controller-validating-config.k8s.io";

/// The kind.
pub(super) struct Attachments;

impl Admission for Attachments {
    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        let config = text(object, "/spec/config");
        // Without one, a file of the host says what the network is.
        let is_new = request.old.is_none_or(|old| !same(&old["spec"], &object["spec"]));
        if request.operation == Operation::Delete || !is_new {
            return Ok(Vec::new());
        }
        if config.is_empty() {
            return Ok(vec![
                "spec.config: without it machines cannot be connected: there are no files of CNI here"
                    .to_owned(),
            ]);
        }
        let read = attachment::read(name(object), config)
            .map_err(|error| Refusal::failed(VALIDATOR, error.to_string()))?;
        let mut warnings: Vec<String> = read
            .remarks
            .iter()
            .map(|it| format!("spec.config: {it}"))
            .collect();
        warnings.extend(read.unserved.map(|why| format!("spec.config: {why}")));
        Ok(warnings)
    }

    fn impact(&self, request: &Request<'_>, object: &Value) -> Option<Impact> {
        let is_changed = request.old.is_some_and(|old| {
            request.operation == Operation::Delete || !same(&old["spec"], &object["spec"])
        });
        let (class, reason) = match is_changed {
            true => (
                impact::Impact::Live,
                "machines on the network are connected anew".to_owned(),
            ),
            false => (impact::Impact::None, String::new()),
        };
        Some(Impact {
            class: class.to_string(),
            reason,
        })
    }
}
