//! Definitions as tables: validation, updates, names, conditions.

use serde_json::{Value, json};

use super::conditions::{self, Condition, Removal, Status};
use super::*;

/// A definition that is right, with a change made to it.
fn crd(change: impl FnOnce(&mut Value)) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.sea.example.com"},
        "spec": {
            "group": "sea.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship", "shortNames": ["sh"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string"}, "crew": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}},
                    "status": {"type": "object"}}}}}],
        },
    });
    prepare_for_create(&mut crd);
    change(&mut crd);
    crd
}

fn texts(errors: &[crate::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Sets the value at a pointer, also where nothing is yet.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if field == "-" => items.push(new),
        parent => parent[field] = new,
    }
}

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
fn updates() {
    let old = crd(|crd| {
        set(crd, "/metadata/resourceVersion", json!("5"));
        set(crd, "/metadata/uid", json!("u"));
    });
    let established = {
        let mut crd = old.clone();
        Condition::new("Established", Status::True, "r", "m").set(&mut crd, "2020-01-01T00:00:00Z");
        crd
    };
    let check = |old: &Value, pointer: &str, value: Value, expected: &[&str]| {
        let mut new = old.clone();
        set(&mut new, pointer, value);
        prepare_for_update(&mut new, old);
        assert_eq!(texts(&validate_update(&new, old)), expected, "{pointer}");
        new
    };
    check(&old, "/metadata/labels", json!({"a": "b"}), &[]);
    let new = check(&old, "/spec/names/shortNames", json!(["s"]), &[]);
    assert_eq!(new["metadata"]["generation"], 2);
    check(&old, "/spec/scope", json!("Cluster"), &[]);
    check(
        &established,
        "/spec/scope",
        json!("Cluster"),
        &[r#"spec.scope: Invalid value: "Cluster": field is immutable"#],
    );
    check(
        &established,
        "/spec/names/kind",
        json!("Boat"),
        &[r#"spec.names.kind: Invalid value: "Boat": field is immutable"#],
    );
    check(
        &old,
        "/spec/group",
        json!("b.c"),
        &[r#"spec.group: Invalid value: "b.c": field is immutable"#],
    );
    check(
        &old,
        "/spec/names/plural",
        json!("boats"),
        &[r#"spec.names.plural: Invalid value: "boats": field is immutable"#],
    );
    check(
        &old,
        "/metadata/name",
        json!("x"),
        &[r#"metadata.name: Invalid value: "x": field is immutable"#],
    );
    check(
        &old,
        "/metadata/resourceVersion",
        json!(""),
        &[r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#],
    );
    // What a client writes into the status does not count.
    let new = check(&old, "/status/storedVersions", json!(["v9"]), &[]);
    assert_eq!(new["status"]["storedVersions"], json!(["v1"]));
    // A new storage version joins the stored ones; an old one may not be dropped.
    let mut moved = old.clone();
    let mut v2 = moved["spec"]["versions"][0].clone();
    v2["name"] = "v2".into();
    moved["spec"]["versions"][0]["storage"] = false.into();
    set(&mut moved, "/spec/versions/-", v2.clone());
    prepare_for_update(&mut moved, &old);
    assert_eq!(texts(&validate_update(&moved, &old)), [""; 0]);
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]));
    let mut dropped = moved.clone();
    dropped["spec"]["versions"] = json!([v2]);
    prepare_for_update(&mut dropped, &moved);
    let found = texts(&validate_update(&dropped, &moved));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions;")
    );
    // After the migration the status says so.
    let mut migrated = moved.clone();
    migrated["status"]["storedVersions"] = json!(["v2"]);
    prepare_for_status_update(&mut migrated, &moved);
    assert_eq!(texts(&validate_status_update(&migrated, &moved)), [""; 0]);
    let mut dropped = migrated.clone();
    dropped["spec"]["versions"] = json!([v2]);
    prepare_for_update(&mut dropped, &migrated);
    assert_eq!(texts(&validate_update(&dropped, &migrated)), [""; 0]);
}

#[test]
fn many_selectable_fields_are_tolerated_only_if_they_were_there() {
    let names: Vec<String> = (0..9).map(|i| format!("f{i}")).collect();
    let old = crd(|crd| {
        set(crd, "/metadata/resourceVersion", json!("5"));
        for name in &names {
            set(
                crd,
                &format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{name}"),
                json!({"type": "string"}),
            );
        }
        let fields: Vec<Value> = names
            .iter()
            .map(|n| json!({"jsonPath": format!(".spec.{n}")}))
            .collect();
        set(crd, "/spec/versions/0/selectableFields", fields.into());
    });
    assert_eq!(
        texts(&validate(&old)),
        ["spec.selectableFields: Too many: 9: must have at most 8 items"]
    );
    assert_eq!(texts(&validate_update(&old, &old)), [""; 0]);
}

#[test]
fn the_parsed_view() {
    let object = crd(|crd| {
        set(
            crd,
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}]),
        );
        set(
            crd,
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.crew"}]),
        );
        set(
            crd,
            "/spec/versions/0/subresources",
            json!({"status": {}, "scale": {"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.crew", "labelSelectorPath": ".status.selector"}}),
        );
        let first = crd["spec"]["versions"][0].clone();
        for (name, served, deprecated) in [
            ("v1beta1", true, true),
            ("v1alpha1", false, false),
            ("v2alpha1", true, true),
        ] {
            let mut version = first.clone();
            version["name"] = name.into();
            version["served"] = served.into();
            version["deprecated"] = deprecated.into();
            version["storage"] = false.into();
            if name == "v2alpha1" {
                version["deprecationWarning"] = "gone soon".into();
            }
            set(crd, "/spec/versions/-", version);
        }
    });
    assert_eq!(texts(&validate(&object)), [""; 0]);
    let spec = CrdSpec::parse(&object).unwrap();
    assert_eq!(
        (spec.group.as_str(), spec.scope, spec.conversion),
        ("sea.example.com", Scope::Namespaced, Conversion::None)
    );
    assert_eq!(
        spec.names.to_value(),
        json!({"plural": "ships", "singular": "ship", "shortNames": ["sh"], "kind": "Ship", "listKind": "ShipList"})
    );
    let served: Vec<&str> = spec.served_versions().iter().map(|v| v.name.as_str()).collect();
    assert_eq!(served, ["v1", "v1beta1", "v2alpha1"]);
    assert_eq!(spec.storage_version().map(|v| v.name.as_str()), Some("v1"));
    assert_eq!(spec.deprecation_warning("v1"), None);
    assert_eq!(
        spec.deprecation_warning("v1beta1").as_deref(),
        Some("sea.example.com/v1beta1 Ship is deprecated; use sea.example.com/v1 Ship")
    );
    assert_eq!(spec.deprecation_warning("v2alpha1").as_deref(), Some("gone soon"));
    let version = spec.version("v1").unwrap();
    let schemas: Vec<_> = spec.versions.iter().filter_map(|v| v.schema.clone()).collect();
    assert!(
        schemas.iter().all(|s| std::sync::Arc::ptr_eq(s, &schemas[0])),
        "equal schemas are shared"
    );
    let ship = json!({"spec": {"color": "red", "crew": 3}, "status": {"crew": 2, "selector": "a=b"}});
    let values: Vec<String> = version
        .selectable_fields
        .iter()
        .map(|f| format!("{}={}", f.name, f.value(&ship)))
        .collect();
    assert_eq!(values, ["spec.color=red", "spec.crew=3"]);
    assert_eq!(version.selectable_fields[0].value(&json!({})), "");
    let column = &version.printer_columns[0];
    assert_eq!(
        column.path.as_ref().and_then(|p| p.first(&ship)),
        Some(&json!("red"))
    );
    let scale = version.subresources.scale.as_ref().unwrap();
    assert!(version.subresources.status);
    assert_eq!(
        (
            scale.spec_replicas(&ship),
            scale.status_replicas(&ship),
            scale.label_selector(&ship)
        ),
        (Ok(Some(3)), Ok(Some(2)), Ok(Some("a=b")))
    );
    assert_eq!(scale.spec_replicas(&json!({})), Ok(None));
    let mut new = json!({});
    scale.set_spec_replicas(&mut new, 7).unwrap();
    assert_eq!(new, json!({"spec": {"crew": 7}}));
    assert_eq!(
        texts(&scale.validate(
            &json!({"spec": {"crew": -1}, "status": {"crew": 3_000_000_000_i64, "selector": 1}}),
            false
        )),
        [
            ".spec.crew: Invalid value: -1: should be a non-negative integer",
            ".status.crew: Invalid value: 3000000000: should be less than or equal to 2147483647",
            r#".status.selector: Invalid value: "": .status.selector accessor error: 1 is of the type int64, expected string"#
        ]
    );
    assert_eq!(
        texts(&scale.validate(&json!({"spec": {"crew": "x"}}), false)),
        [".spec.crew: Invalid value: 0: .spec.crew accessor error: x is of the type string, expected int64"]
    );
    assert_eq!(
        texts(&scale.validate(&json!({"spec": {"crew": "x"}}), true)),
        [""; 0]
    );
}

