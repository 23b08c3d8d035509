//! References between entities: `[kind:][namespace/]name`.

use std::fmt;

use serde_json::Value;

use crate::{DEFAULT_NAMESPACE, InputError, lower};

/// The longest text that is read as a reference: three names of 63 characters, and some patience.
const MAX_LENGTH: usize = 1024;

/// A whole reference. Its text is the canonical one, in lower case, by which entities are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityRef {
    /// `Component`, ...
    pub kind: String,
    /// Upstream's namespace, which is not one of Kubernetes.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl EntityRef {
    /// Reads a reference. `kind`: what is meant if it names none; `namespace`: likewise.
    pub fn parse(text: &str, kind: Option<&str>, namespace: Option<&str>) -> Result<Self, InputError> {
        if text.is_empty() {
            return Err(InputError("Entity reference must not be empty".to_owned()));
        }
        if text.len() > MAX_LENGTH {
            let why = format!(
                "Entity reference of {} bytes is longer than {MAX_LENGTH}",
                text.len()
            );
            return Err(InputError(why));
        }
        // A colon after the first slash is part of the name.
        let slash = text.find('/');
        let colon = text
            .find(':')
            .filter(|colon| slash.is_none_or(|slash| *colon < slash));
        let own_kind = colon.map(|colon| &text[..colon]);
        let after_kind = colon.map_or(0, |colon| colon + 1);
        let own_namespace = slash.map(|slash| &text[after_kind..slash]);
        let name = &text[slash.map_or(after_kind, |slash| slash + 1)..];
        if own_kind == Some("") || own_namespace == Some("") || name.is_empty() {
            return Err(InputError(format!(
                "Entity reference \"{text}\" was not on the form [<kind>:][<namespace>/]<name>"
            )));
        }
        let Some(kind) = own_kind.or(kind) else {
            return Err(InputError(format!(
                "Entity reference {} had missing or empty kind (e.g. did not start with \"component:\" or similar)",
                Value::from(text)
            )));
        };
        Ok(Self {
            kind: kind.to_owned(),
            namespace: own_namespace
                .or(namespace)
                .unwrap_or(DEFAULT_NAMESPACE)
                .to_owned(),
            name: name.to_owned(),
        })
    }

    /// The reference of an entity; none if it has no kind or name.
    pub fn of(entity: &Value) -> Option<Self> {
        let text = |pointer: &str| entity.pointer(pointer).and_then(Value::as_str);
        Some(Self {
            kind: text("/kind")?.to_owned(),
            namespace: text("/metadata/namespace")
                .unwrap_or(DEFAULT_NAMESPACE)
                .to_owned(),
            name: text("/metadata/name")?.to_owned(),
        })
    }
}

impl fmt::Display for EntityRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}/{}",
            lower(&self.kind),
            lower(&self.namespace),
            lower(&self.name)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_have_defaults() {
        let refused = "was not on the form";
        for (text, kind, namespace, expected) in [
            ("component:default/web", None, None, Ok("component:default/web")),
            ("Component:Team/Web", None, None, Ok("component:team/web")),
            ("web", Some("Component"), None, Ok("component:default/web")),
            ("web", Some("Group"), Some("team"), Ok("group:team/web")),
            ("team/web", Some("API"), Some("other"), Ok("api:team/web")),
            ("user:jo", Some("Group"), None, Ok("user:default/jo")),
            // The slash comes first: the rest is the name, colon and all.
            ("team/a:b", Some("API"), None, Ok("api:team/a:b")),
            ("web", None, None, Err("had missing or empty kind")),
            ("", Some("API"), None, Err("must not be empty")),
            (":web", Some("API"), None, Err(refused)),
            ("/web", Some("API"), None, Err(refused)),
            ("api:", Some("API"), None, Err(refused)),
            ("api:team/", None, None, Err(refused)),
        ] {
            let parsed = EntityRef::parse(text, kind, namespace);
            match (parsed, expected) {
                (Ok(parsed), Ok(expected)) => assert_eq!(parsed.to_string(), expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.0.contains(part), "{text}: {error}"),
                (parsed, _) => panic!("{text}: {parsed:?}"),
            }
        }
    }

    proptest! {
        /// Whatever is read can be written and read again.
        #[test]
        fn canonical_references_stay(text in "\\PC{0,80}") {
            if let Ok(parsed) = EntityRef::parse(&text, Some("component"), None) {
                let once = parsed.to_string();
                let again = EntityRef::parse(&once, None, None);
                // A kind with a slash would be another reference; no entity has one.
                if !parsed.kind.contains('/') {
                    prop_assert_eq!(again.map(|r| r.to_string()), Ok(once));
                }
            }
        }
    }
}
