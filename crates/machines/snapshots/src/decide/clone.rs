//! What a VirtualMachineClone changes of a machine: two machines must not have the same addresses and numbers.

use regex::Regex;
use serde_json::{Value, json};

use crate::api::text;

/// The snapshot of a clone.
pub(crate) fn snapshot_name(clone: &Value) -> String {
    format!("tmp-snapshot-{}", text(clone, "/metadata/uid"))
}

/// The restore of a clone.
pub(crate) fn restore_name(clone: &Value) -> String {
    format!("tmp-restore-{}", text(clone, "/metadata/uid"))
}

/// A clone as owner.
pub(crate) fn owner(clone: &Value) -> Value {
    json!({
        "apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone", "name": text(clone, "/metadata/name"),
        "uid": text(clone, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
    })
}

/// The patches that make the other machine, each a step of a JSON patch as text.
pub(crate) fn patches(machine: &Value, spec: &Value) -> Vec<String> {
    let mut steps = Vec::new();
    let domain = "/spec/template/spec/domain";
    let interfaces = machine
        .pointer(&format!("{domain}/devices/interfaces"))
        .and_then(Value::as_array);
    for (index, interface) in interfaces.into_iter().flatten().enumerate() {
        let address = spec["newMacAddresses"].get(text(interface, "/name"));
        let address = address.and_then(Value::as_str).unwrap_or_default();
        steps.push(json!({
            "op": "replace", "path": format!("{domain}/devices/interfaces/{index}/macAddress"), "value": address,
        }));
    }
    let has_firmware = machine
        .pointer(&format!("{domain}/firmware"))
        .is_some_and(Value::is_object);
    if has_firmware {
        let serial = text(spec, "/newSMBiosSerial");
        steps.push(json!({"op": "replace", "path": format!("{domain}/firmware/serial"), "value": serial}));
    }
    for (base, filters) in [
        ("/metadata/labels", &spec["labelFilters"]),
        ("/metadata/annotations", &spec["annotationFilters"]),
        (
            "/spec/template/metadata/labels",
            &spec["template"]["labelFilters"],
        ),
        (
            "/spec/template/metadata/annotations",
            &spec["template"]["annotationFilters"],
        ),
    ] {
        steps.extend(removals(machine, base, filters));
    }
    if has_firmware {
        steps.push(json!({"op": "replace", "path": format!("{domain}/firmware/uuid"), "value": ""}));
    }
    steps.iter().map(Value::to_string).collect()
}

/// What filters do not let through: those that begin with `!` take away what others let in.
fn removals(machine: &Value, base: &str, filters: &Value) -> Vec<Value> {
    let Some(filters) = filters.as_array() else {
        return Vec::new();
    };
    let fits = |pattern: &str, key: &str| match pattern {
        "*" => true,
        pattern => Regex::new(pattern).is_ok_and(|it| it.is_match(key)),
    };
    let is_kept = |key: &str| {
        let all = || filters.iter().filter_map(Value::as_str);
        let is_in = all().filter(|it| !it.starts_with('!')).any(|it| fits(it, key));
        let is_out = all()
            .filter_map(|it| it.strip_prefix('!'))
            .any(|it| fits(it, key));
        is_in && !is_out
    };
    let keys = machine.pointer(base).and_then(Value::as_object);
    keys.into_iter()
        .flat_map(|keys| keys.keys())
        // The restore goes by it.
        .filter(|key| *key != super::restore::LAST_RESTORE && !is_kept(key))
        .map(|key| {
            let escaped = key.replace('~', "~0").replace('/', "~1");
            json!({"op": "remove", "path": format!("{base}/{escaped}")})
        })
        .collect()
}

/// Carries out the steps of patches on a machine that is about to be made. Of JSON's patches these are the two that clones need:
/// something is put somewhere, or taken away.
pub(crate) fn patched(machine: &Value, patches: &[Value]) -> Result<Value, String> {
    let mut machine = machine.clone();
    for patch in patches.iter().filter_map(Value::as_str) {
        let step: Value =
            serde_json::from_str(patch).map_err(|error| format!("the patch {patch} is not JSON: {error}"))?;
        let path = text(&step, "/path");
        let (parent, field) = path
            .rsplit_once('/')
            .ok_or_else(|| format!("the patch {patch} names no path"))?;
        let field = field.replace("~1", "/").replace("~0", "~");
        let parent = machine
            .pointer_mut(parent)
            .ok_or_else(|| format!("the patch {patch} leads nowhere"))?;
        let Some(fields) = parent.as_object_mut() else {
            return Err(format!("the patch {patch} changes something that is no object"));
        };
        match (text(&step, "/op"), step.get("value")) {
            // An empty text is what nobody said.
            ("replace" | "add", Some(Value::String(value))) if value.is_empty() => {
                drop(fields.shift_remove(&field));
            }
            ("replace" | "add", Some(value)) => drop(fields.insert(field, value.clone())),
            ("remove", _) => drop(fields.shift_remove(&field)),
            _ => {
                return Err(format!(
                    "the patch {patch} is none that is known: use add, replace or remove"
                ));
            }
        }
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Value {
        json!({
            "metadata": {"labels": {"app": "web", "team": "a"}, "annotations": {"x/y": "1"}},
            "spec": {"template": {"spec": {"domain": {
                "firmware": {"uuid": "u", "serial": "s"},
                "devices": {"interfaces": [{"name": "a", "macAddress": "02:00:00:00:00:01"}, {"name": "b"}]},
            }}}},
        })
    }

    #[test]
    fn a_clone_is_another_machine() {
        let spec = json!({
            "newMacAddresses": {"b": "02:00:00:00:00:02"}, "newSMBiosSerial": "t",
            "labelFilters": ["*", "!team"], "annotationFilters": [],
        });
        let steps: Vec<Value> = patches(&machine(), &spec)
            .into_iter()
            .map(Value::String)
            .collect();
        let made = patched(&machine(), &steps).unwrap();
        let domain = &made["spec"]["template"]["spec"]["domain"];
        assert_eq!(domain["firmware"], json!({"serial": "t"}));
        assert_eq!(domain["devices"]["interfaces"][0].get("macAddress"), None);
        assert_eq!(
            domain["devices"]["interfaces"][1]["macAddress"],
            "02:00:00:00:00:02"
        );
        assert_eq!(made["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(made["metadata"]["annotations"], json!({}));
        // Without filters everything stays.
        let steps: Vec<Value> = patches(&machine(), &json!({}))
            .into_iter()
            .map(Value::String)
            .collect();
        assert_eq!(
            patched(&machine(), &steps).unwrap()["metadata"],
            machine()["metadata"]
        );
    }

    #[test]
    fn strange_patches_are_refused() {
        for patch in [
            "{",
            "{}",
            r#"{"op": "move", "path": "/spec/x"}"#,
            r#"{"op": "add", "path": "/no/where", "value": 1}"#,
        ] {
            assert!(patched(&machine(), &[json!(patch)]).is_err(), "{patch}");
        }
    }
}