/// A definition of `sea.example.com` that got these names.
fn accepted(name: &str, names: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"group": "sea.example.com", "names": names}, "status": {"acceptedNames": names}})
}

#[test]
fn names() {
    let wanted = crd(|_| {});
    let decide = |others: &[Value]| naming::decide(&wanted, others.iter().chain([&wanted]));
    let free = decide(&[]);
    assert_eq!(free.names, Names::parse(&wanted["spec"]["names"]));
    assert_eq!(
        free.names_accepted,
        Condition::new("NamesAccepted", Status::True, "NoConflicts", "no conflicts found")
    );
    assert_eq!(
        free.established,
        Condition::new(
            "Established",
            Status::False,
            "Installing",
            "the initial names have been accepted"
        )
    );
    let cases = [
        (
            json!({"plural": "ships"}),
            "PluralConflict",
            "\"ships\" is already in use",
        ),
        (
            json!({"singular": "ship"}),
            "SingularConflict",
            "\"ship\" is already in use",
        ),
        (
            json!({"plural": "sh"}),
            "ShortNamesConflict",
            "\"sh\" is already in use",
        ),
        (
            json!({"shortNames": ["ships"]}),
            "PluralConflict",
            "\"ships\" is already in use",
        ),
        (
            json!({"kind": "Ship"}),
            "KindConflict",
            "\"Ship\" is already in use",
        ),
        (
            json!({"listKind": "Ship"}),
            "KindConflict",
            "\"Ship\" is already in use",
        ),
        (
            json!({"kind": "ShipList"}),
            "ListKindConflict",
            "\"ShipList\" is already in use",
        ),
    ];
    for (names, reason, message) in cases {
        let decision = decide(&[accepted("other", &names)]);
        assert_eq!(
            decision.names_accepted,
            Condition::new("NamesAccepted", Status::False, reason, message),
            "{names}"
        );
        assert_eq!(decision.established.reason, "NotAccepted");
        assert_ne!(
            decision.names, free.names,
            "a name that is taken is not accepted: {names}"
        );
    }
    // Other groups do not matter, nor do names of our own.
    let mut foreign = accepted("other", &json!({"plural": "ships", "kind": "Ship"}));
    foreign["spec"]["group"] = "land.example.com".into();
    assert_eq!(decide(&[foreign]).names_accepted.status, Status::True);
    let ours = crd(|crd| set(crd, "/status/acceptedNames", crd["spec"]["names"].clone()));
    assert_eq!(naming::decide(&ours, [&ours]).names_accepted.status, Status::True);
    // Once established, a definition stays so while a new name is refused.
    let mut established = ours;
    Condition::new("Established", Status::True, "InitialNamesAccepted", "m")
        .set(&mut established, "2020-01-01T00:00:00Z");
    set(&mut established, "/spec/names/shortNames", json!(["taken"]));
    let other = accepted("other", &json!({"plural": "taken"}));
    let decision = naming::decide(&established, [&other, &established]);
    assert_eq!(decision.names_accepted.reason, "ShortNamesConflict");
    assert_eq!(decision.names.short_names, ["sh"]);
    assert_eq!(decision.established.status, Status::True);
}

