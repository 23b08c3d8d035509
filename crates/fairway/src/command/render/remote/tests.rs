//! Repositories on this machine stand for remote ones.

use super::*;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A bare repository with a tag `v1` and a later commit on its branch.
fn repository(folder: &Path) -> (PathBuf, String) {
    let work = folder.join("work");
    fs::create_dir_all(work.join("base")).unwrap();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join("base/kustomization.yaml"), "resources: [map.yaml]\n").unwrap();
    fs::write(
        work.join("base/map.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n",
    )
    .unwrap();
    std::os::unix::fs::symlink("map.yaml", work.join("base/link.yaml")).unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "--message", "one"]);
    git(&work, &["tag", "v1"]);
    fs::write(
        work.join("base/map.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n",
    )
    .unwrap();
    git(&work, &["commit", "--quiet", "--all", "--message", "two"]);
    let bare = folder.join("bare.git");
    git(folder, &["clone", "--quiet", "--bare", "work", "bare.git"]);
    let first = git(&work, &["rev-parse", "v1"]);
    (bare, first)
}

fn spec(url: &Path, reference: &str) -> RepositorySpec {
    RepositorySpec {
        raw: String::new(),
        clone_url: format!("file://{}", url.display()),
        path: String::new(),
        reference: reference.to_owned(),
        submodules: false,
        timeout: String::new(),
    }
}

fn name_in(tree: &Tree) -> String {
    tree.reader()
        .read_text("base/link.yaml")
        .unwrap()
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn a_branch_a_tag_and_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (bare, first) = repository(folder.path());
    git(&bare, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    for (reference, expected) in [
        ("", "two"),
        ("main", "two"),
        ("v1", "one"),
        (first.as_str(), "one"),
    ] {
        let remote = Remote::new(folder.path().join("cache"));
        let tree = remote.repository(&spec(&bare, reference)).unwrap();
        assert_eq!(name_in(&tree), expected, "{reference}");
    }
    // A commit never changes, so the second time needs nobody.
    fs::rename(&bare, folder.path().join("gone")).unwrap();
    let remote = Remote::new(folder.path().join("cache"));
    assert_eq!(name_in(&remote.repository(&spec(&bare, &first)).unwrap()), "one");
    let error = remote.repository(&spec(&bare, "main")).unwrap_err();
    assert!(error.contains("git failed"), "{error}");
}

#[test]
fn bounds_are_kept_and_options_are_not_smuggled() {
    let folder = tempfile::tempdir().unwrap();
    let (bare, _) = repository(folder.path());
    let remote = Remote {
        max_bytes: 10,
        ..Remote::new(folder.path().join("small"))
    };
    let error = remote.repository(&spec(&bare, "")).unwrap_err();
    assert!(error.contains("more than the limit of 10 bytes"), "{error}");
    let remote = Remote::new(folder.path().join("cache"));
    let late = RepositorySpec {
        timeout: "1ns".to_owned(),
        ..spec(&bare, "")
    };
    let error = remote.repository(&late).unwrap_err();
    assert!(error.contains("takes too long"), "{error}");
    for reference in ["--upload-pack=touch x", "a\nb"] {
        let error = remote.repository(&spec(&bare, reference)).unwrap_err();
        assert!(error.contains("is not one that git is given"), "{error}");
    }
    let other = RepositorySpec {
        clone_url: "ext::sh -c true".to_owned(),
        ..spec(&bare, "")
    };
    assert!(remote.repository(&other).is_err());
}

#[test]
fn lines_of_git() {
    assert_eq!(
        TreeEntry::parse(b"100644 blob abc     12\ta/b c"),
        Some(TreeEntry {
            mode: "100644".to_owned(),
            object: "abc".to_owned(),
            size: 12,
            path: "a/b c".to_owned(),
        })
    );
    assert_eq!(
        TreeEntry::parse(b"160000 commit abc       -\tsub").map(|entry| entry.size),
        Some(0)
    );
    assert_eq!(TreeEntry::parse(b"what"), None);
}
