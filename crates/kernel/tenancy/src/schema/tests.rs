//! Schemas that are accepted, those that are not, and their definitions.

use super::*;

fn widget(over: &[(&str, Value)]) -> Value {
    let mut object = json!({
        "metadata": {"name": "v1.widgets.x.io", "uid": "u", "annotations": {"kcp.io/cluster": "prov"}},
        "spec": {
            "group": "x.io",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"type": "object", "properties": {"spec": {"type": "object"}}},
                "subresources": {"status": {}},
            }],
        },
    });
    for (pointer, value) in over {
        *object.pointer_mut(pointer).unwrap() = value.clone();
    }
    object
}

#[test]
fn judged() {
    let two = |conversion: bool| {
        let mut object = widget(&[]);
        let mut second = object["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        second["storage"] = json!(false);
        object["spec"]["versions"].as_array_mut().unwrap().push(second);
        if conversion {
            object["spec"]["conversion"] = json!({"strategy": "None"});
        }
        object
    };
    for (object, expected) in [
        (widget(&[]), None),
        (two(true), None),
        (
            widget(&[("/metadata/name", json!("widgets.x.io"))]),
            Some("must end in .widgets.x.io"),
        ),
        (
            widget(&[("/metadata/name", json!("1.widgets.x.io"))]),
            Some("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .widgets.x.io"),
        ),
        (
            widget(&[("/metadata/name", json!(".widgets.x.io"))]),
            Some("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .widgets.x.io"),
        ),
        (
            widget(&[
                ("/metadata/name", json!("v1.widgets.core")),
                ("/spec/group", json!("")),
            ]),
            None,
        ),
        (
            widget(&[
                ("/metadata/name", json!("v1.widgets.core")),
                ("/spec/group", json!("core")),
            ]),
            Some("must be empty string for the core group"),
        ),
        (
            widget(&[
                ("/metadata/name", json!("v1.widgets.xio")),
                ("/spec/group", json!("xio")),
            ]),
            Some("should be a domain with at least one dot"),
        ),
        (
            widget(&[
                ("/metadata/name", json!("v1.widgets.apps")),
                ("/spec/group", json!("apps")),
            ]),
            None,
        ),
        (
            widget(&[("/spec/names/listKind", json!(""))]),
            Some("spec.names.listKind: Required value"),
        ),
        (
            widget(&[("/spec/versions/0/storage", json!(false))]),
            Some("exactly one version"),
        ),
        (
            widget(&[(
                "/spec/versions/0/schema/properties/spec",
                json!({"type": "nonsense"}),
            )]),
            Some("properties[spec].type: Unsupported value: \"nonsense\""),
        ),
        (
            widget(&[
                ("/metadata/name", json!("v1.widgets.x.k8s.io")),
                ("/spec/group", json!("x.k8s.io")),
            ]),
            Some("api-approved.kubernetes.io"),
        ),
    ] {
        let errors: Vec<String> = objections(&object, None)
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

#[test]
fn immutable() {
    let other = widget(&[("/spec/scope", json!("Cluster"))]);
    let errors = objections(&other, Some(&widget(&[])));
    assert!(
        errors.iter().any(|it| it.to_string().contains("is immutable")),
        "{errors:?}"
    );
    assert_eq!(objections(&widget(&[]), Some(&widget(&[]))), []);
}

#[test]
fn there_and_back() {
    let object = widget(&[]);
    let definition = to_crd(&object);
    assert_eq!(definition["metadata"]["name"], "widgets.x.io");
    assert_eq!(definition["metadata"]["uid"], "u");
    assert_eq!(
        definition["metadata"]["annotations"]["apis.kcp.io/schema-cluster"],
        "prov"
    );
    assert_eq!(
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"],
        "object"
    );
    crd::CrdSpec::parse(&definition).unwrap();
    let back = from_crd(&definition, "v1");
    assert_eq!(back["metadata"]["name"], object["metadata"]["name"]);
    assert_eq!(back["spec"], object["spec"]);
    let bare = from_crd(
        &json!({"spec": {"group": "x.io", "names": {"plural": "as", "kind": "A"}, "versions": [{"name": "v1"}, {"name": "v2"}]}}),
        "today",
    );
    assert_eq!(bare["metadata"]["name"], "today.as.x.io");
    assert_eq!(bare["spec"]["names"]["listKind"], "AList");
    assert_eq!(bare["spec"]["conversion"]["strategy"], "None");
}

#[test]
fn names() {
    for (name, parts) in [
        ("v1.widgets.x.io", Some(("v1", "widgets", "x.io"))),
        ("v1.widgets.core", Some(("v1", "widgets", ""))),
        ("v1.widgets", None),
        ("", None),
    ] {
        assert_eq!(split_name(name), parts, "{name}");
    }
    let schema = ApiResourceSchema::read(&widget(&[]));
    assert_eq!((schema.storage_version.as_str(), schema.versions), ("v1", 1));
}
