//! Repositories as plain `git` makes and sees them: what this crate reads, writes and mirrors, checked from the other side.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fairway_gitops_git::{
    Change, Credentials, FileChange, Git, GitError, Merged, NewCommit, ObjectId, Options, RefName, Remote,
    Repository, Signature,
};
use fairway_gitops_tree::{Limits, Problem};

struct Place {
    directory: tempfile::TempDir,
    git: Git,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            allow_file_remotes: true,
            ..Options::new(directory.path().join("home of git"))
        };
        let git = Git::new(options).unwrap();
        Self { directory, git }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A bare repository with two commits on `main`, a branch, a light and an annotated tag, a link and a program.
    async fn filled(&self) -> Repository {
        let (work, bare) = (self.path("work"), self.path("bare.git"));
        let script = "git init -q -b main . && mkdir -p a/b && echo one > a/b/file.yaml && echo x > top && ln -s a/b/file.yaml \
             link && git add . && git commit -q -m 'First commit' && git tag light && git tag -a v1.0.0 -m 'release' && \
             echo two > a/b/file.yaml && echo '#!/bin/sh' > run.sh && chmod +x run.sh && git rm -q top && git add . && \
             git commit -q -m 'Second commit' -m 'With a body' && git branch feature/x light && git tag feature/x";
        std::fs::create_dir_all(&work).unwrap();
        shell(&work, script);
        shell(&work, &format!("git clone -q --bare . '{}'", bare.display()));
        Repository::open(&self.git, bare).unwrap()
    }
}

