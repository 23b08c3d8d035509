//! Plain `git` against the host: clone, fetch, push, and everything that is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/api.rs"]
mod api;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/place.rs"]
mod place;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairway_gitops_githost::seams::{Push, PushCheck, PushWatcher};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use place::Place;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A host with a private repository `app`, a writer and a reader of it.
async fn place() -> Place {
    let place = Place::start().await;
    place.api.repository("app", json!({"private": true}));
    place.api.user("writer", &["get app", "update app"]);
    place.api.user("reader", &["get app"]);
    place.api.user("nobody", &[]);
    place
}

const FIRST: &str =
    "git init -q -b main . && mkdir -p a && echo one > a/one.yaml && git add . && git commit -qm one";

#[tokio::test]
async fn what_is_pushed_can_be_cloned() {
    let place = place().await;
    let url = place.url("writer", "app");
    let empty = place
        .run(
            "empty",
            &format!("git clone -q {url} . 2>&1; git symbolic-ref HEAD"),
        )
        .await;
    assert!(empty.contains("refs/heads/main"), "{empty}");
    place
        .run(
            "work",
            &format!("{FIRST} && git tag light && git tag -a v1 -m v1 && git remote add origin {url}"),
        )
        .await;
    let said = place.run("work", "git push origin main --tags 2>&1").await;
    assert!(
        said.contains("[new branch]") && said.contains("[new tag]"),
        "{said}"
    );
    // Many commits, so that there is something to negotiate about.
    place.run("work", "for i in $(seq 1 30); do echo $i > a/f$i; git add .; git commit -qm $i; done; git push -q origin main").await;
    for protocol in [0, 1, 2] {
        let script = format!(
            "rm -rf c && git -c protocol.version={protocol} clone -q {url} c && cd c && git log --oneline | wc -l && git tag"
        );
        let said = place.run("clones", &script).await;
        assert_eq!(said, "31\nlight\nv1", "protocol {protocol}");
    }
    let shallow = place
        .run(
            "shallow",
            &format!("git clone -q --depth 2 {url} . && git log --oneline | wc -l"),
        )
        .await;
    assert_eq!(shallow, "2");
    let partial = place
        .run("partial", &format!("git clone -q --filter=blob:none --no-checkout {url} . && git rev-list --objects --missing=print HEAD | grep -c '^?' && git checkout -q main && cat a/f30"))
        .await;
    assert!(partial.ends_with("\n30"), "{partial}");
    let one = place.run("one", &format!("git init -q . && git fetch -q {url} $(git ls-remote {url} refs/heads/main | cut -f1) && git log --oneline FETCH_HEAD | wc -l")).await;
    assert_eq!(one, "31");
    // A shallow clone can push, too.
    let said = place
        .run(
            "shallow",
            "echo x > x && git add x && git commit -qm x && git push origin main 2>&1",
        )
        .await;
    assert!(said.contains("main -> main"), "{said}");
    let said = place.run("work", "git pull -q --rebase origin main && git push -q origin main:feature/x && git push origin :feature/x 2>&1").await;
    assert!(said.contains("[deleted]"), "{said}");
    let (success, stale) = place
        .try_run(
            "clones/c",
            "echo y > y && git add y && git commit -qm y && git push origin main 2>&1",
        )
        .await;
    assert!(!success && stale.contains("fetch first"), "{stale}");
    place.run("clones/c", "git push -q --force origin main").await;
    let bare = place.host.place().path("root", "app");
    let bare = bare.display();
    assert_eq!(
        place
            .run(
                ".",
                &format!("git --git-dir={bare} fsck --strict 2>&1 | grep -v dangling || true")
            )
            .await,
        ""
    );
    assert_eq!(
        place
            .run(".", &format!("ls {bare}/objects | grep -c incoming || true"))
            .await,
        "0"
    );
}

