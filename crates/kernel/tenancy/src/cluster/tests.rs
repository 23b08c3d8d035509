//! Names at their limits, and what is made of them.

use proptest::prelude::*;

use super::*;

#[test]
fn paths() {
    let longest = "a".repeat(63);
    let too_long = "a".repeat(64);
    let deepest = vec!["a"; MAX_DEPTH].join(":");
    let too_deep = vec!["a"; MAX_DEPTH + 1].join(":");
    for (text, good) in [
        ("root", true),
        ("a", true),
        ("0", true),
        ("root:acme:frontend", true),
        ("1x2y3z:child", true),
        ("system:fairway", true),
        (longest.as_str(), true),
        (too_long.as_str(), false),
        (deepest.as_str(), true),
        (too_deep.as_str(), false),
        ("", false),
        (":", false),
        (":root", false),
        ("root:", false),
        ("root::a", false),
        ("-a", false),
        ("a-", false),
        ("Root", false),
        ("root/a", false),
        ("root.a", false),
        ("..", false),
        ("*", false),
        ("root:*", false),
        ("root%3Aa", false),
        ("rööt", false),
        ("a b", false),
        ("a\0", false),
    ] {
        assert_eq!(WorkspacePath::parse(text).is_ok(), good, "{text:?}");
    }
}

#[test]
fn ids() {
    for (text, good) in [
        ("root", true),
        ("1084s8ceexsehjm2", true),
        ("system:admin", true),
        ("system:a:b", true),
        ("system:", false),
        ("system:A", false),
        ("root:acme", false),
        ("", false),
    ] {
        assert_eq!(ClusterId::parse(text).is_ok(), good, "{text:?}");
    }
    assert!(ClusterId::parse("system:admin").unwrap().is_system());
    assert!(!ClusterId::parse("systemadmin").unwrap().is_system());
}

#[test]
fn targets() {
    let cluster = |text: &str| Target::Cluster(ClusterId::parse(text).unwrap());
    for (segment, expected) in [
        ("*", Target::Wildcard),
        ("root", cluster("root")),
        ("system:fairway", cluster("system:fairway")),
        ("root:a", Target::Path(WorkspacePath::parse("root:a").unwrap())),
    ] {
        assert_eq!(Target::parse(segment), Ok(expected));
    }
    assert_eq!(
        Target::parse("Root").unwrap_err().to_string(),
        "invalid cluster: \"Root\" does not match the regex: use names of lower case letters, digits and '-' (at most 63 \
         characters each), joined by ':'"
    );
    // A message does not repeat a megabyte that somebody sent.
    assert!(Target::parse(&"A".repeat(1 << 20)).unwrap_err().to_string().len() < 400);
}

#[test]
fn request_paths() {
    for (path, expected) in [
        ("/clusters/root/api/v1", Some(("root", "/api/v1"))),
        ("/clusters/root", Some(("root", "/"))),
        ("/clusters/root/", Some(("root", "/"))),
        ("/clusters/*/apis", Some(("*", "/apis"))),
        ("/clusters/a/clusters/b/api", Some(("a", "/clusters/b/api"))),
        ("/clusters/", Some(("", "/"))),
        ("/clusters//api", Some(("", "/api"))),
        ("/clusters", None),
        ("/api/v1", None),
        ("//clusters/root", None),
    ] {
        assert_eq!(split_request_path(path), expected, "{path}");
    }
}

#[test]
fn parts_of_a_path() {
    let path = WorkspacePath::parse("root:acme:web").unwrap();
    assert_eq!(path.segments().collect::<Vec<_>>(), ["root", "acme", "web"]);
    assert_eq!(path.base(), "web");
    assert_eq!(path.parent().unwrap().as_str(), "root:acme");
    assert_eq!(path.as_cluster(), None);
    assert_eq!(path.request_path(), "/clusters/root:acme:web");
    assert_eq!(path.join("x").unwrap().as_str(), "root:acme:web:x");
    assert!(path.join("X").is_err());
    assert!(path.join("").is_err());
    let system = WorkspacePath::parse("system:fairway").unwrap();
    assert_eq!(system.segments().collect::<Vec<_>>(), ["system:fairway"]);
    assert_eq!(system.parent(), None);
    assert_eq!(system.base(), "system:fairway");
    for (path, other, within) in [
        ("root:a", "root", true),
        ("root:a", "root:a", true),
        ("root:ab", "root:a", false),
        ("root", "root:a", false),
    ] {
        let (path, other) = (
            WorkspacePath::parse(path).unwrap(),
            WorkspacePath::parse(other).unwrap(),
        );
        assert_eq!(path.is_within(&other), within, "{path} within {other}");
    }
}

#[test]
fn walking() {
    let known = |cluster: &ClusterId| ["root", "c1", "v1u4alow0iv9"].contains(&cluster.as_str());
    let child = |cluster: &ClusterId, name: &str| {
        let found = match (cluster.as_str(), name) {
            ("root", "acme") => "c1",
            ("c1", "web") => "c2",
            ("v1u4alow0iv9", "mine") => "c3",
            _ => return None,
        };
        ClusterId::parse(found).ok()
    };
    for (path, expected) in [
        ("root", Ok("root")),
        ("root:acme", Ok("c1")),
        ("root:acme:web", Ok("c2")),
        ("c1:web", Ok("c2")),
        ("user:alice:mine", Ok("c3")),
        ("user:alice", Ok("v1u4alow0iv9")),
        ("root:acme:none:deeper", Err("root:acme:none")),
        ("nowhere:acme", Err("nowhere")),
    ] {
        let found = WorkspacePath::parse(path).unwrap().walk(known, child);
        assert_eq!(
            found.as_ref().map(ClusterId::as_str),
            expected.map_err(str::to_owned).as_ref().copied(),
            "{path}"
        );
    }
}

#[test]
fn generated_ids() {
    let uid = "0f0a8bfa-8c8d-4bb8-9d3c-6d7a2f1e5a10";
    let first = ClusterId::for_workspace(uid, 0);
    assert_eq!(first, ClusterId::for_workspace(uid, 0));
    assert_ne!(first, ClusterId::for_workspace(uid, 1));
    assert_eq!(first.as_str().len(), 16);
    // Known to clients of kcp, which compute it themselves.
    assert_eq!(ClusterId::home_of("bob").as_str(), "2okdry95y5lkv");
}

proptest! {
    #[test]
    fn every_generated_id_is_an_id(uid in ".*", attempt in 0..3_u32) {
        let id = ClusterId::for_workspace(&uid, attempt);
        prop_assert_eq!(ClusterId::parse(id.as_str()), Ok(id));
    }

    #[test]
    fn no_text_breaks_the_parsers(text in ".{0,80}") {
        let _ = Target::parse(&text);
        let _ = ClusterId::parse(&text);
        let _ = split_request_path(&text);
    }
}
