//! Entities and locations as objects of the API: their names, and what is in them.
//!
//! Names of entities may have capitals, underscores and dots in a row, which objects may not, and differ in nothing but case from the
//! name of the same entity. So the name of an object follows from the canonical reference: as it is where that fits, else with a digest.

use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use crate::annotation;
use crate::index::Record;
use crate::names::{is_dns_label, is_dns_subdomain};
use crate::place::LocationRef;
use crate::reference::EntityRef;
use crate::validate;

/// Digits of a digest in a name.
const DIGITS: usize = 16;
/// The longest readable part of a location's name: with the digest it is one label.
const READABLE: usize = 40;

/// What the object of an entity is called.
pub fn entity_name(reference: &EntityRef) -> String {
    let canonical = reference.to_string();
    let plain = canonical.replace([':', '/'], ".");
    let fits = is_dns_label(&reference.kind.to_lowercase())
        && is_dns_label(&reference.namespace.to_lowercase())
        && is_dns_subdomain(&plain)
        && !has_digest(&plain);
    match fits {
        true => plain,
        false => format!("{}.x-{}", readable(&plain, 200), digest(&canonical)),
    }
}

/// Whether a name ends as those with a digest do: such a name gets one, too, so that no two entities have the same.
fn has_digest(name: &str) -> bool {
    name.rsplit_once(".x-").is_some_and(|(_, rest)| {
        rest.len() == DIGITS
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// What the object of a location is called: the same address is the same location.
pub fn location_name(location: &LocationRef) -> String {
    let text = location.to_string();
    let shown = location
        .target
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or(location.target.as_str(), |(_, path)| path);
    let shown = shown
        .replace("/src/branch/", "/")
        .replace("/blob/", "/")
        .replace(".yaml", "");
    format!(
        "{}-{}",
        readable(&shown, READABLE).replace('.', "-"),
        digest(&text)
    )
}

/// As much of a text as a name may have.
fn readable(text: &str, length: usize) -> String {
    let mut name = String::new();
    for character in text.to_lowercase().chars() {
        if name.len() >= length {
            break;
        }
        match character {
            'a'..='z' | '0'..='9' => name.push(character),
            '.' if !name.is_empty() && !name.ends_with(['.', '-']) => name.push('.'),
            _ if !name.is_empty() && !name.ends_with(['.', '-']) => name.push('-'),
            _ => {}
        }
    }
    let name = name.trim_end_matches(['.', '-']);
    match name.is_empty() {
        true => "x".to_owned(),
        false => name.to_owned(),
    }
}

fn digest(text: &str) -> String {
    hex(text)[..DIGITS].to_owned()
}

fn hex(text: &str) -> String {
    let bytes = Sha1::digest(text);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The entity that stands for a location itself, as upstream has one.
pub fn location_entity(location: &LocationRef) -> Value {
    let text = location.to_string();
    json!({
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Location",
        "metadata": {
            "name": format!("generated-{}", hex(&text)),
            "namespace": crate::DEFAULT_NAMESPACE,
            "annotations": {annotation::LOCATION: text, annotation::ORIGIN: text},
        },
        "spec": {"type": location.kind, "target": location.target},
    })
}

/// What an object says of an entity; none if it is not one that the catalog could have made.
pub fn read_entity(object: &Value) -> Option<Record> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut entity = object.pointer("/spec/entity")?.clone();
    let reference = validate::envelope(&entity).ok()?;
    if text("/metadata/name")? != entity_name(&reference) {
        return None;
    }
    if object.pointer("/spec/orphan") == Some(&Value::Bool(true)) {
        let annotations = &mut entity["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[annotation::ORPHAN] = "true".into();
    }
    Some(Record {
        uid: text("/metadata/uid").unwrap_or_default().to_owned(),
        entity,
        location: text("/spec/location").unwrap_or_default().to_owned(),
        parent: text("/spec/parent").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn reference(text: &str) -> EntityRef {
        EntityRef::parse(text, None, None).unwrap()
    }

    #[test]
    fn names_of_objects() {
        for (text, expected) in [
            ("Component:default/web", "component.default.web"),
            ("API:team-a/web.v2", "api.team-a.web.v2"),
            ("component:default/Web", "component.default.web"),
        ] {
            assert_eq!(entity_name(&reference(text)), expected);
        }
        // What does not fit has a digest, and the same one in every case.
        let under = entity_name(&reference("component:default/my_web"));
        assert!(under.starts_with("component.default.my-web.x-"), "{under}");
        assert_eq!(under, entity_name(&reference("component:default/My_Web")));
        assert_ne!(under, entity_name(&reference("component:default/my-web")));
        assert_ne!(under, entity_name(&reference("component:default/my.web")));
        // Nobody can take the name of another by writing his digest.
        let imitation = under.trim_start_matches("component.default.");
        assert_ne!(
            under,
            entity_name(&reference(&format!("component:default/{imitation}")))
        );
    }

    #[test]
    fn names_of_locations() {
        let name = |target: &str| {
            location_name(&LocationRef {
                kind: "url".to_owned(),
                target: target.to_owned(),
            })
        };
        let one = name("https://git.fairway.localhost:7443/root/app/src/branch/main/catalog-info.yaml");
        assert!(one.starts_with("root-app-main-catalog-info-"), "{one}");
        assert!(is_dns_label(&one) || is_dns_subdomain(&one));
        assert_ne!(
            one,
            name("https://git.fairway.localhost:7443/root/app/src/branch/dev/catalog-info.yaml")
        );
        assert!(is_dns_subdomain(&name(&format!(
            "https://a/{}",
            "Ünï/".repeat(100)
        ))));
        assert!(is_dns_subdomain(&name("https://a")));
    }

    #[test]
    fn objects_are_read() {
        let object = json!({
            "metadata": {"name": "component.default.web", "uid": "u"},
            "spec": {
                "entity": {"apiVersion": "backstage.io/v1alpha1", "kind": "Component", "metadata": {"name": "Web"}, "spec": {}},
                "location": "l", "parent": "location:default/x", "orphan": true,
            },
        });
        let record = read_entity(&object).unwrap();
        assert_eq!((&*record.uid, &*record.location), ("u", "l"));
        assert_eq!(
            record.entity["metadata"]["annotations"][annotation::ORPHAN],
            "true"
        );
        let mut other = object;
        other["metadata"]["name"] = json!("component.default.other");
        assert_eq!(read_entity(&other), None);
        other["spec"]["entity"] = json!({});
        assert_eq!(read_entity(&other), None);
    }

    proptest! {
        /// Names of objects are good, and different references have different ones.
        #[test]
        fn names_are_good_and_unique(names in prop::collection::vec("[a-zA-Z0-9][a-zA-Z0-9_.-]{0,12}[a-zA-Z0-9]", 1..20)) {
            let mut seen: HashMap<String, String> = HashMap::new();
            for name in names {
                let reference = reference(&format!("Component:default/{name}"));
                let object = entity_name(&reference);
                prop_assert!(is_dns_subdomain(&object), "{object}");
                let canonical = reference.to_string();
                if let Some(other) = seen.insert(object, canonical.clone()) {
                    prop_assert_eq!(other, canonical);
                }
            }
        }
    }
}
