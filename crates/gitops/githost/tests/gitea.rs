//! Gitea's REST API as Backstage, `tea` and scripts use it, beside plain `git` on the same repositories.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/api.rs"]
mod api;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/place.rs"]
mod place;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/rest.rs"]
mod rest;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gitops_githost::transport::full;
use http::Request;
use place::Place;
use rest::{call, ok};
use serde_json::{Value, json};

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

async fn place() -> Place {
    let place = Place::start().await;
    let rights = ["get app", "update app", "create app", "delete app"];
    place.api.user("writer", &rights);
    place.api.user("reader", &["get app"]);
    place
}

#[tokio::test]
async fn a_repository_is_made_used_and_deleted() {
    let place = place().await;
    assert!(
        ok(&place, "GET", "version", Value::Null).await["version"]
            .as_str()
            .unwrap()
            .starts_with("1.")
    );
    assert_eq!(ok(&place, "GET", "user", Value::Null).await["login"], "writer");
    assert_eq!(
        ok(&place, "GET", "orgs/root", Value::Null).await["username"],
        "root"
    );
    let made = call(
        &place,
        "writer",
        "POST",
        "orgs/root/repos",
        json!({"name": "app", "description": "d", "private": true}),
    )
    .await;
    assert_eq!(
        (made.status, &made.body["full_name"]),
        (201, &json!("root/app")),
        "{}",
        made.body
    );
    assert_eq!(made.body["clone_url"], place.url("", "app"));
    assert_eq!(
        (&made.body["empty"], &made.body["private"]),
        (&json!(true), &json!(true))
    );
    let again = call(&place, "writer", "POST", "user/repos", json!({"name": "app"})).await;
    assert_eq!(
        (again.status, again.body["message"].as_str()),
        (409, Some("The repository with the same name already exists."))
    );

    // What Backstage does next: it pushes, and waits until it can see the branch.
    let url = place.url("writer", "app");
    place.run("work", &format!("git init -q -b main . && echo x > x && git add . && git commit -qm x && git push -q {url} main")).await;
    let seen = Request::get("http://h/root/app/src/branch/main").header("authorization", "token writer");
    assert_eq!(place.host.serve(seen.body(full("")).unwrap()).await.status(), 200);
    let got = ok(&place, "GET", "repos/root/app", Value::Null).await;
    assert_eq!(
        (&got["empty"], &got["default_branch"]),
        (&json!(false), &json!("main"))
    );
    let listed = call(&place, "writer", "GET", "orgs/root/repos", Value::Null).await;
    assert_eq!(
        (
            listed.body.as_array().unwrap().len(),
            listed.headers["x-total-count"].to_str().unwrap()
        ),
        (1, "1")
    );
    ok(
        &place,
        "POST",
        "repos/root/app/branches",
        json!({"new_branch_name": "trunk"}),
    )
    .await;
    let edited = ok(
        &place,
        "PATCH",
        "repos/root/app",
        json!({"description": "new", "default_branch": "trunk"}),
    )
    .await;
    assert_eq!(
        (&edited["description"], &edited["default_branch"]),
        (&json!("new"), &json!("trunk"))
    );
    assert!(
        place
            .run(".", &format!("git ls-remote --symref {url} HEAD"))
            .await
            .contains("refs/heads/trunk")
    );

    let cases = [
        ("", "GET", "repos/root/app", 401),
        ("nobody", "GET", "repos/root/app", 401),
        ("reader", "GET", "repos/root/app", 200),
        ("reader", "DELETE", "repos/root/app", 403),
        ("reader", "PATCH", "repos/root/app", 403),
        ("writer", "GET", "repos/root/none", 404),
        ("writer", "GET", "repos/..%2f..%2fetc/passwd", 404),
        ("writer", "GET", "repos/root/app/stargazers", 404),
        ("writer", "POST", "admin/users", 404),
        ("reader", "POST", "orgs/root/repos", 422),
        ("writer", "DELETE", "repos/root/app", 204),
        ("writer", "GET", "repos/root/app", 404),
    ];
    for (user, method, path, status) in cases {
        let said = call(&place, user, method, path, Value::Null).await;
        assert_eq!(said.status, status, "{user} {method} {path}: {}", said.body);
        if status >= 400 {
            assert!(
                said.body["message"].is_string() && said.body["url"].is_string(),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn files_are_read_and_changed() {
    let place = place().await;
    place.api.repository("app", json!({"private": true, "limits": {"maxFileSize": 1000}, "protectedBranches": [{"name": "locked", "pushers": ["x"]}]}));
    let at = |path: &str| format!("repos/root/app/contents/{path}");
    // The first commit of an empty repository.
    let body =
        json!({"content": encoded("one\n"), "message": "First", "author": {"name": "Ann", "email": "ann@x"}});
    let made = call(&place, "writer", "POST", &at("a/one.txt"), body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(
        (
            &made.body["content"]["path"],
            &made.body["commit"]["author"]["name"]
        ),
        (&json!("a/one.txt"), &json!("Ann"))
    );
    let got = ok(&place, "GET", &at("a/one.txt"), Value::Null).await;
    assert_eq!(
        (got["content"].as_str(), got["type"].as_str()),
        (Some(encoded("one\n").as_str()), Some("file"))
    );
    let sha = got["sha"].clone();
    let many = json!({"message": "Several", "files": [
        {"operation": "create", "path": "b/ü \"x\".yaml", "content": encoded("b")},
        {"operation": "update", "path": "a/one.txt", "content": encoded("two\n"), "sha": sha},
        {"operation": "create", "path": "gone", "content": ""},
    ]});
    let many = ok(&place, "POST", "repos/root/app/contents", many).await;
    let files = many["files"].as_array().unwrap().iter();
    let files: Vec<&Value> = files.map(|file| &file["path"]).collect();
    assert_eq!(
        files,
        ["b/ü \"x\".yaml", "a/one.txt", "gone"],
        "as they were asked for"
    );
    let listed = ok(&place, "GET", &at(""), Value::Null).await;
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "gone"]);
    let raw = call(
        &place,
        "writer",
        "GET",
        "repos/root/app/raw/b/%C3%BC%20%22x%22.yaml",
        Value::Null,
    )
    .await;
    assert_eq!((raw.status, &raw.bytes[..]), (200, &b"b"[..]));
    let old = ok(
        &place,
        "GET",
        &format!(
            "{}?ref={}",
            at("a/one.txt"),
            made.body["commit"]["sha"].as_str().unwrap()
        ),
        Value::Null,
    )
    .await;
    assert_eq!(old["content"], encoded("one\n"));
    let empty = encoded("");
    let cases = [
        ("POST", at("a/one.txt"), json!({"content": empty}), 422),
        ("POST", at("a"), json!({"content": empty}), 422),
        (
            "PUT",
            at("a/one.txt"),
            json!({"content": empty, "sha": "0".repeat(40)}),
            409,
        ),
        ("PUT", at("none"), json!({"content": empty}), 404),
        ("DELETE", at("none"), json!({}), 404),
        ("POST", at(".git/config"), json!({"content": empty}), 422),
        ("POST", at("x/..%2f..%2fy"), json!({"content": empty}), 422),
        ("POST", at("bad"), json!({"content": "%%%"}), 422),
        (
            "POST",
            at("large"),
            json!({"content": encoded(&"x".repeat(2000))}),
            413,
        ),
        (
            "POST",
            at("new"),
            json!({"content": empty, "branch": "none"}),
            404,
        ),
        (
            "POST",
            at("new"),
            json!({"content": empty, "new_branch": "locked"}),
            403,
        ),
        ("GET", at("a/one.txt?ref=none"), Value::Null, 404),
    ];
    for (method, path, body, status) in cases {
        let said = call(&place, "writer", method, &path, body).await;
        assert_eq!(said.status, status, "{method} {path}: {}", said.body);
    }
    ok(
        &place,
        "DELETE",
        &at("gone"),
        json!({"message": "Away", "new_branch": "side"}),
    )
    .await;
    let said = call(&place, "reader", "POST", &at("n"), json!({"content": empty})).await;
    assert_eq!(said.status, 403);
    let url = place.url("writer", "app");
    let seen = place.run("c", &format!("git clone -q {url} . && cat a/one.txt && git log --format=%s && ls && git ls-tree --name-only origin/side")).await;
    assert_eq!(seen, "two\nSeveral\nFirst\na\nb\ngone\na\nb");
    let log = call(
        &place,
        "writer",
        "GET",
        "repos/root/app/commits?limit=1",
        Value::Null,
    )
    .await;
    assert_eq!(
        (
            log.headers["x-total-count"].to_str().unwrap(),
            &log.body[0]["commit"]["message"]
        ),
        ("2", &json!("Several"))
    );
    assert!(
        log.headers["link"]
            .to_str()
            .unwrap()
            .contains("page=2>; rel=\"next\"")
    );
    assert_eq!(log.body[0]["files"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn branches_tags_and_statuses() {
    let place = place().await;
    place.api.repository("app", json!({}));
    let at = |path: &str| format!("repos/root/app/{path}");
    let made = ok(
        &place,
        "POST",
        &at("contents/f"),
        json!({"content": encoded("f")}),
    )
    .await;
    let sha = made["commit"]["sha"].as_str().unwrap().to_owned();
    ok(
        &place,
        "POST",
        &at("branches"),
        json!({"new_branch_name": "feature/x", "old_ref_name": "main"}),
    )
    .await;
    assert_eq!(
        ok(&place, "GET", &at("branches/feature/x"), Value::Null).await["commit"]["id"],
        sha.as_str()
    );
    assert_eq!(
        ok(&place, "GET", &at("branches"), Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    ok(&place, "POST", &at("tags"), json!({"tag_name": "light"})).await;
    let tag = ok(
        &place,
        "POST",
        &at("tags"),
        json!({"tag_name": "v1", "message": "release", "target": sha}),
    )
    .await;
    assert_eq!(
        (&tag["message"], &tag["commit"]["sha"]),
        (&json!("release\n"), &json!(sha))
    );
    assert_ne!(tag["id"], sha.as_str());
    let url = place.url("writer", "app");
    let shown = place.run("t", &format!("git clone -q {url} . && git cat-file -t v1 && git cat-file -t light && git fsck --strict 2>&1")).await;
    assert!(shown.starts_with("tag\ncommit"), "{shown}");
    assert_eq!(
        call(&place, "writer", "POST", &at("tags"), json!({"tag_name": "v1"}))
            .await
            .status,
        409
    );
    ok(&place, "DELETE", &at("tags/light"), Value::Null).await;
    ok(&place, "DELETE", &at("branches/feature/x"), Value::Null).await;
    assert_eq!(
        call(&place, "writer", "DELETE", &at("branches/main"), Value::Null)
            .await
            .status,
        403
    );

    for (context, state) in [("a", "pending"), ("b", "success"), ("a", "failure")] {
        ok(
            &place,
            "POST",
            &at(&format!("statuses/{sha}")),
            json!({"state": state, "context": context, "description": "d"}),
        )
        .await;
    }
    let combined = ok(&place, "GET", &at("commits/main/status"), Value::Null).await;
    assert_eq!(
        (&combined["state"], &combined["total_count"]),
        (&json!("failure"), &json!(2))
    );
    assert_eq!(
        ok(&place, "GET", &at("commits/main/statuses"), Value::Null).await[0]["id"],
        3
    );
    let wrong = call(
        &place,
        "writer",
        "POST",
        &at(&format!("statuses/{sha}")),
        json!({"state": "great"}),
    )
    .await;
    assert_eq!(wrong.status, 422);
}

#[tokio::test]
async fn pull_requests_are_merged_in_three_ways() {
    let place = place().await;
    place.api.repository(
        "app",
        json!({"protectedBranches": [{"name": "main", "requirePullRequest": true}]}),
    );
    let at = |path: &str| format!("repos/root/app/{path}");
    let url = place.url("writer", "app");
    place.api.repository("app", json!({}));
    place.run("w", &format!("git init -q -b main . && seq 1 9 > f && git add . && git commit -qm base && git remote add origin {url} && git push -q origin main")).await;
    place.api.repository(
        "app",
        json!({"protectedBranches": [{"name": "main", "requirePullRequest": true}]}),
    );
    for (number, style, parents) in [(1, "merge", 2), (2, "squash", 1), (3, "rebase", 1)] {
        let script = format!(
            "git fetch -q && git checkout -q -B b{number} origin/main && echo {style} > n{number} && git add . && git commit -qm one && echo {style} >> n{number} && git commit -qam two && git push -q origin b{number}"
        );
        place.run("w", &script).await;
        let made = ok(
            &place,
            "POST",
            &at("pulls"),
            json!({"title": format!("Add {style}"), "base": "main", "head": format!("b{number}")}),
        )
        .await;
        assert_eq!(
            (&made["number"], &made["mergeable"]),
            (&json!(number), &json!(true))
        );
        let files = ok(&place, "GET", &at(&format!("pulls/{number}/files")), Value::Null).await;
        assert_eq!(
            (&files[0]["filename"], &files[0]["additions"]),
            (&json!(format!("n{number}")), &json!(2))
        );
        assert_eq!(
            ok(
                &place,
                "GET",
                &at(&format!("pulls/{number}/commits")),
                Value::Null
            )
            .await
            .as_array()
            .unwrap()
            .len(),
            2
        );
        let patch = call(
            &place,
            "writer",
            "GET",
            &at(&format!("pulls/{number}.diff")),
            Value::Null,
        )
        .await;
        assert!(String::from_utf8_lossy(&patch.bytes).contains(&format!("+{style}")));
        let comment = ok(
            &place,
            "POST",
            &at(&format!("issues/{number}/comments")),
            json!({"body": "fine"}),
        )
        .await;
        assert_eq!(comment["user"]["login"], "writer");
        let merging = json!({"Do": style, "delete_branch_after_merge": true});
        ok(&place, "POST", &at(&format!("pulls/{number}/merge")), merging).await;
        let merged = ok(&place, "GET", &at(&format!("pulls/{number}")), Value::Null).await;
        assert_eq!(
            (&merged["merged"], &merged["state"], &merged["comments"]),
            (&json!(true), &json!("closed"), &json!(1))
        );
        let shown = place.run("w", &format!("git fetch -q --prune && git cat-file -p origin/main | grep -c ^parent && git show origin/main:n{number} && git branch -r")).await;
        assert_eq!(shown, format!("{parents}\n{style}\n{style}\n  origin/main"));
        assert_eq!(
            call(
                &place,
                "writer",
                "POST",
                &at(&format!("pulls/{number}/merge")),
                json!({})
            )
            .await
            .status,
            405
        );
    }
    assert_eq!(
        place
            .run("w", "git log --format=%s origin/main")
            .await
            .lines()
            .count(),
        7
    );
    // Branches that disagree, and a pull request that is given up.
    place.run("w", "git checkout -q -B c1 origin/main && echo c1 > f && git commit -qam c1 && git checkout -q -B c2 origin/main && echo c2 > f && git commit -qam c2 && git push -q origin c1 c2").await;
    for head in ["c1", "c2"] {
        ok(
            &place,
            "POST",
            &at("pulls"),
            json!({"title": head, "base": "main", "head": head}),
        )
        .await;
    }
    assert_eq!(
        call(
            &place,
            "writer",
            "POST",
            &at("pulls"),
            json!({"title": "x", "base": "main", "head": "c1"})
        )
        .await
        .status,
        409
    );
    ok(&place, "POST", &at("pulls/4/merge"), json!({"Do": "squash"})).await;
    let clash = call(
        &place,
        "writer",
        "POST",
        &at("pulls/5/merge"),
        json!({"Do": "merge"}),
    )
    .await;
    assert_eq!(clash.status, 409);
    assert!(
        clash.body["message"].as_str().unwrap().contains("disagree in f"),
        "{}",
        clash.body
    );
    assert_eq!(
        ok(&place, "GET", &at("pulls/5"), Value::Null).await["mergeable"],
        false
    );
    ok(
        &place,
        "PATCH",
        &at("pulls/5"),
        json!({"state": "closed", "title": "given up"}),
    )
    .await;
    assert_eq!(
        ok(&place, "GET", &at("pulls"), Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        ok(&place, "GET", &at("pulls?state=closed"), Value::Null)
            .await
            .as_array()
            .unwrap()
            .len(),
        5
    );
    for (body, status) in [
        (json!({"title": "x", "base": "main", "head": "main"}), 422),
        (json!({"title": "x", "base": "main", "head": "none"}), 404),
        (json!({"base": "main", "head": "c2"}), 422),
        (json!({"title": "x", "base": "main", "head": "c2..x"}), 422),
    ] {
        assert_eq!(
            call(&place, "writer", "POST", &at("pulls"), body.clone())
                .await
                .status,
            status,
            "{body}"
        );
    }
    let compared = ok(&place, "GET", &at("compare/main...c2"), Value::Null).await;
    assert_eq!(compared["total_commits"], 1);
    // A commit as a patch; the first one is compared with nothing.
    let commits = ok(&place, "GET", &at("commits?sha=c2&limit=50"), Value::Null).await;
    let commits = commits.as_array().unwrap();
    for commit in [commits.first().unwrap(), commits.last().unwrap()] {
        let sha = commit["sha"].as_str().unwrap();
        for end in ["diff", "patch"] {
            let path = at(&format!("git/commits/{sha}.{end}"));
            let patch = call(&place, "writer", "GET", &path, Value::Null).await;
            let text = String::from_utf8_lossy(&patch.bytes).into_owned();
            assert_eq!(patch.status, 200, "{text}");
            assert!(text.starts_with("diff --git ") && text.contains("\n+"), "{text}");
        }
    }
    let none = at("git/commits/0123456789012345678901234567890123456789.diff");
    assert_eq!(
        call(&place, "writer", "GET", &none, Value::Null).await.status,
        404
    );
}
