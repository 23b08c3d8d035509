//! What a new installation begins with is valid, and works together.

use std::sync::Arc;

use fairway_kernel_schema::structural::{Budget, Structural};

use super::*;
use crate::cluster::{ClusterId, WorkspacePath};
use crate::types::{Resolved, TypeReference, WorkspaceType, admit, objection_to};
use crate::{export, schema};

/// What the schema of a kind says of an object.
fn faults(resource: &str, version: &str, object: &Value) -> Vec<String> {
    let definition = crds::ALL.iter().find(|it| it.resource == resource).unwrap().crd();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|it| it["name"] == version).unwrap();
    let structural = Structural::compile(&version["schema"]["openAPIV3Schema"]).unwrap();
    let mut object = object.clone();
    let mut faults: Vec<String> = structural.prune(&mut object);
    structural.default(&mut object);
    let errors = structural.validate(&object, None, &mut Budget::default());
    faults.extend(errors.iter().map(ToString::to_string));
    faults
}

#[test]
fn objects_are_valid() {
    let none = Vec::<String>::new();
    for kind in types() {
        assert_eq!(faults("workspacetypes", "v1alpha1", &kind), none, "{kind}");
        assert_eq!(objection_to(&kind, &ClusterId::root()), None);
    }
    let root = parentless_cluster("root");
    assert_eq!(faults("logicalclusters", "v1alpha1", &root), none);
    let SystemExport {
        schemas,
        export: offered,
    } = system_exports().remove(0);
    assert_eq!(schemas.len(), 1);
    for made in &schemas {
        assert_eq!(faults("apiresourceschemas", "v1alpha1", made), none);
        assert_eq!(schema::objections(made, None), [], "{}", made["metadata"]["name"]);
    }
    assert_eq!(faults("apiexports", "v1alpha2", &offered), none);
    assert_eq!(export::objections(&offered), []);
    assert_eq!(system_exports().remove(0).export, offered, "the same every time");
}

#[test]
fn types_work_together() {
    let all: Vec<Arc<WorkspaceType>> = types()
        .into_iter()
        .map(|mut object| {
            object["metadata"]["annotations"] = json!({"kcp.io/cluster": "root", "kcp.io/path": "root"});
            Arc::new(WorkspaceType::read(&object).unwrap())
        })
        .collect();
    let find =
        |path: &WorkspacePath, name: &str| all.iter().find(|it| it.path == *path && it.name == name).cloned();
    let root = WorkspacePath::root();
    let acme = root.join("acme").unwrap();
    let named = |name: &str| TypeReference {
        name: name.to_owned(),
        path: String::new(),
    };
    for (here, kind, wanted, expected) in [
        (&root, "root:root", None, Some("root:organization")),
        (&acme, "root:organization", None, Some("root:universal")),
        (&acme, "root:organization", Some("team"), Some("root:team")),
        (&acme, "root:universal", None, Some("root:universal")),
        (&root, "root:root", Some("root"), None),
        (&acme, "root:organization", Some("organization"), None),
        (&acme, "root:organization", Some("home"), None),
    ] {
        let wanted = wanted.map(named);
        let admitted = admit(here, kind, wanted.as_ref(), &find);
        assert_eq!(
            admitted.ok().map(|it| it.reference.to_string()).as_deref(),
            expected,
            "{wanted:?} in {here}"
        );
    }
    let universal = Resolved::of(&find(&root, "universal").unwrap(), &find).unwrap();
    assert_eq!(universal.initializers(), ["root:universal", "system:apibindings"]);
    assert_eq!(universal.default_bindings().len(), 1);
    assert!(universal.default_bindings()[0].maintain);
}

#[test]
fn a_creator_is_administrator() {
    assert_eq!(creator_binding("ann")["subjects"][0]["name"], "ann");
}
