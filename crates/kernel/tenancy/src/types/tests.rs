//! Types by extension, and who may stand below whom.

use serde_json::json;

use super::*;

/// The types that a new installation has, and some that a user might add.
fn catalogue() -> Vec<Value> {
    let of = |path: &str, cluster: &str, name: &str, spec: Value| {
        json!({
            "metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster, "kcp.io/path": path}},
            "spec": spec,
        })
    };
    let root = |name: &str, spec: Value| of("root", "root", name, spec);
    let with = |names: &[&str]| {
        let list: Vec<_> = names
            .iter()
            .map(|it| json!({"name": it, "path": "root"}))
            .collect();
        json!({"with": list})
    };
    vec![
        root(
            "root",
            json!({
                "extend": with(&["universal"]),
                "limitAllowedParents": {"none": true},
                "defaultChildWorkspaceType": {"name": "organization", "path": "root"},
            }),
        ),
        root(
            "universal",
            json!({"initializer": true, "defaultAPIBindings": [{"path": "root", "export": "tenancy.kcp.io"}]}),
        ),
        root(
            "organization",
            json!({
                "extend": with(&["universal"]),
                "limitAllowedParents": {"types": [{"name": "root", "path": "root"}]},
                "limitAllowedChildren": {"types": [{"name": "universal", "path": "root"}]},
                "defaultChildWorkspaceType": {"name": "universal", "path": "root"},
            }),
        ),
        root(
            "team",
            json!({
                "extend": with(&["universal"]),
                "limitAllowedParents": {"types": [{"name": "organization", "path": "root"}, {"name": "team", "path": "root"}]},
            }),
        ),
        root("bare", json!({})),
        root("leaf", json!({"limitAllowedChildren": {"none": true}})),
        root("loop-a", json!({"extend": with(&["loop-b"])})),
        root("loop-b", json!({"extend": with(&["loop-c"])})),
        root("loop-c", json!({"extend": with(&["loop-b"])})),
        root("dangling", json!({"extend": with(&["nothing"])})),
        root(
            "diamond",
            json!({"initializer": true, "extend": with(&["left", "right"])}),
        ),
        root(
            "left",
            json!({"initializer": true, "terminator": true, "extend": with(&["bottom"])}),
        ),
        root("right", json!({"extend": with(&["bottom"])})),
        root("bottom", json!({"initializer": true})),
        of(
            "root:acme",
            "c1",
            "web",
            json!({
                "initializer": true,
                "extend": {"with": [{"name": "universal"}]},
                "additionalWorkspaceLabels": {"tier": "web"},
                "defaultAPIBindingLifecycle": "Maintain",
                "defaultAPIBindings": [{"export": "own"}, {"path": "root", "export": "tenancy.kcp.io"}],
            }),
        ),
        of("root:acme", "c1", "bare", json!({"terminator": true})),
    ]
}

fn find(path: &WorkspacePath, name: &str) -> Option<Arc<WorkspaceType>> {
    let all = catalogue();
    let mut types = all.iter().map(|it| WorkspaceType::read(it).unwrap());
    types.find(|it| it.path == *path && it.name == name).map(Arc::new)
}

fn reference(text: &str) -> TypeReference {
    let (path, name) = text.rsplit_once(':').unwrap_or(("", text));
    TypeReference {
        name: name.to_owned(),
        path: path.to_owned(),
    }
}

fn resolved(text: &str) -> Result<Resolved, TypeError> {
    let own = resolve(&WorkspacePath::root(), &reference(text), &find)?;
    Resolved::of(&own, &find)
}

#[test]
fn references() {
    for (from, reference_text, expected) in [
        ("root:acme:deep:er", "web", Some("root:acme:web")),
        ("root:acme", "bare", Some("root:acme:bare")),
        ("root:other", "bare", Some("root:bare")),
        ("root:acme", "root:bare", Some("root:bare")),
        ("c9", "universal", Some("root:universal")),
        ("root:other", "web", None),
        ("root:acme", "root:web", None),
        ("root:acme", "Not A Path:web", None),
        ("root", "", None),
    ] {
        let from = WorkspacePath::parse(from).unwrap();
        let found = resolve(&from, &reference(reference_text), &find);
        assert_eq!(
            found.as_ref().ok().map(|it| it.qualified()).as_deref(),
            expected,
            "{reference_text} in {from}"
        );
    }
}

#[test]
fn extension() {
    let names = |it: &Resolved| it.aliases().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let diamond = resolved("root:diamond").unwrap();
    assert_eq!(names(&diamond), ["left", "bottom", "right", "diamond"]);
    assert_eq!(
        diamond.initializers(),
        ["root:left", "root:bottom", "root:diamond"]
    );
    assert_eq!(diamond.terminators(), ["root:left"]);
    assert_eq!(diamond.default_bindings(), []);
    let web = resolved("root:acme:web").unwrap();
    assert_eq!(names(&web), ["universal", "web"]);
    assert_eq!(
        web.initializers(),
        ["root:universal", "c1:web", "system:apibindings"]
    );
    let binding = |path: &str, export: &str, maintain| DefaultBinding {
        path: path.to_owned(),
        export: export.to_owned(),
        maintain,
    };
    assert_eq!(
        web.default_bindings(),
        [
            binding("root", "tenancy.kcp.io", true),
            binding("c1", "own", true)
        ]
    );
    let questions = web.use_questions();
    let asked: Vec<_> = questions
        .iter()
        .map(|it| (it.cluster.as_str(), it.name.as_str()))
        .collect();
    assert_eq!(asked, [("root", "universal"), ("c1", "web")]);
    assert_eq!(
        questions[1].refusal,
        "unable to use workspace type root:acme:web: missing verb='use' permission on workspacetype"
    );
}

