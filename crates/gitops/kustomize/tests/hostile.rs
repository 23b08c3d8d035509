//! Input that wants to harm: each is refused, in bounded time and memory, with words that name the file or the bound.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail them")]

use std::fmt::Write as _;

use fairway_gitops_kustomize::{Error, ErrorKind, Limits, Options, Ports, build};
use fairway_gitops_tree::Tree;
use proptest::prelude::*;

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(path, text)| (*path, text.as_bytes()))).unwrap()
}

fn build_in(tree: &Tree, options: &Options) -> Result<String, Error> {
    build(&tree.reader(), "top", options, Ports::default())?.to_yaml()
}

fn refused(files: &[(&str, &str)]) -> Error {
    build_in(&tree(files), &Options::default()).unwrap_err()
}

#[test]
fn alias_bombs() {
    let mut bomb = String::from(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx0: &x0 [a, a, a, a, a, a, a, a, a]\n",
    );
    for level in 1..30 {
        let _ = writeln!(
            bomb,
            "x{level}: &x{level} [*x{0}, *x{0}, *x{0}, *x{0}, *x{0}, *x{0}]",
            level - 1
        );
    }
    let error = refused(&[
        ("top/kustomization.yaml", "resources: [bomb.yaml]"),
        ("top/bomb.yaml", &bomb),
    ]);
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("bomb.yaml"), "{error}");
}

#[test]
fn ways_out_of_the_tree() {
    for resource in [
        "../../secret.yaml",
        "/etc/passwd",
        "../other/r.yaml",
        "link.yaml",
        "out.yaml",
    ] {
        let mut builder = Tree::builder();
        builder
            .file(
                "top/kustomization.yaml",
                format!("resources: [{resource}]").as_bytes(),
            )
            .unwrap();
        builder.file("other/r.yaml", CONFIG_MAP.as_bytes()).unwrap();
        builder.link("top/link.yaml", "../other/r.yaml").unwrap();
        builder.link("top/out.yaml", "../../etc/passwd").unwrap();
        let error = build_in(&builder.build(), &Options::default()).unwrap_err();
        assert!(error.to_string().contains(resource), "{resource}: {error}");
    }
}

#[test]
fn circles() {
    let error = refused(&[
        ("top/kustomization.yaml", "resources: [../a]"),
        ("a/kustomization.yaml", "resources: [../b]"),
        ("b/kustomization.yaml", "resources: [../a]"),
    ]);
    assert!(error.to_string().contains("cycle detected"), "{error}");
    let error = refused(&[("top/kustomization.yaml", "resources: [.]")]);
    assert!(error.to_string().contains("cycle detected"), "{error}");
}

