//! The definitions of kcp's kinds, as complete CustomResourceDefinitions.
//!
//! They are text in the binary until somebody asks: parsed, they take ten times the room. Every field of upstream's is
//! there (kcp after 0.29, api-syncagent after 0.6), without descriptions.

use serde_json::Value;

/// Where the system serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In every workspace, and nobody can remove or shadow it.
    Everywhere,
    /// Exported from `root` and bound by the type `universal`.
    Exported,
    /// Where somebody installs it.
    OnDemand,
}

/// One definition.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The API group.
    pub group: &'static str,
    /// The plural name.
    pub resource: &'static str,
    /// Where it is served.
    pub reach: Reach,
    text: &'static str,
}

impl Definition {
    /// The CustomResourceDefinition, parsed.
    pub fn crd(&self) -> Value {
        // The text is part of the program, and a test parses each.
        serde_json::from_str(self.text).unwrap_or_default()
    }

    /// The CustomResourceDefinition's name.
    pub fn name(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }
}

macro_rules! definitions {
    ($($reach:ident $resource:literal $group:literal),* $(,)?) => {
        &[$(Definition {
            group: $group,
            resource: $resource,
            reach: Reach::$reach,
            text: include_str!(concat!("../crds/", $resource, ".", $group, ".json")),
        }),*]
    };
}

/// All definitions.
pub const ALL: &[Definition] = definitions![
    Everywhere "apibindings" "apis.kcp.io",
    Everywhere "apiconversions" "apis.kcp.io",
    Everywhere "apiexportendpointslices" "apis.kcp.io",
    Everywhere "apiexports" "apis.kcp.io",
    Everywhere "apiresourceschemas" "apis.kcp.io",
    Everywhere "logicalclusters" "core.kcp.io",
    Exported "workspaceauthenticationconfigurations" "tenancy.kcp.io",
    Exported "workspaces" "tenancy.kcp.io",
    Exported "workspacetypes" "tenancy.kcp.io",
    OnDemand "publishedresources" "syncagent.kcp.io",
];

/// The definition of a kind, if kcp has it.
pub fn find(group: &str, resource: &str) -> Option<&'static Definition> {
    ALL.iter().find(|it| it.group == group && it.resource == resource)
}

#[cfg(test)]
mod tests {
    use fairway_kernel_schema::crd;
    use fairway_kernel_schema::structural::{Budget, Structural};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_definition_is_a_valid_one() {
        for definition in ALL {
            let mut crd = definition.crd();
            assert_eq!(crd["metadata"]["name"], definition.name());
            assert_eq!(crd["spec"]["group"], definition.group);
            assert_eq!(crd["spec"]["names"]["plural"], definition.resource);
            assert_eq!(crd["spec"]["scope"], "Cluster");
            crd::set_defaults(&mut crd);
            crd::prepare_for_create(&mut crd);
            assert_eq!(crd::validate(&crd), [], "{}", definition.name());
            crd::CrdSpec::parse(&crd).unwrap();
            for version in crd["spec"]["versions"].as_array().unwrap() {
                Structural::compile(&version["schema"]["openAPIV3Schema"]).unwrap();
            }
        }
    }

    /// One version's verdict on an object, after defaults.
    fn verdict(resource: &str, version: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
        let definition = ALL.iter().find(|it| it.resource == resource).unwrap();
        let crd = definition.crd();
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let version = versions.iter().find(|it| it["name"] == version).unwrap();
        let structural = Structural::compile(&version["schema"]["openAPIV3Schema"]).unwrap();
        let mut object = object.clone();
        structural.default(&mut object);
        let errors = structural.validate(&object, old, &mut Budget::default());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_of_upstream_hold() {
        let workspace = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
        let reference =
            |name: &str| json!({"spec": {"reference": {"export": {"name": name, "path": "root"}}}});
        let slice = |name: &str| json!({"spec": {"export": {"name": name, "path": "root"}}});
        for (resource, version, object, old, expected) in [
            ("workspaces", "v1alpha1", workspace(json!({})), None, None),
            (
                "workspaces",
                "v1alpha1",
                json!({"metadata": {"name": "A"}}),
                None,
                Some("metadata.name: Invalid value: \"A\""),
            ),
            (
                "workspaces",
                "v1alpha1",
                workspace(json!({"cluster": "b"})),
                Some(workspace(json!({"cluster": "a"}))),
                Some("cluster is immutable"),
            ),
            (
                "workspaces",
                "v1alpha1",
                workspace(json!({})),
                Some(workspace(json!({"URL": "https://x"}))),
                Some("URL cannot be unset"),
            ),
            (
                "workspacetypes",
                "v1alpha1",
                json!({"metadata": {"name": "any"}}),
                None,
                Some("metadata.name"),
            ),
            (
                "workspacetypes",
                "v1alpha1",
                json!({"metadata": {"name": "x"}, "spec": {"limitAllowedParents": {}}}),
                None,
                Some("spec.limitAllowedParents"),
            ),
            (
                "logicalclusters",
                "v1alpha1",
                json!({"metadata": {"name": "other"}}),
                None,
                Some("Unsupported value: \"other\""),
            ),
            (
                "apiexportendpointslices",
                "v1alpha1",
                slice("a"),
                Some(slice("a")),
                None,
            ),
            (
                "apiexportendpointslices",
                "v1alpha1",
                slice("a"),
                Some(slice("b")),
                Some("APIExport reference must not be changed"),
            ),
            (
                "apibindings",
                "v1alpha2",
                reference("a"),
                Some(reference("a")),
                None,
            ),
            (
                "apibindings",
                "v1alpha2",
                reference("a"),
                Some(reference("b")),
                Some("APIExport reference must not be changed"),
            ),
            (
                "apiexports",
                "v1alpha2",
                json!({"spec": {"resources": [{"group": "", "name": "a", "schema": "v1.a.core"}]}}),
                None,
                None,
            ),
            (
                "apiexports",
                "v1alpha2",
                json!({"spec": {"resources": [{"group": "", "name": "a", "schema": "v1.a.core", "storage": {}}]}}),
                None,
                Some("must validate one and only one schema (oneOf)"),
            ),
            (
                "apiresourceschemas",
                "v1alpha1",
                json!({"spec": {"group": "x.io", "names": {"plural": "a", "kind": "A"}, "scope": "Cluster", "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {}},
                    {"name": "v2", "served": true, "storage": false, "schema": {}},
                ]}}),
                None,
                Some("Conversion must be specified when multiple versions exist"),
            ),
            (
                "publishedresources",
                "v1alpha1",
                json!({"spec": {"resource": {"apiGroup": "a", "kind": "B"},
                    "related": [{"identifier": "x", "origin": "service", "object": {}}]}}),
                None,
                Some("must specify either kind (deprecated) or group, version, resource"),
            ),
        ] {
            let errors = verdict(resource, version, &object, old.as_ref());
            match expected {
                None => assert_eq!(errors, Vec::<String>::new(), "{resource} {object}"),
                Some(part) => assert!(
                    errors.iter().any(|error| error.contains(part)),
                    "{errors:?} lacks {part:?}"
                ),
            }
        }
    }

    #[test]
    fn found_by_name() {
        assert!(find("tenancy.kcp.io", "workspaces").is_some_and(|it| it.reach == Reach::Exported));
        assert!(find("apis.kcp.io", "apibindings").is_some_and(|it| it.reach == Reach::Everywhere));
        assert!(find("apis.kcp.io", "workspaces").is_none());
    }
}
