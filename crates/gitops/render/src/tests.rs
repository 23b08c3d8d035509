//! Sources of each kind through the front door, and what they depend on.

use std::collections::BTreeMap;

use fairway_gitops_helm::Offline;
use fairway_gitops_tree::Tree;

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec()))).unwrap()
}

fn run(tree: &Tree, directory: &str, params: &Params) -> Result<Rendered, Error> {
    let offline = Offline::default();
    let ports = Ports {
        environment: &offline,
        fetcher: None,
    };
    render(tree, directory, None, params, ports)
}

fn named(rendered: &Rendered) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rendered
        .objects
        .iter()
        .map(|o| format!("{}/{}", text(&o["kind"]), text(&o["metadata"]["name"])))
        .collect()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n";

fn map(name: &str) -> String {
    MAP.replace("NAME", name)
}

fn repository() -> Tree {
    tree(&[
        ("plain/b.yaml", &map("b")),
        ("plain/a.yml", &format!("---\n{}---\n{}", map("a1"), map("a2"))),
        (
            "plain/list.json",
            r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}]}"#,
        ),
        ("plain/notes.txt", "not a manifest"),
        (
            "plain/skipped.yaml",
            "# +argocd:skip-file-rendering\nnot: [a manifest",
        ),
        ("plain/sub/c.yaml", &map("c")),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", &map("m")),
        (
            "overlay/kustomization.yaml",
            "resources: [../base]\nnamePrefix: p-\n",
        ),
        ("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        ("chart/values.yaml", "name: default\n"),
        (
            "chart/templates/map.yaml",
            &map("{{ .Release.Name }}-{{ .Values.name }}"),
        ),
    ])
}

#[test]
fn a_directory_is_what_its_files_say() {
    let repository = repository();
    for (directory, kind, expected) in [
        (
            "plain",
            Kind::Directory,
            vec!["ConfigMap/a1", "ConfigMap/a2", "ConfigMap/b", "Secret/s"],
        ),
        ("overlay", Kind::Kustomize, vec!["ConfigMap/p-m"]),
        ("chart", Kind::Helm, vec!["ConfigMap/release-name-default"]),
    ] {
        let rendered = run(&repository, directory, &Params::default()).unwrap();
        assert_eq!(rendered.kind, kind, "{directory}");
        assert_eq!(named(&rendered), expected, "{directory}");
    }
}

#[test]
fn manifests_are_chosen_by_patterns() {
    let repository = repository();
    let choose = |recurse, include: &str, exclude: &str| {
        let directory = DirectorySource {
            recurse,
            include: include.to_owned(),
            exclude: exclude.to_owned(),
        };
        let params = Params {
            directory,
            ..Params::default()
        };
        named(&run(&repository, "plain", &params).unwrap())
    };
    assert_eq!(
        choose(true, "", "").last().map(String::as_str),
        Some("ConfigMap/c")
    );
    assert_eq!(choose(true, "*.yaml", "b*"), ["ConfigMap/c"]);
    assert_eq!(choose(false, "{b,list}.*", "*.json"), ["ConfigMap/b"]);
}

#[test]
fn a_result_knows_what_it_depends_on() {
    let repository = repository();
    let inputs = |directory: &str| run(&repository, directory, &Params::default()).unwrap().inputs;
    for (directory, changed, expected) in [
        ("overlay", "base/map.yaml", true),
        ("overlay", "base/kustomization.yaml", true),
        ("overlay", "overlay/Chart.yaml", true),
        ("overlay", "plain/b.yaml", false),
        ("overlay", "base/other.yaml", false),
        ("chart", "chart/values.yaml", true),
        ("chart", "base/map.yaml", false),
        ("plain", "plain/new.yaml", true),
        ("plain", "chart/values.yaml", false),
    ] {
        assert_eq!(
            inputs(directory).depend_on(changed),
            expected,
            "{directory} {changed}"
        );
    }
}

#[test]
fn variables_are_substituted_after_rendering() {
    let files = tree(&[
        ("k/kustomization.yaml", "resources: [map.yaml]\n"),
        (
            "k/map.yaml",
            &(map("m") + "data:\n  host: ${CLUSTER_NAME}.${BASE:-example.com}\n"),
        ),
    ]);
    let env = BTreeMap::from([("CLUSTER_NAME".to_owned(), "etl4".to_owned())]);
    let params = Params {
        env: Some(env),
        ..Params::default()
    };
    let rendered = run(&files, "k", &params).unwrap();
    assert_eq!(rendered.objects[0]["data"]["host"], "etl4.example.com");
    let untouched = run(&files, "k", &Params::default()).unwrap();
    assert_eq!(
        untouched.objects[0]["data"]["host"],
        "${CLUSTER_NAME}.${BASE:-example.com}"
    );
}

#[test]
fn a_kustomization_inflates_charts() {
    let files = tree(&[
        (
            "k/kustomization.yaml",
            "helmCharts:\n- name: c\n  releaseName: r\n  valuesInline: {name: inline}\n",
        ),
        (
            "k/charts/c/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 0.1.0\n",
        ),
        ("k/charts/c/values.yaml", "name: default\n"),
        (
            "k/charts/c/templates/map.yaml",
            &map("{{ .Release.Name }}-{{ .Values.name }}"),
        ),
    ]);
    assert_eq!(
        named(&run(&files, "k", &Params::default()).unwrap()),
        ["ConfigMap/r-inline"]
    );
}

