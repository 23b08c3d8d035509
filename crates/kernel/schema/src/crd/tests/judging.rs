//! New definitions: defaults, refusals, warnings.

use serde_json::{Value, json};

use super::{crd, set, texts};
use crate::crd::conditions::{self, Status};
use crate::crd::{
    CrdSpec, naming, prepare_for_create, set_defaults, validate, validate_status_update, validate_update,
    warnings,
};

#[test]
fn defaults() {
    let crd = crd(|_| {});
    assert_eq!(crd["spec"]["names"]["singular"], "ship");
    assert_eq!(crd["spec"]["names"]["listKind"], "ShipList");
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["status"], json!({"storedVersions": ["v1"]}));
    assert_eq!(crd["metadata"]["generation"], 1);
    assert_eq!(texts(&validate(&crd)), [""; 0]);
    let mut webhook = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}}}}});
    set_defaults(&mut webhook);
    assert_eq!(
        webhook.pointer("/spec/conversion/webhook/clientConfig/service/port"),
        Some(&json!(443))
    );
    let mut empty = json!({});
    set_defaults(&mut empty);
    assert_eq!(empty, json!({}));
}

#[test]
fn refusals_on_creation() {
    let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let mixed = format!(
        "spec.names.kind: Invalid value: \"Ship_\": may have mixed case, but should otherwise match: {label}"
    );
    let short = format!("spec.names.shortNames[0]: Invalid value: \"SH\": {label}");
    let version_name = format!("spec.versions[0].name: Invalid value: \"V1\": {label}");
    let version = format!("spec.version: Invalid value: \"V1\": {label}");
    let v = "/spec/versions/0";
    let cases: Vec<(&str, Value, Vec<&str>)> = vec![
        (
            "/metadata/name",
            json!("boats.sea.example.com"),
            vec![
                r#"metadata.name: Invalid value: "boats.sea.example.com": must be spec.names.plural+"."+spec.group"#,
            ],
        ),
        (
            "/spec/group",
            json!(""),
            vec![
                r#"metadata.name: Invalid value: "ships.sea.example.com": must be spec.names.plural+"."+spec.group"#,
                "spec.group: Required value",
            ],
        ),
        (
            "/spec/scope",
            json!("World"),
            vec![r#"spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced""#],
        ),
        ("/spec/scope", json!(null), vec!["spec.scope: Required value"]),
        ("/spec/names/kind", json!("Ship_"), vec![&mixed]),
        (
            "/spec/names/listKind",
            json!("Ship"),
            vec![r#"spec.names.listKind: Invalid value: "Ship": kind and listKind may not be the same"#],
        ),
        ("/spec/names/shortNames", json!(["SH"]), vec![&short]),
        (
            "/spec/names/singular",
            json!(""),
            vec!["spec.names.singular: Required value"],
        ),
        (
            "/spec/versions/0/name",
            json!("V1"),
            vec![
                &version_name,
                &version,
                r#"status.storedVersions: Invalid value: ["v1"]: must have the storage version V1"#,
                r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#,
            ],
        ),
        (
            "/spec/versions/0/schema",
            json!(null),
            vec!["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema",
            json!({}),
            vec!["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"],
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/nullable",
            json!(true),
            vec!["spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root"],
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("old"),
            vec![
                r#"spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions"#,
            ],
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {}}),
            vec![
                "spec.subresources.scale.specReplicasPath: Required value",
                "spec.subresources.scale.statusReplicasPath: Required value",
            ],
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n", "labelSelectorPath": ".x"}}),
            vec![
                r#"spec.subresources.scale.specReplicasPath: Invalid value: "spec.n": must be a simple json path starting with ."#,
                r#"spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status"#,
                r#"spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status"#,
            ],
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"jsonPath": "a", "type": "odd", "format": "odd"}, {}]),
            vec![
                "spec.additionalPrinterColumns[0].name: Required value",
                r#"spec.additionalPrinterColumns[0].type: Invalid value: "odd": must be one of boolean,date,integer,number,string"#,
                r#"spec.additionalPrinterColumns[0].format: Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password"#,
                r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with ."#,
                "spec.additionalPrinterColumns[1].name: Required value",
                "spec.additionalPrinterColumns[1].type: Required value: must be one of boolean,date,integer,number,string",
                "spec.additionalPrinterColumns[1].JSONPath: Required value",
            ],
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.color"}, {"jsonPath": ".spec.odd"}, {"jsonPath": ".spec.tags"}, {"jsonPath": ".spec['color']"}, {}]),
            vec![
                r#"spec.selectableFields[1].jsonPath: Duplicate value: ".spec.color""#,
                r#"spec.selectableFields[2].jsonPath: Invalid value: ".spec.odd": is an invalid path: does not refer to a valid field"#,
                r#"spec.selectableFields[3].jsonPath: Invalid value: ".spec.tags": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
                r#"spec.selectableFields[4].jsonPath: Invalid value: ".spec['color']": is an invalid path: array notation is not allowed"#,
                "spec.selectableFields[5].jsonPath: Required value",
            ],
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            vec![
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Odd"}),
            vec![
                r#"spec.conversion.strategy: Unsupported value: "Odd": supported values: "None", "Webhook""#,
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}}}),
            vec![
                "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            vec![
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v2", "v2"], "clientConfig": {"url": "http://u@h/?q#f"}}}),
            vec![
                r#"spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
                r#"spec.conversion.webhookClientConfig.url: Invalid value: "u": user information is not permitted in the URL"#,
                r#"spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL"#,
                r#"spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in the URL"#,
                r#"spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version"#,
                r#"spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1"#,
            ],
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "a", "namespace": "b", "path": "/x//y"}}}}),
            vec![
                r#"spec.conversion.webhookClientConfig.service.path: Invalid value: "/x//y": segment[1] may not be empty"#,
            ],
        ),
        (
            "/status/storedVersions",
            json!([]),
            vec!["status.storedVersions: Invalid value: null: must have at least one stored version"],
        ),
    ];
    for (pointer, value, expected) in cases {
        let object = crd(|crd| set(crd, pointer, value.clone()));
        assert_eq!(texts(&validate(&object)), expected, "{pointer} = {value}");
    }
    // A status subresource limits what the root may say.
    let object = crd(|crd| {
        set(crd, &format!("{v}/subresources"), json!({"status": {}}));
        set(
            crd,
            &format!("{v}/schema/openAPIV3Schema/minProperties"),
            json!(1),
        );
    });
    let found = texts(&validate(&object));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("spec.validation.openAPIV3Schema: Invalid value: {"),
        "{}",
        found[0]
    );
    assert!(found[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"), "{}", found[0]);
}

#[test]
fn several_versions() {
    let two = |change: &dyn Fn(&mut Value)| {
        crd(|crd| {
            let mut second = crd["spec"]["versions"][0].clone();
            second["name"] = "v2".into();
            second["storage"] = false.into();
            change(&mut second);
            set(crd, "/spec/versions/-", second);
        })
    };
    assert_eq!(texts(&validate(&two(&|_| {}))), [""; 0]);
    let same_name = texts(&validate(&two(&|v| v["name"] = "v1".into())));
    assert!(
        same_name[0].ends_with("must contain unique version names"),
        "{same_name:?}"
    );
    let two_storage = texts(&validate(&two(&|v| v["storage"] = true.into())));
    assert!(
        two_storage[0].ends_with("must have exactly one version marked as storage version"),
        "{two_storage:?}"
    );
    // Errors in what versions share are found once, in what they do not share at the version.
    let bad_own = two(&|v| v["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({}));
    assert_eq!(
        texts(&validate(&bad_own)),
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"
        ]
    );
    let own_columns = two(&|v| v["additionalPrinterColumns"] = json!([{"name": "a", "type": "string"}]));
    assert_eq!(
        texts(&validate(&own_columns)),
        ["spec.versions[1].additionalPrinterColumns[0].JSONPath: Required value"]
    );
}

#[test]
fn protected_groups() {
    let check = |annotation: Option<&str>, expected: &[&str]| {
        let object = crd(|crd| {
            set(crd, "/spec/group", json!("sea.k8s.io"));
            set(crd, "/metadata/name", json!("ships.sea.k8s.io"));
            if let Some(annotation) = annotation {
                set(
                    crd,
                    "/metadata/annotations",
                    json!({"api-approved.kubernetes.io": annotation}),
                );
            }
        });
        assert_eq!(texts(&validate(&object)), expected, "{annotation:?}");
        conditions::api_approval(&object).map(|c| (c.status, c.reason))
    };
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let missing = format!(
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", {see}"
    );
    assert_eq!(
        check(None, &[&missing]),
        Some((Status::False, "MissingAnnotation".into()))
    );
    assert_eq!(
        check(Some("https://github.com/kubernetes/kubernetes/pull/1"), &[]),
        Some((Status::True, "ApprovedAnnotation".into()))
    );
    assert_eq!(
        check(Some("unapproved, testing"), &[]),
        Some((Status::False, "UnapprovedAnnotation".into()))
    );
    let invalid = format!(
        "metadata.annotations[api-approved.kubernetes.io]: Invalid value: \"yes\": protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", {see}"
    );
    assert_eq!(
        check(Some("yes"), &[&invalid]),
        Some((Status::False, "InvalidAnnotation".into()))
    );
    for (group, protected) in [
        ("k8s.io", true),
        ("a.kubernetes.io", true),
        ("ak8s.io", false),
        ("example.com", false),
    ] {
        assert_eq!(conditions::is_protected_group(group), protected, "{group}");
    }
}

#[test]
fn what_is_warned_of() {
    assert_eq!(warnings(&crd(|_| {}), None), [""; 0]);
    let odd = crd(|crd| {
        set(
            crd,
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/format",
            json!("paint"),
        );
        set(crd, "/spec/conversion", json!({"strategy": "Webhook"}));
    });
    assert_eq!(
        warnings(&odd, None),
        [
            "unrecognized format \"paint\"",
            "conversion webhooks are not supported yet: objects are converted as with strategy None, by changing apiVersion only"
        ]
    );
    assert_eq!(
        warnings(&odd, Some(&odd)).len(),
        1,
        "known formats are not warned of again"
    );
}

#[test]
fn malformed_definitions_do_not_panic() {
    for object in [
        json!({}),
        json!(null),
        json!({"spec": 5}),
        json!({"spec": {"versions": [5, null, {}]}}),
        json!({"spec": {"names": [], "versions": {}}, "status": []}),
    ] {
        let mut object = object;
        prepare_for_create(&mut object);
        assert!(!validate(&object).is_empty());
        let _ = validate_update(&object, &object);
        let _ = validate_status_update(&object, &object);
        let _ = warnings(&object, Some(&object));
        let _ = CrdSpec::parse(&object);
        let _ = naming::decide(&object, [&object]);
        let _ = conditions::non_structural_schema(&object);
    }
}