#[test]
fn bases_that_multiply() {
    // Each level uses the next one twice, so the last one would be entered a million times.
    let mut files: Vec<(String, String)> = Vec::new();
    for level in 0..20 {
        let next = level + 1;
        files.push((
            format!("l{level}/kustomization.yaml"),
            format!("resources: [../l{level}a, ../l{level}b]\n"),
        ));
        for (side, prefix) in [("a", "p"), ("b", "q")] {
            files.push((
                format!("l{level}{side}/kustomization.yaml"),
                format!("namePrefix: {prefix}\nresources: [../l{next}]\n"),
            ));
        }
    }
    files.push((
        "l20/kustomization.yaml".to_owned(),
        "resources: [r.yaml]".to_owned(),
    ));
    files.push(("l20/r.yaml".to_owned(), CONFIG_MAP.to_owned()));
    files.push((
        "top/kustomization.yaml".to_owned(),
        "resources: [../l0]".to_owned(),
    ));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let options = Options {
        limits: Limits {
            kustomizations: 2_000,
            ..Limits::default()
        },
        ..Options::default()
    };
    let error = build_in(&tree(&files), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn text_that_doubles() {
    let mut replacements = String::from("resources: [r.yaml]\nreplacements:\n");
    for _ in 0..64 {
        replacements += "- source: {kind: ConfigMap, fieldPath: data.k}\n  targets:\n  - select: {kind: ConfigMap}\n    \
                         fieldPaths: [data.k]\n    options: {delimiter: \":\", index: 99}\n";
    }
    let error = refused(&[
        ("top/kustomization.yaml", &replacements),
        ("top/r.yaml", CONFIG_MAP),
    ]);
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn vars_that_multiply() {
    let long = "x".repeat(1 << 20);
    let many = "$(V)".repeat(1 << 18);
    let resources = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    many: {many}\ndata:\n  k: {long}\n"
    );
    let error = refused(&[
        (
            "top/kustomization.yaml",
            "resources: [r.yaml]\nvars:\n- name: V\n  objref: {kind: ConfigMap, name: a, apiVersion: v1}\n  fieldref: {fieldPath: data.k}\n",
        ),
        ("top/r.yaml", &resources),
    ]);
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn regular_expressions_that_explode() {
    let error = refused(&[
        (
            "top/kustomization.yaml",
            "resources: [r.yaml]\npatches:\n- target: {name: \"((a{1,999}){1,999}){1,999}\"}\n  patch: '[{\"op\": \"remove\", \"path\": \"/data\"}]'\n",
        ),
        ("top/r.yaml", CONFIG_MAP),
    ]);
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    // Matching is linear, whatever the pattern.
    let name = "a".repeat(200);
    let built = build_in(
        &tree(&[
            (
                "top/kustomization.yaml",
                "resources: [r.yaml]\npatches:\n- target: {name: \"(a*)*(a*)*b\"}\n  patch: '[{\"op\": \"remove\", \"path\": \"/data\"}]'\n",
            ),
            (
                "top/r.yaml",
                &CONFIG_MAP.replace("name: a", &format!("name: {name}")),
            ),
        ]),
        &Options::default(),
    );
    assert!(built.unwrap().contains("data:"));
}

#[test]
fn deep_nesting() {
    let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let resource = format!("apiVersion: v1\nkind: Foo\nmetadata: {{name: a}}\nx: {deep}\n");
    let error = refused(&[
        ("top/kustomization.yaml", "resources: [r.yaml]"),
        ("top/r.yaml", &resource),
    ]);
    assert!(
        error.to_string().contains("limit") && error.to_string().contains("r.yaml"),
        "{error}"
    );
    // Operations that put a value into itself, again and again.
    let mut operations = String::new();
    for _ in 0..300 {
        operations += "    - {op: copy, from: /x, path: /x/x}\n";
    }
    let patch = format!("resources: [r.yaml]\npatches:\n- target: {{kind: Foo}}\n  patch: |\n{operations}");
    let error = refused(&[
        ("top/kustomization.yaml", &patch),
        (
            "top/r.yaml",
            "apiVersion: v1\nkind: Foo\nmetadata: {name: a}\nx: {y: z}\n",
        ),
    ]);
    assert!(error.to_string().contains("level"), "{error}");
}

#[test]
fn results_that_are_too_large() {
    let options = Options {
        limits: Limits {
            output_bytes: 1_000,
            resources: 10,
            ..Limits::default()
        },
        ..Options::default()
    };
    let long = CONFIG_MAP.replace("k: v", &format!("k: {}", "v".repeat(2_000)));
    let error = build_in(
        &tree(&[
            ("top/kustomization.yaml", "resources: [r.yaml]"),
            ("top/r.yaml", &long),
        ]),
        &options,
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let many: String = (0..11)
        .map(|at| CONFIG_MAP.replace("name: a", &format!("name: a{at}")) + "---\n")
        .collect();
    let error = build_in(
        &tree(&[
            ("top/kustomization.yaml", "resources: [r.yaml]"),
            ("top/r.yaml", &many),
        ]),
        &options,
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

/// Pieces of kustomizations and resources, from which nonsense is put together.
fn fragment() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "resources: [r.yaml]\n",
        "namePrefix: x-\n",
        "namespace: n\n",
        "patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a}\n    data: {k: null}\n",
        "patches:\n- target: {kind: .*}\n  patch: '[{\"op\": \"remove\", \"path\": \"/metadata\"}]'\n",
        "patches:\n- target: {}\n  patch: '{kind: x, metadata: {name: y}, $patch: delete}'\n",
        "replacements:\n- source: {kind: ConfigMap}\n  targets: [{select: {kind: .*}, fieldPaths: [\"a.[b=c].*.0\"], options: {create: true}}]\n",
        "configMapGenerator:\n- name: a\n  behavior: merge\n  literals: [a=b]\n",
        "labels:\n- pairs: {a: b}\n  fields: [{path: data/k, create: true}]\n",
        "vars:\n- name: A\n  objref: {kind: ConfigMap, name: a}\n",
        "images: [{name: \"(\", newTag: x}]\n",
        "transformers:\n- |\n  apiVersion: builtin\n  kind: ValueAddTransformer\n  metadata: {name: x}\n  targets: [{fieldPath: metadata}]\n",
        "---\n",
        "a: &a [*a]\n",
        "apiVersion: v1\nkind: List\nitems: [{}, null, {kind: List, items: [1]}]\n",
        "apiVersion: v1\nkind: Foo\nmetadata: {name: a, annotations: [], labels: 3}\n",
        "metadata: {name: a}\nkind: RoleBinding\nsubjects: [1, {kind: ServiceAccount, namespace: {}}]\n",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => "[ -~\n]{0,40}"]
}

fn file() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..4).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever is in the files, a build ends with a result or an error.
    #[test]
    fn nonsense_never_panics(kustomization in file(), resource in file(), base in file()) {
        let tree = tree(&[
            ("top/kustomization.yaml", &kustomization),
            ("top/r.yaml", &resource),
            ("base/kustomization.yaml", &base),
        ]);
        let _ = build_in(&tree, &Options::default());
    }
}
