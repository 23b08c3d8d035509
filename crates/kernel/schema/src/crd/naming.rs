//! Names are given to who asks first: within a group each resource name and each kind belongs to one definition.

use std::collections::HashMap;

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

/// The names that definitions of one group have been given, each with how many have it.
#[derive(Clone, Debug, Default)]
pub struct Used {
    resources: HashMap<String, usize>,
    kinds: HashMap<String, usize>,
}

impl Used {
    /// A definition has these names.
    pub fn add(&mut self, names: &Names) {
        for name in resource_names(names) {
            *self.resources.entry(name.clone()).or_default() += 1;
        }
        for name in [&names.kind, &names.list_kind] {
            *self.kinds.entry(name.clone()).or_default() += 1;
        }
    }

    /// A definition does not have these names any more.
    pub fn remove(&mut self, names: &Names) {
        resource_names(names).for_each(|name| release(&mut self.resources, name));
        release(&mut self.kinds, &names.kind);
        release(&mut self.kinds, &names.list_kind);
    }

    /// Whether nobody has a name.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.kinds.is_empty()
    }
}

fn resource_names(names: &Names) -> impl Iterator<Item = &String> {
    [&names.plural, &names.singular]
        .into_iter()
        .chain(&names.short_names)
}

fn release(used: &mut HashMap<String, usize>, name: &str) {
    if let Some(count) = used.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            used.remove(name);
        }
    }
}

/// `status.acceptedNames` of a definition.
pub fn accepted(crd: &Value) -> Names {
    Names::parse(crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null))
}

/// Decides on the names of `crd`, given all definitions (also itself).
pub fn decide<'a>(crd: &Value, all: impl IntoIterator<Item = &'a Value>) -> Decision {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    let mut used = Used::default();
    for other in all {
        if other.get("spec").map_or("", |s| text(s, "group")) == group {
            used.add(&accepted(other));
        }
    }
    decide_among(crd, &used)
}

/// Decides on the names of `crd`, given those that the others of its group have.
pub fn decide_among(crd: &Value, others: &Used) -> Decision {
    let accepted = accepted(crd);
    let mut used = Used::default();
    used.add(&accepted);
    let resources = [&others.resources, &used.resources];
    let kinds = [&others.kinds, &used.kinds];
    let requested = Names::parse(crd.pointer("/spec/names").unwrap_or(&Value::Null));
    let mut conflict: Option<(&str, String)> = None;
    let taken = |name: &str, ours: &str, used: &[&HashMap<String, usize>; 2]| -> Option<String> {
        let in_use = used.iter().any(|names| names.contains_key(name));
        (name != ours && in_use).then(|| format!("{name:?} is already in use"))
    };
    let mut names = accepted.clone();
    {
        let mut settle =
            |slot: &mut String, wanted: &str, reason: &'static str| match taken(wanted, slot, &resources) {
                Some(message) => conflict = Some((reason, message)),
                None => wanted.clone_into(slot),
            };
        settle(&mut names.plural, &requested.plural, "PluralConflict");
        settle(&mut names.singular, &requested.singular, "SingularConflict");
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
