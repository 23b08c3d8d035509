//! Whole builds through the front door: what the other tests cannot see in one part alone.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail them")]

use std::sync::Arc;

use fairway_gitops_kustomize::{
    Built, ChartRenderer, ChartRequest, Fetcher, LoadRestrictions, Options, Ports, Reorder, RepositorySpec,
    build,
};
use fairway_gitops_tree::Tree;

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      \
                          containers:\n      - name: main\n        image: nginx\n        envFrom:\n        - configMapRef:\n            name: settings\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(path, text)| (*path, text.as_bytes()))).unwrap()
}

fn built(files: &[(&str, &str)], options: &Options, ports: Ports<'_>) -> Built {
    build(&tree(files).reader(), "top", options, ports).unwrap()
}

fn yaml(files: &[(&str, &str)]) -> String {
    built(files, &Options::default(), Ports::default())
        .to_yaml()
        .unwrap()
}

#[test]
fn generated_names_are_followed() {
    let result = yaml(&[
        (
            "top/kustomization.yaml",
            "namePrefix: p-\nresources: [../base]\nconfigMapGenerator:\n- name: settings\n  behavior: merge\n  literals: [b=2]\n",
        ),
        (
            "base/kustomization.yaml",
            "resources: [d.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [a=1]\n",
        ),
        ("base/d.yaml", DEPLOYMENT),
    ]);
    let name = result
        .lines()
        .find_map(|line| line.strip_prefix("  name: p-settings-"))
        .unwrap();
    assert_eq!(name.len(), 10);
    assert!(
        result.contains(&format!("            name: p-settings-{name}\n")),
        "{result}"
    );
    assert!(result.contains("  a: \"1\"\n  b: \"2\"\n"), "{result}");
}

#[test]
fn files_that_a_result_depends_on_are_known() {
    let tree = tree(&[
        ("top/kustomization.yaml", "resources: [d.yaml, ../base]\n"),
        ("top/d.yaml", DEPLOYMENT),
        ("top/unused.yaml", DEPLOYMENT),
        (
            "base/kustomization.yaml",
            "configMapGenerator: [{name: c, files: [data.txt]}]\n",
        ),
        ("base/data.txt", "text\n"),
    ]);
    let reader = tree.reader();
    build(&reader, "top", &Options::default(), Ports::default()).unwrap();
    let inputs = reader.inputs();
    for changed in [
        "top/kustomization.yaml",
        "top/d.yaml",
        "base/data.txt",
        "base/kustomization.yml",
    ] {
        assert!(inputs.depend_on(changed), "{changed}");
    }
    assert!(!inputs.depend_on("top/unused.yaml"));
}