#[tokio::test]
async fn who_may_do_what() {
    let place = place().await;
    let (app, none) = (|user: &str| place.url(user, "app"), place.url("writer", "none"));
    place
        .run("work", &format!("{FIRST} && git push -q {} main", app("writer")))
        .await;
    let cases = [
        (format!("git ls-remote {}", app("reader")), None),
        (
            format!("git ls-remote {}", app("")),
            Some("could not read Username"),
        ),
        (
            format!("git ls-remote {}", app("wrong")),
            Some("Authentication failed"),
        ),
        (format!("git ls-remote {}", app("nobody")), Some("not found")),
        (format!("git ls-remote {none}"), Some("not found")),
        (format!("git -C work push {} main:x", app("reader")), Some("403")),
        (
            format!("git -C work push {} main:x", app("nobody")),
            Some("not found"),
        ),
        (
            format!("git -C work push {} main:x", app("")),
            Some("could not read Username"),
        ),
        (
            format!(
                "git -c http.extraHeader='Authorization: Bearer reader' ls-remote {}",
                app("")
            ),
            None,
        ),
    ];
    for (script, expected) in cases {
        let (success, said) = place.try_run(".", &format!("{script} 2>&1")).await;
        match expected {
            None => assert!(success, "{script}: {said}"),
            Some(text) => assert!(!success && said.contains(text), "{script}: {said}"),
        }
    }
    place.api.repository("app", json!({"private": false}));
    place.run(".", &format!("git ls-remote {}", app(""))).await;
    place
        .refused("work", &format!("git push {} main:x", app("")))
        .await;
    // An object that is gone hides the repository at once; one that is made anew is an empty one.
    place.api.delete("app");
    place
        .refused(".", &format!("git ls-remote {}", app("writer")))
        .await;
    place.api.repository("app", json!({}));
    assert_eq!(
        place.run(".", &format!("git ls-remote {}", app("writer"))).await,
        ""
    );
    let aside = place.run("repositories/.removed", "ls").await;
    assert!(aside.ends_with("-root-app.git"), "{aside}");
}

#[tokio::test]
async fn rules_and_limits_are_kept() {
    let place = place().await;
    let url = place.url("writer", "app");
    place
        .run(
            "work",
            &format!("{FIRST} && git remote add origin {url} && git push -q origin main"),
        )
        .await;
    place.api.repository(
        "app",
        json!({
            "private": true,
            "protectedBranches": [{"name": "main"}, {"name": "release/*", "pushers": ["somebody"]}],
            "limits": {"maxFileSize": "64Ki", "maxPushSize": "1Mi", "paths": ["a/**", "ok"]},
        }),
    );
    let cases = [
        (
            "git commit -q --amend -m other && git push -f origin HEAD:main",
            "history cannot be rewritten",
        ),
        ("git push origin :main", "default branch cannot be deleted"),
        ("git push origin main:release/1", "not among those who may push"),
        ("git push origin main:refs/fairway/x", "made by the server"),
        (
            "echo x > top && git add top && git commit -qm top && git push origin HEAD:b",
            "top may not be changed",
        ),
        (
            "head -c 100000 /dev/urandom > a/large && git add . && git commit -qm large && git push origin HEAD:b",
            "a/large has 100000 bytes",
        ),
        // Two hundred megabytes that are a fifth of one when they are packed.
        (
            "head -c 200000000 /dev/zero > a/bomb && git add . && git commit -qm bomb && git push origin HEAD:b",
            "a/bomb has 200000000 bytes",
        ),
        (
            "head -c 3000000 /dev/urandom > a/many && git add . && git commit -qm many && git push origin HEAD:b",
            "maximum allowed size",
        ),
        ("git push --atomic origin HEAD:ok HEAD:release/1", "atomic"),
    ];
    for (script, expected) in cases {
        let said = place
            .refused(
                "work",
                &format!("git checkout -q -B try origin/main && {script} 2>&1"),
            )
            .await;
        assert!(said.contains(expected), "{script}: {said}");
        let listed = place.run("work", "git ls-remote --heads origin | cut -f2").await;
        assert_eq!(listed, "refs/heads/main", "{script}");
    }
    // Without --atomic, what is allowed goes through.
    let said = place
        .refused(
            "work",
            "git checkout -q -B try origin/main && git push origin HEAD:ok HEAD:release/1 2>&1",
        )
        .await;
    assert!(
        said.contains("HEAD -> ok") && said.contains("remote rejected"),
        "{said}"
    );
    let left = place
        .run(
            "repositories/root/app.git/objects",
            "ls | grep incoming || true; ls pack | grep tmp || true",
        )
        .await;
    assert_eq!(left, "");
    place
        .api
        .repository("app", json!({"mirror": {"url": "https://example.com/x"}}));
    let said = place.refused("work", "git push origin HEAD:c 2>&1").await;
    assert!(said.contains("is a mirror"), "{said}");
}

/// Refuses commits that change a file called `no`, and says what it looked at.
struct No;