fn shell(at: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(at)
        .envs([
            ("GIT_AUTHOR_NAME", "A U Thor"),
            ("GIT_AUTHOR_EMAIL", "author@example.com"),
            ("GIT_AUTHOR_DATE", "1700000000 +0130"),
            ("GIT_COMMITTER_NAME", "C O Mitter"),
            ("GIT_COMMITTER_EMAIL", "committer@example.com"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {complaint}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn somebody() -> Signature {
    Signature {
        name: "Some Body".to_owned(),
        email: "some@body".to_owned(),
        seconds: 1_700_000_100,
        offset_minutes: -90,
    }
}

fn commit(parents: Vec<ObjectId>, changes: Vec<FileChange>) -> NewCommit {
    NewCommit {
        parents,
        changes,
        author: somebody(),
        committer: somebody(),
        message: "A change\n\nwith \"quotes\" and ünïcode".to_owned(),
    }
}

#[tokio::test]
async fn revisions_are_resolved() {
    let place = Place::new();
    let repository = place.filled().await;
    let at = |revision: &str| {
        shell(
            repository.path(),
            &format!("git rev-parse '{revision}^{{commit}}'"),
        )
    };
    let (first, second) = (at("v1.0.0"), at("main"));
    let cases = [
        ("", &second),
        ("HEAD", &second),
        ("main", &second),
        ("refs/heads/main", &second),
        ("heads/main", &second),
        ("light", &first),
        ("v1.0.0", &first),
        ("refs/tags/v1.0.0", &first),
        ("tags/v1.0.0", &first),
        // A branch goes before a tag of the same name.
        ("feature/x", &first),
        (&first, &first),
        (&first[..7], &first),
    ];
    for (revision, expected) in cases {
        let found = repository.resolve(revision).await.unwrap();
        assert_eq!(found.as_str(), expected, "{revision}");
    }
    let tag_object = shell(repository.path(), "git rev-parse v1.0.0");
    assert_eq!(
        repository.resolve(&tag_object).await.unwrap().as_str(),
        first,
        "a tag's hash"
    );
    let tree = shell(repository.path(), "git rev-parse 'main^{tree}'");
    for wrong in [
        "nothing",
        "-x",
        "main~1",
        "main^",
        "HEAD@{0}",
        ":/First",
        "a b",
        "main\nHEAD",
        "0000000",
        "..",
        &tree,
        &"f".repeat(40),
        &"x".repeat(9000),
    ] {
        let error = repository.resolve(wrong).await.unwrap_err();
        assert!(
            matches!(error, GitError::UnknownRevision { .. }),
            "{wrong}: {error}"
        );
    }
}

#[tokio::test]
async fn files_are_read_when_they_are_asked_for() {
    let place = Place::new();
    let repository = place.filled().await;
    let head = repository.resolve("main").await.unwrap();
    let tree = repository.tree(&head, Limits::default()).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let reader = tree.reader();
        assert_eq!(&*reader.read("a/b/file.yaml").unwrap(), b"two\n");
        assert_eq!(&*reader.read("link").unwrap(), b"two\n");
        assert_eq!(reader.list("").unwrap(), ["a", "link", "run.sh"]);
        assert_eq!(reader.walk("a").unwrap(), ["a/b/file.yaml"]);
        assert!(reader.read("top").unwrap_err().is_not_found());
        assert!(reader.inputs().depend_on("link") && reader.inputs().depend_on("a/b/file.yaml"));
    })
    .await
    .unwrap();
    let first = repository.resolve("light").await.unwrap();
    let limits = Limits {
        file_bytes: 3,
        ..Limits::default()
    };
    let small = repository.tree(&first, limits).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let reader = small.reader();
        assert_eq!(&*reader.read("top").unwrap(), b"x\n");
        let error = reader.read("a/b/file.yaml").unwrap_err();
        assert!(
            matches!(error.problem, Problem::FileTooLarge { size: 4, limit: 3 }),
            "{error}"
        );
        // What was too large has left no answer behind that another question would get.
        assert_eq!(&*small.reader().read("top").unwrap(), b"x\n");
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn commits_and_differences_are_described() {
    let place = Place::new();
    let repository = place.filled().await;
    let (first, second) = (
        repository.resolve("light").await.unwrap(),
        repository.resolve("main").await.unwrap(),
    );
    let info = repository.commit_info(&second).await.unwrap();
    assert_eq!(info.message, "Second commit\n\nWith a body\n");
    assert_eq!(
        (info.subject(), &info.parents),
        ("Second commit", &vec![first.clone()])
    );
    assert_eq!(
        (&*info.author.name, &*info.author.email),
        ("A U Thor", "author@example.com")
    );
    assert_eq!(
        (info.author.seconds, info.author.offset_minutes),
        (1_700_000_000, 90)
    );
    assert_eq!(info.committer.name, "C O Mitter");
    assert_eq!(repository.tags_of(&first).await.unwrap(), ["light", "v1.0.0"]);
    assert_eq!(
        repository.changed_paths(Some(&first), &second).await.unwrap(),
        ["a/b/file.yaml", "run.sh", "top"]
    );
    assert_eq!(
        repository.changed_paths(None, &first).await.unwrap(),
        ["a/b/file.yaml", "link", "top"]
    );
    assert!(repository.is_ancestor(&first, &second).await.unwrap());
    assert!(!repository.is_ancestor(&second, &first).await.unwrap());
    let tree = info.tree;
    let error = repository.commit_info(&tree).await.unwrap_err().to_string();
    assert_eq!(error, format!("{tree} is not a commit in this repository"));
    let tags = repository.references("refs/tags/").await.unwrap();
    let names: Vec<&str> = tags.iter().map(|tag| tag.name.short()).collect();
    assert_eq!(names, ["feature/x", "light", "v1.0.0"]);
    assert_ne!(tags[2].id, first);
    assert_eq!(tags[2].commit, Some(first));
}

#[tokio::test]
async fn changes_are_committed_if_the_branch_has_not_moved() {
    let place = Place::new();
    let repository = Repository::init(&place.git, place.path("new.git"), "trunk")
        .await
        .unwrap();
    assert_eq!(repository.head().unwrap().unwrap().as_str(), "refs/heads/trunk");
    let error = repository.resolve("").await.unwrap_err();
    assert!(
        matches!(error, GitError::UnknownRevision { .. }),
        "an empty repository: {error}"
    );
    let trunk = RefName::branch("trunk").unwrap();
    let changes = vec![
        FileChange::file("a \"b\"/c\\d.yaml", b"x: 1\n".as_slice()),
        FileChange::file("gone/soon.txt", b"".as_slice()),
        FileChange {
            path: "bin/run".to_owned(),
            change: Change::File {
                content: b"#!/bin/sh\n".as_slice().into(),
                is_executable: true,
            },
        },
        FileChange {
            path: "link".to_owned(),
            change: Change::Link("bin/run".to_owned()),
        },
    ];
    let first = repository
        .commit_on(&trunk, None, commit(vec![], changes))
        .await
        .unwrap();
    let changes = vec![
        FileChange::gone("gone"),
        FileChange::file("ü", b"\0\n\0".as_slice()),
    ];
    let second = repository
        .commit_on(&trunk, Some(&first), commit(vec![first.clone()], changes))
        .await
        .unwrap();
    // As git sees it.
    assert_eq!(shell(repository.path(), "git fsck --strict 2>&1"), "");
    let listed = shell(
        repository.path(),
        "git -c core.quotePath=false ls-tree -r --format='%(objectmode) %(path)' trunk",
    );
    assert_eq!(
        listed,
        "100644 \"a \\\"b\\\"/c\\\\d.yaml\"\n100755 bin/run\n120000 link\n100644 ü"
    );
    let shown = shell(repository.path(), "git log -1 --format='%an|%ae|%ai|%B' trunk");
    assert_eq!(
        shown,
        "Some Body|some@body|2023-11-14 20:45:00 -0130|A change\n\nwith \"quotes\" and ünïcode"
    );
    assert_eq!(
        shell(repository.path(), "git for-each-ref --format='%(refname)'"),
        "refs/heads/trunk"
    );

    for (expected, parents) in [(None, vec![]), (Some(&first), vec![first.clone()])] {
        let change = vec![FileChange::file("late", b"".as_slice())];
        let error = repository
            .commit_on(&trunk, expected, commit(parents, change))
            .await;
        let Err(GitError::Moved { found, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(found.as_ref(), Some(&second));
    }
    for wrong in [
        "",
        "/a",
        "a/../b",
        "a//b",
        ".git/config",
        "a/.GIT/x",
        "a\nb",
        "./a",
        "a/",
        "git~1/x",
    ] {
        let change = vec![FileChange::file(wrong, b"".as_slice())];
        let error = repository
            .create_commit(commit(vec![second.clone()], change))
            .await;
        assert!(
            matches!(error, Err(GitError::Invalid { .. })),
            "{wrong:?}: {error:?}"
        );
    }
    repository
        .update_reference(&trunk, None, Some(&second))
        .await
        .unwrap();
    assert_eq!(repository.reference(&trunk).await.unwrap(), None);
}

#[tokio::test]
async fn one_of_many_writers_wins_each_time() {
    let place = Place::new();
    let repository = Repository::init(&place.git, place.path("race.git"), "main")
        .await
        .unwrap();
    let main = RefName::branch("main").unwrap();
    let start = repository
        .commit_on(
            &main,
            None,
            commit(vec![], vec![FileChange::file("n", b"0".as_slice())]),
        )
        .await
        .unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..6 {
        let (repository, main, start) = (repository.clone(), main.clone(), start.clone());
        writers.spawn(async move {
            let content = format!("{writer}").into_bytes();
            let new = commit(vec![start.clone()], vec![FileChange::file("n", content)]);
            repository.commit_on(&main, Some(&start), new).await
        });
    }
    let outcomes = writers.join_all().await;
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(won, 1, "{outcomes:?}");
    for outcome in outcomes {
        assert!(
            matches!(outcome, Ok(_) | Err(GitError::Moved { .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(shell(repository.path(), "git rev-list --count main"), "2");
}

#[tokio::test]
async fn remotes_are_mirrored_and_followed() {
    let place = Place::new();
    let source = place.filled().await;
    let remote = Remote::new(&format!("file://{}", source.path().display())).unwrap();
    let copy = Repository::init(&place.git, place.path("copy.git"), "other")
        .await
        .unwrap();
    let fetched = remote.mirror(&copy).await.unwrap();
    assert_eq!(fetched.moved.len(), 5, "{fetched:?}");
    let all = "git for-each-ref --format='%(refname) %(objectname)'; git symbolic-ref HEAD";
    assert_eq!(shell(source.path(), all), shell(copy.path(), all));
    assert!(
        remote.mirror(&copy).await.unwrap().moved.is_empty(),
        "nothing has moved"
    );

    // A forced push, a branch that goes, a branch that comes: an open reader follows.
    let before = copy.resolve("main").await.unwrap();
    shell(
        source.path(),
        "git update-ref refs/heads/main light && git branch -q new && git branch -D feature/x -q",
    );
    let moved = remote.mirror(&copy).await.unwrap().moved;
    let names: Vec<&str> = moved.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["refs/heads/feature/x", "refs/heads/main", "refs/heads/new"]
    );
    assert_ne!(copy.resolve("main").await.unwrap(), before);

    let only = Repository::init(&place.git, place.path("one.git"), "main")
        .await
        .unwrap();
    remote
        .fetch(&only, &["refs/tags/v1.0.0:refs/tags/v1.0.0"], false)
        .await
        .unwrap();
    assert_eq!(
        shell(only.path(), "git for-each-ref --format='%(refname)'"),
        "refs/tags/v1.0.0"
    );

    let gone = Remote::new("file:///nowhere/at/all").unwrap();
    let error = gone.mirror(&only).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("does not appear to be a git repository"),
        "{error}"
    );
    let strict = Git::new(Options::new(place.path("strict"))).unwrap();
    let error = remote.ls(&strict, Duration::from_secs(5)).await.unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");
    let small = Remote {
        max_bytes: 10,
        timeout: Duration::from_millis(1),
        ..remote
    };
    let error = small
        .fetch(&only, &["main:refs/heads/main"], false)
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::Timeout { .. }), "{error}");
}

/// A listener that accepts and never answers.
fn silent() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[tokio::test]
async fn a_silent_remote_is_left_and_nothing_keeps_running() {
    let place = Place::new();
    let (_listener, address) = silent();
    let remote = Remote {
        credentials: Credentials::Basic {
            username: "me".to_owned(),
            password: "hunter2hunter2".to_owned(),
        },
        ..Remote::new(&format!("http://{address}/a/b.git")).unwrap()
    };
    let before = Instant::now();
    let asking = remote.ls(&place.git, Duration::from_millis(600));
    let looking = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        processes_with(&address)
    };
    let (error, seen) = tokio::join!(asking, looking);
    assert!(matches!(error, Err(GitError::Timeout { .. })), "{error:?}");
    assert!(before.elapsed() < Duration::from_secs(5));
    assert!(!seen.is_empty(), "git and its helper were running");
    for line in seen {
        assert!(!line.contains("hunter2"), "a password on a command line: {line}");
    }
    // A helper of the child, git-remote-http, is in the same group.
    let mut left = processes_with(&address);
    for _ in 0..50 {
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        left = processes_with(&address);
    }
    assert!(left.is_empty(), "{left:?}");
}

/// The command lines on this machine that contain a text.
fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(text) {
            found.push(line);
        }
    }
    found
}

#[tokio::test]
async fn what_is_not_a_repository_is_said_to_be_none() {
    let place = Place::new();
    let error = Repository::open(&place.git, place.path("none")).unwrap_err();
    assert!(
        error.to_string().starts_with("there is no Git repository at "),
        "{error}"
    );
    let options = Options {
        program: "/nowhere/git".into(),
        ..Options::new(place.path("x"))
    };
    let git = Git::new(options).unwrap();
    let error = Repository::init(&git, place.path("y"), "main").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "running \"/nowhere/git\" failed; is git installed and on the PATH?"
    );
}

#[tokio::test]
async fn branches_are_merged_and_rebased_without_a_checkout() {
    let place = Place::new();
    let repository = Repository::init(&place.git, place.path("m.git"), "main")
        .await
        .unwrap();
    let write = |path: &str, text: &str| FileChange::file(path, text.as_bytes().to_vec());
    let make = async |parents: Vec<ObjectId>, changes| {
        repository.create_commit(commit(parents, changes)).await.unwrap()
    };
    let base = make(
        vec![],
        vec![write("a", "1\n2\n3\n4\n5\n6\n7\n"), write("b", "b\n")],
    )
    .await;
    let ours = make(vec![base.clone()], vec![write("a", "one\n2\n3\n4\n5\n6\n7\n")]).await;
    let first = make(vec![base.clone()], vec![write("a", "1\n2\n3\n4\n5\n6\nseven\n")]).await;
    let theirs = make(vec![first.clone()], vec![write("c", "c\n")]).await;
    let Merged::Tree(tree) = repository.merge_trees(&ours, &theirs).await.unwrap() else {
        panic!()
    };
    let listed = shell(
        repository.path(),
        &format!("git cat-file -p {tree}:a; git ls-tree --name-only {tree}"),
    );
    assert_eq!(listed, "one\n2\n3\n4\n5\n6\nseven\na\nb\nc");
    let top = repository
        .rebase(&theirs, &ours, &somebody())
        .await
        .unwrap()
        .unwrap();
    let shown = shell(
        repository.path(),
        &format!("git log --format=%T {top} | wc -l; git rev-parse {top}^{{tree}} {top}~2"),
    );
    assert_eq!(shown, format!("4\n{tree}\n{ours}"));
    let clash = make(vec![base.clone()], vec![write("a", "uno\n2\n3\n4\n5\n6\n7\n")]).await;
    assert_eq!(
        repository.merge_trees(&ours, &clash).await.unwrap(),
        Merged::Conflicts(vec!["a".to_owned()])
    );
    assert_eq!(
        repository.rebase(&clash, &ours, &somebody()).await.unwrap(),
        Err(vec!["a".to_owned()])
    );
    assert_eq!(
        repository.merge_base(&ours, &theirs).await.unwrap(),
        Some(base.clone())
    );
    let other = make(vec![], vec![write("z", "z")]).await;
    assert_eq!(repository.merge_base(&ours, &other).await.unwrap(), None);
    assert_eq!(repository.count(&theirs, Some(&base)).await.unwrap(), 2);
    let log = repository.log(&theirs, None, Some("a"), 0, 10).await.unwrap();
    assert_eq!(
        log.iter().map(|info| &info.id).collect::<Vec<_>>(),
        [&first, &base]
    );
    let differences = repository.differences(&base, &theirs).await.unwrap();
    let shown: Vec<_> = differences
        .iter()
        .map(|d| (d.kind, &*d.path, d.additions, d.deletions))
        .collect();
    assert_eq!(
        shown,
        [('M', "a", Some(1), Some(1)), ('A', "c", Some(1), Some(0))]
    );
    let patch = String::from_utf8(repository.diff(&base, &theirs).await.unwrap()).unwrap();
    assert!(
        patch.contains("+seven") && patch.contains("diff --git a/c b/c"),
        "{patch}"
    );
}
