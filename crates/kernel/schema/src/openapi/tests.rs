//! Documents as clients read them; `cargo xtask conformance openapi` compares them with upstream's as a whole.

use serde_json::{Value, json};

use super::*;

fn document(group: &str, version: &str) -> Value {
    serde_json::from_slice(&v3_document(group, version).unwrap()).unwrap()
}

/// Every `$ref` of a document leads somewhere.
pub(super) fn assert_closed(document: &Value) {
    fn visit<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|v| visit(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| visit(v, found)),
            _ => {}
        }
    }
    let mut references = Vec::new();
    visit(document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn index_lists_every_group_version_with_its_hash() {
    let extra = IndexEntry {
        group: "example.com".into(),
        version: "v1".into(),
        hash: "AB".into(),
    };
    let index = v3_index(&[extra]);
    let paths = index["paths"].as_object().unwrap();
    let built_in: usize = builtin::groups().iter().map(|(_, versions)| versions.len()).sum();
    assert_eq!(paths.len(), built_in + 1);
    assert_eq!(
        paths["apis/example.com/v1"]["serverRelativeURL"],
        "/openapi/v3/apis/example.com/v1?hash=AB"
    );
    let core = paths["api/v1"]["serverRelativeURL"].as_str().unwrap();
    let apps = paths["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(
        core.starts_with("/openapi/v3/api/v1?hash=") && apps.starts_with("/openapi/v3/apis/apps/v1?hash=")
    );
    assert_ne!(core.rsplit('=').next(), apps.rsplit('=').next());
}

#[test]
fn every_document_is_closed() {
    for (group, versions) in builtin::groups() {
        for version in versions {
            assert_closed(&document(group, version));
        }
    }
    assert!(v3_document("apps", "v2").is_none());
    assert!(v3_document("nonsense", "v1").is_none());
}

#[test]
fn kubectl_explain_finds_type_description_and_values() {
    let document = document("apps", "v1");
    let get = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["get"];
    assert_eq!(
        get["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let schemas = &document["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        deployment["properties"]["spec"]["allOf"],
        json!([{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}])
    );
    assert!(
        deployment["description"]
            .as_str()
            .unwrap()
            .starts_with("Deployment enables declarative updates")
    );
    let policy = &schemas["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
    assert_eq!(policy["enum"], json!(["Always", "IfNotPresent", "Never"]));
    assert!(
        policy["description"]
            .as_str()
            .unwrap()
            .contains("Possible enum values:\n - `\"Always\"`")
    );
}

#[test]
fn kubectl_finds_that_field_validation_is_supported() {
    let document = document("apps", "v1");
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(patch["x-kubernetes-action"], "patch");
}

#[test]
fn custom_kinds_get_a_document_like_built_in_ones() {
    let schema = json!({
        "type": "object",
        "description": "CronTab runs things.",
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {
                "cron": {"type": "string", "default": "* * * * *"},
                "object": {"type": "object", "x-kubernetes-embedded-resource": true},
            }},
        },
    });
    let kind = CrdKind {
        kind: "CronTab",
        list_kind: "CronTabList",
        plural: "crontabs",
        namespaced: true,
        schema: &schema,
        status: true,
        scale: true,
    };
    let document = crd_document("stable.example.com", &kind);
    assert_closed(&document);
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs",
            "/apis/stable.example.com/v1/crontabs",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status",
        ]
    );
    let object = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(object["description"], "CronTab runs things.");
    assert_eq!(object["properties"]["apiVersion"]["type"], "string");
    let meta = json!([{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]);
    assert_eq!(object["properties"]["metadata"]["allOf"], meta);
    assert_eq!(
        object["properties"]["spec"]["properties"]["object"]["properties"]["metadata"]["allOf"],
        meta
    );
    assert_eq!(
        object["properties"]["spec"]["properties"]["cron"]["default"],
        "* * * * *"
    );
    let list = &document["components"]["schemas"]["com.example.stable.v1.CronTabList"];
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        "#/components/schemas/com.example.stable.v1.CronTab"
    );
    let patch = &document["paths"][paths[2]]["patch"]["requestBody"]["content"];
    let media: Vec<&String> = patch.as_object().unwrap().keys().collect();
    assert_eq!(
        media,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json"
        ]
    );
    let scale = &document["paths"][paths[3]]["get"]["x-kubernetes-group-version-kind"];
    assert_eq!(
        *scale,
        json!({"group": "stable.example.com", "version": "v1", "kind": "CronTab"})
    );
}

fn crd_document(group: &str, kind: &CrdKind<'_>) -> Value {
    let kinds = std::slice::from_ref(kind);
    let written = v3_crd_document(group, "v1", kinds, |_| Ok::<_, ()>(kind.schema.clone()));
    let text = String::from_utf8(written.unwrap()).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document.to_string(), text, "no field is written twice");
    document
}

#[test]
fn a_kind_without_a_schema_is_any_object() {
    let kind = CrdKind {
        kind: "Thing",
        list_kind: "ThingList",
        plural: "things",
        namespaced: false,
        schema: &Value::Null,
        status: false,
        scale: false,
    };
    let document = crd_document("example.com", &kind);
    assert_closed(&document);
    let object = &document["components"]["schemas"]["com.example.v1.Thing"];
    assert_eq!(object["type"], "object");
    assert!(object["properties"]["kind"].is_object());
}
