//! What touches what: a table of commits, and random commits, of which each untouched result must stay as it was.

use std::collections::{BTreeMap, BTreeSet};

use fairway_gitops_helm::Offline;
use fairway_gitops_tree::{Change, Tree};
use proptest::prelude::*;

use super::*;
use crate::{DirectorySource, HelmSource, Params, Ports, ValuesFile, attempt};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec()))).unwrap()
}

/// What a render came to, as far as anybody can see it.
type Seen = std::result::Result<String, String>;

fn run(tree: &Tree, directory: &str, params: &Params) -> (Seen, Inputs) {
    let offline = Offline::default();
    let ports = Ports {
        environment: &offline,
        fetcher: None,
    };
    match attempt(tree, directory, None, params, ports) {
        Ok(rendered) => (Ok(rendered.text), rendered.inputs),
        Err(failure) => (Err(failure.error.to_string()), failure.inputs),
    }
}

fn repository() -> Tree {
    tree(&[
        ("apps/a/kustomization.yaml", "resources: [../../base]\n"),
        (
            "apps/b/kustomization.yaml",
            "resources: [../../base, extra.yaml]\n",
        ),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", MAP),
        ("base/notes.md", "notes"),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 0.1.0\n",
        ),
        ("chart/values.yaml", "name: v\n"),
        ("chart/templates/map.yaml", MAP),
        (
            "inflated/kustomization.yaml",
            "helmGlobals: {chartHome: ..}\nhelmCharts: [{name: chart, releaseName: r, valuesFile: v.yaml}]\n",
        ),
        ("inflated/v.yaml", "name: i\n"),
        ("plain/map.yaml", MAP),
        ("plain/README.md", "about"),
        ("plain/sub/map.yaml", MAP),
        ("later/README.md", "nothing yet"),
    ])
}

const DIRECTORIES: [&str; 8] = [
    "apps/a", "apps/b", "base", "chart", "inflated", "plain", "later", "absent",
];

fn noted(tree: &Tree, params: &Params) -> Dependents<&'static str> {
    let mut dependents = Dependents::default();
    for directory in DIRECTORIES {
        dependents.insert(directory, run(tree, directory, params).1);
    }
    dependents
}

#[test]
fn a_commit_touches_those_who_would_see_it() {
    let write = |text: &str| Change::File(text.as_bytes().into());
    let other = || write(&MAP.replace("name: m", "name: other"));
    /// Why, what is changed, and who must see it.
    type Case = (&'static str, Vec<(&'static str, Change)>, &'static [&'static str]);
    let cases: Vec<Case> = vec![
        (
            "a base's file",
            vec![("base/map.yaml", other())],
            &["apps/a", "apps/b", "base"],
        ),
        (
            "an overlay",
            vec![("apps/a/kustomization.yaml", write(""))],
            &["apps/a"],
        ),
        (
            "written again, the same",
            vec![("base/map.yaml", write(MAP))],
            &[],
        ),
        (
            "a file that a kustomization does not name",
            vec![("base/notes.md", write("more")), ("base/new.yaml", write(MAP))],
            &[],
        ),
        (
            "a file that was missing",
            vec![("apps/b/extra.yaml", other())],
            &["apps/b"],
        ),
        (
            "a kustomization at a place that was missing",
            vec![("apps/b/extra.yaml/kustomization.yaml", write(""))],
            &["apps/b"],
        ),
        (
            "a kustomization of another name",
            vec![("base/Kustomization", write(""))],
            &["apps/a", "apps/b", "base"],
        ),
        (
            "a kustomization where plain manifests were",
            vec![("plain/kustomization.yml", write(""))],
            &["plain"],
        ),
        (
            "a chart where plain manifests were",
            vec![("plain/Chart.yaml", write(""))],
            &["plain"],
        ),
        (
            "a manifest in a directory",
            vec![("plain/new.yaml", other())],
            &["plain"],
        ),
        (
            "what is listed and not read, changed",
            vec![("plain/README.md", write("x"))],
            &["plain"],
        ),
        (
            "a manifest below, not recursed into",
            vec![("plain/sub/new.yaml", other())],
            &[],
        ),
        (
            "the only file of a directory below",
            vec![("plain/sub/map.yaml", Change::Gone)],
            &["plain"],
        ),
        (
            "a directory that appears",
            vec![("plain/more/map.yaml", other())],
            &["plain"],
        ),
        (
            "values",
            vec![("chart/values.yaml", write("name: w\n"))],
            &["chart", "inflated"],
        ),
        (
            "a template that appears",
            vec![("chart/templates/deep/new.yaml", other())],
            &["chart", "inflated"],
        ),
        (
            "a file to ignore by",
            vec![("chart/.helmignore", write("x"))],
            &["chart", "inflated"],
        ),
        (
            "values where there were none",
            vec![("chart/values.schema.json", write("{}"))],
            &["chart", "inflated"],
        ),
        (
            "a kustomization where nothing was",
            vec![("later/kustomization.yaml", write(""))],
            &["later"],
        ),
        (
            "the directory itself appears",
            vec![("absent/map.yaml", other())],
            &["absent"],
        ),
        (
            "a link on the way to what was missing",
            vec![("absent", Change::Link("plain".into()))],
            &["absent"],
        ),
        (
            "a base becomes a link",
            vec![
                ("base/kustomization.yaml", Change::Gone),
                ("base/map.yaml", Change::Gone),
                ("base/notes.md", Change::Gone),
                ("base", Change::Link("plain".into())),
            ],
            &["apps/a", "apps/b", "base"],
        ),
        ("elsewhere", vec![("docs/new.md", write("x"))], &[]),
    ];
    let old = repository();
    let dependents = noted(&old, &Params::default());
    for (why, changes, expected) in cases {
        let changed: Vec<&str> = changes.iter().map(|(path, _)| *path).collect();
        let new = old.changed(changes.clone()).unwrap();
        let touched: BTreeSet<&str> = dependents
            .touched(changed, &old, &new)
            .into_iter()
            .copied()
            .collect();
        assert_eq!(touched, expected.iter().copied().collect(), "{why}");
    }
}