#[test]
fn a_chart_elsewhere_needs_values_from_here() {
    let inflate = |more: &str| {
        let kustomization = format!(
            "helmGlobals: {{chartHome: ../charts}}\nhelmCharts:\n- name: c\n  releaseName: r\n{more}"
        );
        let files = tree(&[
            ("k/kustomization.yaml", &kustomization),
            ("k/v.yaml", "name: mine\n"),
            ("charts/c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
            ("charts/c/values.yaml", "name: default\n"),
            ("charts/c/templates/map.yaml", &map("{{ .Values.name }}")),
        ]);
        run(&files, "k", &Params::default())
            .map(|rendered| named(&rendered).join(" "))
            .map_err(|error| error.to_string())
    };
    assert_eq!(inflate("  valuesFile: v.yaml\n").unwrap(), "ConfigMap/mine");
    for more in ["", "  valuesInline: {name: inline}\n"] {
        let error = inflate(more).unwrap_err();
        assert!(error.contains("security; file 'charts/c/values.yaml'"), "{error}");
    }
}

#[test]
fn a_chart_in_a_kustomization_is_named_by_a_template() {
    let chart = |settings: &str| {
        tree(&[
            (
                "k/kustomization.yaml",
                &format!("helmCharts:\n- name: c\n  {settings}\n"),
            ),
            (
                "k/charts/c/Chart.yaml",
                "apiVersion: v2\nname: c\nversion: 0.1.0\n",
            ),
            ("k/charts/c/values.yaml", ""),
            ("k/charts/c/templates/map.yaml", &map("{{ .Release.Name }}")),
        ])
    };
    let built = |settings: &str| run(&chart(settings), "k", &Params::default());
    for (settings, expected) in [
        ("nameTemplate: 'x-{{ \"ABC\" | lower }}'", "ConfigMap/x-abc"),
        ("releaseName: own", "ConfigMap/own"),
        ("version: 0.1.0", "ConfigMap/release-name"),
    ] {
        assert_eq!(named(&built(settings).unwrap()), [expected], "{settings}");
    }
    for (settings, expected) in [
        (
            "nameTemplate: x\n  releaseName: own",
            "cannot set nameTemplate and also releaseName",
        ),
        ("nameTemplate: '{{ nope }}'", "function \"nope\" not defined"),
        ("nameTemplate: 'Not_A_Name'", "invalid release name"),
    ] {
        let error = built(settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{settings}: {error}");
    }
}

/// What a renderer has read already is not read again: it must be what reading the text would give.
#[test]
fn objects_of_a_chart_are_those_of_its_text() {
    let hook = map("hook").replace(
        "metadata:\n",
        "metadata:\n  annotations: {helm.sh/hook: pre-install}\n",
    );
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n";
    let files = tree(&[
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        ("c/crds/crd.yaml", &format!("{}---\n{}", map("crd1"), map("crd2"))),
        (
            "c/templates/all.yaml",
            &format!("{}---\n# nothing\n---\n{hook}---\n{list}", map("m")),
        ),
    ]);
    let mut params = Params::default();
    params.helm.include_crds = true;
    let rendered = run(&files, "c", &params).unwrap();
    assert_eq!(rendered.objects, objects(&rendered.text, "c").unwrap());
    assert_eq!(
        named(&rendered),
        [
            "ConfigMap/crd1",
            "ConfigMap/crd2",
            "ConfigMap/m",
            "Secret/s",
            "ConfigMap/hook"
        ]
    );
}

#[test]
fn a_result_may_be_larger_than_a_request() {
    let body = "x".repeat(1 << 20);
    let manifest = format!("{}data: {{x: {body}}}\n", map("large"));
    let documents: Vec<String> = (0..4)
        .map(|at| manifest.replace("large", &format!("l{at}")))
        .collect();
    let files = tree(&[
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        ("c/templates/all.yaml", &documents.join("---\n")),
    ]);
    let mut params = Params::default();
    assert_eq!(run(&files, "c", &params).unwrap().objects.len(), 4);
    params.env = Some(BTreeMap::new());
    assert_eq!(run(&files, "c", &params).unwrap().objects.len(), 4);
}

#[test]
fn errors_name_the_file() {
    for (files, expected) in [
        (vec![("d/x.yaml", "a: [")], "x.yaml"),
        (vec![("d/x.yaml", "kind: A\n")], "apiVersion"),
        (vec![("d/x.yaml", "- 1\n")], "not an object"),
        (vec![("d/x.jsonnet", "{}")], "Jsonnet"),
        (
            vec![("d/kustomization.yaml", "resources: [gone.yaml]\n")],
            "gone.yaml",
        ),
        (
            vec![("d/kustomization.yaml", "resources: [../../outside]\n")],
            "outside",
        ),
        (vec![("d/Chart.yaml", "name: c\n")], "d"),
    ] {
        let error = run(&tree(&files), "d", &Params::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{files:?}: {error}");
    }
}
