//! Who changed what of an object that is no longer as declared, in words.

use serde_json::Value;

use crate::diff::Difference;
use crate::key;

/// How many fields are named.
const NAMED: usize = 3;

/// What happened to an object; `live` is with its `managedFields`, none if it is gone. `manager` is the engine's own name.
pub fn describe(
    named: &key::ResourceKey,
    live: Option<&Value>,
    difference: &Difference,
    manager: &str,
) -> String {
    let what = match named.namespace.as_str() {
        "" => format!("{} {}", named.kind, named.name),
        namespace => format!("{} {namespace}/{}", named.kind, named.name),
    };
    let Some(live) = live else {
        return format!("{what} is gone; it is made again");
    };
    let fields = fields(difference);
    let shown = match fields.len() {
        0 => String::new(),
        few if few <= NAMED => format!(" ({})", fields.join(", ")),
        many => format!(" ({} and {} more)", fields[..NAMED].join(", "), many - NAMED),
    };
    match last_other(live, manager) {
        Some(who) => format!("{what} was changed by {who}{shown}; it is put right"),
        None => format!("{what} was changed{shown}; it is put right"),
    }
}

/// Whoever else wrote last.
fn last_other<'a>(live: &'a Value, manager: &str) -> Option<&'a str> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let others = entries
        .iter()
        .filter(|entry| entry["subresource"].as_str().unwrap_or_default() != "status")
        .filter(|entry| entry["manager"].as_str().is_some_and(|name| name != manager));
    let last = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    last["manager"].as_str()
}

/// The paths at which two forms of an object differ, but for what the sync itself writes.
pub fn fields(difference: &Difference) -> Vec<String> {
    let mut found = Vec::new();
    paths(&difference.live, &difference.predicted, "", &mut found);
    found.retain(|path| !path.contains("last-applied-configuration"));
    found
}

/// The paths at which two values differ.
fn paths(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one
                .keys()
                .chain(other.keys().filter(|name| !one.contains_key(*name)));
            for name in names {
                let below = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                let value =
                    |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                paths(&value(one), &value(other), &below, found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                paths(one, other, &format!("{at}[{index}]"), found);
            }
        }
        (one, other) if one != other => found.push(at.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_who_did_what() {
        let named = key::ResourceKey::new("", "ConfigMap", "shop", "web");
        let by = |who: &str, time: &str| json!({"manager": who, "time": time});
        let live = json!({"metadata": {"managedFields": [
            by("argocd-controller", "2026-01-03T00:00:00Z"),
            by("kubectl-edit", "2026-01-02T00:00:00Z"),
            by("kubectl-create", "2026-01-01T00:00:00Z"),
        ]}});
        let nobody = json!({"metadata": {}});
        let one = Difference {
            live: json!({"data": {"a": "2", "same": "x"}}),
            predicted: json!({"data": {"a": "1", "same": "x"}}),
        };
        let many = Difference {
            live: json!({"l": [{"a": 1}], "b": 1, "c": 1, "d": 1}),
            predicted: json!({"l": [{"a": 2}]}),
        };
        for (live, difference, expected) in [
            (
                Some(&live),
                &one,
                "ConfigMap shop/web was changed by kubectl-edit (data.a); it is put right",
            ),
            (
                Some(&nobody),
                &many,
                "ConfigMap shop/web was changed (l[0].a, b, c and 1 more); it is put right",
            ),
            (None, &one, "ConfigMap shop/web is gone; it is made again"),
        ] {
            assert_eq!(describe(&named, live, difference, "argocd-controller"), expected);
        }
    }
}
