//! What workspaces see of a published kind.

use super::*;
use crate::schema;

fn published(spec: Value) -> PublishedResource {
    PublishedResource::read(&json!({"metadata": {"name": "p"}, "spec": spec}))
}

fn definition() -> Value {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    json!({
        "metadata": {"name": "machines.inner.io", "generation": 4, "uid": "u"},
        "spec": {
            "group": "inner.io",
            "names": {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList", "shortNames": ["m"]},
            "scope": "Namespaced",
            "versions": [version("v1alpha1", false), version("v1beta1", false), version("v1", true)],
        },
        "status": {"storedVersions": ["v1"]},
    })
}

fn versions_of(definition: &Value) -> Vec<(String, bool)> {
    let list = definition["spec"]["versions"].as_array().unwrap();
    list.iter()
        .map(|it| (it["name"].as_str().unwrap().to_owned(), it["storage"] == true))
        .collect()
}

#[test]
fn projections() {
    let source = |more: Value| {
        let mut source = json!({"apiGroup": "inner.io", "kind": "Machine"});
        for (key, value) in more.as_object().into_iter().flatten() {
            source[key] = value.clone();
        }
        source
    };
    let plain = published(json!({"resource": source(json!({}))}))
        .project(&definition())
        .unwrap();
    assert_eq!(plain["spec"], definition()["spec"]);
    assert!(plain.get("status").is_none());
    assert_eq!(plain["metadata"], json!({"name": "machines.inner.io"}));

    let renamed = published(json!({
        "resource": source(json!({"versions": ["v1alpha1", "v1beta1"]})),
        "projection": {
            "group": "outer.io", "kind": "VirtualMachine", "scope": "Cluster", "shortNames": [],
            "versions": {"v1alpha1": "v2", "v1beta1": "v1"},
        },
    }))
    .project(&definition())
    .unwrap();
    assert_eq!(renamed["metadata"]["name"], "virtualmachines.outer.io");
    assert_eq!(
        renamed["spec"]["names"],
        json!({
            "plural": "virtualmachines", "singular": "virtualmachine", "kind": "VirtualMachine",
            "listKind": "VirtualMachineList", "shortNames": [],
        })
    );
    // The storage version was not selected, so the last one served is it.
    assert_eq!(
        versions_of(&renamed)
            .iter()
            .filter(|(_, storage)| *storage)
            .count(),
        1
    );
    assert!(
        versions_of(&renamed)
            .iter()
            .any(|it| *it == ("v1".to_owned(), true))
    );

    for (spec, expected) in [
        (
            json!({"resource": source(json!({"version": "v9"}))}),
            "CRD does not contain version v9",
        ),
        (
            json!({"resource": source(json!({"version": "v1", "versions": ["v1"]}))}),
            "cannot configure both .version and .versions as the source of a PublishedResource",
        ),
        (
            json!({"resource": source(json!({})), "projection": {"version": "v5"}}),
            "cannot project CRD version to a single version \"v5\" because it contains 3 versions",
        ),
        (
            json!({"resource": source(json!({})), "projection": {"versions": {"v1beta1": "v1"}}}),
            "CRD contains multiple entries for v1 after applying mutation rules",
        ),
    ] {
        assert_eq!(published(spec).project(&definition()), Err(expected.to_owned()));
    }
}

#[test]
fn the_schema_that_is_offered() {
    let resource = published(json!({"resource": {"apiGroup": "inner.io", "kind": "Machine"}}));
    let made = resource.schema(&definition(), "agent").unwrap();
    let name = made["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(
        name.starts_with('v') && name.ends_with(".machines.inner.io"),
        "{name}"
    );
    assert_eq!(
        made["metadata"]["annotations"]["syncagent.kcp.io/source-generation"],
        "4"
    );
    assert_eq!(schema::objections(&made, None), []);
    // The name says what is inside: other content, other name; other metadata, the same.
    let mut touched = definition();
    touched["metadata"]["generation"] = json!(5);
    assert_eq!(
        resource.schema(&touched, "agent").unwrap()["metadata"]["name"],
        name
    );
    touched["spec"]["scope"] = json!("Cluster");
    assert_ne!(
        resource.schema(&touched, "agent").unwrap()["metadata"]["name"],
        name
    );
}

#[test]
fn filters() {
    let picky = published(json!({"filter": {
        "resource": {"matchLabels": {"tier": "gold"}},
        "namespace": {"matchExpressions": [{"key": "off", "operator": "DoesNotExist"}]},
    }}));
    for (labels, namespace, wanted) in [
        (json!({"tier": "gold"}), json!({}), true),
        (json!({"tier": "gold"}), json!({"off": "1"}), false),
        (json!({}), json!({}), false),
    ] {
        assert_eq!(picky.wants(&labels, &namespace), wanted, "{labels} {namespace}");
    }
    assert!(published(json!({})).wants(&json!({}), &json!({})));
    assert!(published(json!({})).enabled);
    assert!(!published(json!({"synchronization": {"enabled": false}})).enabled);
}

#[test]
fn related_kinds() {
    let of = |value: Value| published(json!({"related": [value]})).related.remove(0);
    let kind = |group: &str, version: &str, resource: &str| GroupVersionResource {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
    };
    let secret = of(json!({"identifier": "credentials", "origin": "service", "kind": "Secret"}));
    assert_eq!(secret.in_workspace(), kind("", "v1", "secrets"));
    let projected = json!({"origin": "service", "group": "a.io", "version": "v1", "resource": "as", "projection": {"group": "b.io"}});
    let up = of(projected.clone());
    assert_eq!(up.at_origin(), kind("a.io", "v1", "as"));
    assert_eq!(up.in_workspace(), kind("b.io", "v1", "as"));
    let mut down = projected;
    down["origin"] = json!("kcp");
    assert_eq!(of(down).in_workspace(), kind("a.io", "v1", "as"));
}

#[test]
fn what_is_not_copied() {
    let object = json!({
        "metadata": {
            "name": "a", "uid": "u", "resourceVersion": "1", "finalizers": ["x"], "ownerReferences": [{}],
            "labels": {"mine": "1", "claimed.internal.apis.kcp.io/x": "y", "syncagent.kcp.io/remote-object-cluster": "c"},
            "annotations": {"kcp.io/cluster": "c", "related-resources.syncagent.kcp.io/s.0": "{}"},
        },
        "spec": {"a": 1},
    });
    assert_eq!(
        stripped(&object),
        json!({"metadata": {"name": "a", "labels": {"mine": "1"}}, "spec": {"a": 1}})
    );
}

#[test]
fn objections_are_told_before_there_is_an_object() {
    let related = |more: Value| {
        let mut related = json!({"identifier": "r", "origin": "kcp", "kind": "Secret",
            "object": {"reference": {"path": "spec.secret"}}});
        for (key, value) in more.as_object().into_iter().flatten() {
            related[key] = value.clone();
        }
        json!({"related": [related]})
    };
    for (spec, expected) in [
        (json!({}), None),
        (
            json!({"naming": {"namespace": "{{ .ClusterName }}-{{ index .Object.metadata.labels \"a\" }}"}}),
            None,
        ),
        (
            json!({"naming": {"name": "{{ .Object.spec.size | trunc 3 }}"}}),
            None,
        ),
        (
            json!({"naming": {"name": "{{ .ClusterName "}}),
            Some("InvalidNaming"),
        ),
        (
            json!({"naming": {"namespace": "{{ nope .ClusterName }}"}}),
            Some("InvalidNaming"),
        ),
        (
            json!({"naming": {"namespace": "{{ .ClusterPath }}"}}),
            Some("WorkspacePathUnknown"),
        ),
        (
            json!({"naming": {"namespace": crate::naming::PROJECT_NAMESPACE}, "enableWorkspacePaths": true}),
            None,
        ),
        (
            json!({"mutation": {"spec": [{"regex": {"path": "spec.a", "pattern": "("}}]}}),
            Some("InvalidMutation"),
        ),
        (related(json!({})), None),
        (related(json!({"identifier": "a/b"})), Some("InvalidRelated")),
        (related(json!({"kind": ""})), Some("InvalidRelated")),
        (related(json!({"object": {}})), Some("InvalidRelated")),
        (
            related(json!({"object": {"template": {"template": "{{ if }}"}}})),
            Some("InvalidRelated"),
        ),
        (
            related(
                json!({"object": {"template": {"template": "x"}, "namespace": {"reference": {"path": "a..b"}}}}),
            ),
            Some("InvalidRelated"),
        ),
    ] {
        let objection = published(spec.clone()).objection();
        assert_eq!(
            objection.as_ref().map(|it| it.reason),
            expected,
            "{spec}: {objection:?}"
        );
    }
}

#[test]
fn addresses() {
    let served = Served::of(&definition()).unwrap();
    assert_eq!(
        served.object("n", "a"),
        "/apis/inner.io/v1/namespaces/n/machines/a"
    );
    assert_eq!(served.collection(""), "/apis/inner.io/v1/machines");
    let secrets = GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "secrets".to_owned(),
    };
    assert_eq!(secrets.discovery(), "/api/v1");
    let list = json!({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}]});
    let served = Served::discovered(&secrets, &list).unwrap();
    assert_eq!((served.kind.as_str(), served.has_status), ("Secret", false));
    assert_eq!(served.object("n", "a"), "/api/v1/namespaces/n/secrets/a");
}

