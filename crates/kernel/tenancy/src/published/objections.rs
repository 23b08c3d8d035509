//! What is wrong with a PublishedResource, as far as it can be known before there is any object.

use serde_json::Value;

use super::{Origin, PublishedResource};
use crate::mutation::Mutator;
use crate::related;
use crate::template;

/// What makes a publication unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// In one word.
    pub reason: &'static str,
    /// In a sentence that names the field.
    pub message: String,
}

impl PublishedResource {
    /// The first thing that speaks against it.
    pub fn objection(&self) -> Option<Objection> {
        let wrong = |reason, message: String| Some(Objection { reason, message });
        for (field, text) in [("name", &self.naming.name), ("namespace", &self.naming.namespace)] {
            if let Err(error) = template::check(text) {
                return wrong("InvalidNaming", format!("spec.naming.{field}: {error}"));
            }
        }
        if let Err(error) = Mutator::compile(&self.mutation) {
            return wrong("InvalidMutation", format!("spec.{error}"));
        }
        let mut seen = Vec::new();
        for (at, related) in self.related.iter().enumerate() {
            let here = format!("spec.related[{at}]");
            if seen.contains(&&related.identifier) {
                let message = format!("{here}.identifier: {:?} is used twice", related.identifier);
                return wrong("InvalidRelated", message);
            }
            seen.push(&related.identifier);
            if related.identifier.is_empty() || !related::is_identifier(&related.identifier) {
                let message = format!(
                    "{here}.identifier: {:?} is no identifier: use letters, digits and '-', at most 50",
                    related.identifier
                );
                return wrong("InvalidRelated", message);
            }
            if related.at_origin().resource.is_empty() {
                return wrong(
                    "InvalidRelated",
                    format!("{here}: set kind, or group, version and resource"),
                );
            }
            if let Err(error) = related::check(&related.object) {
                return wrong("InvalidRelated", format!("{here}.object: {error}"));
            }
            if let Err(error) = Mutator::compile(&related.mutation) {
                return wrong("InvalidRelated", format!("{here}.{error}"));
            }
        }
        if !self.with_path && self.uses_path() {
            let message = "a template uses .ClusterPath: set spec.enableWorkspacePaths to true, so that consumers are asked \
                           for the path of their workspace";
            return wrong("WorkspacePathUnknown", message.to_owned());
        }
        None
    }

    fn uses_path(&self) -> bool {
        let uses = |text: &str| text.contains(".ClusterPath");
        let texts = [&self.naming.name, &self.naming.namespace];
        texts.into_iter().any(|it| uses(it)) || self.related.iter().any(|it| uses(&it.object.to_string()))
    }

    /// Whether namespaces of consumers have to be seen.
    pub fn filters_namespaces(&self) -> bool {
        self.filter.namespace.is_some()
    }

    /// Whether related objects come from this side.
    pub fn has_related(&self, origin: Origin) -> bool {
        self.related.iter().any(|it| it.origin == origin)
    }

    /// What must not change while objects are being synchronised: another text asks for a new start.
    pub fn fingerprint(object: &Value) -> String {
        object.get("spec").map(ToString::to_string).unwrap_or_default()
    }
}
