//! Which resources of an Application are meant: `GROUP:KIND:NAME`, `GROUP:KIND:NAMESPACE/NAME`, `!` in front for all but.

use fairway_text_glob::matches;
use serde_json::{Value, json};

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for any.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Whether these are left out.
    pub exclude: bool,
}

impl Selected {
    /// Reads a choice.
    ///
    /// # Errors
    /// It is not in the form above.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (exclude, words) = match text.strip_prefix('!') {
            Some(words) => (true, words),
            None => (false, text),
        };
        let [group, kind, name] = words.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!(
                "resource should have GROUP:KIND:NAME, but instead got: {words}"
            ));
        };
        let (namespace, name) = match name.split('/').collect::<Vec<_>>()[..] {
            [name] => ("", name),
            [namespace, name] => (namespace, name),
            _ => {
                return Err(format!(
                    "resource with namespace should have GROUP:KIND:NAMESPACE/NAME, but instead got: {words}"
                ));
            }
        };
        Ok(Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            exclude,
        })
    }

    fn is_about(&self, group: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let fits = |pattern: &str, text: &str| pattern == "*" || matches(pattern, text);
        fits(&self.group, group)
            && fits(&self.kind, kind)
            && fits(&self.name, name)
            && (self.namespace.is_empty() || fits(&self.namespace, namespace))
    }
}

/// Whether a resource is meant by these choices.
pub fn includes(selected: &[Selected], group: &str, kind: &str, namespace: &str, name: &str) -> bool {
    let is_about = |it: &&Selected| it.is_about(group, kind, namespace, name);
    let mut wanted = selected.iter().filter(|it| !it.exclude).peekable();
    let is_in = wanted.peek().is_none() || wanted.any(|it| is_about(&it));
    is_in && !selected.iter().filter(|it| it.exclude).any(|it| is_about(&it))
}

/// The resources of an Application that are meant, as an operation names them.
pub fn resources(application: &Value, selected: &[Selected]) -> Vec<Value> {
    let all = crate::field::list(application, "/status/resources").iter();
    let text = |it: &Value, field: &str| crate::field::text(it, field).to_owned();
    let mut found = Vec::new();
    for it in all {
        let [group, kind, namespace, name] =
            ["/group", "/kind", "/namespace", "/name"].map(|field| text(it, field));
        if selected.is_empty() || !includes(selected, &group, &kind, &namespace, &name) {
            continue;
        }
        let mut resource = json!({"kind": kind, "name": name});
        for (field, value) in [("group", group), ("namespace", namespace)] {
            if !value.is_empty() {
                resource[field] = value.into();
            }
        }
        found.push(resource);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        for (words, expected) in [
            (&["apps:Deployment:front"][..], [true, false, false]),
            (&[":Service:front"], [false, true, false]),
            (&["*:*:front"], [true, true, false]),
            (&["*:*:other/front"], [false, false, false]),
            (&["!apps:Deployment:front"], [false, true, true]),
            (&["*:*:*", "!*:Service:*"], [true, false, true]),
            (
                &["apps:Deployment:front", ":ConfigMap:web/ex*"],
                [true, false, true],
            ),
        ] {
            let selected: Vec<Selected> = words.iter().map(|it| Selected::parse(it).unwrap()).collect();
            let meant = [
                ("apps", "Deployment", "front"),
                ("", "Service", "front"),
                ("", "ConfigMap", "extra"),
            ]
            .map(|(group, kind, name)| includes(&selected, group, kind, "web", name));
            assert_eq!(meant, expected, "{words:?}");
        }
        assert_eq!(
            Selected::parse("a:b").unwrap_err(),
            "resource should have GROUP:KIND:NAME, but instead got: a:b"
        );
        assert_eq!(
            Selected::parse("a:b:c/d/e").unwrap_err(),
            "resource with namespace should have GROUP:KIND:NAMESPACE/NAME, but instead got: a:b:c/d/e"
        );
    }

    #[test]
    fn an_operation_names_what_is_meant() {
        let application = json!({"status": {"resources": [
            {"kind": "Service", "namespace": "web", "name": "front"},
            {"group": "apps", "kind": "Deployment", "namespace": "web", "name": "front"},
        ]}});
        let selected = [Selected::parse("apps:*:*").unwrap()];
        assert_eq!(
            resources(&application, &selected),
            [json!({"kind": "Deployment", "name": "front", "group": "apps", "namespace": "web"})]
        );
        assert!(resources(&application, &[]).is_empty());
    }
}