#[test]
fn conditions_over_time() {
    let mut object = crd(|_| {});
    assert_eq!(conditions::established(&object), None);
    let names = Condition::new("NamesAccepted", Status::True, "NoConflicts", "no conflicts found");
    assert!(names.set(&mut object, "2020-01-01T00:00:00Z"));
    assert!(!names.set(&mut object, "2021-01-01T00:00:00Z"), "nothing changed");
    let established = conditions::established(&object).unwrap();
    assert_eq!(
        (established.status, established.reason.as_str()),
        (Status::True, "InitialNamesAccepted")
    );
    established.set(&mut object, "2020-01-01T00:00:01Z");
    assert!(Condition::holds(&object, "Established"));
    assert_eq!(conditions::established(&object), None);
    assert_eq!(
        object["status"]["conditions"],
        json!([
        {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": "NoConflicts", "message": "no conflicts found"},
        {"type": "Established", "status": "True", "lastTransitionTime": "2020-01-01T00:00:01Z", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}])
    );
    // A new reason alone keeps the time, a new status does not.
    Condition::new("Established", Status::True, "Other", "m").set(&mut object, "2022-01-01T00:00:00Z");
    assert_eq!(
        object["status"]["conditions"][1]["lastTransitionTime"],
        "2020-01-01T00:00:01Z"
    );
    Condition::new("Established", Status::False, "Other", "m").set(&mut object, "2022-01-01T00:00:00Z");
    assert_eq!(
        object["status"]["conditions"][1]["lastTransitionTime"],
        "2022-01-01T00:00:00Z"
    );
    assert!(Condition::remove(&mut object, "Established"));
    assert!(!Condition::remove(&mut object, "Established"));

    assert_eq!(conditions::non_structural_schema(&object), None);
    let odd = crd(|crd| {
        set(
            crd,
            "/spec/versions/0/schema/openAPIV3Schema/properties/x",
            json!({}),
        );
    });
    assert_eq!(
        conditions::non_structural_schema(&odd),
        Some(Condition::new(
            "NonStructuralSchema",
            Status::True,
            "Violations",
            "spec.versions[0].schema.openAPIV3Schema.properties[x].type: Required value: must not be empty for specified object fields"
        ))
    );

    assert_eq!(
        conditions::terminating(&Removal::InProgress).reason,
        "InstanceDeletionInProgress"
    );
    assert_eq!(conditions::terminating(&Removal::Failed("x".into())).message, "x");
    assert_eq!(conditions::conversion_supported(&object), None);
    let webhook = crd(|crd| set(crd, "/spec/conversion", json!({"strategy": "Webhook"})));
    assert_eq!(
        conditions::conversion_supported(&webhook).map(|c| c.status),
        Some(Status::False)
    );
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
