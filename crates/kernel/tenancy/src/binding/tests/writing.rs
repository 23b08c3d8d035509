//! Bindings that the system writes, and those that it refuses.

use super::*;

#[test]
fn made_by_the_system() {
    let here = ClusterId::parse("here").unwrap();
    let asks = ApiExport::read(&export(json!({"spec": {"permissionClaims": [
        {"resource": "secrets", "verbs": ["get"]},
        {"group": "y.io", "resource": "gadgets", "identityHash": "i", "verbs": ["*"], "defaultSelector": {"matchLabels": {"a": "b"}}},
    ]}})));
    let made = default_binding(&here, "root:prov", &asks);
    assert_eq!(
        made["metadata"]["name"],
        default_name(&here, "root:prov", "widgets")
    );
    assert_eq!(
        made["spec"],
        json!({
            "reference": {"export": {"path": "root:prov", "name": "widgets"}},
            "permissionClaims": [
                {"resource": "secrets", "verbs": ["get"], "selector": {"matchAll": true}, "state": "Accepted"},
                {"resource": "gadgets", "verbs": ["*"], "group": "y.io", "identityHash": "i",
                 "selector": {"matchLabels": {"a": "b"}}, "state": "Accepted"},
            ],
        })
    );
    assert_eq!(objections(&made, None), []);
    let name = default_name(&here, "root", &"x".repeat(253));
    assert_eq!(name.len(), 253);
    assert!(
        name.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    );
    assert_ne!(
        default_name(&here, "root", "a"),
        default_name(&here, "root:b", "a")
    );
}

#[test]
fn judged() {
    let with = |selector: Value| {
        binding(
            json!({"spec": {"permissionClaims": [{"resource": "secrets", "verbs": ["get"], "state": "Accepted", "selector": selector}]}}),
        )
    };
    for (object, old, expected) in [
        (binding(json!({})), None, None),
        (
            binding(json!({"spec": {"reference": {}}})),
            None,
            Some("spec.reference.export: Required value"),
        ),
        (
            binding(json!({"spec": {"reference": {"export": {"path": "root"}}}})),
            None,
            Some("spec.reference.export.name: Required value"),
        ),
        (with(json!({"matchAll": true})), None, None),
        (
            with(json!({"matchAll": true, "matchLabels": {"a": "b"}})),
            None,
            Some("matchLabels cannot be used with matchAll"),
        ),
        (
            with(json!({})),
            None,
            Some(
                "spec.permissionClaims[0].selector: Required value: either one of matchAll, matchLabels, or matchExpressions must be set",
            ),
        ),
        (
            binding(json!({})),
            Some(json!({"status": {"phase": "Bound"}})),
            Some("status.phase: Forbidden: cannot transition from \"Bound\" to \"\""),
        ),
    ] {
        let errors: Vec<String> = objections(&object, old.as_ref())
            .iter()
            .map(ToString::to_string)
            .collect();
        match expected {
            None => assert_eq!(errors, Vec::<String>::new(), "{object}"),
            Some(part) => assert!(
                errors.iter().any(|it| it.contains(part)),
                "{errors:?} lacks {part:?}"
            ),
        }
    }
}