#[test]
fn broken_extension() {
    for (name, message) in [
        (
            "root:loop-a",
            "circular dependency detected in workspace type root:loop-b: root:loop-b -> root:loop-c",
        ),
        (
            "root:dangling",
            "unable to find inherited workspace type root:nothing",
        ),
    ] {
        assert_eq!(resolved(name).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_long_chain_ends() {
    let chain = |_: &WorkspacePath, name: &str| {
        let next = name.parse::<u32>().ok()? + 1;
        let object = json!({
            "metadata": {"name": name, "annotations": {"kcp.io/cluster": "root"}},
            "spec": {"extend": {"with": [{"name": next.to_string(), "path": "root"}]}},
        });
        WorkspaceType::read(&object).map(Arc::new)
    };
    let first = chain(&WorkspacePath::root(), "0").unwrap();
    assert_eq!(
        Resolved::of(&first, &chain).unwrap_err().to_string(),
        "workspace type root:0 extends more than 64 types"
    );
}

#[test]
fn placement() {
    for (parent, child, expected) in [
        ("root:root", "root:organization", &[][..]),
        ("root:root", "root:universal", &[]),
        ("root:organization", "root:universal", &[]),
        ("root:organization", "root:team", &[]),
        ("root:team", "root:team", &[]),
        (
            "root:root",
            "root:root",
            &["workspace type root:root cannot have any parent"],
        ),
        (
            "root:organization",
            "root:organization",
            &[
                "workspace type root:organization only allows [root:root] parent workspaces, but parent type \
                 root:organization only implements [root:organization root:universal]",
            ],
        ),
        (
            "root:organization",
            "root:bare",
            &[
                "workspace type root:organization only allows [root:universal] child workspaces, but child type \
                 root:bare only implements [root:bare]",
            ],
        ),
        (
            "root:leaf",
            "root:team",
            &[
                "workspace type root:team only allows [root:organization root:team] parent workspaces, but parent type \
                 root:leaf only implements [root:leaf]",
                "workspace type root:leaf cannot have any child",
            ],
        ),
    ] {
        let objections = resolved(child)
            .unwrap()
            .objections_below(&resolved(parent).unwrap());
        assert_eq!(objections, expected, "{child} below {parent}");
    }
}

#[test]
fn admission() {
    for (here, here_type, requested, expected) in [
        ("root", "root:root", None, Ok("root:organization")),
        ("root", "root:root", Some("universal"), Ok("root:universal")),
        ("root:acme", "root:organization", None, Ok("root:universal")),
        ("root:acme", "root:organization", Some("web"), Ok("root:acme:web")),
        (
            "root:acme",
            "root:universal",
            None,
            Err("spec.type must be set: workspace type root:universal has no spec.defaultChildWorkspaceType"),
        ),
        (
            "root",
            "root:root",
            Some("nothing"),
            Err(
                "workspace type \"nothing\" cannot be resolved: create it, or name one that exists in spec.type",
            ),
        ),
        (
            "root",
            "root:gone",
            Some("universal"),
            Err(
                "parent type cannot be resolved: workspace type \"root:gone\" cannot be resolved: create it, or name one that exists in spec.type",
            ),
        ),
        (
            "root",
            "root:root",
            Some("team"),
            Err(
                "workspace type root:team only allows [root:organization root:team] parent workspaces, but parent type root:root only implements [root:root root:universal]",
            ),
        ),
    ] {
        let here = WorkspacePath::parse(here).unwrap();
        let requested = requested.map(reference);
        let answer = admit(&here, here_type, requested.as_ref(), &find);
        assert_eq!(
            answer
                .map(|it| it.reference.to_string())
                .map_err(|error| error.to_string()),
            expected.map(str::to_owned).map_err(str::to_owned),
            "{requested:?} in {here}"
        );
    }
    let acme = WorkspacePath::parse("root:acme").unwrap();
    let admitted = admit(&acme, "root:organization", Some(&reference("web")), &find).unwrap();
    assert_eq!(admitted.labels["tier"], "web");
    assert_eq!(admitted.questions.len(), 2);
}

#[test]
fn types_that_are_refused() {
    let acme = ClusterId::parse("c1").unwrap();
    for (object, cluster, expected) in [
        (json!({"metadata": {"name": "ok"}}), acme.clone(), None),
        (json!({"metadata": {"name": "root"}}), ClusterId::root(), None),
        (
            json!({"metadata": {"name": "root"}}),
            acme.clone(),
            Some("root workspace type can only be created in root cluster"),
        ),
        (
            json!({"metadata": {"name": "any"}}),
            acme.clone(),
            Some("metadata.name: Invalid value: \"any\": name is reserved"),
        ),
        (
            json!({"metadata": {"name": "x"}, "spec": {"defaultChildWorkspaceType": {"name": "a"}}}),
            acme.clone(),
            Some(".spec.defaultChildWorkspaceType.path must be set"),
        ),
        (
            json!({"metadata": {"name": "x"}, "spec": {"limitAllowedParents": {"types": [{"name": "a", "path": "root"}, {"name": "b"}]}}}),
            acme,
            Some(".spec.limitAllowedParents.types[1].path must be set"),
        ),
    ] {
        assert_eq!(objection_to(&object, &cluster).as_deref(), expected, "{object}");
    }
}

#[test]
fn initializers_name_their_type() {
    let (cluster, name) = WorkspaceType::of_initializer("c1:web").unwrap();
    assert_eq!((cluster.as_str(), name), ("c1", "web"));
    let (cluster, name) = WorkspaceType::of_initializer("system:apibindings").unwrap();
    assert_eq!((cluster.as_str(), name), ("system", "apibindings"));
    assert_eq!(WorkspaceType::of_initializer("web"), None);
}
