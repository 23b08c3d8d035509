//! Names are given to who asks first: within a group each resource name and each kind belongs to one definition.

use std::collections::HashSet;

use serde_json::Value;

use super::conditions::{Condition, Status};
use super::spec::Names;
use super::text;

/// What becomes of the names that a definition asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `status.acceptedNames`: the best match possible.
    pub names: Names,
    /// `NamesAccepted`.
    pub names_accepted: Condition,
    /// `Established`, which becomes true only once the API is served, see [`super::conditions::established`].
    pub established: Condition,
}

/// Decides on the names of `crd`, given all definitions (also itself).
pub fn decide<'a>(crd: &Value, all: impl IntoIterator<Item = &'a Value>) -> Decision {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    let mut resources: HashSet<String> = HashSet::new();
    let mut kinds: HashSet<String> = HashSet::new();
    for other in all {
        if other.get("spec").map_or("", |s| text(s, "group")) != group {
            continue;
        }
        let names = Names::parse(other.pointer("/status/acceptedNames").unwrap_or(&Value::Null));
        resources.extend([names.plural, names.singular]);
        resources.extend(names.short_names);
        kinds.extend([names.kind, names.list_kind]);
    }
    let requested = Names::parse(crd.pointer("/spec/names").unwrap_or(&Value::Null));
    let accepted = Names::parse(crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null));
    let mut conflict: Option<(&str, String)> = None;
    let taken = |name: &str, ours: &str, used: &HashSet<String>| -> Option<String> {
        (name != ours && used.contains(name)).then(|| format!("{name:?} is already in use"))
    };
    let mut names = accepted.clone();
    {
        let mut settle =
            |slot: &mut String, wanted: &str, used: &HashSet<String>, reason: &'static str| match taken(
                wanted, slot, used,
            ) {
                Some(message) => conflict = Some((reason, message)),
                None => wanted.clone_into(slot),
            };
        settle(&mut names.plural, &requested.plural, &resources, "PluralConflict");
        settle(
            &mut names.singular,
            &requested.singular,
            &resources,
            "SingularConflict",
        );
    }
    if requested.short_names != accepted.short_names {
        let mut messages: Vec<String> = requested
            .short_names
            .iter()
            .filter(|name| !accepted.short_names.contains(name))
            .filter_map(|name| taken(name, "", &resources))
            .collect();
        messages.dedup();
        match &*messages {
            [] => names.short_names.clone_from(&requested.short_names),
            [one] => conflict = Some(("ShortNamesConflict", one.clone())),
            many => conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
        }
    }
    let mut settle_kind =
        |slot: &mut String, wanted: &str, reason: &'static str| match taken(wanted, slot, &kinds) {
            Some(message) => conflict = Some((reason, message)),
            None => wanted.clone_into(slot),
        };
    settle_kind(&mut names.kind, &requested.kind, "KindConflict");
    settle_kind(&mut names.list_kind, &requested.list_kind, "ListKindConflict");
    names.categories = requested.categories;
    let names_accepted = match conflict {
        Some((reason, message)) => Condition::new("NamesAccepted", Status::False, reason, message),
        None => Condition::new("NamesAccepted", Status::True, "NoConflicts", "no conflicts found"),
    };
    let mut established = Condition::find(crd, "Established").unwrap_or_else(|| {
        Condition::new(
            "Established",
            Status::False,
            "NotAccepted",
            "not all names are accepted",
        )
    });
    if established.status != Status::True && names_accepted.status == Status::True {
        established = Condition::new(
            "Established",
            Status::False,
            "Installing",
            "the initial names have been accepted",
        );
    }
    Decision {
        names,
        names_accepted,
        established,
    }
}
