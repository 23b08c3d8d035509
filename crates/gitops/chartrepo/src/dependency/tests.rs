//! Lock files that Helm 3.17 wrote, and what is made of them.

use fairway_gitops_helm::{Chart, Metadata};
use fairway_gitops_tree::Tree;

use super::*;

fn metadata(chart: &str) -> Metadata {
    let tree = Tree::of([("Chart.yaml", chart.as_bytes())]).unwrap();
    Chart::load(&tree.reader(), "").unwrap().metadata
}

const PARENT: &str = "\
apiVersion: v2
name: par
version: 0.1.0
dependencies:
- name: dep
  version: \">=1.0.0 <2\"
  repository: http://127.0.0.1:18907
  condition: dep.enabled,other
  tags: [a, b]
  alias: dep2
  import-values:
  - data
  - {parent: p, child: c}
- name: loc
  version: 0.x
  repository: file://../loc
";

const LOCK: &str = "\
dependencies:
- name: dep
  repository: http://127.0.0.1:18907
  version: 1.2.3
- name: loc
  repository: file://../loc
  version: 0.3.0
digest: sha256:1065a05e386ff03faae2767b45ea304e1bdba43501b6ad320520a273e97ef005
generated: \"2026-11-16T14:21:18.860116644Z\"
";

fn wanted(name: &str, version: &str, origin: Origin, is_locked: bool) -> Wanted {
    Wanted {
        name: name.to_owned(),
        version: version.to_owned(),
        origin,
        is_locked,
    }
}

#[test]
fn a_lock_file_is_believed_if_it_fits() {
    let none = BTreeMap::new();
    let http = Origin::Http("http://127.0.0.1:18907".to_owned());
    let here = Origin::Directory("../loc".to_owned());
    let lock = Lock::parse(LOCK.as_bytes()).unwrap();
    assert_eq!(
        plan(&metadata(PARENT), Some(&lock), &none).unwrap(),
        [
            wanted("dep", "1.2.3", http.clone(), true),
            wanted("loc", "0.3.0", here.clone(), true)
        ]
    );
    assert_eq!(
        plan(&metadata(PARENT), None, &none).unwrap(),
        [
            wanted("dep", ">=1.0.0 <2", http, false),
            wanted("loc", "0.x", here, false)
        ]
    );
    for change in [
        ("0.x", "1.x"),
        ("dep2", "dep3"),
        ("child: c", "child: d"),
        ("[a, b]", "[a]"),
    ] {
        let other = metadata(&PARENT.replace(change.0, change.1));
        let why = plan(&other, Some(&lock), &none).unwrap_err();
        assert!(why.0.contains("(Chart.lock) is out of sync"), "{change:?}: {why}");
    }
    // A repository may be called by the name of its Secret.
    let named = metadata(&PARENT.replace("http://127.0.0.1:18907", "\"@local\""));
    let names = BTreeMap::from([("local".to_owned(), "http://127.0.0.1:18907".to_owned())]);
    assert!(plan(&named, Some(&lock), &names).is_ok());
    assert!(plan(&named, Some(&lock), &none).is_err());
}

#[test]
fn repositories_are_told_apart() {
    for (repository, expected) in [
        ("", Some(Origin::Here)),
        ("file://../a", Some(Origin::Directory("../a".to_owned()))),
        ("oci://h/a", Some(Origin::Oci("oci://h/a".to_owned()))),
        ("https://h/a", Some(Origin::Http("https://h/a".to_owned()))),
        ("@a", Some(Origin::Named("a".to_owned()))),
        ("alias:a", Some(Origin::Named("a".to_owned()))),
        ("stable", None),
        ("s3://bucket", None),
    ] {
        let found = one("x", "1", repository, false).ok().map(|it| it.origin);
        assert_eq!(found, expected, "{repository}");
    }
    for name in ["", "../x", "a/b", ".hidden"] {
        assert!(one(name, "1", "https://h", false).is_err(), "{name:?}");
    }
}
