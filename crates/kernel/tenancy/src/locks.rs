//! Who brings which resource into a workspace: bindings and CustomResourceDefinitions, first come first served.
//!
//! The answer stands in an annotation of the workspace's LogicalCluster, so that two who come at the same moment meet
//! there: the one whose write is refused as a conflict looks again and finds the other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who holds a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// An APIBinding.
    Binding(String),
    /// A CustomResourceDefinition of the workspace.
    Definition,
}

/// The entry in the annotation; the names of its fields are kcp's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    definition: bool,
    /// Until when a definition that does not exist yet is waited for.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    expiry: Option<String>,
}

impl Entry {
    fn holder(&self) -> Holder {
        if self.definition {
            Holder::Definition
        } else {
            Holder::Binding(self.name.clone())
        }
    }
}

/// All entries of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locks(BTreeMap<String, Entry>);

/// `<resource>.<group>`, or only the resource in the core group.
fn key(group: &str, resource: &str) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

impl Locks {
    /// Reads the annotation. What cannot be read counts as empty; [`Locks::tidy`] fills it again from what exists.
    pub fn parse(annotation: Option<&str>) -> Self {
        Self(
            annotation
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
        )
    }

    /// As the annotation holds it.
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_else(|_| "{}".to_owned())
    }

    /// Who holds a resource.
    pub fn holder(&self, group: &str, resource: &str) -> Option<Holder> {
        self.0.get(&key(group, resource)).map(Entry::holder)
    }

    /// Takes a resource for a binding. The one who has it already is told.
    pub fn take(&mut self, binding: &str, group: &str, resource: &str) -> Result<(), Holder> {
        let entry = Entry {
            name: binding.to_owned(),
            ..Entry::default()
        };
        self.put(group, resource, entry)
    }

    /// Takes a resource for a definition that is about to be created. It is kept until `expiry`, and from then on as long
    /// as the definition exists.
    pub fn take_for_definition(&mut self, group: &str, resource: &str, expiry: &str) -> Result<(), Holder> {
        let entry = Entry {
            definition: true,
            expiry: Some(expiry.to_owned()),
            ..Entry::default()
        };
        self.put(group, resource, entry)
    }

    fn put(&mut self, group: &str, resource: &str, entry: Entry) -> Result<(), Holder> {
        let key = key(group, resource);
        match self.0.get(&key) {
            Some(held) if held.holder() != entry.holder() => Err(held.holder()),
            _ => {
                self.0.insert(key, entry);
                Ok(())
            }
        }
    }

    /// Drops what nobody holds any more, and notes definitions that came without asking. Both lists are those that exist;
    /// times are RFC 3339 in UTC, which sort as texts.
    pub fn tidy<'a>(
        &mut self,
        bindings: impl IntoIterator<Item = &'a str>,
        definitions: impl IntoIterator<Item = (&'a str, &'a str)>,
        now: &str,
    ) {
        let bindings: Vec<&str> = bindings.into_iter().collect();
        let definitions: Vec<String> = definitions
            .into_iter()
            .map(|(group, resource)| key(group, resource))
            .collect();
        self.0.retain(|key, entry| {
            if !entry.definition {
                return bindings.contains(&entry.name.as_str());
            }
            if definitions.contains(key) {
                entry.expiry = None;
                return true;
            }
            entry.expiry.as_deref().is_some_and(|expiry| expiry > now)
        });
        for key in definitions {
            self.0.entry(key).or_insert(Entry {
                definition: true,
                ..Entry::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() {
        let mut locks = Locks::parse(Some("{}"));
        assert_eq!(locks.take("a", "x.io", "things"), Ok(()));
        assert_eq!(locks.take("a", "x.io", "things"), Ok(()), "again");
        assert_eq!(
            locks.take("b", "x.io", "things"),
            Err(Holder::Binding("a".to_owned()))
        );
        assert_eq!(locks.take("b", "y.io", "things"), Ok(()), "another group");
        assert_eq!(
            locks.take_for_definition("x.io", "things", "t2"),
            Err(Holder::Binding("a".to_owned()))
        );
        assert_eq!(locks.take_for_definition("", "widgets", "t2"), Ok(()));
        assert_eq!(locks.take("a", "", "widgets"), Err(Holder::Definition));
        assert_eq!(
            locks.to_annotation(),
            r#"{"things.x.io":{"n":"a"},"things.y.io":{"n":"b"},"widgets":{"c":true,"e":"t2"}}"#
        );
        assert_eq!(Locks::parse(Some(&locks.to_annotation())), locks);
    }

    #[test]
    fn what_nobody_holds_is_dropped() {
        let text = r#"{"a.x":{"n":"gone"},"b.x":{"n":"here"},"c.x":{"c":true},"d.x":{"c":true,"e":"t5"},"e.x":{"c":true,"e":"t1"},"f.x":{"c":true,"e":"t1"}}"#;
        let mut locks = Locks::parse(Some(text));
        locks.tidy(["here"], [("x", "f"), ("x", "new")], "t3");
        assert_eq!(
            locks.to_annotation(),
            r#"{"b.x":{"n":"here"},"d.x":{"c":true,"e":"t5"},"f.x":{"c":true},"new.x":{"c":true}}"#
        );
        for broken in [None, Some(""), Some("rubbish"), Some("[1]"), Some("{\"a\":1}")] {
            assert_eq!(Locks::parse(broken), Locks::default());
        }
    }
}
