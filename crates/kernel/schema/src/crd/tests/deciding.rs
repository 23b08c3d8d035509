//! The parsed view, names and conditions.

use serde_json::{Value, json};

use super::{crd, set, texts};
use crate::crd::conditions::{self, Condition, Removal, Status};
use crate::crd::{Conversion, CrdSpec, Names, Scope, naming, validate};

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