#[test]
fn order_and_restrictions_are_the_callers() {
    let files = [
        ("top/kustomization.yaml", "resources: [d.yaml, ../other/n.yaml]\n"),
        ("top/d.yaml", DEPLOYMENT),
        (
            "other/n.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: n\n",
        ),
    ];
    let refused = build(
        &tree(&files).reader(),
        "top",
        &Options::default(),
        Ports::default(),
    );
    assert!(refused.unwrap_err().to_string().contains("is not in or below"));
    let mut options = Options {
        load_restrictions: LoadRestrictions::None,
        ..Options::default()
    };
    let kinds = |options: &Options| -> Vec<String> {
        let objects = built(&files, options, Ports::default()).objects;
        objects
            .iter()
            .map(|object| object["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds(&options), ["Namespace", "Deployment"]);
    options.reorder = Reorder::None;
    assert_eq!(kinds(&options), ["Deployment", "Namespace"]);
}

#[test]
fn mistakes_are_named() {
    for (kustomization, words) in [
        (
            "namePrefix: [a]",
            &["top/kustomization.yaml", "namePrefix", "string"][..],
        ),
        (
            "nmePrefix: a",
            &["top/kustomization.yaml", "nmePrefix", "unknown field"],
        ),
        (
            "patches: [{path: p.yaml}]",
            &["patches[0]", "p.yaml", "no such file"],
        ),
        ("patches: [{patch: \"x: y\"}]", &["patches[0]", "unable to parse"]),
        ("resources: [missing.yaml]", &["missing.yaml", "no such file"]),
        ("resources: [bad.yaml]", &["bad.yaml", "line"]),
        (
            "resources: [d.yaml, d.yaml]",
            &["d.yaml", "already registered id"],
        ),
        (
            "replicas: [{name: none, count: 1}]\nresources: [d.yaml]",
            &["none", "does not match"],
        ),
        ("images: [{name: 1}]", &["images[0].name", "string"]),
        (
            "configMapGenerator: [{name: a, literals: [b]}]",
            &["invalid literal source b"],
        ),
    ] {
        let tree = tree(&[
            ("top/kustomization.yaml", kustomization),
            ("top/d.yaml", DEPLOYMENT),
            ("top/bad.yaml", "a: [b\nc: d: e\n"),
        ]);
        let error = build(&tree.reader(), "top", &Options::default(), Ports::default())
            .unwrap_err()
            .to_string();
        for word in words {
            assert!(error.contains(word), "{kustomization}: {error} lacks {word}");
        }
    }
}

#[test]
fn deprecated_fields_are_told() {
    let result = built(
        &[
            (
                "top/kustomization.yaml",
                "bases: [../base]\ncommonLabels: {a: b}\n",
            ),
            ("base/kustomization.yaml", "resources: [d.yaml]\n"),
            ("base/d.yaml", DEPLOYMENT),
        ],
        &Options::default(),
        Ports::default(),
    );
    assert_eq!(result.warnings.len(), 2);
    assert!(
        result.warnings[0].contains("'bases' is deprecated"),
        "{:?}",
        result.warnings
    );
}

/// Answers with what it was asked.
struct EchoCharts;

impl ChartRenderer for EchoCharts {
    fn render(&self, request: &ChartRequest<'_>) -> Result<String, String> {
        let values: Vec<&str> = request.values.iter().map(|(_, text)| text.as_str()).collect();
        Ok(format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n  namespace: {}\ndata:\n  values: {:?}\n  path: {}\n",
            request.release_name.unwrap_or("none"),
            request.namespace.unwrap_or("none"),
            values.concat(),
            request.path,
        ))
    }
}

#[test]
fn charts_are_rendered_by_the_caller() {
    let files = [
        (
            "top/kustomization.yaml",
            "namespace: prod\nhelmCharts:\n- name: c\n  releaseName: r\n  valuesInline: {a: {b: 2}}\n  additionalValuesFiles: [more.yaml]\n",
        ),
        ("top/more.yaml", "z: 1\n"),
        ("top/charts/c/values.yaml", "a:\n  b: 1\n  c: 3\n"),
    ];
    let ports = Ports {
        charts: Some(&EchoCharts),
        fetcher: None,
    };
    let objects = built(&files, &Options::default(), ports).objects;
    assert_eq!(objects[0]["metadata"]["namespace"], "prod");
    assert_eq!(objects[0]["data"]["values"], "a:\n  b: 2\n  c: 3\nz: 1\n");
    assert_eq!(objects[0]["data"]["path"], "top/charts/c");
    let error = build(
        &tree(&files).reader(),
        "top",
        &Options::default(),
        Ports::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("chart 'c'"), "{error}");
}

/// A world with one file and one repository.
struct OneRepository;

impl Fetcher for OneRepository {
    fn file(&self, url: &str) -> Result<Option<Arc<[u8]>>, String> {
        Ok((url == "https://example.com/cm.yaml")
            .then(|| Arc::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: remote\n".as_bytes())))
    }

    fn repository(&self, repository: &RepositorySpec) -> Result<Tree, String> {
        if repository.clone_url != "https://example.com/org/repo" || repository.reference != "v1" {
            return Err(format!("unknown repository {}", repository.raw));
        }
        Tree::of([
            (
                "app/kustomization.yaml",
                "resources: [d.yaml]\nnamePrefix: r-\n".as_bytes(),
            ),
            ("app/d.yaml", DEPLOYMENT.as_bytes()),
        ])
        .map_err(|error| error.to_string())
    }

    fn chart(&self, _: &str, name: &str, _: &str) -> Result<Tree, String> {
        Err(format!("no chart {name}"))
    }
}

#[test]
fn remote_bases_come_from_the_fetcher() {
    let files = [(
        "top/kustomization.yaml",
        "resources: [https://example.com/cm.yaml, \"https://example.com/org/repo//app?ref=v1\"]\n",
    )];
    let ports = Ports {
        charts: None,
        fetcher: Some(&OneRepository),
    };
    let result = built(&files, &Options::default(), ports).to_yaml().unwrap();
    assert!(
        result.contains("name: remote") && result.contains("name: r-web"),
        "{result}"
    );
    let error = build(
        &tree(&files).reader(),
        "top",
        &Options::default(),
        Ports::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("nothing is fetched"), "{error}");
}