/// Kinds that are bound or built in have no definition to copy.
#[test]
fn a_definition_is_made_of_what_discovery_and_openapi_tell() {
    let gvk = json!([{"group": "sea.io", "version": "v1", "kind": "Boat"}]);
    let document = json!({"components": {"schemas": {
        "io.sea.v1.Boat": {
            "type": "object", "x-kubernetes-group-version-kind": gvk,
            "properties": {
                "metadata": {"allOf": [{"$ref": "#/components/schemas/meta"}]},
                "spec": {"allOf": [{"$ref": "#/components/schemas/spec"}], "default": {}, "description": "d"},
            },
        },
        "meta": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer"},
            "port": {"$ref": "#/components/schemas/int-or-string"},
            "amount": {"$ref": "#/components/schemas/quantity"},
            "crew": {"type": "array", "items": {"$ref": "#/components/schemas/spec"}, "x-kubernetes-patch-merge-key": "size"},
            "raw": {},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
        }},
        "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    }}});
    let resources = json!({"resources": [
        {"name": "boats", "singularName": "boat", "kind": "Boat", "namespaced": true, "shortNames": ["b"]},
        {"name": "boats/status", "kind": "Boat", "namespaced": true},
    ]});
    let made = definition_of("sea.io", "v1", "Boat", &resources, &document).unwrap();
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({
        "type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer"},
            "port": {"x-kubernetes-int-or-string": true},
            "amount": {"x-kubernetes-int-or-string": true},
            "crew": {"type": "array", "items": anything},
            "raw": {"x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
        },
        "description": "d",
    });
    assert_eq!(
        made["spec"],
        json!({
            "group": "sea.io", "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat", "listKind": "BoatList", "singular": "boat", "shortNames": ["b"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec}}},
            }],
        })
    );
    let schema = published(json!({"resource": {"apiGroup": "sea.io", "kind": "Boat"}}))
        .schema(&made, "a")
        .unwrap();
    assert_eq!(schema::objections(&schema, None), []);
    for (version, kind) in [("v1", "Ship"), ("v2", "Boat")] {
        assert!(
            definition_of("sea.io", version, kind, &resources, &document).is_err(),
            "{version} {kind}"
        );
    }
}