#[test]
fn values_files_that_appear_mend_a_chart() {
    let old = repository();
    let params = Params {
        helm: HelmSource {
            values_files: vec![ValuesFile::InTree("../env/prod.yaml".to_owned())],
            ..HelmSource::default()
        },
        ..Params::default()
    };
    let (failed, inputs) = run(&old, "chart", &params);
    assert!(failed.unwrap_err().contains("env/prod.yaml"));
    let mut dependents = Dependents::default();
    dependents.insert("chart", inputs);
    let new = old
        .changed([("env/prod.yaml", Change::File(b"name: p\n".as_slice().into()))])
        .unwrap();
    assert_eq!(dependents.touched(["env/prod.yaml"], &old, &new), [&"chart"]);
    assert!(run(&new, "chart", &params).0.is_ok());
}

#[test]
fn only_the_last_note_of_a_result_counts() {
    let old = repository();
    let mut dependents = noted(&old, &Params::default());
    let without_base = old
        .changed([("apps/a/kustomization.yaml", Change::File(b"".as_slice().into()))])
        .unwrap();
    dependents.insert("apps/a", run(&without_base, "apps/a", &Params::default()).1);
    dependents.remove(&"apps/b");
    assert_eq!(dependents.len(), DIRECTORIES.len() - 1);
    let new = without_base.changed([("base/map.yaml", Change::Gone)]).unwrap();
    let touched = dependents.touched(["base/map.yaml"], &without_base, &new);
    assert_eq!(touched, [&"base"]);
    for directory in DIRECTORIES {
        dependents.remove(&directory);
    }
    assert!(dependents.is_empty());
    assert!(dependents.files.0.is_empty() && dependents.missing.0.is_empty());
    assert!(dependents.present.0.is_empty() && dependents.listed.0.is_empty());
}

/// Paths that mean something to some renderer, or lie in each other's way.
const PLACES: [&str; 20] = [
    "apps/a/kustomization.yaml",
    "apps/a/extra.yaml",
    "apps/b/kustomization.yaml",
    "apps/b/Kustomization",
    "apps/b/extra.yaml",
    "base",
    "base/kustomization.yaml",
    "base/kustomization.yml",
    "base/map.yaml",
    "base/Chart.yaml",
    "chart/Chart.yaml",
    "chart/values.yaml",
    "chart/.helmignore",
    "chart/templates/map.yaml",
    "chart/templates/deep/map.yaml",
    "plain/map.yaml",
    "plain/sub/map.yaml",
    "plain/kustomization.yaml",
    "later/Chart.yaml",
    "absent/map.yaml",
];
const CONTENTS: [&str; 8] = [
    MAP,
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n\n",
    "",
    "resources: [../../base]\n",
    "resources: [../../base, extra.yaml]\nnamePrefix: p-\n",
    "resources: [map.yaml]\nnamespace: x\n",
    "apiVersion: v2\nname: chart\nversion: 0.1.0\n",
    "*.md\nmap.yaml\n",
];
const TARGETS: [&str; 5] = ["../plain", "plain", "map.yaml", "../../base/map.yaml", "/etc"];

fn change() -> impl Strategy<Value = (&'static str, Change)> {
    let what = prop_oneof![
        4 => prop::sample::select(CONTENTS.as_slice()).prop_map(|text| Change::File(text.as_bytes().into())),
        3 => Just(Change::Gone),
        1 => prop::sample::select(TARGETS.as_slice()).prop_map(|target| Change::Link(target.to_owned())),
    ];
    (prop::sample::select(PLACES.as_slice()), what)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever commits do, a result that they do not touch comes out the same when it is made again.
    #[test]
    fn what_is_not_touched_stays_as_it_was(
        commits in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..8),
        recurse in any::<bool>(),
    ) {
        let params = Params {
            directory: DirectorySource { recurse, ..DirectorySource::default() },
            ..Params::default()
        };
        let mut tree = repository();
        let mut dependents = noted(&tree, &params);
        let mut results: BTreeMap<&str, Seen> =
            DIRECTORIES.iter().map(|at| (*at, run(&tree, at, &params).0)).collect();
        for commit in commits {
            let changed: Vec<&str> = commit.iter().map(|(path, _)| *path).collect();
            // A commit that puts a file where a directory is, is none.
            let Ok(new) = tree.changed(commit.clone()) else {
                continue;
            };
            let touched: BTreeSet<&str> =
                dependents.touched(changed, &tree, &new).into_iter().copied().collect();
            for directory in DIRECTORIES {
                let (seen, inputs) = run(&new, directory, &params);
                if touched.contains(directory) {
                    dependents.insert(directory, inputs);
                    results.insert(directory, seen);
                } else {
                    prop_assert_eq!(&results[directory], &seen, "{} after {:?}", directory, &commit);
                }
            }
            tree = new;
        }
    }
}