impl PushCheck for No {
    fn check<'a>(&'a self, push: &'a Push) -> BoxFuture<'a, Result<Vec<String>, String>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            for update in &push.updates {
                let Some(new) = &update.new else { continue };
                // What has come can be read before it is accepted.
                let changed = push
                    .repository
                    .changed_paths(update.old.as_ref(), new)
                    .await
                    .unwrap();
                if changed.iter().any(|path| path == "no") {
                    return Err("a file must not be called no".to_owned());
                }
                lines.push(format!(
                    "checked {} files of {}",
                    changed.len(),
                    update.name.short()
                ));
            }
            Ok(lines)
        })
    }
}

/// Tells the pusher something, slowly; remembers what it was told.
#[derive(Default)]
struct Talker {
    told: Mutex<Vec<String>>,
    dropped: Arc<Mutex<bool>>,
    is_endless: bool,
}

struct Leaving(Arc<Mutex<bool>>);

impl Drop for Leaving {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = true;
    }
}

impl PushWatcher for Talker {
    fn pushed(&self, push: &Push) -> BoxStream<'static, String> {
        let mut told = self.told.lock().unwrap();
        for update in &push.updates {
            told.push(format!(
                "{}/{} {} by {} {:?}",
                push.owner,
                push.wanted.name,
                update.name,
                push.pusher.name(),
                push.options
            ));
        }
        let (leaving, is_endless) = (Leaving(Arc::clone(&self.dropped)), self.is_endless);
        stream::unfold((0, leaving), move |(step, leaving)| async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            (is_endless || step < 3).then(|| (format!("step {step} \x1b[31mdone"), (step + 1, leaving)))
        })
        .boxed()
    }
}

#[tokio::test]
async fn checks_judge_and_watchers_answer() {
    let place = place().await;
    let talker = Arc::new(Talker::default());
    place.host.add_check(Arc::new(No));
    place
        .host
        .add_watcher(Arc::clone(&talker) as Arc<dyn PushWatcher>);
    let url = place.url("writer", "app");
    let said = place
        .run("work", &format!("{FIRST} && git push -o a=b {url} main 2>&1"))
        .await;
    for expected in [
        "remote: checked 1 files of main",
        "remote: step 0 [31mdone",
        "remote: step 2",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(
        *talker.told.lock().unwrap(),
        ["root/app refs/heads/main by writer [\"a=b\"]"]
    );
    let said = place
        .refused(
            "work",
            &format!("touch no && git add no && git commit -qm no && git push {url} main 2>&1"),
        )
        .await;
    assert!(
        said.contains("remote: error: a file must not be called no") && said.contains("check declined"),
        "{said}"
    );
    assert_eq!(talker.told.lock().unwrap().len(), 1, "nothing was pushed");
    let quiet = place
        .run(
            "work",
            &format!("git checkout -q -b other HEAD~ && git push -o no-answer {url} other 2>&1"),
        )
        .await;
    assert!(
        !quiet.contains("step") && talker.told.lock().unwrap().len() == 2,
        "{quiet}"
    );
    place.api.repository("app", json!({"pushAnswers": "Off"}));
    let quiet = place
        .run("work", &format!("git push {url} other:more 2>&1"))
        .await;
    assert!(!quiet.contains("step"), "{quiet}");
}

#[tokio::test]
async fn a_pusher_who_leaves_is_not_told_any_more() {
    let place = place().await;
    let talker = Arc::new(Talker {
        is_endless: true,
        ..Talker::default()
    });
    place
        .host
        .add_watcher(Arc::clone(&talker) as Arc<dyn PushWatcher>);
    let url = place.url("writer", "app");
    let script = format!("{FIRST} && timeout -s INT 2 git push {url} main 2>&1");
    place.refused("work", &script).await;
    let begun = Instant::now();
    while !*talker.dropped.lock().unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the stream goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        !place.run(".", &format!("git ls-remote {url}")).await.is_empty(),
        "the push stands"
    );
}

#[tokio::test]
async fn large_pushes_and_clones_are_streamed() {
    let place = place().await;
    let url = place.url("writer", "app");
    let before = resident();
    place.run("work", &format!("{FIRST} && head -c 60000000 /dev/urandom > a/big && git add . && git commit -qm big && git push -q {url} main")).await;
    let sum = place.run("work", "sha256sum < a/big").await;
    assert_eq!(
        place
            .run("copy", &format!("git clone -q {url} . && sha256sum < a/big"))
            .await,
        sum
    );
    let grown = resident().saturating_sub(before);
    assert!(grown < 30 << 20, "{grown} bytes for 60 MB");
}

