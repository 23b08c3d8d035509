//! Tables for the operations on sets; sets are written in the `FieldsV1` format.

use serde_json::{Value, json};

use super::*;

fn set(fields: &Value) -> Set {
    Set::from_fields_v1(fields).unwrap()
}

#[test]
fn operations_treat_parents_and_children_as_separate_paths() {
    struct Case {
        left: Value,
        right: Value,
        union: Value,
        intersection: Value,
        difference: Value,
        recursive: Value,
    }
    let cases = [
        Case {
            left: json!({"f:a": {}, "f:b": {}}),
            right: json!({"f:b": {}, "f:c": {}}),
            union: json!({"f:a": {}, "f:b": {}, "f:c": {}}),
            intersection: json!({"f:b": {}}),
            difference: json!({"f:a": {}}),
            recursive: json!({"f:a": {}}),
        },
        Case {
            left: json!({"f:a": {"f:b": {}}}),
            right: json!({"f:a": {}}),
            union: json!({"f:a": {".": {}, "f:b": {}}}),
            intersection: json!({}),
            difference: json!({"f:a": {"f:b": {}}}),
            recursive: json!({}),
        },
        Case {
            left: json!({"f:a": {".": {}, "f:b": {}}}),
            right: json!({"f:a": {"f:b": {}}}),
            union: json!({"f:a": {".": {}, "f:b": {}}}),
            intersection: json!({"f:a": {"f:b": {}}}),
            difference: json!({"f:a": {}}),
            recursive: json!({"f:a": {}}),
        },
        Case {
            left: json!({"k:{\"n\":1}": {"f:x": {}}, "v:1": {}}),
            right: json!({}),
            union: json!({"k:{\"n\":1}": {"f:x": {}}, "v:1": {}}),
            intersection: json!({}),
            difference: json!({"k:{\"n\":1}": {"f:x": {}}, "v:1": {}}),
            recursive: json!({"k:{\"n\":1}": {"f:x": {}}, "v:1": {}}),
        },
    ];
    for case in cases {
        let (left, right) = (set(&case.left), set(&case.right));
        let name = format!("{} and {}", case.left, case.right);
        assert_eq!(left.union(&right).to_fields_v1(), case.union, "union of {name}");
        assert_eq!(
            left.intersection(&right).to_fields_v1(),
            case.intersection,
            "intersection of {name}"
        );
        assert_eq!(
            left.difference(&right).to_fields_v1(),
            case.difference,
            "difference of {name}"
        );
        assert_eq!(
            left.recursive_difference(&right).to_fields_v1(),
            case.recursive,
            "recursive difference of {name}"
        );
        assert_eq!(
            left.is_subset(&right),
            left.difference(&right).is_empty(),
            "subset of {name}"
        );
        assert!(
            left.is_subset(&left.union(&right)) && right.is_subset(&left.union(&right)),
            "{name} in their union"
        );
    }
}

#[test]
fn leaves_have_nothing_below_them() {
    let given = json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}});
    assert_eq!(
        set(&given).leaves().to_fields_v1(),
        json!({"f:a": {"f:b": {}}, "f:c": {}})
    );
}

#[test]
fn paths_read_as_users_know_them() {
    let given = json!({
        "f:spec": {".": {}, "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}},
        "f:finalizers": {"v:\"x\"": {}}
    });
    let paths: Vec<String> = set(&given).paths().iter().map(ToString::to_string).collect();
    assert_eq!(
        paths,
        [
            ".spec",
            ".finalizers[=\"x\"]",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].name",
        ]
    );
    assert_eq!(set(&given).len(), 4);
    assert!(set(&given).paths().iter().all(|path| set(&given).has(path)));
    assert!(!set(&given).has(&Path::of_fields(&["finalizers"])));
    assert!(!set(&given).has(&Path::default()));
}

#[test]
fn a_builder_sorts_and_joins() {
    let mut builder = SetBuilder::default();
    for name in ["c", "a", "b", "a"] {
        builder.push(
            || PathElement::field(name),
            Part {
                member: true,
                children: Set::new(),
            },
        );
    }
    builder.push(
        || PathElement::field("a"),
        Part {
            member: false,
            children: set(&json!({"f:x": {}})),
        },
    );
    builder.push(|| PathElement::field("never"), Part::default());
    assert_eq!(
        builder.finish(),
        set(&json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}, "f:c": {}}))
    );
}
