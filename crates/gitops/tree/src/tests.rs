//! What a tree gives, refuses and remembers.

use std::collections::BTreeMap;

use crate::{Change, Entry, Found, Kind, Limits, Problem, Source, Tree, TreeBuilder, path};

fn tree() -> Tree {
    let mut builder = Tree::builder();
    builder
        .file("base/kustomization.yaml", b"resources: []".as_slice())
        .unwrap();
    builder.file("base/a/x.yaml", b"x".as_slice()).unwrap();
    builder.file("base/a.yaml", b"a".as_slice()).unwrap();
    builder.file("top.yaml", b"top".as_slice()).unwrap();
    builder.link("overlay/shared", "../base/a").unwrap();
    builder.link("overlay/hosts", "/etc/hosts").unwrap();
    builder.link("overlay/up", "../../secret").unwrap();
    builder.link("overlay/loop", "loop").unwrap();
    builder.build()
}

#[test]
fn paths_are_normalised_and_stay_within() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("", "a/b", Some("a/b")),
        ("", "./a//b/", Some("a/b")),
        ("a/b", "../c", Some("a/c")),
        ("a", "..", Some("")),
        ("a", "../..", None),
        ("a", "b/../../../a", None),
        ("a", "/a", None),
        ("", "a\0b", None),
    ];
    for (base, relative, expected) in cases {
        assert_eq!(
            path::join(base, relative).ok().as_deref(),
            *expected,
            "{base} + {relative}"
        );
    }
}

#[test]
fn files_are_read_through_links_and_recorded() {
    let reader = tree().reader();
    assert_eq!(&*reader.read("overlay/shared/x.yaml").unwrap(), b"x");
    assert_eq!(
        reader.real_path("overlay/shared/x.yaml").unwrap(),
        "base/a/x.yaml"
    );
    assert_eq!(reader.kind("nothing/here").unwrap(), None);
    assert_eq!(reader.kind("base").unwrap(), Some(Kind::Directory));
    let inputs = reader.inputs();
    assert!(inputs.depend_on("base/a/x.yaml"));
    assert!(inputs.depend_on("overlay/shared"), "a changed link");
    assert!(inputs.depend_on("nothing/here"), "a file that appears");
    assert!(!inputs.depend_on("top.yaml"));
    assert!(!inputs.depend_on("base/a/y.yaml"), "asked for, not listed");
    assert!(inputs.depend_on("base"), "a directory that becomes a file");
}

#[test]
fn ways_out_are_refused() {
    let reader = tree().reader();
    let cases: &[(&str, &str)] = &[
        ("../secret", "leads out of the directory"),
        ("/etc/hosts", "leads out of the directory"),
        (
            "overlay/hosts",
            r#"link "overlay/hosts" -> "/etc/hosts" leads out"#,
        ),
        ("overlay/up/x", "leads out"),
        ("overlay/loop", "more than 16 symbolic links"),
        ("base", "is a directory"),
        ("base/a.yaml/x", "no such file"),
        ("base/b.yaml", "no such file"),
    ];
    for (path, expected) in cases {
        let error = reader.read(path).unwrap_err().to_string();
        assert!(
            error.contains(expected) || error.contains("not a directory"),
            "{path}: {error}"
        );
    }
}

#[test]
fn directories_are_walked_as_go_walks_them() {
    let reader = tree().reader();
    let found = reader.walk("base").unwrap();
    assert_eq!(found, ["base/a/x.yaml", "base/a.yaml", "base/kustomization.yaml"]);
    assert!(reader.inputs().depend_on("base/a/new.yaml"));
    assert!(reader.inputs().depend_on("base/new/file.yaml"), "a new directory");
    assert!(!reader.inputs().depend_on("other.yaml"));
    assert_eq!(
        reader.list("base").unwrap(),
        ["a", "a.yaml", "kustomization.yaml"]
    );
}

#[test]
fn limits_name_the_file() {
    let limits = Limits {
        files: 2,
        file_bytes: 4,
        total_bytes: 6,
        links: 1,
    };
    let mut builder = TreeBuilder::new(limits);
    builder.file("a", b"1234".as_slice()).unwrap();
    let large = builder.file("b", b"12345".as_slice()).unwrap_err();
    assert_eq!(
        large.to_string(),
        r#""b": the file has 5 bytes, more than the limit of 4"#
    );
    let total = builder.file("c", b"123".as_slice()).unwrap_err();
    assert!(matches!(total.problem, Problem::TreeTooLarge { limit: 6 }));
    assert!(matches!(
        builder.file("a/b", b"".as_slice()).unwrap_err().problem,
        Problem::Occupied
    ));
    builder.file("d", b"1".as_slice()).unwrap();
    assert!(matches!(
        builder.file("e", b"".as_slice()).unwrap_err().problem,
        Problem::TooManyFiles { limit: 2 }
    ));
}