/// What this process has in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Sends bytes as they are, and reads what comes until the end.
async fn raw(place: &Place, request: &[u8]) -> String {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", place.port))
        .await
        .unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn hostile_requests_are_refused() {
    let place = place().await;
    let post = |path: &str, kind: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer writer\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer writer\r\n\r\n")
    };
    let receive = "application/x-git-receive-pack-request";
    let zero = "0".repeat(40);
    let one = "1".repeat(40);
    let long = "/root/".to_owned() + &"a".repeat(500) + ".git/info/refs?service=git-upload-pack";
    let push = |line: &str| format!("{:04x}{line}0000", line.len() + 4);
    let cases = [
        (get("/root/../../etc/passwd"), "404"),
        (
            get("/root/%2e%2e/app.git/info/refs?service=git-upload-pack"),
            "404",
        ),
        (get("/root/app.git/info/refs?service=git-upload-archive"), "403"),
        (get("/root/app.git/info/refs"), "403"),
        (get("/root/app.git/objects/info/packs"), "403"),
        (get("/root/app.git/git-upload-pack"), "405"),
        (get(&long), "404"),
        (get("/*/app.git/info/refs?service=git-upload-pack"), "404"),
        (
            get("/system:admin/app.git/info/refs?service=git-upload-pack"),
            "404",
        ),
        (
            post("/root/app.git/info/refs?service=git-upload-pack", "", ""),
            "405",
        ),
        (
            post("/root/app.git/git-receive-pack", "text/plain", "0000"),
            "415",
        ),
        (post("/root/app.git/git-receive-pack", receive, "0000"), "200"),
        (post("/root/app.git/git-receive-pack", receive, ""), "200"),
        (post("/root/app.git/git-receive-pack", receive, "zzzz"), "400"),
        (post("/root/app.git/git-receive-pack", receive, "ffff"), "400"),
        (post("/root/app.git/git-receive-pack", receive, "0009abc"), "400"),
        (
            post("/root/app.git/git-receive-pack", receive, &push("nonsense")),
            "400",
        ),
        (
            post(
                "/root/app.git/git-receive-pack",
                receive,
                &push(&format!("{zero} {one} refs/heads/x\0 report-status")),
            ),
            "unpack",
        ),
        (
            post(
                "/root/app.git/git-receive-pack",
                receive,
                &(push(&format!("{zero} {one} refs/heads/x\0 report-status")) + "PACKnonsense"),
            ),
            "unpack",
        ),
        (
            post(
                "/root/app.git/git-receive-pack",
                receive,
                &push(&format!("{one} {zero} refs/heads/../x\0 report-status")),
            ),
            "funny refname",
        ),
        (
            post(
                "/root/app.git/git-receive-pack",
                receive,
                &push(&format!("{one} {zero} refs/heads/x\0 report-status")),
            ),
            "ng refs/heads/x",
        ),
    ];
    for (request, expected) in cases {
        let answer = raw(&place, request.as_bytes()).await;
        let first = answer.lines().next().unwrap_or("");
        assert!(
            answer.contains(expected) && (expected.len() > 3 || first.contains(expected)),
            "{request:?}: {answer:?}"
        );
    }
    // Objects that lead to others which are not there: a pack of one commit without its tree.
    let url = place.url("writer", "app");
    let script = format!(
        "{FIRST} && git rev-parse HEAD > /dev/null && printf '%s' $(git rev-parse HEAD) | git pack-objects --stdout > ../lonely.pack && git rev-parse HEAD"
    );
    let head = place.run("work", &script).await;
    let pack = std::fs::read(place.path("lonely.pack")).unwrap();
    let mut body = push(&format!("{zero} {head} refs/heads/x\0 report-status")).into_bytes();
    body.extend_from_slice(&pack);
    let mut request = format!(
        "POST /root/app.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer writer\r\nContent-Type: {receive}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(&body);
    let answer = raw(&place, &request).await;
    assert!(answer.contains("ng refs/heads/x"), "{answer}");
    assert_eq!(place.run(".", &format!("git ls-remote {url}")).await, "");
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let place = place().await;
    let zero = "0".repeat(40);
    let line = format!("{zero} {} refs/heads/x\0 report-status", "1".repeat(40));
    let head = format!(
        "POST /root/app.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer writer\r\nContent-Type: \
         application/x-git-receive-pack-request\r\nContent-Length: 100000\r\n\r\n{:04x}{line}0000PACK",
        line.len() + 4
    );
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", place.port))
        .await
        .unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let objects = place.host.place().path("root", "app").join("objects");
    let incoming = || {
        let entries = std::fs::read_dir(&objects).unwrap().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("incoming"))
            .count()
    };
    assert_eq!(incoming(), 1, "the push is under way");
    drop(stream);
    let begun = Instant::now();
    while incoming() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "what had come is still there"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
