//! The definitions are valid, say the same in both forms, and take what upstream's users write.

use fairway_kernel_schema::crd;
use fairway_kernel_schema::structural::{Budget, Structural};

use super::*;
use crate::Kind;

fn of(kind: &str) -> Definition {
    definitions()
        .into_iter()
        .find(|it| it.kind().kind == kind)
        .unwrap()
}

#[test]
fn every_definition_is_a_valid_one() {
    for definition in definitions().into_iter().chain(identity_definitions()) {
        let mut whole = definition.crd();
        let name = whole["metadata"]["name"].clone();
        crd::set_defaults(&mut whole);
        crd::prepare_for_create(&mut whole);
        assert_eq!(crd::validate(&whole), [], "{name}");
        let schema = &whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        Structural::compile(schema).unwrap();
        assert!(schema["description"].is_string(), "{name} is not described");
        crd::CrdSpec::parse(&definition.head()).unwrap();
    }
}

#[test]
fn names_are_those_of_the_definitions() {
    for Kind {
        group,
        version,
        kind,
        plural,
    } in [
        argoproj::APPLICATION,
        argoproj::APPLICATION_SET,
        argoproj::APP_PROJECT,
        argoproj::ARGO_CD,
        fairway::CATALOG_ENTITY,
        fairway::CATALOG_LOCATION,
        fairway::REPOSITORY,
        fairway::TOMBSTONE,
        fairway::VOYAGE,
        crate::backstage::TEMPLATE,
    ] {
        let definition = of(kind);
        let facts = definition.kind();
        assert_eq!(
            (definition.group(), facts.version, facts.plural),
            (group, version, plural)
        );
    }
    assert_eq!(definitions().len(), 10);
}

/// Every line of words is about a field that there is.
#[test]
fn words_are_about_fields() {
    for definition in definitions().into_iter().chain(identity_definitions()) {
        let whole = definition.crd().to_string();
        let kind = definition.kind().kind;
        for line in definition.source.words.lines() {
            let (path, words) = line.split_once(": ").unwrap();
            let said = serde_json::to_string(words).unwrap();
            assert!(
                path.split('.').next() != Some(kind) || whole.contains(&said),
                "{path} leads nowhere"
            );
        }
    }
}

/// The written-out form of a schema with references.
fn resolved(schema: &Value, definitions: &Value) -> Value {
    match schema {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
            Some(name) => resolved(&definitions[name], definitions),
            None => map
                .iter()
                .map(|(key, value)| (key.clone(), resolved(value, definitions)))
                .collect(),
        },
        Value::Array(list) => list.iter().map(|it| resolved(it, definitions)).collect(),
        other => other.clone(),
    }
}

fn without_words(mut schema: Value) -> Value {
    fn strip(schema: &mut Value) {
        let Some(map) = schema.as_object_mut() else { return };
        map.shift_remove("description");
        for (key, value) in map.iter_mut() {
            match (key.as_str(), value) {
                ("properties", Value::Object(fields)) => fields.values_mut().for_each(strip),
                ("items" | "additionalProperties", value) => strip(value),
                _ => {}
            }
        }
    }
    strip(&mut schema);
    schema
}

#[test]
fn both_forms_say_the_same() {
    for definition in definitions().into_iter().chain(identity_definitions()) {
        let short = definition.schema();
        let whole = definition.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let root = json!({"$ref": short["$ref"]});
        assert_eq!(
            resolved(&root, &short["$defs"]),
            without_words(whole),
            "{}",
            definition.kind().kind
        );
    }
}

/// What the two compiled forms make of an object: unknown fields, then errors.
fn verdicts(kind: &str, object: &Value) -> [Vec<String>; 2] {
    let definition = of(kind);
    let whole = definition.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let forms = [
        Structural::load_shared(&definition.schema()).unwrap(),
        Structural::compile(&whole).unwrap(),
    ];
    forms.map(|structural| {
        let mut object = object.clone();
        let mut found = structural.prune(&mut object);
        let errors = structural.validate(&object, None, &mut Budget::default());
        found.extend(errors.iter().map(ToString::to_string));
        found
    })
}

#[test]
fn shared_and_written_out_schemas_judge_alike() {
    let generator = |inner: Value| {
        json!({"spec": {"generators": [{"matrix": {"generators": [inner]}}], "template": {
        "metadata": {"name": "{{x}}"}, "spec": {"project": "p", "destination": {}}}}})
    };
    for (kind, object, expected) in [
        (
            "Application",
            json!({"spec": {"project": "p", "destination": {"server": "s"}, "source": {
            "repoURL": "r", "helm": {"valuesObject": {"any": [1]}}}}}),
            vec!["metadata: Required value"],
        ),
        (
            "Application",
            json!({"metadata": {}, "spec": {"project": "p", "destination": {}, "source": {"path": "x"},
            "odd": 1}}),
            vec!["spec.odd", "spec.source.repoURL: Required value"],
        ),
        (
            "Application",
            json!({"metadata": {}, "spec": {"project": "p", "destination": {}, "sources": [{"repoURL": "r",
            "kustomize": {"replicas": [{"name": "a", "count": "3"}, {"name": "a"}]}}]}}),
            vec!["spec.sources[0].kustomize.replicas[1].count: Required value"],
        ),
        (
            "ApplicationSet",
            generator(json!({"list": {"elements": [{"any": {"thing": 1}}]}})),
            vec!["metadata: Required value"],
        ),
        (
            "ApplicationSet",
            generator(
                json!({"git": {"repoURL": "r", "revision": "HEAD", "template": {"metadata": {},
            "spec": {"project": "p", "destination": {}, "source": {"repoURL": "r", "odd": 1}}}}}),
            ),
            vec![
                "spec.generators[0].matrix.generators[0].git.template.spec.source.odd",
                "metadata: Required value",
            ],
        ),
        (
            "ArgoCD",
            json!({"metadata": {}, "spec": {"server": {"route": {"enabled": true}}, "rbac": {"policy": "p"}}}),
            vec![],
        ),
        (
            "Repository",
            json!({"spec": {"protectedBranches": [{"name": "main"}, {"name": "main"}]}}),
            vec!["spec.protectedBranches[1]: Duplicate value: {\"name\":\"main\"}"],
        ),
        (
            "Tombstone",
            json!({"spec": {"object": {"any": {"depth": true}}}}),
            vec![],
        ),
    ] {
        let [shared, whole] = verdicts(kind, &object);
        assert_eq!(shared, whole, "{kind}");
        let short: Vec<String> = shared
            .iter()
            .map(|it| it.replace(": Required value: ", ": Required value"))
            .collect();
        assert_eq!(short, expected, "{kind} {object}");
    }
}

#[test]
fn the_shared_form_is_small() {
    let atoms = |structural: &Structural| format!("{:?}", structural.shapes().0).matches("Atom {").count();
    let definition = of("ApplicationSet");
    let whole = definition.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let written_out = atoms(&Structural::load(&whole).unwrap());
    let shared = atoms(&Structural::load_shared(&definition.schema()).unwrap());
    assert!(shared * 5 < written_out, "{shared} of {written_out}");
}

#[test]
fn a_fingerprint_tells_files_apart() {
    assert_ne!(of("Application").fingerprint(), of("Repository").fingerprint());
    assert_eq!(of("Application").fingerprint(), of("AppProject").fingerprint());
}