#[test]
fn a_changed_tree_is_as_if_built_anew() {
    let write = |text: &str| Change::File(text.as_bytes().into());
    let (mut changed, mut files) = (Tree::builder().build(), BTreeMap::<String, String>::new());
    // Enough steps to pass the size at which changes are merged into the tree.
    for step in 0..400_usize {
        let path = format!("d{}/e{}/f{}.yaml", step * 7 % 5, step * 11 % 4, step * 13 % 9);
        let change = match files.contains_key(&path) && step % 3 != 0 {
            true => {
                files.remove(&path);
                Change::Gone
            }
            false => {
                files.insert(path.clone(), step.to_string());
                write(&step.to_string())
            }
        };
        changed = changed.changed([(path, change)]).unwrap();
        let anew = Tree::of(files.iter().map(|(path, text)| (path, text.as_bytes().to_vec()))).unwrap();
        let contents = |tree: &Tree| -> Vec<(String, Vec<u8>)> {
            let reader = tree.reader();
            let paths = reader.walk("").unwrap().into_iter();
            paths
                .map(|path| (path.clone(), reader.read(&path).unwrap().to_vec()))
                .collect()
        };
        assert_eq!(contents(&changed), contents(&anew), "step {step}");
        assert_eq!(
            (changed.files, changed.bytes),
            (anew.files, anew.bytes),
            "step {step}"
        );
        for entry in ["d0", "d1/e1", "d2/e3/f4.yaml", "x"] {
            assert_eq!(changed.entry(entry), anew.entry(entry), "{entry}, step {step}");
        }
    }
}

#[test]
fn changes_make_room_for_each_other() {
    let tree = tree();
    let write = || Change::File(b"y".as_slice().into());
    let swapped = tree
        .changed([("base/a", write()), ("base/a/x.yaml", Change::Gone)])
        .unwrap();
    assert_eq!(
        swapped.entry("base/a").unwrap(),
        Some(Entry::File(b"y".as_slice().into()))
    );
    assert_eq!(swapped.entry("base/a/x.yaml").unwrap(), None);
    let back = swapped
        .changed([("base/a", Change::Gone), ("base/a/x.yaml", write())])
        .unwrap();
    assert_eq!(back.entry("base/a").unwrap(), Some(Entry::Directory));
    for (path, change) in [("base", write()), ("top.yaml/x", write())] {
        let error = tree.changed([(path, change)]).unwrap_err();
        assert!(matches!(error.problem, Problem::Occupied), "{path}: {error}");
    }
    assert!(tree.changed([("../x", write())]).is_err());
    let linked = tree
        .changed([("base/l", Change::Link("../top.yaml".to_owned()))])
        .unwrap();
    assert_eq!(&*linked.reader().read("base/l").unwrap(), b"top");
    assert_eq!(tree.entry("base/l").unwrap(), None, "the first tree is as it was");
}

#[test]
fn limits_hold_for_changes() {
    let limits = Limits {
        files: 2,
        file_bytes: 4,
        total_bytes: 6,
        links: 1,
    };
    let mut builder = TreeBuilder::new(limits);
    builder.file("a", b"1234".as_slice()).unwrap();
    let tree = builder.build();
    let write = |text: &str| Change::File(text.as_bytes().into());
    for (changes, expected) in [
        (vec![("a", write("12345"))], "more than the limit of 4"),
        (vec![("b", write("123"))], "6"),
        (vec![("b", write("")), ("c", write(""))], "2"),
    ] {
        let error = tree.changed(changes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        tree.changed([("a", write("1")), ("b", write("1234"))]).is_ok(),
        "what goes makes room"
    );
}

/// A directory of one file and a link, which counts how often it is asked.
#[derive(Debug, Default)]
struct Counting(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Source for Counting {
    fn find(&self, path: &str) -> Result<Option<Found>, Problem> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match path {
            "" | "d" => Ok(Some(Found::Directory)),
            "d/file" => Ok(Some(Found::File(4))),
            "link" => Ok(Some(Found::Link("d/file".to_owned()))),
            "d/large" => Ok(Some(Found::File(10_000))),
            "broken" => Err(Problem::Unreadable {
                why: "bad sector".to_owned(),
            }),
            _ => Ok(None),
        }
    }

    fn read(&self, path: &str, size: u64) -> Result<std::sync::Arc<[u8]>, Problem> {
        self.0.fetch_add(100, std::sync::atomic::Ordering::Relaxed);
        assert_eq!((path, size), ("d/file", 4));
        Ok(b"text".as_slice().into())
    }

    fn names(&self, _: &str, _: usize) -> Result<std::collections::BTreeSet<String>, Problem> {
        Ok(["file".to_owned()].into())
    }
}

#[test]
fn a_lazy_tree_asks_once_and_within_limits() {
    let source = Counting::default();
    let asked = source.0.clone();
    let limits = Limits {
        files: 8,
        file_bytes: 9_999,
        ..Limits::default()
    };
    let tree = Tree::lazy(Box::new(source), limits);
    let reader = tree.reader();
    let count = || asked.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(reader.kind("d/file").unwrap(), Some(Kind::File));
    assert_eq!(reader.size("d/file").unwrap(), Some(4));
    assert_eq!(reader.size("d").unwrap(), None);
    assert!(count() < 100, "nothing was read");
    for _ in 0..3 {
        assert_eq!(&*reader.read("link").unwrap(), b"text");
        assert_eq!(reader.kind("d/none").unwrap(), None);
        assert_eq!(reader.list("d").unwrap(), ["file"]);
    }
    // Four paths and one file.
    assert_eq!(count(), 104);
    assert!(matches!(
        reader.kind("d/large").unwrap_err().problem,
        Problem::FileTooLarge {
            size: 10_000,
            limit: 9_999
        }
    ));
    assert!(reader.inputs().files.contains("d/file") && reader.inputs().files.contains("link"));
    let error = reader.read("broken").unwrap_err();
    assert_eq!(error.to_string(), "\"broken\": it could not be read: bad sector");
    for name in 0..20 {
        let _ = reader.kind(&format!("n{name}"));
    }
    assert!(matches!(
        reader.read("n30").unwrap_err().problem,
        Problem::TooManyFiles { limit: 8 }
    ));
}
